"""The link to the backend breaks in every possible way, on every dialect: messages arrive once, in order.

Losses inherent to a dialect are allowed: without a history, messages sent meanwhile are unavailable, and without
confirmations, a message in transit when the link was lost may be lost.
"""

import os
import random
import time

from backends import CALM, QUICK, on, on_wires
from dialects import wait_line
from peer import wait_until

LOSS = ("was lost", "cannot be reached")
RETURN = ("is back after", "is linked")


def notices(client, words):
    return [text for text in client.texts(command="NOTICE") if any(word in text for word in words)]


def lose_and_recover(setting, lose, recover=lambda: None, room_extra=CALM, patience=None):
    """Loses the link by `lose()`, talks meanwhile, recovers, and checks what everybody saw."""
    setting.start(room_extra=room_extra)
    backend = setting.backend
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "before")
    backend.expect_text("ann", "before")
    ann.expect_text("before")
    lost_at = time.monotonic()
    lose()
    ann.expect("NOTICE", lambda line: any(word in line.params[-1] for word in LOSS), patience)
    noticed = time.monotonic() - lost_at
    texts = ["while away %d" % n for n in range(5)]
    for text in texts:
        ann.say("#lobby", text)
    ann.barrier()
    recover()
    for text in texts:
        backend.expect_text("ann", text, patience)
    # Linked in the bridge's eyes too: what is said from here on is no history.
    ann.expect("NOTICE", lambda line: any(word in line.params[-1] for word in RETURN), patience)
    backend.say("Remy", "you are back")
    for client in (ann, bob):
        wait_line(client, "you are back")
        wait_line(client, texts[-1])
        client.barrier()
        assert client.texts("ann") == ["before"] + texts, "%s saw %r" % (client.nick, client.texts("ann"))
        assert client.texts("Remy") == ["you are back"], client.texts("Remy")
        assert len(notices(client, LOSS)) == 1, notices(client, LOSS)
        assert len(notices(client, RETURN)) == 1, notices(client, RETURN)
    assert backend.heard("ann") == ["before"] + texts, "the backend heard %r" % backend.heard("ann")
    return "noticed after %.2f s" % noticed


def lost(setting, **how):
    """Ends the link; no handshake is taken until `found`."""
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", **how)


def found(setting):
    setting.backend.set(refuse=0)


@on_wires()
def cut_without_close(setting):
    lose_and_recover(setting, lambda: lost(setting, abort=True), lambda: found(setting))


@on_wires()
def closed_with_1001(setting):
    lose_and_recover(setting, lambda: lost(setting, code=1001), lambda: found(setting))


@on_wires()
def closed_with_1000(setting):
    lose_and_recover(setting, lambda: lost(setting, code=1000), lambda: found(setting))


@on_wires()
def closed_with_1012(setting):
    lose_and_recover(setting, lambda: lost(setting, code=1012, reason="restart"), lambda: found(setting))


@on_wires()
def refused_three_times_with_503(setting):
    def lose():
        setting.backend.set(refuse=3, refuse_status=503 if setting.wire.name != "jwt-rooms" else 502)
        setting.backend.control("drop", abort=True)

    lose_and_recover(setting, lose)


@on_wires()
def stalled_without_a_byte(setting):
    """The server takes everything and says nothing any more, not even a pong."""
    lose_and_recover(
        setting, lambda: setting.backend.set(stall=True, refuse=-1),
        lambda: (setting.backend.control("drop", abort=True), setting.backend.set(stall=False, refuse=0)),
        room_extra=QUICK)


@on_wires(lambda wire: wire.name != "jwt-rooms")
def handshakes_answered_late(setting):
    """Later than handshake_timeout: that try is given up, a later one succeeds."""
    def recover():
        wait_until(
            lambda: "did not answer the handshake in time" in setting.bridge.log(), "a handshake runs out")
        setting.backend.set(accept_delay_ms=0)

    lose_and_recover(
        setting,
        lambda: (setting.backend.set(accept_delay_ms=4000), setting.backend.control("drop", abort=True)),
        recover, room_extra=QUICK)


