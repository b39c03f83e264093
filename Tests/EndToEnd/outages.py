"""The link to the backend is lost in every possible way; the room recovers and no message is lost.

Each loss and each return is reported once. Messages sent meanwhile arrive once, in order, afterwards.
"""

import contextlib
import datetime
import os
import signal
import socket
import time

from peer import IRC, MODERN, PATIENCE, wait_until
from world import scenario

LOSS = ("was lost", "cannot be reached")
RETURN = ("is back after", "is linked")
# Small enough that a dead link is seen in a test's time; the bound below is their sum and some slack.
QUICK_PING = 'ping = "600ms"\npong_timeout = "600ms"\nhandshake_timeout = "1s"\nconnect_timeout = "1s"'


def notices(client, words):
    return [text for text in client.texts(command="NOTICE") if any(word in text for word in words)]


def lose_and_recover(world, lose, recover=lambda: None, room_extra=QUICK_PING, said_while_away=5):
    """Loses the link by `lose()`, talks meanwhile, recovers, and checks what everybody saw."""
    world.start(room_extra=room_extra)
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    ann.say("#lobby", "before")
    remy.expect_message("before")
    before = len(world.relay.handshakes)
    lost_at = time.monotonic()
    lose()
    ann.expect("NOTICE", lambda line: any(word in line.params[-1] for word in LOSS))
    noticed = time.monotonic() - lost_at
    texts = ["while away %d" % n for n in range(said_while_away)]
    for text in texts:
        ann.say("#lobby", text)
    ann.barrier()
    recover()
    for text in texts:
        remy.expect_message(text)
    returned = time.monotonic() - lost_at
    remy.say("you are back")
    for client in (ann, bob):
        client.expect_text("you are back")
        client.barrier()
        assert client.texts("ann") == ["before"] + texts, "%s saw %r" % (client.nick, client.texts("ann"))
        assert len(notices(client, LOSS)) == 1, notices(client, LOSS)
        assert len(notices(client, RETURN)) == 1, notices(client, RETURN)
    assert remy.bodies("ann") == ["before"] + texts, "Remy saw %r" % remy.bodies("ann")
    assert len(world.relay.handshakes) > before, "there was no new handshake"
    return noticed, returned


@scenario
def dropped_without_close(world):
    lose_and_recover(
        world, lambda: (world.relay.hold_handshakes(), world.relay.drop()), world.relay.release_handshakes
    )


@scenario
def dropped_with_close_1001(world):
    lose_and_recover(
        world, lambda: (world.relay.hold_handshakes(), world.relay.drop(close=1001)), world.relay.release_handshakes
    )


@scenario
def dropped_with_close_1000(world):
    lose_and_recover(
        world, lambda: (world.relay.hold_handshakes(), world.relay.drop(close=1000)), world.relay.release_handshakes
    )


@scenario
def refused_three_times_with_503(world):
    lose_and_recover(world, lambda: (world.relay.refuse(503, times=3), world.relay.drop()))
    statuses = [status for status, _ in world.relay.handshakes]
    assert statuses[-4:] == [503, 503, 503, "accepted"], statuses


@scenario
def nothing_listens_for_a_while(world):
    lose_and_recover(
        world, lambda: (world.relay.stop_listening(), world.relay.drop()), world.relay.listen
    )


@scenario
def stalled_without_a_byte(world):
    noticed, _ = lose_and_recover(world, world.relay.stall)
    assert noticed < 3, "a silent link was noticed after %.1f s; ping and pong_timeout are 0.6 s each" % noticed
    return "noticed after %.2f s" % noticed


