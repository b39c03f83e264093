"""What an operator sees of a running bridge: the commands at the admin socket, the status page and the metrics."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request

import peer
from backends import CALM, on
from fulldisk import empty_disk, fill_disk
from marks import LeftOut, slow
from peer import PATIENCE, wait_until
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