@on("jwt-rooms")
def an_overloaded_backend_is_left_alone_for_a_while(setting):
    """Its database has fifteen connections; who comes again at once makes it worse."""
    setting.start()
    ann = setting.irc("ann")
    setting.backend.set(refuse=-1, refuse_status=503)
    begin = setting.backend.state()["handshakes"]
    setting.backend.control("drop", abort=True)
    wait_until(
        lambda: any("overloaded" in e["msg"] for e in setting.bridge.log_entries("upstream-failed")), "it is said")
    time.sleep(1.0)
    assert setting.backend.state()["handshakes"] - begin == 1, "a storm"
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])


@on_wires(lambda wire: not wire.login)
def a_handshake_refused_with_403_is_tried_once_more_and_then_seldom(setting):
    setting.start()
    ann = setting.irc("ann")
    begin = setting.backend.state()["handshakes"]
    setting.backend.set(refuse=-1, refuse_status=403)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: any(word in line.params[-1] for word in LOSS))
    ann.expect("NOTICE", lambda line: "refuses" in line.params[-1])
    time.sleep(1.0)
    tries = setting.backend.state()["handshakes"] - begin
    assert tries == 2, "%d handshakes within a second after a 403" % tries
    setting.bridge.check_alive()


@on_wires()
def a_room_that_is_down_at_the_start_comes_up(setting):
    setting.serve(refuse=-1)
    setting.start(linked=False)
    ann = setting.irc("ann")
    ann.expect("NOTICE", lambda line: "no link" in line.params[-1] or "cannot be reached" in line.params[-1])
    ann.say("#lobby", "early bird")
    ann.barrier()
    found(setting)
    setting.backend.expect_text("ann", "early bird")
    wait_line(ann, "early bird")
    ann.barrier()
    assert ann.texts("ann") == ["early bird"], ann.texts("ann")
    assert setting.backend.heard("ann") == ["early bird"]


@on_wires()
def slow_answers_are_waited_for(setting):
    setting.serve(delay_ms=250, http_delay_ms=400)
    setting.start()
    ann = setting.irc("ann")
    for n in range(5):
        ann.say("#lobby", "slow %d" % n)
        setting.backend.say("Remy", "slow too %d" % n)
    wait_line(ann, "slow too 4")
    wait_until(lambda: len(setting.backend.heard("ann")) == 5, "all are heard")
    wait_line(ann, "slow 4")
    ann.barrier()
    assert ann.texts("ann") == ["slow %d" % n for n in range(5)], ann.texts("ann")
    assert ann.texts("Remy") == ["slow too %d" % n for n in range(5)], ann.texts("Remy")


# MARK: - Again and again


@on_wires()
def drops_between_messages(setting):
    """Every message has been heard before the link goes: no wire has an excuse."""
    setting.start()
    backend, ann, bob = setting.backend, setting.irc("ann"), setting.irc("bob")
    up, down = [], []
    for turn in range(6):
        up.append("up %d" % turn)
        ann.say("#lobby", up[-1])
        backend.expect_text("ann", up[-1])
        wait_line(ann, up[-1])
        down.append("down %d" % turn)
        backend.say("Remy", down[-1])
        wait_line(ann, down[-1])
        before = setting.ups()
        backend.control("drop", **({"abort": True} if turn % 2 else {"code": 1001}))
        wait_until(lambda: len(setting.bridge.log_entries("upstream-lost")) > turn, "the loss is seen")
        if turn % 3 == 0:
            up.append("up while down %d" % turn)
            ann.say("#lobby", up[-1])
        setting.wait_up(before + 1)
    backend.say("Remy", "end")
    for client in (ann, bob):
        wait_line(client, "end")
        wait_until(lambda: len(client.texts("ann")) >= len(up), lambda: "all: %r" % client.texts("ann"))
        client.barrier()
        assert client.texts("ann") == up, "%s saw %r" % (client.nick, client.texts("ann"))
        assert client.texts("Remy") == down + ["end"], "%s saw %r" % (client.nick, client.texts("Remy"))
    assert backend.heard("ann") == up, backend.heard("ann")