@scenario
def a_backend_that_does_not_come_to_a_connection(world):
    """TCP is not answered, and TLS is not: given up after connect_timeout, and not yet where that is longer."""
    deaf = world.stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    # The kernel leaves further ones without an answer.
    waiting = [world.stack.enter_context(socket.create_connection(deaf.getsockname(), PATIENCE))]
    with contextlib.suppress(TimeoutError):
        while True:
            waiting.append(world.stack.enter_context(socket.create_connection(deaf.getsockname(), 0.2)))
    silent = world.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    tables = ""
    for name, scheme, server in (("tcp", "ws", deaf), ("tls", "wss", silent)):
        for kind, more in (("usual", ""), ("quick", 'connect_timeout = "1s"\n')):
            tables += '[[rooms]]\nname = "%s-%s"\nurl = "%s://127.0.0.1:%d/"\n%s' % (
                name, kind, scheme, server.getsockname()[1], more)
    world.start(rooms=(), tables=tables)

    def failed():
        return {entry["room"] for entry in world.bridge.log_entries("upstream-failed")}

    wait_until(lambda: len(failed()) >= 2, lambda: "two are given up: %r" % failed())
    assert failed() == {"tcp-quick", "tls-quick"}, failed()


@scenario
def a_handshake_that_is_answered_late(world):
    """Later than handshake_timeout: that try is given up, a later one succeeds."""
    def lose():
        world.relay.hold_handshakes()
        world.relay.drop()

    def recover():
        # The first held try must have run out, so that the answer comes to one that nobody waits for.
        wait_until(
            lambda: world.bridge.log().count("did not answer the handshake in time") >= 1, "a handshake runs out"
        )
        world.relay.release_handshakes()

    lose_and_recover(world, lose, recover)


@scenario
def a_room_that_is_down_at_the_start_comes_up(world):
    world.relay.stop_listening()
    world.start(linked=False)
    ann = world.irc("ann")
    ann.expect("NOTICE", lambda line: "no link" in line.params[-1])
    ann.say("#lobby", "early bird")
    ann.barrier()
    world.relay.listen()
    ann.expect_text("early bird")
    ann.barrier()
    assert len(notices(ann, RETURN)) == 1, notices(ann, RETURN)
    assert [f["body"] for f in world.relay.messages_from_bridge()] == ["early bird"]


@scenario
def unauthorised_is_tried_once_more_and_then_seldom(world):
    world.start()
    ann = world.irc("ann")
    world.relay.refuse(401, times=100)
    begin = len(world.relay.handshakes)
    world.relay.drop()
    wait_until(lambda: len(world.relay.handshakes) - begin >= 2, "the second try after a 401")
    ann.expect("NOTICE", lambda line: any(word in line.params[-1] for word in LOSS))
    # The next try is 15 minutes away: the log says so.
    wait_until(
        lambda: any(int(e["retry-in"].rstrip("ms")) > 600_000 for e in world.bridge.log_entries("upstream-failed")),
        "a long wait after the second 401",
    )


@scenario
def retry_after_is_honoured(world):
    world.start()
    world.relay.refuse(503, times=1, headers="Retry-After: 2\r\n")
    begin = len(world.relay.handshakes)
    world.relay.drop()
    wait_until(lambda: len(world.relay.handshakes) - begin >= 2, "another try")
    (_, first), (_, second) = world.relay.handshakes[begin : begin + 2]
    assert second - first > 1.8, "tried again after %.2f s" % (second - first)


@scenario
def unconfirmed_messages_are_sent_again_with_the_same_id(world):
    """The backend took them and told nobody: after the reconnect they come again, and are one message."""
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    world.relay.swallow = True
    texts = ["swallowed %d" % n for n in range(3)]
    for text in texts:
        ann.say("#lobby", text)
    wait_until(lambda: len(world.relay.swallowed) == 3, "the relay has all three")
    ann.barrier()
    assert ann.texts("ann") == [], "an echo before the backend confirmed"
    world.relay.swallow = False
    world.relay.drop()
    for text in texts:
        remy.expect_message(text)
        ann.expect_text(text)
    ids = [f["message_id"] for f in world.relay.messages_from_bridge()]
    assert ids[:3] == ids[3:] and len(set(ids)) == 3, ids
    assert remy.bodies("ann") == texts and ann.texts("ann") == texts


