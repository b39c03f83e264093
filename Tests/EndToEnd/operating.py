"""What an operator sees of a running bridge: the commands at the admin socket, the status page and the metrics."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request

import pages
import peer
from accounts import account
from backends import CALM, on
from fulldisk import empty_disk, fill_disk
from listeners import certificate
from marks import LeftOut, slow
from mirrors import mirrored
from moments import preloaded
from peer import PATIENCE, wait_until
from restarts import folder
from world import scenario

PAGES = '[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["health", "metrics", "status"]\n'


# MARK: - Commands


def command_line(setting, *arguments):
    return [peer.BINARY_PATH, *arguments, "--config", setting.bridge.config_path]


def command_output(setting, *arguments):
    done = subprocess.run(command_line(setting, *arguments), capture_output=True, timeout=PATIENCE, text=True)
    assert done.returncode == 0, done
    return done.stdout


def watch(setting, *arguments):
    """A command that goes on until ``ended``; it watches already."""
    output = tempfile.TemporaryFile("w+", encoding="utf-8")
    process = subprocess.Popen(command_line(setting, *arguments), stdout=output, stderr=subprocess.STDOUT)
    setting.stack.callback(process.wait)
    setting.stack.callback(process.kill)

    def watches():
        setting.backend.say("Remy", "knock")
        return os.fstat(output.fileno()).st_size

    wait_until(watches, "the command sees something")
    return process, output


def ended(watched):
    """What it wrote."""
    process, output = watched
    process.kill()
    process.wait()
    output.seek(0)
    return output.read()


def refused(setting, *arguments):
    """The exit status of a command that fails, and why."""
    done = subprocess.run(command_line(setting, *arguments), capture_output=True, timeout=PATIENCE, text=True)
    assert done.returncode and not done.stdout, done
    return done.returncode, done.stderr


@scenario
def a_bridge_that_is_not_there_is_told_by_the_exit_status(world):
    bridge = world.start()
    assert command_output(world, "status", "--ready") == ""
    assert bridge.terminate() == 0
    status, why = refused(world, "status", "--ready")
    assert status == 1 and "no bridge answers" in why, (status, why)
    status, why = refused(world, "status")
    assert status == 69 and "no bridge answers at %s/state/admin.sock" % bridge.directory in why, (status, why)
    assert all(flag in why for flag in ("--config", "--state-dir", "--socket")), why
    # It is gone on purpose.
    world.bridge = None


# MARK: - Pages


def web_port(setting):
    return int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])


def page(setting, path, lines=None, secure=False):
    """All of an answer, or so many lines of it."""
    scheme, context = ("https", ssl._create_unverified_context()) if secure else ("http", None)
    url = "%s://127.0.0.1:%d%s" % (scheme, web_port(setting), path)
    with urllib.request.urlopen(url, timeout=PATIENCE, context=context) as answer:
        if lines:
            return "".join(answer.readline().decode() for _ in range(lines))
        return answer.read().decode()


@slow("a page that reads nothing is closed 20 s after the kernel's buffers are full")
@scenario
def a_page_that_stops_reading_is_closed(world):
    """It gets no further event until it has taken the one before, so that no more than one waits for it."""
    bridge = world.start(rooms=["room%03d" % number for number in range(400)], linked=False, tables=PAGES)
    stalled = socket.socket()
    world.stack.callback(stalled.close)
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.connect(("127.0.0.1", web_port(world)))
    stalled.sendall(b"GET /status/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def is_closed():
        state = stalled.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state != 1

    wait_until(is_closed, "the page that reads nothing is closed", 150)
    bridge.check_alive()


@scenario
def events_come_once_and_in_order(world):
    """Also those that came just before the page was opened."""
    world.start(tables=PAGES, log_extra='level = "info"')
    ann = world.irc("ann")
    ann.barrier()
    with urllib.request.urlopen("http://127.0.0.1:%d/status/stream" % web_port(world), timeout=PATIENCE) as stream:
        events = []
        while len(events) < 3:
            line = stream.readline().decode()
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
    notes = [(note["at"], note["event"], note["about"]) for event in events for note in event["notes"]]
    assert any(note[1] == "client-registered" for note in notes), notes
    assert len(notes) == len(set(notes)) and notes == sorted(notes, key=lambda note: note[0]), notes
    assert [len(event["samples"]) for event in events[1:]] == [1, 1], events
    assert events[-1]["status"]["client_count"] == 1 == len(events[-1]["status"]["clients"])


def samples(text):
    """{a sample as it is written: its value}"""
    found = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def several(value):
    return value > 0


def turned_away(port, cert):
    """By a listener that wants a newer TLS."""
    context = ssl.create_default_context(cafile=cert)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as link:
            context.wrap_socket(link, server_hostname="localhost").close()
    except ssl.SSLError:
        return
    raise AssertionError("it was taken")


@mirrored(tool="json")
def each_metric_counts_what_happened(m):
    """All of docs/METRICS.md, after a talk with each kind of trouble in it."""
    began = time.time()
    cert, key = certificate(m, "localhost")
    secure = '\n[[listeners]]\nbind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\nmin_tls = "1.3"\n' % (cert, key)
    m.serve(refuse=1, refuse_status=401)
    m.open(
        m.mirror("tool"), more="\n" + account("chef", "secret", "admin = true") + secure,
        room_extra=CALM + 'ping = "500ms"\nqueue = { max_messages = 7 }\n')
    ann, bob, carl = m.irc("ann"), m.plain("bob"), m.plain("carl")
    bob.send("QUIT")
    bob.wait_closed()
    carl.barrier()
    carl.close()
    ann.expect("QUIT", lambda line: line.source.startswith("carl!"))
    for password, answer in (("secret", "381"), ("wrong", "464"), ("wrong", "464")):
        ann.send("OPER chef " + password)
        ann.expect(answer)
    turned_away(int(m.bridge.log_entries("listening")[1]["address"].rsplit(":", 1)[-1]), cert)
    m.bridge.logged("client-handshake-failed", "info", "peer")
    # Both ways, with a frame that is none.
    m.tools.fault("tool", "status", 1, status=500)
    ann.say("#lobby", "hello")
    ann.expect_text("hello")
    m.backend.do("join", "Remy")
    m.backend.do("join", "Gus")
    m.backend.do("leave", "Gus")
    m.backend.do("typing", "Remy")
    m.backend.control("raw", text="no frame", room="lobby")
    m.backend.say("Remy", "good morning")
    ann.expect_text("good morning")
    m.tools.expect_said("tool", "Remy", "good morning")
    m.tool_says("tool", "ada", "from there")
    ann.expect_text("from there")
    assert m.ask("POST", "/hooks/tool", b"{}", {"Content-Type": "application/json"}).status == 401
    now = {}

    def has(name, accept):
        now.update(samples(page(m, "/metrics")))
        return accept(now.get(name, 0))

    out = 'chatbridge_mirror_deliveries_total{mirror="team",result="ok"}'
    wait_until(lambda: has(out, lambda value: value == 2), lambda: "the tool has answered: %r" % now)
    wait_until(lambda: has('chatbridge_upstream_rtt_seconds{room="lobby"}', several), "a ping was answered")
    # One waits.
    m.backend.set(hang=True)
    ann.say("#lobby", "are you there?")
    ann.barrier()
    wait_until(lambda: has('chatbridge_upstream_queue_oldest_seconds{room="lobby"}', several), "it waits")
    with open("/proc/%d/limits" % m.bridge.process.pid, encoding="ascii") as file:
        files = int(next(line for line in file if line.startswith("Max open files")).split()[3])
    version = json.loads(command_output(m, "status", "--json"))["version"]
    texts = sum(line.command == "PRIVMSG" for client in (ann, bob, carl) for line in client.lines)
    plain, tls = ('listener="%s://127.0.0.1:0"' % scheme for scheme in ("irc", "ircs"))
    wanted = {
        'chatbridge_build_info{version="%s"}' % version: 1,
        "chatbridge_start_time_seconds": lambda at: began - 1 < at < time.time(),
        "chatbridge_ready": 1,
        "chatbridge_draining": 0,
        "chatbridge_config_last_reload_successful": 1,
        "chatbridge_config_last_reload_success_timestamp_seconds": lambda at: began - 1 < at < time.time(),
        "process_cpu_seconds_total": lambda used: 0 < used <= m.bridge.cpu_seconds() + 1,
        "process_resident_memory_bytes": lambda used: 1 / 2 < used / 1024 / m.bridge.rss_kib()[1] < 2,
        "process_open_fds": lambda count: 10 < count < 100,
        "process_max_fds": files,
        "chatbridge_clients{%s,transport=\"tcp\"}" % plain: 1,
        "chatbridge_client_connections_total{%s,transport=\"tcp\"}" % plain: 3,
        'chatbridge_client_disconnects_total{reason="quit"}': 1,
        'chatbridge_client_disconnects_total{reason="closed"}': 1,
        'chatbridge_client_disconnects_total{reason="sendq"}': 0,
        'chatbridge_client_auth_total{mechanism="OPER",result="ok"}': 1,
        'chatbridge_client_auth_total{mechanism="OPER",result="refused"}': 2,
        "chatbridge_tls_handshake_failures_total{%s}" % tls: 1,
        'chatbridge_client_messages_total{direction="in",command="PRIVMSG"}': 2,
        'chatbridge_client_messages_total{direction="in",command="OPER"}': 3,
        'chatbridge_client_messages_total{direction="out",command="PRIVMSG"}': texts,
        'chatbridge_client_bytes_total{direction="in"}': several,
        'chatbridge_client_bytes_total{direction="out"}': several,
        "chatbridge_client_sendq_bytes_count": several,
        # The answer to the second failure came later.
        'chatbridge_rate_limited_total{kind="logins"}': 1,
        'chatbridge_rate_limited_total{kind="messages"}': 0,
        "chatbridge_certificate_expiry_timestamp_seconds{%s}" % tls: lambda at: at > time.time(),
        'chatbridge_upstream_up{room="lobby"}': 1,
        'chatbridge_upstream_state{room="lobby",state="up"}': 1,
        'chatbridge_upstream_state{room="lobby",state="waiting"}': 0,
        'chatbridge_upstream_connects_total{room="lobby",result="ok"}': 1,
        'chatbridge_upstream_connects_total{room="lobby",result="refused"}': 1,
        'chatbridge_upstream_connects_total{room="lobby",result="failed"}': 0,
        'chatbridge_upstream_messages_total{room="lobby",direction="in",type="message"}': 1,
        'chatbridge_upstream_messages_total{room="lobby",direction="in",type="typing"}': 1,
        'chatbridge_upstream_messages_total{room="lobby",direction="in",type="join"}': 2,
        'chatbridge_upstream_messages_total{room="lobby",direction="in",type="part"}': 1,
        'chatbridge_upstream_messages_total{room="lobby",direction="out",type="message"}': 2,
        'chatbridge_upstream_undecodable_total{room="lobby"}': 1,
        'chatbridge_upstream_rtt_seconds{room="lobby"}': lambda time: 0 < time < PATIENCE,
        'chatbridge_upstream_queue_messages{room="lobby"}': 1,
        'chatbridge_upstream_queue_limit_messages{room="lobby"}': 7,
        'chatbridge_upstream_queue_oldest_seconds{room="lobby"}': lambda time: 0 < time < PATIENCE,
        'chatbridge_upstream_users{room="lobby"}': 1,
        'chatbridge_relay_latency_seconds_count{direction="down"}': several,
        'chatbridge_relay_latency_seconds_count{direction="up"}': 3,
        out: 2,
        'chatbridge_mirror_deliveries_total{mirror="team",result="given-up"}': 0,
        'chatbridge_mirror_retries_total{mirror="team"}': 1,
        'chatbridge_mirror_queue_messages{mirror="team"}': 0,
        'chatbridge_mirror_up{mirror="team"}': 1,
        'chatbridge_mirror_arrivals_total{mirror="team",result="ok"}': 1,
        'chatbridge_mirror_arrivals_total{mirror="team",result="refused"}': 1,
        "chatbridge_storage_up": 1,
        'chatbridge_storage_operation_seconds_count{op="write"}': several,
        **{'chatbridge_storage_errors_total{op="%s"}' % op: 0 for op in ("write", "load", "read", "find", "search")},
    }
    wrong = {
        name: (now.get(name), value) for name, value in wanted.items()
        if name not in now or not (value(now[name]) if callable(value) else value == now[name])}
    assert not wrong, "%r\n%s" % (wrong, page(m, "/metrics"))
    documented = set(re.findall(r"(?m)^\| `(\w+)` \| (?:gauge|counter|histogram) ", pages.read("docs/METRICS.md")))
    looked_at = {re.sub(r"_count$", "", name.partition("{")[0]) for name in wanted}
    # Of a log-in: `a_token_that_ended`.
    assert documented - looked_at == {"chatbridge_upstream_token_expiry_timestamp_seconds"}, documented ^ looked_at
    return "%d of %d samples" % (len(wanted), len(now))


PROMTOOL = shutil.which("promtool")


@scenario
def metrics_are_as_prometheus_wants_them(world):
    if not PROMTOOL:
        raise LeftOut("no promtool")
    world.start(rooms=("lobby", "den"), tables=PAGES)
    world.irc("ann").say("#lobby", "hello")
    world.irc("bob").barrier()
    text = page(world, "/metrics")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


# MARK: - Where it connects to

# Each name that is looked up, and each address that is connected to, is a line in a file.
PLACES = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void note(const char *host, int port) {
    char line[300];
    int length = snprintf(line, sizeof line, "%s %d\n", host ? host : "", port);
    int file = open(getenv("PLACES_FILE"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, line, length) != length) abort();
    close(file);
}
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    note(host, 0);
    return real(host, service, hints, list);
}
int connect(int socket, const struct sockaddr *address, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    if (address->sa_family == AF_INET)
        note(inet_ntop(AF_INET, &four->sin_addr, text, sizeof text), ntohs(four->sin_port));
    if (address->sa_family == AF_INET6)
        note(inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text), ntohs(six->sin6_port));
    return real(socket, address, length);
}
"""


