"""What an operator sees of mirrors, tries, and changes: dry runs, status, metrics, the page, reloads, wrong configurations."""

import json
import os
import re
import subprocess

import peer
from admin import change, command, done
from mirrors import SECRETS, TOOLS, mirrored, on_tools, say_all, table
from operating import command_output
from peer import wait_until
from settings import credential


def metrics(m):
    return m.ask("GET", "/metrics").body.decode()


def sample(text, name, **labels):
    """The value of a sample with these labels among others, or None."""
    for line in text.splitlines():
        if line.startswith(name + "{") and all('%s="%s"' % pair in line for pair in labels.items()):
            return float(line.rsplit(" ", 1)[1])
    return None


def address_secret(url):
    """The part of a hook's address that nobody else may know."""
    return max(re.split(r"[/?&=]", url.split("://", 1)[1].split("/", 1)[1]), key=len)


# MARK: - Dry runs


@on_tools(*TOOLS)
def a_dry_run_posts_nothing(m, tool):
    """It prints the request as it would be, without what is secret in it."""
    m.open(m.mirror(tool))
    printed = command_output(m, "mirrors", "test", "team")
    assert m.tools.requests(tool) == [], m.tools.requests(tool)
    assert "lobby" in printed and "POST" in printed, printed
    assert SECRETS[tool] not in printed and (tool == "json" or address_secret(m.tools.url(tool)) not in printed), printed
    # The body is one that the tool would take.
    body = next((json.loads(line) for line in printed.splitlines() if line.strip().startswith("{")), None) or json.loads(
        printed[printed.index("{") : printed.rindex("}") + 1])
    assert {"slack": "text", "mattermost": "text", "rocketchat": "text", "discord": "content", "teams": "attachments",
            "json": "messages"}[tool] in body, body


@on_tools("slack")
def a_dry_run_without_a_bridge(m, tool):
    """The configuration alone is enough; a name that is not there is said."""
    m.open(m.mirror(tool))
    assert m.bridge.terminate() == 0
    assert "lobby" in command_output(m, "mirrors", "test", "team")
    wrong = command(m.bridge, "mirrors", "test", "temu")
    assert wrong.returncode in (64, 65) and "team" in wrong.stderr and not wrong.stdout, wrong
    assert command(m.bridge, "mirrors", "test").returncode == 64
    assert m.tools.requests(tool) == []
    # The process is gone on purpose.
    m.bridge = None


# MARK: - States


@on_tools("slack", "json")
def states_in_status_metrics_and_page(m, tool):
    m.open(m.mirror(tool), m.mirror(tool, mirror_name="second", path="/hooks/second"))
    ann = m.irc("ann")
    say_all(ann, ["n 0", "n 1"])
    m.tool_says(tool, "U024BE7LH" if tool == "slack" else "ada", "from there")
    ann.expect_text("from there")
    wait_until(lambda: sample(metrics(m), "chatbridge_mirror_deliveries_total", mirror="team", result="ok") == 2, "two are out")
    # What the tool said is in the room's order too, and passed over.
    wait_until(lambda: sample(metrics(m), "chatbridge_mirror_queue_messages", mirror="team") == 0, "nothing waits")
    for source in (
        json.loads(command_output(m, "status", "--json")), json.loads(m.ask("GET", "/status.json").body),
    ):
        found = {mirror["name"]: mirror for mirror in source["mirrors"]}
        assert set(found) == {"team", "second"}, found
        assert found["team"]["type"] == tool and found["team"]["rooms"] == ["lobby"], found["team"]
    assert "team" in command_output(m, "status")
    healthy = found["team"]

    m.tools.refuse(tool)
    say_all(ann, ["n %d" % number for number in range(2, 9)])
    wait_until(
        lambda: (sample(metrics(m), "chatbridge_mirror_queue_messages", mirror="team") or 0) == 7,
        lambda: "seven wait; the metrics are:\n" + "\n".join(x for x in metrics(m).splitlines() if "mirror" in x))
    broken = wait_until(
        lambda: next((x for x in json.loads(m.ask("GET", "/status.json").body)["mirrors"]
                      if x["name"] == "team" and x.get("state") != healthy.get("state")), None), "its state says so")
    assert "state" in broken and "7" in json.dumps(broken), broken
    wait_until(lambda: sample(metrics(m), "chatbridge_mirror_up", mirror="team") == 0, "the metrics say so")
    texts = command_output(m, "status") + json.dumps(broken) + metrics(m) + m.bridge.log()
    # The consumer of the plain form has a word in its address, and no secret.
    assert SECRETS[tool] not in texts and (tool == "json" or address_secret(m.tools.url(tool)) not in texts), "a secret is shown"

    m.tools.accept(tool)
    wait_until(lambda: sample(metrics(m), "chatbridge_mirror_queue_messages", mirror="team") == 0, "the queue is empty", 40)
    wait_until(lambda: next(x for x in json.loads(m.ask("GET", "/status.json").body)["mirrors"] if x["name"] == "team")[
        "state"] == healthy["state"], "it is well again")