@scenario
def messages_relayed_without_echo_are_shown_once(world):
    """The others have them, only the echo was lost with the link."""
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    world.relay.keep_echo = True
    ann.say("#lobby", "echo lost")
    remy.expect_message("echo lost")
    world.relay.keep_echo = False
    world.relay.drop()
    for client in (ann, bob):
        client.expect_text("echo lost")
    remy.say("end")
    for client in (ann, bob):
        client.expect_text("end")
        assert client.texts("ann") == ["echo lost"], client.texts("ann")
    assert remy.bodies("ann") == ["echo lost"], remy.bodies("ann")


@scenario
def twenty_drops_in_the_middle_of_talk(world):
    """Frames in flight at the moment of a drop, again and again: each message once, in order, on both sides."""
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    texts = []
    for turn in range(20):
        for n in range(10):
            texts.append("turn %d message %d" % (turn, n))
            ann.say("#lobby", texts[-1])
        world.relay.drop(close=1001 if turn % 2 else None)
        world.relay.wait_for_bridge()
    for client in (ann, bob):
        wait_until(
            lambda: client.drain() or len(client.texts("ann")) >= len(texts),
            lambda: "%s has all (%d of %d)" % (client.nick, len(client.texts("ann")), len(texts)),
        )
        client.barrier()
        assert client.texts("ann") == texts, client.nick + ": out of order, doubled or lost"
    wait_until(lambda: len(remy.bodies("ann")) >= len(texts), "Remy has all")
    assert remy.bodies("ann") == texts, "upstream: out of order, doubled or lost"


@scenario
def a_user_who_leaves_meanwhile_has_still_spoken(world):
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.say("#lobby", "last words")
    ann.barrier()
    ann.send("QUIT :gone")
    bob.expect("QUIT")
    world.relay.release_handshakes()
    assert remy.expect_message("last words")["sender_name"] == "ann"
    bob.expect_text("last words")


@scenario
def a_queue_that_is_full_says_so(world):
    world.start(room_extra="queue = { max_messages = 3 }")
    ann = IRC(world.bridge.port, "ann", caps=MODERN, join=["#lobby"])
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    for n in range(4):
        ann.say("#lobby", "waits %d" % n)
    failure = ann.expect("FAIL")
    assert "waits 3" in failure.raw, failure.raw
    world.relay.release_handshakes()
    ann.expect_text("waits 2")


@scenario
def a_message_too_old_is_given_back_to_its_author(world):
    world.start(room_extra='queue = { max_age = "1s" }')
    ann = world.irc("ann")
    world.relay.hold_handshakes()
    world.relay.drop()
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    ann.say("#lobby", "too late")
    failure = ann.expect("FAIL")
    assert "too late" in failure.raw, failure.raw
    world.relay.release_handshakes()
    world.relay.wait_for_bridge()
    ann.say("#lobby", "in time")
    ann.expect_text("in time")
    assert [f["body"] for f in world.relay.messages_from_bridge()] == ["in time"]


@scenario
def stopped_while_the_backend_dies(world):
    """The relay's process stands still. What it reads late proves nothing of the link: the gap covers what was said later."""
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    remy.say("one")
    ann.expect_text("one")
    process = world.bridge.process.pid
    os.kill(process, signal.SIGSTOP)
    try:
        remy.say("two")
        remy.expect_message("two")
        world.relay.drop()
        remy.say("three")
        remy.expect_message("three")
        said = datetime.datetime.now(datetime.timezone.utc)
        time.sleep(3)
    finally:
        os.kill(process, signal.SIGCONT)
    gap = ann.expect("NOTICE", lambda line: "is missing" in line.params[-1])
    assert ann.texts("Remy") == ["one", "two"], ann.texts("Remy")
    begin, end = (datetime.datetime.fromisoformat(time) for time in gap.tags["chatbridge/gap"].split(","))
    assert begin <= said <= end, "what was said at %s is not between %s and %s" % (said, begin, end)