@on_wires(lambda wire: wire.settles)
def drops_in_the_middle_of_talk(setting):
    """Frames on their way at the moment of the drop: each message once, in order, on both sides."""
    setting.start()
    backend, ann, bob = setting.backend, setting.irc("ann"), setting.irc("bob")
    up, down = [], []
    for turn in range(10):
        before = setting.ups()
        for n in range(6):
            up.append("turn %d message %d" % (turn, n))
            ann.say("#lobby", up[-1])
            if setting.wire.history:
                down.append("down %d %d" % (turn, n))
                backend.say("Remy", down[-1])
        backend.control("drop", **({"abort": True} if turn % 2 else {"code": 1001}))
        setting.wait_up(before + 1)
    for client in (ann, bob):
        wait_until(
            lambda: len(client.texts("ann")) >= len(up) and len(client.texts("Remy")) >= len(down),
            lambda: "%s has all; %s; %s" % (
                client.nick, difference("of ann", client.texts("ann"), up),
                difference("of Remy", client.texts("Remy"), down)), 30)
        client.barrier()
        assert client.texts("ann") == up, difference(client.nick + " of ann", client.texts("ann"), up)
        assert client.texts("Remy") == down, difference(client.nick + " of Remy", client.texts("Remy"), down)
    assert backend.heard("ann") == up, difference("the backend", backend.heard("ann"), up)


def difference(who, got, wanted):
    """What is lost, doubled or out of order, in one line."""
    doubled = sorted({text for text in got if got.count(text) > 1})
    missing = [text for text in wanted if text not in got]
    known = [text for text in wanted if text in got]
    first = next((n for n, pair in enumerate(zip(got, known)) if pair[0] != pair[1]), None)
    order = "yes" if first is None else "not from %d on, %r instead of %r" % (
        first, got[max(0, first - 2):first + 4], known[max(0, first - 2):first + 4])
    return "%s: missing %r, doubled %r, in order: %s" % (who, missing, doubled, order)


@on_wires(lambda wire: wire.settles)
def swallowed_without_a_word(setting):
    """The server took the messages, said nothing and died: they are settled afterwards."""
    setting.start()
    backend, ann, bob = setting.backend, setting.irc("ann"), setting.irc("bob")
    backend.set(stall=True)
    texts = ["swallowed %d" % n for n in range(3)]
    for text in texts:
        ann.say("#lobby", text)
    for text in texts:
        backend.expect_text("ann", text)
    backend.control("drop", abort=True)
    backend.set(stall=False)
    for client in (ann, bob):
        wait_line(client, texts[-1])
        client.barrier()
        assert client.texts("ann") == texts, "%s saw %r" % (client.nick, client.texts("ann"))
    assert backend.heard("ann") == texts, backend.heard("ann")


def hanging(setting, is_lost):
    """A backend reads a message, answers pings, and has not looked at it when the link is torn."""
    if setting.wire.name == "plainjson":
        # Nobody acknowledges anything.
        setting.serve(auto_ack=False)
    setting.start()
    backend, ann, bob = setting.backend, setting.irc("ann"), setting.irc("bob")
    backend.set(hang=True)
    ann.say("#lobby", "in the air")
    backend.expect_text("ann", "in the air")
    if setting.wire.name in ("plainjson", "jwt-rooms"):
        # On these the answer to a ping is all that the bridge has.
        wait_line(ann, "in the air")
    before = setting.ups()
    backend.set(hang=False)
    backend.control("drop", abort=True)
    setting.wait_up(before + 1)
    backend.control("take", drop=is_lost)
    ann.say("#lobby", "on the ground")
    for client in (ann, bob):
        wait_line(client, "on the ground")
    wait_until(
        lambda: "on the ground" in backend.heard("ann"), lambda: "the backend heard %r" % backend.heard("ann"), 40)
    for client in (ann, bob):
        client.barrier()
        assert client.texts("ann") == ["in the air", "on the ground"], "%s saw %r" % (client.nick, client.texts("ann"))
    assert backend.heard("ann") == ["in the air", "on the ground"], backend.heard("ann")


