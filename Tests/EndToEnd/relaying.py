"""The basic function of the bridge: messages, typing and receipts cross in both directions."""

import datetime
import time

from accounts import account
from peer import new_id, wait_until
from restarts import folder, kill, log_in_as
from world import scenario


@scenario
def messages_cross_both_ways(world):
    world.start()
    ann, bob = world.irc("ann"), world.plain("bob")
    remy = world.person("Remy")
    remy.say("bonjour à tous 🍲")
    for client in (ann, bob):
        line = client.expect_text("bonjour à tous 🍲")
        assert line.source.startswith("Remy!"), line.raw
        assert line.params[0] == "#lobby", line.raw
    ann.say("#lobby", "hello — from IRC")
    frame = remy.expect_message("hello — from IRC")
    assert frame["sender_name"] == "ann", frame
    assert set(frame) == {"event", "message_id", "sender_id", "sender_name", "body", "sent_at"}, frame
    assert abs(frame["sent_at"] - time.time()) < 5, frame
    bob.expect_text("hello — from IRC")
    # The author's echo comes with the same id that the others saw.
    echo = ann.expect_text("hello — from IRC")
    assert echo.source.startswith("ann!"), echo.raw
    assert not bob.lines[-1].tags, "a client without capabilities got tags"


@scenario
def typing_crosses_both_ways(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    bob = world.plain("bob")
    remy.type()
    line = ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active")
    assert line.source.startswith("Remy!"), line.raw
    remy.say("there")
    ann.expect_text("there")
    ann.send("@+typing=active TAGMSG #lobby")
    frame = remy.expect("typing", lambda f: f["event"] == "typing" and f["sender_name"] == "ann")
    assert frame["body"] == "", frame
    ann.say("#lobby", "done")
    message = remy.expect_message("done")
    assert message["sender_id"] == frame["sender_id"], "one user, two ids"
    bob.barrier()
    assert not [line for line in bob.lines if line.command == "TAGMSG"], "TAGMSG to a client without message-tags"


@scenario
def typing_that_stops_ends_by_itself(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    began = time.monotonic()
    remy.type()
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active")
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "done")
    assert 2.5 < time.monotonic() - began < 5, "done came after %.1f s" % (time.monotonic() - began)


@scenario
def a_flood_of_typing_frames_is_one_notice_in_three_seconds(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for _ in range(300):
        remy.type()
    remy.say("after")
    ann.expect_text("after")
    active = [line for line in ann.lines if line.tags.get("+typing") == "active"]
    assert len(active) == 1, "%d notices" % len(active)


@scenario
def receipts_cross_both_ways(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    ann.say("#lobby", "read this")
    frame = remy.expect_message("read this")
    msgid = ann.expect_text("read this").tags["msgid"]
    remy.read(frame["message_id"])
    seen = ann.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
    assert seen.tags["+draft/read"] == msgid and seen.source.startswith("Remy!"), seen.raw

    wanted = [remy.say("one"), remy.say("two")]
    ann.expect_text("one")
    at = ann.expect_text("two").tags["time"]
    ann.send("MARKREAD #lobby timestamp=" + at)
    got = []
    for _ in wanted:
        receipt = remy.expect("a receipt", lambda f: f["event"] == "readReceipt" and f["sender_name"] == "ann")
        got.append(receipt["message_id"])
    assert got == wanted, "receipts %r for %r" % (got, wanted)


@scenario
def four_people_see_each_message_exactly_once(world):
    world.start()
    ann, bob = world.irc("ann"), world.irc("bob")
    remy, linguini = world.person("Remy"), world.person("Linguini")
    ids = {}
    for turn in range(5):
        for client in (ann, bob):
            client.say("#lobby", "%s %d" % (client.nick, turn))
        for person in (remy, linguini):
            person.say("%s %d" % (person.name, turn))
    names = ["ann", "bob", "Remy", "Linguini"]
    expected = {"%s %d" % (name, turn) for name in names for turn in range(5)}
    for client in (ann, bob):
        wait_until(
            lambda: client.drain() or len(client.texts()) >= len(expected),
            lambda: "%s sees all: %r is missing" % (client.nick, expected - set(client.texts())),
        )
        client.barrier()
        assert sorted(client.texts()) == sorted(expected), sorted(client.texts())
        for line in client.lines:
            if line.command != "PRIVMSG":
                continue
            # Each text begins with its author's name; the nick must be that name, from the first line to the last.
            assert line.source.split("!")[0] == line.params[-1].split()[0], line.raw
            assert line.tags.get("msgid"), line.raw
            stamp = datetime.datetime.strptime(line.tags["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
            age = time.time() - stamp.replace(tzinfo=datetime.timezone.utc).timestamp()
            assert -1 <= age <= 10, "time tag is %.1f s old: %s" % (age, line.raw)
            ids.setdefault(line.params[-1], set()).add(line.tags["msgid"])
    assert all(len(one) == 1 for one in ids.values()), "msgids differ between receivers: %r" % ids
    assert len({next(iter(one)) for one in ids.values()}) == len(expected), "two messages share a msgid"
    for person in (remy, linguini):
        wait_until(lambda: len(person.bodies()) >= len(expected), "%s sees all" % person.name)
        assert sorted(person.bodies()) == sorted(expected), person.bodies()
        sent = [f["message_id"] for f in person.frames if f.get("event") == "message"]
        assert len(sent) == len(set(sent)), "a message went upstream twice"


@scenario
def the_time_tag_is_the_senders_time_within_a_second(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    sent_at = 1763695136.25
    remy.say("an old one", sent_at=sent_at)
    line = ann.expect_text("an old one")
    stamp = datetime.datetime.strptime(line.tags["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    difference = stamp.replace(tzinfo=datetime.timezone.utc).timestamp() - sent_at
    assert abs(difference) < 0.01, line.raw
    ann.say("#lobby", "now")
    line = ann.expect_text("now")
    stamp = datetime.datetime.strptime(line.tags["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert abs(stamp.replace(tzinfo=datetime.timezone.utc).timestamp() - time.time()) < 1, line.raw


@scenario
def five_hundred_quick_messages_each_way_keep_their_order(world):
    world.start()
    ann, bob = world.irc("ann"), world.irc("bob")
    remy = world.person("Remy")
    up = ["up %d" % n for n in range(500)]
    down = ["down %d" % n for n in range(500)]
    for first in range(0, 500, 50):
        ann.send(*("PRIVMSG #lobby :" + text for text in up[first : first + 50]))
        for text in down[first : first + 50]:
            remy.say(text)
        for link in (ann, bob, remy):
            link.drain()
    for client in (ann, bob):
        wait_until(
            lambda: client.drain() or len(client.texts()) >= 1000,
            lambda: "%s has 1000 (%d)" % (client.nick, len(client.texts())),
        )
        assert client.texts("Remy") == down, client.nick + " sees Remy's messages out of order, doubled or lost"
        assert client.texts("ann") == up, client.nick + " sees ann's messages out of order, doubled or lost"
    wait_until(lambda: len(remy.bodies("ann")) >= 500, "Remy has 500")
    assert remy.bodies("ann") == up, "up: out of order, doubled or lost"


@scenario
def the_same_frame_twice_is_one_message(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    same = new_id()
    remy.say("once", message_id=same)
    remy.say("once", message_id=same)
    remy.say("end")
    ann.expect_text("end")
    assert ann.texts("Remy") == ["once", "end"], ann.texts("Remy")


@scenario
def a_name_keeps_its_nick_and_two_of_one_name_get_two(world):
    world.start()
    ann = world.irc("ann")
    first, second = world.person("Remy"), world.person("Remy")
    nicks = {}
    for turn in range(3):
        for number, person in enumerate((first, second)):
            text = "%d from %d" % (turn, number)
            person.say(text)
            nicks.setdefault(number, set()).add(ann.expect_text(text).source.split("!")[0])
    assert all(len(one) == 1 for one in nicks.values()), nicks
    assert nicks[0] != nicks[1], "two people share a nick: %r" % nicks


@scenario
def camel_case_frames_are_read_too(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    remy.send_raw(
        '{"event":"message","messageId":"%s","senderId":"%s","senderName":"Skinner","body":"who is it","sentAt":%f}'
        % (new_id(), new_id(), time.time())
    )
    assert ann.expect_text("who is it").source.startswith("Skinner!")


@scenario
def rooms_do_not_mix(world):
    world.start(rooms=("lobby", "kitchen"))
    ann, bob = world.irc("ann"), world.irc("bob", join="#kitchen")
    remy, linguini = world.person("Remy"), world.person("Linguini", room="kitchen")
    remy.say("in the lobby")
    linguini.say("in the kitchen")
    ann.expect_text("in the lobby")
    bob.expect_text("in the kitchen")
    ann.say("#lobby", "to the lobby")
    remy.expect_message("to the lobby")
    for client in (ann, bob):
        client.barrier()
    assert ann.texts("Linguini") == [] and bob.texts("Remy") == []
    assert linguini.bodies("ann") == []


@scenario
def two_bridges_serve_one_room(world):
    """Each with an `instance_id` and state of its own, so that one nick at both is two people to the backend. Each message is
    once with everybody."""
    clients = []
    for number in (1, 2):
        world.start(linked=False, server_extra='instance_id = "bridge-%d"' % number)
        world.relay.wait_for_bridge(count=number)
        clients.append(world.irc("ann"))
    remy, texts, ids = world.person("Remy"), [], set()
    for turn in range(3):
        for number, client in enumerate(clients):
            texts.append("%d at %d" % (turn, number))
            client.say("#lobby", texts[-1])
            ids.add((number, remy.expect_message(texts[-1])["sender_id"]))
        texts.append("%d upstream" % turn)
        remy.say(texts[-1])
        for client in clients:
            client.expect_text(texts[-1])
    for client in clients:
        client.barrier()
        assert client.texts() == texts, client.texts()
        assert len({line.source for line in client.lines if line.command == "PRIVMSG"}) == 3, "two people have one nick"
    remy.expect_message(texts[-1])
    assert [frame["body"] for frame in remy.frames if frame["event"] == "message"] == texts, remy.frames
    assert len(ids) == len({sender for _, sender in ids}) == 2, ids


@scenario
def a_label_is_answered_by_the_echo(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    ann.send("@label=x1 PRIVMSG #lobby :labelled")
    remy.expect_message("labelled")
    assert ann.expect_text("labelled").tags.get("label") == "x1"


@scenario
def who_leaves_before_the_echo_leaves_no_ghost(world):
    """The echo of a message and of typing comes after its author has quit: it must not become a person upstream."""
    world.start()
    bob, remy = world.irc("bob"), world.person("Remy")
    for turn in range(3):
        ann = world.irc("ann", join="")
        ann.send("JOIN #lobby", "@+typing=active TAGMSG #lobby", "PRIVMSG #lobby :bye %d" % turn, "QUIT :gone")
        ann.wait_closed()
        line = bob.expect_text("bye %d" % turn)
        assert line.source == "ann!~ann@bridge.test", line.raw
    remy.say("end")
    bob.expect_text("end")
    bob.barrier()
    ghosts = [line.raw for line in bob.lines if line.command == "JOIN" and "!chat@" in line.source]
    assert len(ghosts) == 1 and ":Remy!" in ghosts[0], ghosts
    wait_until(lambda: len(remy.bodies("ann")) == 3, "Remy has all three")
    assert len([f for f in remy.frames if f["event"] == "message" and f["sender_name"] == "ann"]) == 3, "sent twice"


@scenario
def a_new_nick_with_messages_in_flight_stays_one_person(world):
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    ann.send("PRIVMSG #lobby :as ann", "NICK anne", "PRIVMSG #lobby :as anne")
    bob.expect_text("as ann")
    assert bob.expect_text("as anne").source.startswith("anne!")
    ann.expect_text("as anne")
    for client in (ann, bob):
        client.barrier()
        assert not [line.raw for line in client.lines if line.command == "JOIN" and "!chat@" in line.source], "a ghost"
        assert client.texts() == ["as ann", "as anne"], client.texts()
    first, second = remy.expect_message("as ann"), remy.expect_message("as anne")
    assert first["sender_name"] == "ann" and second["sender_name"] == "anne", (first, second)


@scenario
def a_talkative_person_delays_nobody(world):
    """Senders take turns, while the room's rate holds them up and over a restart, each one's messages in order."""
    options = dict(
        directory=folder(world), limits='messages_per_second = "off"\nupstream_messages_per_second = 10',
        tables="[identity]\n" + "\n".join(account(name, "secret") for name in ("ann", "cat", "bob")))
    world.start(**options)
    remy = world.person("Remy")
    clients = {name: log_in_as(world, name, "secret", name, "#lobby") for name in ("ann", "cat", "bob")}

    def say(name, word, count):
        for number in range(count):
            clients[name].say("#lobby", "%s %s %d" % (name, word, number))

    say("ann", "one", 20)
    say("cat", "one", 20)
    for name in ("ann", "cat"):
        clients[name].barrier()
    # Ten go at once, whoever said them, and are on their way when somebody else speaks.
    remy.expect("what goes at once", lambda _: len(remy.bodies()) >= 10)
    say("bob", "one", 1)
    before = len(remy.bodies())
    remy.expect_message("bob one 0")
    behind = len(remy.bodies()) - before
    assert behind <= 8, "%d messages of others came before the one that was said last" % behind

    world.relay.hold_handshakes()
    world.relay.drop()
    clients["ann"].expect("NOTICE", lambda line: "was lost" in line.params[-1])
    for name, count in (("ann", 10), ("cat", 10), ("bob", 2)):
        say(name, "two", count)
        clients[name].barrier()
    kill(world)
    world.relay.release_handshakes()
    world.start(**options)
    remy.expect_message("cat two 9", patience=20)
    told = [body for body in remy.bodies() if " two " in body]
    assert told.index("bob two 1") <= told.index("ann two 4"), told
    for name, count in (("ann", 10), ("cat", 10), ("bob", 2)):
        own = [body for body in told if body.startswith(name)]
        assert own == ["%s two %d" % (name, number) for number in range(count)], own
