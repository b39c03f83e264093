"""Log entries of the program around the core: levels and metadata of every event, by which operators search.

The core's own events stand in LogEventTests.swift and in Transcripts/89-log-*.txt; LogEventCoverageTests wants each in one of
the three.
"""

import contextlib
import os
import resource
import shutil
import signal
import socket
import threading

from accounts import account
from backends import on
from dialects import PNG
from fulldisk import fill_disk
from listeners import answer, certificate, start
from media import start as serve_files
from media import upload
from peer import IRC, OPEN_LIMITS, wait_until
from proxies import PROXIED
from restarts import MEMORY, database, folder, settle
from world import scenario

HTTP = '[[http]]\nbind = "http://127.0.0.1:0"\n'


@scenario
def of_its_start_and_stop(world):
    bridge = world.start(tables=HTTP)
    bridge.logged("listening", "info", "address")
    bridge.logged("listening-http", "info", "address")
    assert bridge.terminate() == 0
    assert bridge.logged("stopping", "info", "signal")["signal"] == signal.SIGTERM
    bridge.logged("stopped", "info")
    world.bridge = None


@scenario
def of_what_its_configuration_costs(world):
    more = '[media]\npublic_url = "http://files.test"\n' + HTTP + 'serve = ["health", "media"]\n'
    directory = folder(world)
    with open(os.path.join(directory, "state"), "w", encoding="ascii") as file:
        file.write("not a folder")
    bridge = world.start(
        directory=directory, linked=False,
        server_extra='[identity]\nregistration = "on"\n', tables=MEMORY + "\n" + more,
        wrapper=("env", "CHATBRIDGE_SERVER_NAME=irc.example.com", "prlimit", "--nofile=200"),
        limits=OPEN_LIMITS + "\nmax_clients = 300")
    assert "CHATBRIDGE__SERVER__NAME" in bridge.logged("variable-unknown", "warn", "variable")["msg"]
    bridge.logged("few-descriptors", "warn", "open-files", "needed")
    bridge.logged("registration-without-store", "warn")
    bridge.logged("instance-id-not-kept", "warn", "reason")
    bridge.logged("media-key-forgotten", "warn", "reason")


@scenario
def of_a_backend_that_is_not_checked(world):
    world.relay.stop_listening()
    directory = folder(world)
    text = '\n[[rooms]]\nname = "open"\nurl = "wss://127.0.0.1:1/open"\ntls = { insecure = true }\n'
    bridge = world.start(directory=directory, linked=False, tables=text)
    assert bridge.logged("upstream-insecure", "warn", "room")["room"] == "open"


@scenario
def of_its_store(world):
    directory = folder(world)
    world.start(directory=directory)
    settle(world.irc("ann"), "kept")
    assert world.bridge.terminate() == 0
    with open(database(directory), "wb") as file:
        file.write(os.urandom(100_000))
    bridge = world.start(directory=directory, log_extra='level = "info"', server_extra='drain = "1s"')
    bridge.logged("store-damaged", "error", "path", "moved-to")
    ann = world.irc("ann")
    fill_disk(bridge.process.pid)
    while not bridge.log_entries("store-failing"):
        for _ in range(50):
            ann.say("#lobby", "x" * 300)
        ann.barrier()
    assert bridge.terminate() == 74
    bridge.logged("store-incomplete", "error")
    world.bridge = None
    wait_until(lambda: not world.relay.bridges(), "the old link is gone")
    bridge = world.start(directory=directory, wrapper=("prlimit", "--fsize=%d:unlimited" % (24 * 1024)))
    bridge.logged("store-alone", "warn", "path")


@scenario
def of_strangers(world):
    cert, key = certificate(world, "localhost")
    tls, proxied, web = start(
        world, 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"' % (cert, key),
        'bind = "irc://127.0.0.1:0"\n' + PROXIED, 'bind = "ws://127.0.0.1:0"')
    bridge = world.bridge
    answer(tls, b"NICK ann\r\n")
    # The first of these has no `more`, which says that others are not written for a while.
    bridge.logged("client-handshake-failed", "info", "peer")
    answer(proxied, b"NICK ann\r\n")
    bridge.logged("client-proxy-refused", "warn", "peer")
    answer(web, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    bridge.logged("client-turned-away", "info", "peer")

    # Without a renewed certificate nothing is said of it.
    bridge.process.send_signal(signal.SIGHUP)
    bridge.logged("reloaded", "info", "changes")
    assert not bridge.log_entries("accept-certificate-renewed")
    for new, old in zip(certificate(world, "localhost"), (cert, key)):
        shutil.copyfile(new, old)
    bridge.process.send_signal(signal.SIGHUP)
    assert bridge.logged("accept-certificate-renewed", "info", "for")["for"] == "listener"


@scenario
def of_certificates(world):
    """Authorities of outgoing connections, which are looked at whenever one is made: here again and again."""
    ca, _ = certificate(world, "localhost")
    shut = socket.create_server(("127.0.0.1", 0))
    world.stack.callback(shut.close)
    threading.Thread(target=turn_away, args=(shut,), daemon=True).start()
    bridge = world.start(
        tables='\n[[rooms]]\nname = "sealed"\nurl = "wss://127.0.0.1:%d/sealed"\ntls = { ca = "%s" }\n'
        'backoff = { min = "100ms", max = "200ms", jitter = 0 }\n' % (shut.getsockname()[1], ca))
    wait_until(lambda: bridge.log_entries("upstream-failed"), "the authorities are in use")
    shutil.copyfile(certificate(world, "localhost")[0], ca)
    assert bridge.logged("accept-certificate-renewed", "info", "for")["for"] == ca
    with open(ca, "w", encoding="ascii") as file:
        file.write("no certificate")
    assert bridge.logged("accept-certificate-kept", "error", "for")["for"] == ca


def turn_away(server):
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()


@scenario
def of_too_many_at_once(world):
    # Slow enough that checks wait for each other, and cheap enough that the last ends within the test.
    world.start(
        server_extra="[identity]\n" + account("alice", "secret", iterations=400_000),
        limits=OPEN_LIMITS + "\nmax_clients = 1000")
    bridge = world.bridge
    with contextlib.ExitStack() as links:
        for number in range(80):
            link = IRC(bridge.port)
            links.callback(link.close)
            link.send("PASS alice:secret", "NICK a%d" % number, "USER u 0 * :u")
        bridge.logged("client-login-overload", "warn")
    used = len(os.listdir("/proc/%d/fd" % bridge.process.pid))
    _, hard = resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as links:
        resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (used + 2, hard))
        for _ in range(used + 4):
            links.enter_context(socket.create_connection(("127.0.0.1", bridge.port)))
        assert bridge.logged("accept-suspended", "error", "errno")["errno"] == "24"
        resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
    remy = world.person("Remy")
    world.irc("bob").say("#lobby", "and it goes on")
    remy.expect_message("and it goes on")


@on("envelope")
def of_a_file_that_is_not_kept(setting):
    serve_files(setting)
    with open(os.path.join(setting.directory, "state", "media"), "w", encoding="ascii") as file:
        file.write("not a folder")
    setting.irc("ann")
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=PNG)
    setting.bridge.logged("file-not-kept", "warn", "reason")


@on("jwt-rooms")
def of_an_upload_that_is_not_kept(setting):
    serve_files(setting)
    os.mkdir(os.path.join(setting.directory, "state", "uploads.jsonl"))
    assert upload(setting, b"a file").status == 201
    setting.bridge.logged("upload-not-kept", "warn", "reason")
