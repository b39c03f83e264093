import Digests
import WireBytes

/// The status page: one document without other resources. Its script builds elements and sets their text; it never makes
/// markup of data.
enum StatusPage {
    static let html = """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <link rel="icon" href="data:,">
        <title>chatbridge</title>
        <style>\(style)</style>
        \(body)<script>\(script)</script>
        </html>

        """

    /// Nothing but this style and this script, by their hashes, and the stream.
    static let policy =
        "default-src 'none'; style-src '\(hash(style))'; script-src '\(hash(script))'; connect-src 'self'; "
        + "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// Source: CSP3, "source-list".
    private static func hash(_ text: String) -> String { "sha256-" + Base64.encode(SHA256.hash(Array(text.utf8))) }

    private static let body = """
        <header>
        <h1><i id="light"></i><span id="server">chatbridge</span></h1>
        <p id="summary">connecting …</p>
        </header>
        <main>
        <ul id="troubles"></ul>
        <section><h2>Rooms</h2><div class="scroll"><table id="rooms"></table></div></section>
        <section id="mirroring" hidden><h2>Mirrors</h2><div class="scroll"><table id="mirrors"></table></div></section>
        <div class="pair">
        <section><h2>Messages per second <small><b class="in"></b> in <b class="out"></b> out</small></h2>
        <canvas id="rate"></canvas></section>
        <section><h2>Relay latency <small><b class="in"></b> median <b class="out"></b> 99 %</small></h2>
        <canvas id="latency"></canvas></section>
        </div>
        <section><h2>Clients</h2><div class="scroll"><table id="clients"></table></div></section>
        <section><h2>Events</h2><ol id="events"></ol></section>
        </main>

        """

    private static let style = """
        :root { --bg: #f6f6f4; --card: #fff; --ink: #1d1f22; --dim: #6b7078; --line: #e4e4e0; --ok: #2a9d63; --warn: #c98a10;
          --bad: #d0433c; --in: #2f6fde; --out: #d9772b }
        @media (prefers-color-scheme: dark) {
          :root { --bg: #14161a; --card: #1c1f25; --ink: #e6e7ea; --dim: #8d939d; --line: #2b2f37; --ok: #43c287;
            --warn: #e0ad3f; --bad: #f0716a; --in: #6ea0ff; --out: #f0a060 } }
        * { box-sizing: border-box }
        body { margin: 0; background: var(--bg); color: var(--ink); font: 14px/1.45 system-ui, sans-serif }
        header, main { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem }
        header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; padding-top: 1.5rem }
        h1 { font-size: 1.35rem; margin: 0 }
        h2 { font-size: .8rem; font-weight: 600; color: var(--dim); margin: 0 0 .5rem }
        h2 small { font: inherit; font-weight: 400; float: right }
        h2 b { display: inline-block; width: .8em; height: .2em; vertical-align: middle; margin-left: .8em; border-radius: 1px }
        b.in { background: var(--in) }
        b.out { background: var(--out) }
        #summary { margin: 0; color: var(--dim) }
        i { display: inline-block; width: 8px; height: 8px; border-radius: 50%; background: var(--dim); margin-right: .5em }
        i.ok { background: var(--ok) }
        i.warning { background: var(--warn) }
        i.error { background: var(--bad) }
        section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; margin: 1rem 0 }
        .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem }
        .pair section { margin: 0 }
        .scroll { overflow-x: auto }
        table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
        th { text-align: left; font-weight: 400; font-size: .75rem; color: var(--dim) }
        td, th { padding: .3rem .9rem .3rem 0; white-space: nowrap; vertical-align: top }
        tr + tr td { border-top: 1px solid var(--line) }
        td.n, th.n { text-align: right }
        td:last-child, th:last-child { padding-right: 0 }
        td.w { white-space: normal; min-width: 14rem }
        td small, li small { color: var(--dim); font-size: .85em }
        .empty { color: var(--dim) }
        ul, ol { list-style: none; margin: 0; padding: 0 }
        #troubles li { border-left: 3px solid var(--bad); background: var(--card); border-radius: 0 8px 8px 0;
          padding: .45rem .8rem; margin: .5rem 0 }
        #troubles li.warning { border-color: var(--warn) }
        #events { max-height: 22rem; overflow-y: auto }
        #events li { padding: .2rem 0; display: flex; gap: .8rem }
        #events time { color: var(--dim); font-variant-numeric: tabular-nums; flex: none }
        #events span { flex: none; width: 3.2rem; color: var(--dim) }
        #events .error span { color: var(--bad) }
        #events .warn span { color: var(--warn) }
        canvas { width: 100%; height: 8rem; display: block }
        @media (max-width: 40rem) { #events span { display: none } }
        """