@scenario
def it_connects_to_the_configured_backends_alone(world):
    """From the start over a talk, a lost link and a reload to the end."""
    directory = folder(world)
    path = os.path.join(directory, "places")
    bridge = world.start(directory=directory, tables=PAGES, wrapper=("env", preloaded(directory, PLACES), "PLACES_FILE=" + path))
    ann, remy = world.irc("ann"), world.person("Remy")
    world.relay.drop()
    wait_until(lambda: len(bridge.log_entries("upstream-up")) > 1, "the link is back")
    ann.say("#lobby", "hello")
    remy.expect_message("hello")
    assert command_output(world, "reload") and page(world, "/status.json")
    assert bridge.terminate() == 0
    world.bridge = None
    with open(path, encoding="ascii") as file:
        places = file.read().splitlines()
    assert len(places) > 1 and set(places) == {"127.0.0.1 %d" % world.relay.port}, places


# MARK: - Troubles
#
# Each is seen at a glance: by `status`, on the page, in the metrics, and in one line of the log that says what to do.


def metric(text, name):
    """The value of the only sample of that name, whatever its labels."""
    (line,) = [line for line in text.splitlines() if line.startswith((name + " ", name + "{"))]
    return float(line.rsplit(" ", 1)[-1])


def trouble(setting, kind, secure=False):
    """As the page has it; `status` shows the same."""
    found = []

    def is_there():
        found[:] = [t for t in json.loads(page(setting, "/status.json", secure=secure))["troubles"] if t["kind"] == kind]
        return found

    wait_until(is_there, lambda: "a trouble of that kind: %s" % kind, 60)
    (only,) = found
    # Times go on.
    text = command_output(setting, "status")
    assert "! %s: " % only["subject"] in text and "\n  " + only["remedy"] in text, text
    return only