@on_wires(lambda wire: wire.settles)
def what_a_hanging_backend_had_read_is_lost_with_the_link(setting):
    """It goes again, and is shown no second time."""
    hanging(setting, is_lost=True)


@on_wires(lambda wire: wire.settles)
def what_a_hanging_backend_had_read_is_taken_late(setting):
    """After the history was asked for; it does not go again where that would make it two."""
    hanging(setting, is_lost=False)


# MARK: - Refused messages


@on_wires(lambda wire: wire.refuses)
def a_refused_message_is_given_back_with_the_backends_words(setting):
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.set(reject={"code": 403, "message": "no cheese in here", "count": 1}
                        if setting.wire.name == "custom"
                        else {"code": "FORBIDDEN", "message": "no cheese in here", "count": 1})
    ann.say("#lobby", "cheese")
    failure = ann.expect("FAIL")
    assert failure.params[0] == "PRIVMSG" and "no cheese in here" in failure.raw, failure.raw
    ann.say("#lobby", "soup")
    setting.backend.expect_text("ann", "soup")
    for client in (ann, bob):
        wait_line(client, "soup")
        client.barrier()
    # On a wire that confirms nothing, the others had seen it already.
    if setting.wire.name != "jwt-rooms":
        assert bob.texts() == ["soup"], bob.texts()


# MARK: - What a wire has of its own


@on("swiftchat")
def a_text_too_long_for_a_frame_is_split(setting):
    setting.start(limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\n'
                  'multiline = { max_bytes = "64KiB", max_lines = 200 }')
    caps = ["draft/multiline"]
    ann = setting.irc("ann")
    ann.send("CAP LS 302")
    offered = ann.expect("CAP", lambda line: line.params[1] == "LS")
    if "draft/multiline" not in offered.params[-1]:
        return "multiline is not offered"
    ann.send("CAP REQ :" + " ".join(caps))
    ann.expect("CAP", lambda line: line.params[1] == "ACK")
    lines = ["line %03d %s" % (n, "x" * 380) for n in range(60)]
    ann.send("BATCH +b draft/multiline #lobby")
    ann.send(*("@batch=b PRIVMSG #lobby :" + line for line in lines))
    ann.send("BATCH -b")
    setting.backend.say("Remy", "after")
    ann.expect_text("after")
    wait_until(
        lambda: "\n".join(setting.backend.heard("ann")).split("\n") == lines,
        lambda: "all lines are heard: %r" % [len(text) for text in setting.backend.heard("ann")])
    parts = [f for f in setting.backend.frames() if f["kind"] == "message"]
    assert len(parts) == 2, [len(f["text"]) for f in parts]
    return "%d messages for %d bytes" % (len(parts), sum(map(len, lines)))


@on("swiftchat", "jwt-rooms")
def protocol_pings_of_the_server_are_answered(setting):
    setting.serve(ping_interval=0.3)
    setting.start()
    ann = setting.irc("ann")
    connections = setting.backend.connections()
    time.sleep(1.5)
    assert setting.backend.connections() == connections, "hung up on"
    setting.backend.say("Remy", "still here")
    ann.expect_text("still here")


