"""Start and stop: what a client, a backend and the system see of it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile

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
    try:
        second = Bridge({"lobby": world.relay.url()}, port=world.bridge.port)
        second.stop()
    except AssertionError as error:
        assert "ended with 69" in str(error), error
    else:
        raise AssertionError("two bridges listen on one port")