@scenario
def a_certificate_that_ends_soon(world):
    directory = world.stack.enter_context(tempfile.TemporaryDirectory())
    subprocess.run(
        [peer.BINARY_PATH, "cert", "self-signed", "--out", directory, "--days", "6"], check=True, capture_output=True,
        timeout=60)
    pair = 'cert = "%s/cert.pem"\nkey = "%s/key.pem"\n' % (directory, directory)
    world.start(tables=PAGES.replace("http:", "https:") + pair)
    found = trouble(world, "certificate", secure=True)
    assert found["level"] == "warning" and found["text"] == "ends in 5 days", found
    assert found["subject"].startswith("certificate of https://127.0.0.1"), found
    metric(page(world, "/metrics", secure=True), "chatbridge_certificate_expiry_timestamp_seconds")
    entry = world.bridge.logged("accept-certificate-ending", "warn", "for")
    assert "ends in 5 days: renew it" in entry["msg"], entry


@on("envelope")
def a_backend_that_asks_for_patience(setting):
    setting.start(more="\n" + PAGES)
    setting.backend.set(refuse=-1, refuse_status=503, refuse_headers={"Retry-After": "30"})
    setting.backend.control("drop", abort=True)
    wait_until(lambda: "503" in trouble(setting, "link")["text"], "the attempt after the loss is refused")
    found = trouble(setting, "link")
    assert found["level"] == "error" and "try again after 30 s; next try in" in found["text"], found
    text = page(setting, "/metrics")
    assert metric(text, "chatbridge_upstream_up") == 0
    wait_until(
        lambda: any("503" in entry["msg"] for entry in setting.bridge.log_entries("upstream-failed")), "the log has it")