@on_tools("json")
def refused_posts_are_counted(m, tool):
    m.open(m.mirror(tool))
    for _ in range(3):
        m.ask("POST", "/hooks/json", b"{}", {"Content-Type": "application/json"})
    found = [line for line in metrics(m).splitlines() if line.startswith("chatbridge_mirror_") and line.endswith(" 3")]
    assert found and 'mirror="team"' in found[0], [x for x in metrics(m).splitlines() if "mirror" in x]


@on_tools("json")
def the_log_has_no_text_and_no_secret(m, tool):
    m.open(m.mirror(tool), log='level = "debug"')
    m.tools.fault(tool, "status", 1, status=500)
    ann = m.irc("ann")
    ann.say("#lobby", "unspeakable words")
    m.tools.expect_said(tool, "ann", "unspeakable words")
    m.tool_says(tool, "ada", "unspeakable answer")
    ann.expect_text("unspeakable answer")
    log = m.bridge.log()
    assert "unspeakable" not in log and SECRETS[tool] not in log, [x for x in log.splitlines() if "unspeak" in x]


# MARK: - Changes


@on_tools("json", second="json")
def a_reload_adds_changes_and_removes_mirrors(m, tool):
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    say_all(ann, ["n 0"])
    m.tools.expect_said(tool, "ann", "n 0")
    text = m.mirror("second", mirror_name="second", path="/hooks/second")
    with open(m.bridge.config_path, "a", encoding="utf-8") as file:
        file.write(text)
    assert "second" in done(m.bridge, "reload")
    say_all(ann, ["n 1"])
    for name in (tool, "second"):
        m.tools.expect_said(name, "ann", "n 1")
    m.tool_says("second", "ada", "hello")
    assert ann.expect_text("hello").source.startswith("ada/second!")
    change(m.bridge, ('path = "/hooks/second"', 'path = "/hooks/third"'))
    assert "second" in done(m.bridge, "reload")
    assert m.post("second", ({}, b"{}")).status == 404
    assert m.post("second", ({}, b"{}"), "/hooks/third").status in (400, 401, 403, 415)
    m.tools.refuse("second")
    say_all(ann, ["n 2"])
    change(m.bridge, (text.replace("/hooks/second", "/hooks/third"), ""))
    assert "second" in done(m.bridge, "reload")
    m.tools.accept("second")
    say_all(ann, ["n 3"])
    m.tools.expect_said(tool, "ann", "n 3")
    assert [message["text"] for message in m.tools.messages("second")] == ["n 1", "hello"][:1], m.tools.messages("second")
    assert m.post("second", ({}, b"{}"), "/hooks/third").status == 404


@on_tools("json")
def a_new_address_takes_what_waits(m, tool):
    """The tool has moved: what waits for the old address goes to the new one."""
    m.open(m.mirror(tool, url="http://127.0.0.1:9/gone"))
    ann = m.irc("ann")
    say_all(ann, ["n 0", "n 1"])
    change(m.bridge, ("http://127.0.0.1:9/gone", m.tools.url(tool)))
    done(m.bridge, "reload")
    for number in range(2):
        m.tools.expect_said(tool, "ann", "n %d" % number, patience=40)


@on_tools("json")
def topics_that_are_asked_for(m, tool):
    m.open(m.mirror(tool, events=["message", "topic"]))
    change(m.bridge, ('name = "lobby"\n', 'name = "lobby"\ntopic = "soup of the day"\n'))
    done(m.bridge, "reload")
    shown = m.tools.expect(tool, "the topic", lambda message: message["whole"]["kind"] == "topic")
    assert shown["text"] == "soup of the day", shown


@on_tools("slack", "json")
def secrets_from_files(m, tool):
    """`url_file` and `secret_file`, with the line end that editors leave."""
    for name, value in (("url", m.tools.url(tool)), ("secret", SECRETS[tool])):
        with open(os.path.join(m.directory, "team-" + name), "w", encoding="utf-8") as file:
            file.write(value + "\n")
    m.open(m.mirror(
        tool, url=None, secret=None, url_file=m.directory + "/team-url", secret_file=m.directory + "/team-secret"))
    ann = m.irc("ann")
    ann.say("#lobby", "out")
    m.tools.expect_said(tool, "ann", "out")
    m.tool_says(tool, "U024BE7LH" if tool == "slack" else "ada", "in")
    ann.expect_text("in")


@on_tools("json")
def secrets_from_credentials(m, tool):
    """`url_credential` and `secret_credential`, as systemd hands them over."""
    credential(m.directory, "url", m.tools.url(tool))
    wrapper = credential(m.directory, "secret", SECRETS[tool] + "\n")
    m.open(m.mirror(tool, url=None, secret=None, url_credential="url", secret_credential="secret"), wrapper=wrapper)
    ann = m.irc("ann")
    ann.say("#lobby", "out")
    m.tools.expect_said(tool, "ann", "out")
    m.tool_says(tool, "ada", "in")
    ann.expect_text("in")


