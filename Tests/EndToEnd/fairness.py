"""One fast sender does not delay a room: its upstream budget is shared among senders in turn.

"round robin by person, order kept within each, also across a restart; pieces of one message go together; guests of one address
share one turn; everybody sees the confirmed order as today."
"""

from accounts import account
from backends import CALM, on
from multiline import MULTILINE, paste
from peer import IRC, MODERN, wait_until
from restarts import folder, kill, log_in_as
from world import scenario

# A budget that is there, and soon over: 10 at once, then so many a second.
SLOWED = 'messages_per_second = "off"\nupstream_connects_per_second = "off"\nupstream_messages_per_second = 4'
BRISK = SLOWED.replace("= 4", "= 20")
PEOPLE = "[identity]\n" + "".join(account(name, "secret") for name in ("alice", "bob", "carol"))


def guest(world, nick, source, caps=MODERN):
    client = IRC(world.bridge.port, nick, caps=caps, join=["#lobby"], source=source)
    world.stack.callback(client.close)
    return client


def person(world, name, nick=None):
    return log_in_as(world, name, "secret", nick or name.partition("@")[0], "#lobby")


def sent(world):
    return [f["body"] for f in world.relay.messages_from_bridge()]


def say_all(client, label, count):
    """Many lines at once, accepted when this returns."""
    client.send(*("PRIVMSG #lobby :%s %d" % (label, n) for n in range(count)))
    client.barrier()


def hold_back(world, *clients):
    """The link is lost and does not come back, until `let_go`."""
    world.relay.hold_handshakes()
    world.relay.drop()
    for client in clients:
        client.expect("NOTICE", lambda line: "was lost" in line.params[-1])


def let_go(world, count, patience=30):
    world.relay.release_handshakes()
    wait_until(lambda: len(sent(world)) >= count, lambda: "%d of %d went up" % (len(sent(world)), count), patience)
    return sent(world)


def check_order(order, *labels):
    """Order is kept within each."""
    for label, count in labels:
        mine = [text for text in order if text.startswith(label + " ")]
        assert mine == ["%s %d" % (label, n) for n in range(count)], "%s: %r" % (label, mine)


def share(order, label, first):
    return sum(text.startswith(label + " ") for text in order[:first])


@scenario
def a_talkative_person_delays_nobody(world):
    """Sixty lines are fifteen seconds of this room; whoever says one thing meanwhile has the next turn but one."""
    world.start(limits=SLOWED, tables=PEOPLE)
    alice, bob, carol = (person(world, name) for name in ("alice", "bob", "carol"))
    alice.send(*("PRIVMSG #lobby :talk %d" % n for n in range(60)))
    places = []
    for turn in range(3):
        wait_until(lambda: len(sent(world)) >= 12 + 6 * turn, "the burst is over")
        bob.say("#lobby", "quiet %d" % turn)
        bob.barrier()
        before = len(sent(world))
        wait_until(lambda: "quiet %d" % turn in sent(world), lambda: "bob's turn; %d went up" % len(sent(world)))
        places.append(sent(world).index("quiet %d" % turn) - before)
        carol.drain()
    assert max(places) <= 2, "so many went first: %r" % places
    wait_until(lambda: len(sent(world)) == 63, "all go up", 30)
    order = sent(world)
    check_order(order, ("talk", 60), ("quiet", 3))
    # "everybody sees the confirmed order as today"
    for client in (alice, bob, carol):
        client.expect_text(order[-1])
        client.barrier()
        assert client.texts() == order, "%s saw %r" % (client.nick, client.texts())
    return "behind %r others" % places


@scenario
def three_talkative_people_and_a_quiet_one(world):
    """Guests of different addresses are different people: the fourth waits for one of each at most."""
    world.start(limits=SLOWED)
    talkers = [guest(world, "talker%d" % n, "127.0.0.%d" % (n + 2)) for n in range(3)]
    quiet = guest(world, "quiet", "127.0.0.9")
    for n, talker in enumerate(talkers):
        talker.send(*("PRIVMSG #lobby :t%d %d" % (n, k) for k in range(16)))
    wait_until(lambda: len(sent(world)) >= 13, "the burst is over")
    quiet.say("#lobby", "hush 0")
    quiet.barrier()
    before = len(sent(world))
    wait_until(lambda: "hush 0" in sent(world), "its turn")
    place = sent(world).index("hush 0") - before
    assert place <= 4, "%d went first" % place
    wait_until(lambda: len(sent(world)) == 49, "all go up", 30)
    check_order(sent(world), ("t0", 16), ("t1", 16), ("t2", 16), ("hush", 1))
    return "behind %d others" % place