    private static let script = #"""
        "use strict";
        const $ = id => document.getElementById(id);
        const samples = [], notes = [];
        let interval = 2, isListed = false;
        function el(tag, text, name) {
          const e = document.createElement(tag);
          if (text !== undefined) e.textContent = text;
          if (name) e.className = name;
          return e;
        }
        function span(s) {
          s = Math.max(0, Math.round(s));
          if (s < 90) return s + " s";
          if (s < 5400) return Math.round(s / 60) + " min";
          if (s < 172800) return Math.floor(s / 3600) + " h " + Math.round(s % 3600 / 60) + " min";
          return Math.floor(s / 86400) + " d " + Math.round(s % 86400 / 3600) + " h";
        }
        const ms = s => s === null ? "" : s < .01 ? (s * 1000).toFixed(1) + " ms" : s < 1 ? Math.round(s * 1000) + " ms" : s.toFixed(1) + " s";
        const clock = t => new Date(t).toLocaleTimeString([], { hour12: false });
        const count = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
        function fill(table, heads, rows, empty) {
          const top = el("tr");
          for (const [text, name] of heads) top.append(el("th", text, name));
          const lines = rows.map(cells => {
            const tr = el("tr");
            cells.forEach((c, i) => {
              const td = el("td", undefined, heads[i][1]);
              td.append(...(Array.isArray(c) ? c : [c === null ? "" : String(c)]));
              tr.append(td);
            });
            return tr;
          });
          const none = el("tr");
          none.append(el("td", empty, "empty"));
          table.replaceChildren(...(lines.length ? [top, ...lines] : [none]));
        }
        function show(s) {
          const now = Date.parse(s.at), ago = t => t ? span((now - Date.parse(t)) / 1000) : "";
          const level = s.troubles.some(t => t.level === "error") ? "error" : s.troubles.length || !s.ready ? "warning" : "ok";
          $("light").className = level;
          document.title = (level === "ok" ? "" : "(" + s.troubles.length + ") ") + s.server;
          $("server").textContent = s.server;
          const wanted = s.rooms.filter(r => !(r.on_demand && r.state === "stopped"));
          const up = wanted.filter(r => r.state === "up").length;
          const queued = s.rooms.reduce((n, r) => n + r.queued, 0);
          $("summary").textContent = [
            "chatbridge " + s.version, "up " + ago(s.started_at), up + " of " + count(wanted.length, "room") + " linked",
            count(s.client_count, "client"), queued ? count(queued, "message") + " waiting" : "",
            s.running ? s.ready ? "ready" : "not ready: " + s.reasons.join(", ") : "stopping"
          ].filter(Boolean).join(" · ");
          $("troubles").replaceChildren(...s.troubles.map(t => {
            const li = el("li", undefined, t.level);
            li.append(el("b", t.subject), " " + t.text, el("br"), el("small", t.remedy));
            return li;
          }), ...s.warnings.map(w => el("li", w, "warning")));
          fill($("rooms"), [["Room"], ["State", "w"], ["Backend"], ["Ping", "n"], ["In", "n"], ["Out", "n"], ["Waiting", "n"],
            ["Users", "n"], ["Clients", "n"], ["Last", "n"]], s.rooms.map(r => {
            const idle = r.on_demand && r.state === "stopped";
            const bad = s.troubles.find(t => t.subject === "room " + r.name);
            const dot = el("i", undefined, idle ? "" : r.state === "up" ? bad ? bad.level : "ok" : r.state === "stopped" ? "" : "error");
            const state = [dot, idle ? "on demand" : r.state + (r.since ? " " + ago(r.since) : "")];
            if (r.retry_in !== null) state.push(", retry in " + span(r.retry_in));
            if (r.failures) state.push(el("small", " (" + r.failures + ")"));
            if (r.reason && r.state !== "up" && !idle) state.push(el("br"), el("small", r.reason));
            if (r.token_ends_at) {
              const left = (Date.parse(r.token_ends_at) - now) / 1000;
              state.push(el("br"), el("small", left < 0 ? "token ended " + span(-left) + " ago" : "token ends in " + span(left)));
            }
            if (r.undecodable) state.push(el("br"), el("small", count(r.undecodable, "frame") + " not understood"));
            return [[el("b", r.name), ...(r.channel === "#" + r.name ? [] : [el("small", " " + r.channel)])], state, r.host, ms(r.round_trip), r.messages_in,
              r.messages_out, r.queued ? r.queued + " (" + span(r.oldest_queued_for || 0) + ")" : "", r.upstream_users, r.clients,
              r.last_message_at ? ago(r.last_message_at) + " ago" : ""];
          }), "no rooms");
          $("mirroring").hidden = !s.mirrors.length;
          fill($("mirrors"), [["Mirror"], ["State", "w"], ["Rooms", "w"], ["Out", "n"], ["In", "n"], ["Waiting", "n"], ["Refused", "n"],
            ["Given up", "n"]], s.mirrors.map(m => {
            const bad = s.troubles.find(t => t.subject === "mirror " + m.name);
            const dot = el("i", undefined, bad ? bad.level : ["starting", "connecting"].includes(m.state) ? "warning" : "ok");
            const state = [dot, m.state + (m.since ? " " + ago(m.since) : "")];
            if (m.reason) state.push(el("br"), el("small", m.reason));
            return [[el("b", m.name), el("small", " " + m.type)], state, m.rooms.join(", "), m.posted, m.arrived, m.waiting || "",
              m.refused + m.arrivals_refused || "", m.given_up || ""];
          }), "no mirrors");
          fill($("clients"), [["Nick"], ["Account"], ["Rooms", "w"], ["From"], ["Over"], ["Connected", "n"], ["Idle", "n"]],
            s.clients.map(c => [[el("b", c.nick || "–"), ...(c.registered ? [] : [el("small", " registering")]),
              ...(c.paused ? [el("small", " slowed down")] : [])], c.account, c.rooms.join(", "), c.address,
              [c.transport + " ", el("small", c.listener)], ago(c.connected_at), ago(c.idle_since)])
              .concat(s.client_count > s.clients.length ? [["and " + (s.client_count - s.clients.length) + " more"]] : []), "no clients");
        }
        function plot(canvas, series, label, least) {
          const css = getComputedStyle(document.documentElement), ratio = devicePixelRatio || 1;
          const w = canvas.clientWidth, h = canvas.clientHeight, g = canvas.getContext("2d");
          canvas.width = w * ratio;
          canvas.height = h * ratio;
          g.scale(ratio, ratio);
          const left = 48, bottom = 16, most = Math.max(least, ...series.flatMap(s => s.points.filter(p => p !== null)));
          let step = Math.pow(10, Math.floor(Math.log10(most)));
          const top = [1, 2, 5, 10].map(n => n * step).find(n => n >= most);
          const x = i => left + (w - left - 2) * (i + 300 - samples.length) / 299, y = v => 4 + (h - bottom - 4) * (1 - v / top);
          g.font = "11px system-ui, sans-serif";
          g.fillStyle = css.getPropertyValue("--dim");
          g.strokeStyle = css.getPropertyValue("--line");
          for (const v of [0, top / 2, top]) {
            g.textAlign = "right";
            g.fillText(label(v), left - 6, y(v) + 4);
            g.beginPath();
            g.moveTo(left, Math.round(y(v)) + .5);
            g.lineTo(w, Math.round(y(v)) + .5);
            g.stroke();
          }
          g.textAlign = "left";
          g.fillText("10 min ago", left, h - 3);
          g.textAlign = "right";
          g.fillText("now", w - 2, h - 3);
          for (const s of series) {
            g.strokeStyle = g.fillStyle = css.getPropertyValue(s.color);
            g.lineWidth = 1.5;
            g.lineJoin = "round";
            g.beginPath();
            let open = false;
            s.points.forEach((p, i) => {
              if (p === null) { open = false; return; }
              if (open) g.lineTo(x(i), y(p));
              else g.moveTo(x(i), y(p));
              open = true;
            });
            g.stroke();
            s.points.forEach((p, i) => {
              // A line needs two.
              if (p === null || (s.points[i - 1] ?? null) !== null || (s.points[i + 1] ?? null) !== null) return;
              g.beginPath();
              g.arc(x(i), y(p), 1.8, 0, 7);
              g.fill();
            });
          }
        }
        function draw() {
          plot($("rate"), [{ color: "--out", points: samples.map(s => s[2] / interval) },
            { color: "--in", points: samples.map(s => s[1] / interval) }], v => v < 10 ? String(+v.toFixed(2)) : Math.round(v), 1);
          plot($("latency"), [{ color: "--out", points: samples.map(s => s[4]) },
            { color: "--in", points: samples.map(s => s[3]) }], v => v ? ms(v) : "0", .001);
        }
        function list() {
          $("events").replaceChildren(...notes.map(n => {
            const li = el("li", undefined, n.level), text = el("div", n.text + " ");
            text.append(el("small", n.about));
            const time = el("time", clock(n.at));
            time.title = n.event;
            li.append(time, el("span", n.level), text);
            return li;
          }).reverse());
          if (!notes.length) $("events").append(el("li", "nothing yet", "empty"));
        }
        const stream = new EventSource("/status/stream" + location.search);
        stream.onopen = () => { samples.length = notes.length = 0; isListed = false; };
        stream.onmessage = event => {
          const data = JSON.parse(event.data);
          interval = data.interval;
          samples.push(...data.samples);
          samples.splice(0, samples.length - 300);
          notes.push(...data.notes);
          notes.splice(0, notes.length - 100);
          show(data.status);
          draw();
          if (data.notes.length || !isListed) list();
          isListed = true;
        };
        stream.onerror = () => {
          $("light").className = "error";
          $("summary").textContent = "no connection to the bridge; what follows is old";
        };
        addEventListener("resize", draw);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
        """#
}