@slow("a message waits for 30 s")
@on("envelope")
def a_queue_that_grows(setting):
    setting.start(more="\n" + PAGES, room_extra=CALM + "queue = { max_messages = 5 }\n")
    ann = setting.irc("ann")
    setting.backend.set(stall=True)
    for number in range(4):
        ann.say("#lobby", "message %d" % number)
    ann.barrier()
    found = trouble(setting, "queue")
    assert found["level"] == "warning" and found["text"].startswith("4 of 5 messages wait"), found
    assert metric(page(setting, "/metrics"), "chatbridge_upstream_queue_messages") == 4
    entry = wait_until(
        lambda: setting.bridge.log_entries("queue-waiting"), "the log has it", 60)[0]
    assert entry["level"] == "warn" and entry["room"] == "lobby" and "messages wait" in entry["msg"], entry
    ann.say("#lobby", "message 5")
    wait_until(lambda: trouble(setting, "queue")["level"] == "error", "a full queue is an error")


@on("envelope")
def a_rate_that_is_too_low(setting):
    """What waits for the configured pace is no fault of the backend."""
    setting.start(
        more="\n" + PAGES, room_extra=CALM + "queue = { max_messages = 5 }\n",
        limits='messages_per_second = "off"\nupstream_messages_per_second = 0.01\n')
    ann = setting.irc("ann")
    for number in range(14):
        ann.say("#lobby", "message %d" % number)
        if number < 10:
            ann.expect_text("message %d" % number)
    ann.barrier()
    found = trouble(setting, "rate")
    assert found["level"] == "warning" and found["text"].startswith("4 of 5 messages wait to be sent"), found