@on("jwt-rooms", "custom", "directus")
def pings_inside_the_json_are_answered(setting):
    if setting.wire.name == "jwt-rooms":
        setting.serve(json_ping=0.3)
        answer = {"kind": "pong"}
    elif setting.wire.name == "custom":
        setting.serve(knock=0.3)
        answer = {"kind": "here"}
    else:
        setting.serve(heartbeat_period=0.3)
        answer = {"kind": "pong"}
    setting.start()
    connections = setting.backend.connections()
    for _ in range(3):
        setting.backend.expect("the answer", **answer)
    assert setting.backend.connections() == connections, "hung up on"


@on("directus")
def a_silent_link_is_tested_by_a_json_ping(setting):
    """Protocol pings are not answered there."""
    setting.serve(pong=False)
    setting.start(room_extra=QUICK)
    connections = setting.backend.connections()
    for _ in range(3):
        setting.backend.expect("a ping", kind="ping")
    assert setting.backend.connections() == connections, "reconnected for want of a protocol pong"


@on("directus")
def the_answer_and_the_event_may_come_in_either_order(setting):
    setting.serve(event_order="event_first")
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for n in range(3):
        ann.say("#lobby", "mine %d" % n)
    setting.backend.say("Remy", "end")
    for client in (ann, bob):
        wait_line(client, "end")
        wait_line(client, "mine 2")
        client.barrier()
        assert client.texts("ann") == ["mine 0", "mine 1", "mine 2"], client.texts("ann")
        assert len(client.texts()) == 4, client.texts()


@on("directus")
def deletions_of_other_rooms_are_ignored(setting):
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    other = setting.backend.say("Remy", "elsewhere", room="kitchen")
    setting.backend.do("delete", "Remy", id=other)
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    ann.barrier()
    assert ann.texts() == ["end"] and not [x for x in ann.lines if x.command in ("REDACT", "FAIL")]


@on("directus")
def an_older_server_without_uid_on_errors(setting):
    setting.serve(error_uid=False)
    setting.start()
    ann = setting.irc("ann")
    setting.backend.set(reject={"code": "FORBIDDEN", "message": "not you", "count": 1})
    ann.say("#lobby", "cheese")
    failure = ann.expect("FAIL")
    assert "not you" in failure.raw, failure.raw


@on("typed")
def subprotocols_are_kept_to(setting):
    setting.serve(force_protocol="nobody-asked")
    setting.start(linked=False, room_extra=CALM + 'subprotocol = ["chat.v2"]\n')
    ann = setting.irc("ann")
    ann.expect("NOTICE", lambda line: "no link" in line.params[-1] or "cannot be reached" in line.params[-1])
    assert not setting.ups(), "a protocol that nobody offered was taken"
    setting.backend.set(force_protocol=None, subprotocols=["chat.v2"])
    setting.wait_up()
    assert setting.backend.state()["connections"][0]["protocol"] == "chat.v2"


@on("typed", "plainjson", "jwt-rooms")
def an_echo_that_nobody_promised_is_learned(setting):
    setting.serve(echo="all")
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for n in range(3):
        ann.say("#lobby", "mine %d" % n)
    setting.backend.say("Remy", "end")
    for client in (ann, bob):
        wait_line(client, "end")
        wait_line(client, "mine 2")
        client.barrier()
        assert client.texts("ann") == ["mine 0", "mine 1", "mine 2"], client.texts("ann")
        assert len(client.texts()) == 4, client.texts()


@on("jwt-rooms", "directus")
def the_account_on_another_device_is_shown(setting):
    """What the bridge's own account says elsewhere is no echo: it is shown, under the account's name."""
    setting.start()
    ann = setting.irc("ann")
    setting.backend.say("liaison", "from my phone")
    line = ann.expect_text("from my phone")
    assert line.source.split("!")[0].lower() == "liaison", line.raw


# MARK: - Everything at once

SEED = int(os.environ.get("SEED", "1"))


