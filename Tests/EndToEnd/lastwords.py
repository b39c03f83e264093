"""Messages at the very beginning and the very end: before a room has a link, and from half-closed connections."""

import socket

from peer import wait_until
from restarts import folder, kill, log_in_as, with_alice
from world import scenario


@scenario
def a_script_that_ends_its_side(world):
    """`printf … | nc -N`: everything it said arrives at its rate, and it reads the goodbye."""
    world.start(limits="")
    remy, script = world.person("Remy"), world.irc("script", caps=())
    texts = ["line %d" % n for n in range(16)]
    script.send(*["PRIVMSG #lobby :" + text for text in texts] + ["QUIT :done"])
    script.sock.shutdown(socket.SHUT_WR)
    script.expect("ERROR")
    remy.expect_message(texts[-1])
    assert remy.bodies() == texts, remy.bodies()


@scenario
def a_script_that_closes_at_once(world):
    """The same from one that does not read any more either."""
    world.start(limits="")
    remy, script = world.person("Remy"), world.irc("script", caps=())
    texts = ["line %d" % n for n in range(16)]
    script.send(*["PRIVMSG #lobby :" + text for text in texts] + ["QUIT :done"])
    script.sock.shutdown(socket.SHUT_RDWR)
    remy.expect_message(texts[-1])
    assert remy.bodies() == texts, remy.bodies()


@scenario
def a_script_that_says_everything_in_one_piece(world):
    """`printf 'PASS …' | nc`: what comes behind the login waits for it, also from one that does not stay to hear of it."""
    world.start(linked=False, tables=with_alice(), room_extra='connect = "while-joined"')
    remy = world.person("Remy")
    for text, stays in (("one", True), ("two", False)):
        lines = ("PASS alice:secret", "NICK alice", "USER a 0 * :a", "JOIN #lobby", "PRIVMSG #lobby :" + text, "QUIT")
        with socket.create_connection(("127.0.0.1", world.bridge.port)) as script:
            script.sendall("".join(line + "\r\n" for line in lines).encode())
            script.shutdown(socket.SHUT_WR)
            while stays and script.recv(4096):
                pass
        remy.expect_message(text)
    assert remy.bodies() == ["one", "two"], remy.bodies()


@scenario
def a_gap_before_the_very_first_link(world):
    """Somebody is in the room before its backend is; the next process still knows since when."""
    directory = folder(world)
    world.relay.hold_handshakes()
    remy = world.person("Remy")
    world.start(linked=False, directory=directory, tables=with_alice())
    log_in_as(world, "alice", "secret", "alice", "#lobby").barrier()
    remy.say("lost")
    kill(world)
    world.relay.release_handshakes()
    world.start(directory=directory, tables=with_alice())
    # The relay tells it whether or not she is back before the link is.
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    gap = alice.expect("NOTICE", lambda line: "is missing" in line.params[-1])
    assert "keeps no history" in gap.params[-1], gap.raw
    remy.say("live")
    alice.expect_text("live")


@scenario
def a_room_without_people_sends_what_waits(world):
    """A room that is linked only while somebody is there: what was accepted before a kill goes though nobody came back."""
    directory = folder(world)
    extra = 'connect = "while-joined"'
    world.start(linked=False, directory=directory, room_extra=extra)
    ann, remy = world.irc("ann"), world.person("Remy")
    world.relay.wait_for_bridge()
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.say("#lobby", "kept")
    ann.barrier()
    kill(world)
    world.relay.release_handshakes()
    world.start(linked=False, directory=directory, room_extra=extra)
    remy.expect_message("kept")
    wait_until(lambda: remy.bodies().count("kept") == 1, "it is there once")