def network(**keys):
    return table("net", "irc", **{"rooms": None, "url": "ircs://x.example", "map": {"lobby": "#a"}, **keys})


# Each: what is wrong, tables of mirrors, and a word of the complaint.
WRONG = [
    ("a type", table("team", "sluck", url="https://x.example/"), "sluck"),
    ("a room that is not there", table("team", "slack", rooms=["attic"], url="https://x.example/"), "attic"),
    ("no rooms", table("team", "slack", rooms=[], url="https://x.example/"), "rooms"),
    ("a name", table("Team!", "slack", url="https://x.example/"), "name"),
    ("the same name twice", table("team", "slack", url="https://x.example/") * 2, "team"),
    ("the same path twice", table("one", "json", path="/hooks/x", secret="s" * 16) + table(
        "two", "json", path="/hooks/x", secret="s" * 16), "/hooks/x"),
    ("a path without a secret", table("team", "slack", path="/hooks/team"), "secret"),
    ("no way at all", table("team", "slack"), "team"),
    ("a path that is taken", table("team", "json", path="/metrics", secret="s" * 16), "/metrics"),
    ("a path without a slash", table("team", "json", path="hooks", secret="s" * 16), "path"),
    ("no address", table("team", "slack", url="not an address"), "url"),
    ("a plain address beyond loopback", table("team", "slack", url="http://hooks.example/x"), "http"),
    ("an event", table("team", "slack", url="https://x.example/", events=["massage"]), "massage"),
    ("a placeholder", table("team", "slack", url="https://x.example/", username="{nock}"), "nock"),
    ("mentions", table("team", "slack", url="https://x.example/", mentions="perhaps"), "perhaps"),
    ("a key of another type", table("team", "slack", url="https://x.example/", to="den"), "to"),
    ("a room to itself", table("across", "room", to="lobby"), "lobby"),
    ("a room to none", table("across", "room", to="attic"), "attic"),
    ("a direction", table("across", "room", to="lobby", direction="sideways"), "sideways"),
    ("a key of Teams", table("team", "teams", path="/hooks/t", secret="no Base64!"), "secret"),
    ("a network without rooms", network(map=None), "no rooms"),
    ("a network with rooms", network(rooms=["lobby"]), "rooms means nothing"),
    ("a network without an address", network(url=None), "no url"),
    ("a webhook as a network", network(url="https://x.example/"), "ircs://"),
    ("a network in plain text", network(url="irc://x.example"), "read along"),
    ("TLS of a network without", network(url="irc+insecure://x.example", tls={"insecure": True}), "no TLS"),
    ("no channel", network(map={"lobby": "example"}), "example"),
    ("one channel twice", network(map={"lobby": "#a", "den": "#A"}), "one channel"),
    ("a login without a password", network(sasl={"user": "a"}), "password_file"),
    ("a certificate that is not there", network(sasl={"mechanism": "external"}), "client_cert"),
    ("a nick on a network", network(nick="{user}/x"), "nick"),
    ("a format without words", network(format="{nick}"), "{text}"),
    ("a path of a network", network(path="/hooks/x"), "path"),
    ("a network's key of a tool", table("team", "slack", url="https://x.example/", relaymsg=False), "relaymsg"),
    ("an unknown key", table("team", "slack", url="https://x.example/", colour="red"), "colour"),
    ("an age", table("team", "slack", url="https://x.example/", retry={"max_age": "soon"}), "duration"),
    ("a batch of none", table("team", "slack", url="https://x.example/", batch={"max_messages": 0}), "100"),
]


@mirrored()
def wrong_configurations_are_refused_with_their_place(m):
    m.open()
    with open(m.bridge.config_path, encoding="utf-8") as file:
        good = file.read()
    path = os.path.join(m.directory, "wrong.toml")
    for what, tables, word in WRONG:
        with open(path, "w", encoding="utf-8") as file:
            file.write(good + tables)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHATBRIDGE")}
        ran = subprocess.run(
            [peer.BINARY_PATH, "check", "--config", path], capture_output=True, text=True, timeout=60, env=environment)
        complaint = ran.stdout + ran.stderr
        assert ran.returncode == 78, "%s: exit status %d, %s" % (what, ran.returncode, complaint)
        assert "wrong.toml:" in complaint and word in complaint, "%s: %s" % (what, complaint)


@mirrored()
def a_path_that_no_listener_serves_is_said(m):
    """Hooks are configured, and no [[http]] has "hooks": an error, or a warning that names the mirror."""
    try:
        m.open(table("team", "json", path="/hooks/team", secret="s" * 16), http="")
    except AssertionError as error:
        assert "ended with 78" in str(error) and "hooks" in str(error), error
        return
    assert "team" in command_output(m, "status") and "hooks" in m.bridge.log(), m.bridge.log()[-1500:]
