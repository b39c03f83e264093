"""`chatbridge check --connect`, against backends that answer, refuse, and are none."""

import base64
import contextlib
import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import peer
from accounts import account
from backends import PASSWORD, on
from listeners import certificate
from world import scenario


def check(world, tables, *arguments):
    """The exit status and the report of each room."""
    directory = world.stack.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(directory, "chatbridge.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(tables)
    done = subprocess.run(
        [peer.BINARY_PATH, "check", "--connect", "--json", "--config", path, *arguments], capture_output=True, text=True,
        timeout=peer.PATIENCE, env={**os.environ, "TMPDIR": directory})
    assert done.stderr == "" and os.listdir(directory) == ["chatbridge.toml"], (done.stderr, os.listdir(directory))
    assert "hunter2" not in done.stdout
    return done.returncode, {
        "/".join([room["room"], *([room["account"]] if "account" in room else [])]): room
        for room in json.loads(done.stdout)["rooms"]}


def room(name, url, more=""):
    return '[[rooms]]\nname = "%s"\nurl = "%s"\n%s\n' % (name, url, more)


def failed(report):
    """The step that failed, and why."""
    assert not report["ok"] and report["fault"] and report["remedy"], report
    assert [step["ok"] for step in report["steps"]] == [True] * (len(report["steps"]) - 1) + [False], report
    assert len({step["step"] for step in report["steps"]}) == len(report["steps"]), report
    return report["steps"][-1]["step"], report["steps"][-1]["detail"]


@scenario
def a_backend_that_answers(world):
    status, rooms = check(world, room("lobby", world.relay.url().replace("127.0.0.1", "localhost")))
    assert status == 0 and rooms["lobby"]["ok"], rooms
    assert [step["step"] for step in rooms["lobby"]["steps"]] == ["lookup", "tcp", "handshake"], rooms
    assert all(step["ms"] >= 0 for step in rooms["lobby"]["steps"])


@scenario
def a_backend_of_another_dialect(world):
    def somebody_speaks():
        world.relay.wait_for_bridge()
        person = world.person("remy")
        with contextlib.suppress(OSError):
            for number in range(40):
                person.say("word %d" % number)
                time.sleep(0.05)

    def check_while_somebody_speaks(place):
        rule = '[[dialects.mine.decode]]\nwhen = { "/event" = "message" }\nevent = "message"\nfields = { text = "%s" }\n' % place
        speaking = threading.Thread(target=somebody_speaks)
        speaking.start()
        status, rooms = check(world, room("lobby", world.relay.url(), 'dialect = "mine"') + rule)
        speaking.join()
        return status, rooms["lobby"]

    status, report = check_while_somebody_speaks("/nowhere")
    step, detail = failed(report)
    assert status == 69 and step == "frames" and "understood" in detail and report["fault"] == "the dialect", report
    status, report = check_while_somebody_speaks("/body")
    assert status == 0 and report["ok"], report


@scenario
def a_refused_token(world):
    world.relay.refuse(401, times=1)
    more = 'auth = { type = "bearer", token = "hunter2" }'
    status, rooms = check(
        world, room("lobby", world.relay.url(), more) + room("attic", "ws://127.0.0.1:1/?token=hunter2"), "--room", "lobby")
    assert status == 69 and list(rooms) == ["lobby"], rooms
    step, detail = failed(rooms["lobby"])
    assert step == "handshake" and "401" in detail and "credentials" in rooms["lobby"]["fault"], rooms
    # An attempt that follows a refusal at once is told in its place.
    world.relay.refuse(401, times=100)
    names = ["room%d" % number for number in range(8)]
    status, rooms = check(world, "".join(room(name, world.relay.url(), more + '\ndialect = "typed"') for name in names))
    assert status == 69 and {failed(rooms[name])[0] for name in names} == {"handshake"}, rooms


def serve(world, answer, context=None):
    """The port of a server that gives one answer to whatever comes, over TLS with a context."""
    server = world.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def run():
        with contextlib.suppress(OSError):
            link, _ = server.accept()
            with link if context is None else context.wrap_socket(link, server_side=True) as link:
                link.recv(65536)
                link.sendall(answer)

    threading.Thread(target=run, daemon=True).start()
    return server.getsockname()[1]


@scenario
def certificates(world):
    cert, key = certificate(world, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    url = "wss://localhost:%d/"
    status, rooms = check(
        world, room("unknown", url % serve(world, answer, context))
        + room("known", url % serve(world, answer, context), 'tls = { ca = "%s" }' % cert)
        + room("plain", url % serve(world, b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    assert status == 69
    assert failed(rooms["unknown"]) == ("tls", "the certificate of localhost is self-signed and not trusted"), rooms
    assert failed(rooms["plain"])[0] == "tls", rooms
    assert failed(rooms["known"]) == ("handshake", "the server answered 404 Not Found"), rooms
    [tls] = [step for step in rooms["known"]["steps"] if step["step"] == "tls"]
    assert re.search("certificate of localhost by localhost, 36[45] days left$", tls["detail"]), tls


@scenario
def each_key_of_tls(world):
    """With a key of `tls`, and without it or with another value: it is the handshake that fails, or TLS. A room has them
    from its backend too."""
    cert, key = certificate(world, "localhost")
    other_cert, other_key = certificate(world, "other.test")
    mine, my_key = certificate(world, "the-bridge")
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    public = subprocess.run(
        ["openssl", "x509", "-in", cert, "-noout", "-pubkey"], check=True, capture_output=True, timeout=30).stdout
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], input=public, check=True, capture_output=True, timeout=30).stdout
    pins = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in (der, b"another")]

    def url(chain=(cert, key), newest=None, client=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*chain)
        if newest:
            context.maximum_version = newest
        if client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client)
        return "wss://localhost:%d/" % serve(world, answer, context)

    old = ssl.TLSVersion.TLSv1_2
    other = (other_cert, other_key)
    # Rooms in pairs: the TLS keys, and the server's settings.
    pairs = {
        "insecure": ({}, "insecure = true", ""),
        "server_name": ({"chain": other}, 'ca = "%s", server_name = "other.test"' % other_cert, 'ca = "%s"' % other_cert),
        "pin_sha256": ({}, 'ca = "%s", pin_sha256 = ["sha256//%s"]' % (cert, pins[0]),
                       'ca = "%s", pin_sha256 = ["sha256//%s"]' % (cert, pins[1])),
        "min_version": ({"newest": old}, 'ca = "%s"' % cert, 'ca = "%s", min_version = "1.3"' % cert),
        "client_cert": ({"newest": old, "client": mine},
                        'ca = "%s", client_cert = "%s", client_key = "%s"' % (cert, mine, my_key), 'ca = "%s"' % cert),
    }
    tables = ""
    for name, (server, good, bad) in pairs.items():
        tables += room(name + "-good", url(**server), "tls = { %s }" % good)
        tables += '[backends.%s]\nurl = "%s"\ntls = { %s }\n[[rooms]]\nname = "%s-shared"\nbackend = "%s"\n' % (
            name, url(**server), good, name, name)
        tables += room(name + "-bad", url(**server), "tls = { %s }" % bad)
    status, rooms = check(world, tables)
    assert status == 69
    for name in pairs:
        for good in ("-good", "-shared"):
            assert failed(rooms[name + good]) == ("handshake", "the server answered 404 Not Found"), (name, rooms[name + good])
        assert failed(rooms[name + "-bad"])[0] == "tls", (name, rooms[name + "-bad"])
    return "; ".join(failed(rooms[name + "-bad"])[1] for name in pairs)


@scenario
def no_backend(world):
    silent = world.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    silent.listen()
    page = serve(world, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
    status, rooms = check(
        world, room("closed", "ws://127.0.0.1:1/") + room("unknown", "ws://nosuch.invalid/")
        + room("silent", "ws://127.0.0.1:%d/" % silent.getsockname()[1], 'handshake_timeout = "500ms"')
        + room("page", "ws://127.0.0.1:%d/" % page))
    assert status == 69
    assert [failed(rooms[name])[0] for name in ["closed", "unknown", "silent"]] == ["tcp", "lookup", "handshake"], rooms
    assert "in time" in failed(rooms["silent"])[1], rooms
    assert failed(rooms["page"]) == ("handshake", "the server answered 200 OK"), rooms
    # Where there is no DNS at all, nobody knows.
    assert failed(rooms["unknown"])[1] in (
        "there is no host named nosuch.invalid", "the name service gave no answer for nosuch.invalid"), rooms


@on("plainjson", "jwt-rooms")
def a_history_that_is_not_there(setting):
    setting.serve()
    setting.start()
    setting.backend.set(http_fail={"path": "/messages", "status": 404})
    with open(setting.bridge.config_path, encoding="utf-8") as file:
        status, rooms = check(setting, file.read())
    assert status == 69 and "404" in " ".join(failed(rooms["lobby"])), rooms
    assert failed(rooms["lobby"])[0] == "history", rooms
    assert rooms["lobby"]["fault"] == "the backend's history, or what the configuration says of it", rooms


@on("jwt-rooms", "directus", "typed")
def each_step_of_a_login(setting):
    """The same configuration as the bridge that is linked, then with another password."""
    setting.serve()
    setting.start()
    with open(setting.bridge.config_path, encoding="utf-8") as file:
        written = file.read()
    status, rooms = check(setting, written)
    assert status == 0 and rooms["lobby"]["ok"], rooms
    steps = [step["step"] for step in rooms["lobby"]["steps"]]
    assert steps[-1] in ("handshake", "login", "readiness", "history"), steps
    if PASSWORD in written:
        status, rooms = check(setting, written.replace(PASSWORD, "wrong"))
        assert status == 69 and "credentials" in rooms["lobby"]["fault"], rooms
    return ", ".join(steps)


@on("jwt-rooms", "directus")
def an_accounts_own_login(setting):
    """As the account; then with another password, as another person than is written, and as the room's own account."""
    host = "@example.com" if setting.wire.name == "directus" else ""
    setting.serve(seed=[("chef" + host, "own-pw")])
    own = 'upstream = { lobby = { type = "login", user = "%s", password = "%s"%s } }'
    setting.start(more=account("ada", "secret", own % ("chef" + host, "own-pw", "")))
    with open(setting.bridge.config_path, encoding="utf-8") as file:
        written = file.read()

    def with_login(*values):
        return check(setting, re.sub("upstream = .*", own % values, written))

    status, rooms = with_login("chef" + host, "own-pw", "")
    assert status == 0 and list(rooms) == ["lobby", "lobby/ada"] and rooms["lobby/ada"]["ok"], rooms
    assert "chef" in rooms["lobby/ada"]["person"].lower(), rooms
    status, rooms = with_login("chef" + host, "wrong", "")
    assert status == 69 and rooms["lobby"]["ok"] and failed(rooms["lobby/ada"])[0] == "credentials", rooms
    assert rooms["lobby/ada"]["fault"].startswith("the credentials in upstream of the account ada"), rooms
    for values, why in (
        (("chef" + host, "own-pw", ', as = "cook"'), 'as = "cook" is another'),
        (("liaison" + host, PASSWORD, ""), "it is the room's own account, and must be another"),
    ):
        status, rooms = with_login(*values)
        assert status == 69 and failed(rooms["lobby/ada"]) == ("identity", why), rooms
    return rooms["lobby/ada"]["person"]