@on_wires()
def any_faults_in_any_order(setting):
    """Ten seconds of faults drawn at random (SEED chooses others), talk all the while, and then peace."""
    random.seed("%s %d" % (setting.wire, SEED))
    setting.start(room_extra=QUICK)
    backend, ann, bob = setting.backend, setting.irc("ann"), setting.irc("bob")
    wire, up, down, faults = setting.wire, [], [], []
    expiring = ["expire", "expire all"] if wire.login else []
    calls = ["http"] if wire.history == "call" or wire.login else []
    # A server that slowly works through the frames of a dead link looks like one that lost them; where it makes the ids,
    # what is sent again is said twice.
    slow = [] if wire.ids == "server" and wire.settles else ["slow"]
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for _ in range(random.randint(1, 4)):
            up.append("up %d" % len(up))
            ann.say("#lobby", up[-1])
            if wire.history:
                down.append("down %d" % len(down))
                backend.say(random.choice(("Remy", "Linguini")), down[-1])
        fault = random.choice(["abort", "close", "refuse", "stall", "none", "none"] + slow + expiring + calls)
        faults.append(fault)
        if fault == "abort":
            backend.control("drop", abort=True)
        elif fault == "close":
            backend.control("drop", code=random.choice((1000, 1001, 1011, 1012)))
        elif fault == "refuse":
            backend.set(refuse=random.randint(1, 3))
            backend.control("drop", abort=True)
        elif fault == "stall":
            backend.set(stall=True)
            time.sleep(random.choice((0.2, 1.5)))
            backend.control("drop", abort=True)
            backend.set(stall=False)
        elif fault == "slow":
            backend.set(delay_ms=random.choice((0, 20, 60)), http_delay_ms=random.choice((0, 200)))
        elif fault == "expire":
            backend.control("expire_tokens")
        elif fault == "expire all":
            backend.control("expire_tokens", refresh=True)
        elif fault == "http":
            backend.set(http_fail={"status": random.choice((500, 502, 503)), "count": 1, "path": ""})
        for client in (ann, bob):
            client.drain()
        time.sleep(random.choice((0, 0.1, 0.4)))
    backend.set(delay_ms=0, http_delay_ms=0, stall=False, refuse=0, http_fail=None)
    # A history that failed leaves its gap open until the next link; and the last words are not on their way as it goes.
    setting.wait_up(setting.ups() + (0 if backend.connections() else 1), 30)
    before = setting.ups()
    backend.control("drop", abort=True)
    setting.wait_up(before + 1, 30)
    what = " ".join(faults)
    last = "the end"
    up.append(last)
    ann.say("#lobby", last)
    wait_until(
        lambda: last in backend.heard("ann"), lambda: "peace after %s; %s" % (what, setting.bridge.log()[-600:]), 60)
    wait_line(ann, last)
    if wire.history:
        down.append("down last")
        backend.say("Remy", down[-1])
        for client in (ann, bob):
            wait_until(
                lambda: down[-1] in client.texts(), lambda: "%s hears the last after %s" % (client.nick, what), 30)
    for client in (ann, bob):
        client.barrier()
        said = [text for text in client.texts() if text.startswith("down ")]
        assert said == down, difference("%s after %s" % (client.nick, what), said, down)
    heard = backend.heard("ann")
    given_back = [line.raw.rsplit(": ", 1)[-1] for line in ann.lines if line.command == "FAIL"]
    assert len(set(heard)) == len(heard), difference("the backend after " + what, heard, up)
    assert heard == [text for text in up if text in set(heard)], "out of order after %s: %r" % (what, heard)
    lost = [text for text in up if text not in heard and text not in given_back]
    if wire.settles:
        assert not lost, "lost silently after %s: %r" % (what, lost)
        for client in (ann, bob):
            mine = client.texts("ann")
            assert sorted(mine) == sorted(heard), difference("%s of ann after %s" % (client.nick, what), mine, heard)
    return "%d up, %d down, %d given back, %d lost; %s" % (len(up), len(down), len(given_back), len(lost), what)