@slow("a token ends, and is not renewed for some seconds")
@on("jwt-rooms")
def a_token_that_ended(setting):
    setting.serve(access_ttl=6)
    setting.start(more="\n" + PAGES)
    setting.backend.set(http_fail={"status": 503, "count": -1, "path": "/api/auth"})
    found = trouble(setting, "token")
    wait_until(lambda: trouble(setting, "token")["level"] == "error", "a token that has ended is an error")
    assert found["subject"] == "room lobby", found
    assert metric(page(setting, "/metrics"), "chatbridge_upstream_token_expiry_timestamp_seconds") < time.time()
    entry = wait_until(lambda: setting.bridge.log_entries("backend-token-late"), "the log has it", 60)[0]
    assert entry["room"] == "lobby" and "token" in entry["msg"], entry


@scenario
def a_disk_that_is_full(world):
    bridge = world.start(tables=PAGES, log_extra='level = "info"')
    ann = world.irc("ann")
    fill_disk(bridge.process.pid)
    while not bridge.log_entries("store-failing"):
        for _ in range(50):
            ann.say("#lobby", "x" * 300)
        ann.barrier()
        bridge.check_alive()
    found = trouble(world, "storage")
    assert found["level"] == "error" and found["subject"] == "storage", found
    assert metric(page(world, "/metrics"), "chatbridge_storage_up") == 0
    entry = bridge.log_entries("store-failing")[0]
    assert entry["level"] == "error" and "cannot write to the store" in entry["msg"], entry
    empty_disk(bridge.process.pid)
