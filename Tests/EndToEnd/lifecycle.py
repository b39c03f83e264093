"""Start and stop, as seen by a client, a backend and the system."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile

from marks import LeftOut
from peer import BINARY_PATH, IRC, PATIENCE, Bridge, wait_until
from restarts import MEMORY
from world import scenario


@scenario
def sigterm_says_goodbye_on_both_sides(world):
    world.start()
    ann, bob = world.irc("ann"), world.plain("bob")
    port = world.bridge.port
    status = world.bridge.terminate()
    assert status == 0, "exit status %r" % status
    # Free at once, also for a server that sets no SO_REUSEADDR of its own accord.
    socket.create_server(("127.0.0.1", port)).close()
    for client in (ann, bob):
        error = client.expect("ERROR")
        assert "Closing Link" in error.params[-1], error.raw
        client.wait_closed()
    wait_until(lambda: world.relay.closes == [1001], lambda: "Close 1001, once; got %r" % world.relay.closes)
    world.bridge = None


@scenario
def sigterm_says_goodbye_as_soon_as_somebody_is_in(world):
    """Not only after the log says that clients can connect; so the port is tried until it answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for _ in range(10):
        with tempfile.TemporaryDirectory(prefix="chatbridge-") as directory:
            path = os.path.join(directory, "bridge.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    '[server]\nstate_dir = "%s/state"\n[[listeners]]\nbind = "irc://127.0.0.1:%d"\n'
                    '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:1/x"\n' % (directory, port))
            process = subprocess.Popen(
                [BINARY_PATH, "run", "--config", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            try:
                client = wait_until(lambda: connected(port), "the port answers")
                process.send_signal(signal.SIGTERM)
                client.expect("ERROR")
                assert process.wait(PATIENCE) == 0, process.returncode
                client.close()
            finally:
                process.kill()
                process.wait()


def connected(port):
    try:
        return IRC(port, "ann")
    except ConnectionRefusedError:
        return None


# A command becomes process 1 of its own namespace, as the only one of a container is.
CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


@scenario
def sigterm_ends_the_first_process_of_a_container_at_any_time():
    """The kernel drops a signal for which such a process has no handler, so from its beginning on it needs one."""
    if subprocess.run([*CONTAINER, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return "not tried: no namespace of processes is to be had here"
    for moment in (reading_its_configuration, opening_its_database, running):
        with contextlib.ExitStack() as stack:
            directory = tempfile.mkdtemp(prefix="chatbridge-")
            stack.callback(shutil.rmtree, directory, True)
            os.mkdir(os.path.join(directory, "state"))
            text = (
                '[server]\nstate_dir = "%s/state"\n[[listeners]]\nbind = "irc://127.0.0.1:0"\n[log]\nformat = "json"\n'
                '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:1/x"\n' % directory)
            moment(stack, directory, text)
    return None


def contained(stack, directory):
    """The launcher of a relay as process 1, and the relay's id out here."""
    log = stack.enter_context(open(os.path.join(directory, "log"), "w", encoding="utf-8"))
    launcher = subprocess.Popen(
        [*CONTAINER, BINARY_PATH, "run", "--config", os.path.join(directory, "chatbridge.toml")], stdin=subprocess.DEVNULL,
        stdout=log, stderr=log, env={k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")})
    stack.callback(launcher.wait)
    stack.callback(launcher.kill)

    def child():
        with open("/proc/%d/task/%d/children" % (launcher.pid, launcher.pid), encoding="ascii") as file:
            return int((file.read().split() or ["0"])[0])

    return launcher, wait_until(child, "the relay is started")


def ends_by_sigterm(launcher, relay, status, moment):
    os.kill(relay, signal.SIGTERM)
    try:
        assert launcher.wait(PATIENCE) == status, "%s: exit status %r" % (moment, launcher.returncode)
    except subprocess.TimeoutExpired:
        raise AssertionError("%s: the relay goes on" % moment) from None


def reading_its_configuration(stack, directory, _):
    path = os.path.join(directory, "chatbridge.toml")
    os.mkfifo(path)
    launcher, relay = contained(stack, directory)

    def writer():
        with contextlib.suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        return None

    # Somebody can write once the relay reads, and it goes on reading.
    stack.callback(os.close, wait_until(writer, "the relay reads its configuration"))
    ends_by_sigterm(launcher, relay, 128 + signal.SIGTERM, "reading its configuration")


def opening_its_database(stack, directory, text):
    with open(os.path.join(directory, "chatbridge.toml"), "w", encoding="utf-8") as file:
        file.write(text)
    database = os.path.join(directory, "state", "chatbridge.db")
    holder = sqlite3.connect(database, isolation_level=None)
    stack.callback(holder.close)
    holder.execute("BEGIN EXCLUSIVE")
    launcher, relay = contained(stack, directory)

    def has_it_open():
        with contextlib.suppress(OSError):
            files = os.listdir("/proc/%d/fd" % relay)
            return any(os.readlink("/proc/%d/fd/%s" % (relay, file)) == database for file in files)
        return False

    # It waits for the other for two seconds.
    wait_until(has_it_open, "the relay opens its database")
    ends_by_sigterm(launcher, relay, 128 + signal.SIGTERM, "opening its database")


def running(stack, directory, text):
    with open(os.path.join(directory, "chatbridge.toml"), "w", encoding="utf-8") as file:
        file.write(text)
    launcher, relay = contained(stack, directory)

    def listens():
        with open(os.path.join(directory, "log"), encoding="utf-8") as log:
            return '"event":"listening"' in log.read()

    wait_until(listens, "the relay listens")
    ends_by_sigterm(launcher, relay, 0, "running")


@scenario
def sigterm_sends_what_was_said(world):
    world.start(limits='messages_per_second = "off"\nupstream_messages_per_second = 20')
    ann, remy = world.irc("ann"), world.person("Remy")
    texts = ["last %d" % n for n in range(40)]
    ann.send(*("PRIVMSG #lobby :" + text for text in texts))
    ann.barrier()
    assert world.bridge.terminate() == 0
    wait_until(lambda: len(remy.bodies("ann")) >= len(texts), lambda: "all 40 upstream; %d" % len(remy.bodies("ann")))
    assert remy.bodies("ann") == texts
    world.bridge = None


@scenario
def sigterm_does_not_wait_for_a_backend_that_is_gone(world):
    # Where nothing outlasts the process; where it does, the message goes after the restart.
    world.start(server_extra='drain = "1s"', tables=MEMORY)
    ann = world.irc("ann")
    world.relay.stop_listening()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.say("#lobby", "never mind")
    ann.barrier()
    status = world.bridge.terminate(patience=5)
    assert status == 0, status
    ann.drain()
    told = [line for line in ann.lines if line.command == "FAIL" and "never mind" in line.raw]
    assert told, "the author was not told; last: %r" % [line.raw for line in ann.lines[-3:]]
    world.bridge = None


@scenario
def a_restart_keeps_who_people_are_upstream(world):
    directory = tempfile.mkdtemp(prefix="chatbridge-")
    world.stack.callback(shutil.rmtree, directory, True)
    remy = world.person("Remy")
    ids = []
    for turn in range(2):
        world.start(directory=directory)
        ann = world.irc("ann")
        ann.say("#lobby", "run %d" % turn)
        ids.append(remy.expect_message("run %d" % turn)["sender_id"])
        assert world.bridge.terminate() == 0
        wait_until(lambda: not world.relay.bridges(), "the old link is gone")
    assert ids[0] == ids[1], "ann became somebody else: %r" % ids
    other = Bridge({"lobby": world.relay.url()})
    world.stack.callback(other.stop)
    world.bridge = other
    world.irc("ann").say("#lobby", "another installation")
    assert remy.expect_message("another installation")["sender_id"] != ids[0], "two bridges share a person"


@scenario
def a_restart_keeps_message_ids(world):
    directory = tempfile.mkdtemp(prefix="chatbridge-")
    world.stack.callback(shutil.rmtree, directory, True)
    remy = world.person("Remy")
    msgids = []
    for _ in range(2):
        # A relay that keeps what it showed would not show it again.
        world.start(directory=directory, tables=MEMORY)
        ann = world.irc("ann")
        remy.say("the same", message_id="0AD7C6C5-8B32-4B46-9C6D-0B1C1D0F6D11")
        msgids.append(ann.expect_text("the same").tags["msgid"])
        assert world.bridge.terminate() == 0
        wait_until(lambda: not world.relay.bridges(), "the old link is gone")
    assert msgids[0] == msgids[1], msgids
    world.bridge = None


@scenario
def a_port_in_use_is_said_and_ends_the_start(world):
    world.start()
    second = Bridge({"lobby": world.relay.url()}, port=world.bridge.port, listens=False)
    world.stack.callback(second.stop)
    assert second.process.wait(PATIENCE) == 69
    failure = second.logged("start-failed", "error")["msg"]
    assert "in use" in failure and "--listen" in failure, failure
    assert all(line.startswith("{") for line in second.log().splitlines()), second.log()


@scenario
def a_configuration_with_errors_is_said_in_the_form_of_the_log(world):
    for form in ("json", "text"):
        bridge = Bridge(
            {"lobby": world.relay.url()}, server_extra='nmae = "x"\ndrian = "5s"', log_format=form, listens=False)
        world.stack.callback(bridge.stop)
        assert bridge.process.wait(PATIENCE) == 78
        lines = bridge.log().splitlines()
        if form == "json":
            lines = [json.loads(line) for line in lines]
            assert {(line["event"], line["level"]) for line in lines} == {("start-failed", "error")}, lines
            lines = [line["msg"] for line in lines]
        assert len(lines) == 2 and all(line.startswith(bridge.config_path) for line in lines), lines
        assert 'unknown key "nmae" (did you mean "name"?)' in lines[0], lines


# A mount of its own hides /proc, as a chroot without one does.
WITHOUT_PROC = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")


@scenario
def arguments_are_read_without_proc(world):
    """The words of the command line count where /proc is not mounted, and the bridge runs there."""
    if subprocess.run([*WITHOUT_PROC, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise LeftOut("no right to make a namespace")
    said = subprocess.run([*WITHOUT_PROC, BINARY_PATH, "version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert said.returncode == 0 and said.stdout.startswith(b"chatbridge "), said
    # Its --config is an argument too.
    world.start(wrapper=WITHOUT_PROC)
    ann, remy = world.irc("ann"), world.person("Remy")
    ann.say("#lobby", "hello")
    remy.expect_message("hello")
    return None