@scenario
def what_waits_for_a_link_goes_in_turns(world):
    world.start(limits=BRISK, tables=PEOPLE)
    alice, bob, carol = (person(world, name) for name in ("alice", "bob", "carol"))
    hold_back(world, alice, bob, carol)
    say_all(alice, "a", 40)
    say_all(bob, "b", 10)
    say_all(carol, "c", 5)
    order = let_go(world, 55)
    check_order(order, ("a", 40), ("b", 10), ("c", 5))
    assert share(order, "c", 16) == 5 and share(order, "b", 27) == 10, order


@scenario
def turns_over_a_restart(world):
    """"also across a restart": the order within each, and the turns."""
    directory = folder(world)
    world.start(limits=BRISK, tables=PEOPLE, directory=directory)
    alice, bob = person(world, "alice"), person(world, "bob")
    hold_back(world, alice, bob)
    say_all(alice, "a", 40)
    say_all(bob, "b", 10)
    kill(world)
    world.relay.release_handshakes()
    world.start(limits=BRISK, tables=PEOPLE, directory=directory)
    wait_until(lambda: len(sent(world)) >= 50, lambda: "%d of 50 went up" % len(sent(world)), 30)
    order = sent(world)
    check_order(order, ("a", 40), ("b", 10))
    assert len(order) == 50 and share(order, "b", 22) == 10, order


@scenario
def all_clients_of_an_account_are_one_person(world):
    """"round robin by person": two clients of one account do not have two turns."""
    world.start(limits=BRISK, tables=PEOPLE)
    phone, desk, bob = person(world, "alice@phone"), person(world, "alice@desk"), person(world, "bob")
    hold_back(world, phone, desk, bob)
    say_all(phone, "p", 20)
    say_all(desk, "d", 20)
    say_all(bob, "b", 12)
    order = let_go(world, 52)
    check_order(order, ("p", 20), ("d", 20), ("b", 12))
    assert share(order, "b", 26) == 12, "of every two one is bob's: %r" % order


@scenario
def guests_of_one_address_share_one_turn(world):
    """Whoever opens four connections has no more than one turn for all of them; another address has its own."""
    world.start(limits=BRISK, tables=PEOPLE)
    crowd = [guest(world, "crowd%d" % n, "127.0.0.2") for n in range(4)]
    other, carol = guest(world, "other", "127.0.0.3"), person(world, "carol")
    hold_back(world, *crowd, other, carol)
    for n, client in enumerate(crowd):
        say_all(client, "g%d" % n, 10)
    say_all(other, "o", 8)
    say_all(carol, "c", 8)
    order = let_go(world, 56)
    check_order(order, *(("g%d" % n, 10) for n in range(4)), ("o", 8), ("c", 8))
    assert share(order, "o", 26) == 8 and share(order, "c", 26) == 8, "of every three one is theirs: %r" % order


@on("swiftchat")
def pieces_of_one_message_go_together(setting):
    """That wire takes 16 KiB: a longer message goes in pieces, and no other is between them."""
    setting.start(room_extra=CALM, limits=BRISK)
    ann = guest(setting, "ann", "127.0.0.2", MULTILINE)
    bob = guest(setting, "bob", "127.0.0.3")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    for n in range(4):
        # A quote takes two bytes of JSON: 13 KiB for IRC are 22 KiB there.
        paste(ann, "#lobby", ["+" + '""%d' % n * 130 for _ in range(34)])
    ann.barrier()
    say_all(bob, "b", 8)
    setting.backend.set(refuse=0)
    setting.wait_up(2)

    def messages():
        return [f for f in setting.backend.frames() if f["kind"] == "message"]

    def label(frame):
        return frame["text"] if frame["name"] == "bob" else "ann %s" % frame["text"].strip('"')[0]

    def whole():
        return len([f for f in messages() if f["name"] == "bob"]) == 8 and sum(
            len(f["text"]) for f in messages() if f["name"] == "ann") >= 4 * 34 * 390
    wait_until(whole, lambda: "all is there: %r" % [label(f) for f in messages()], 30)
    order = [label(f) for f in messages()]
    pieces = [order.count("ann %d" % n) for n in range(4)]
    assert min(pieces) >= 2, "not in pieces: %r" % order
    for n, count in enumerate(pieces):
        at = order.index("ann %d" % n)
        assert order[at : at + count] == ["ann %d" % n] * count, "something is between the pieces: %r" % order
    assert [x for x in order if x.startswith("b ")] == ["b %d" % n for n in range(8)], order
    # Both have turns: bob is not behind all of ann's.
    assert order.index("b 1") < order.index("ann 3"), order
