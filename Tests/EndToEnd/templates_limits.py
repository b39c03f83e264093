"""Rooms that `*` opens: the limit for each user, the spelling of an open name, and path traversal in names."""

from access import NOWHERE, SECRET, tell_apart
from accounts import account
from backends import CALM, on
from peer import MODERN, wait_until
from restarts import log_in_as
from world import scenario

PERSON = 10
REFUSALS = ("403", "405", "437", "471", "473", "479", "FAIL")


def start(world, people="", more="", path="/rooms/{room}"):
    world.start(rooms=("lobby",), server_extra="[identity]\n" + people, tables=(
        '[[rooms]]\nname = "*"\nurl = "ws://127.0.0.1:%d%s"\n%s%s' % (world.relay.port, path, CALM, more)))


def enter(client, channel):
    """Whether the client is in the room, and the line that says why not."""
    begin = len(client.lines)
    client.send("JOIN " + channel)
    client.barrier()
    lines = client.lines[begin:]
    entered = [line for line in lines if line.command == "JOIN" and line.source.split("!")[0] == client.nick]
    refused = [line for line in lines if line.command in REFUSALS]
    assert bool(entered) != bool(refused), [line.raw for line in lines]
    return bool(entered), refused[0].raw if refused else ""


def opened(world):
    """Paths that the bridge asked the backend for, beside that of #lobby."""
    return sorted({peer.room for peer in world.relay.bridges() if "rooms/" in peer.room})


def is_a_sentence(line):
    words = line.split(" :", 2)[-1]
    return len(words.split()) >= 3


@scenario
def one_client_does_not_take_all_rooms(world):
    """Ten for each person; and the places of the others are theirs."""
    start(world)
    mallory, ann = world.irc("mallory"), world.irc("ann")
    mallory.send(*("JOIN " + ",".join("#m%d" % number for number in range(start, start + 20)) for start in range(0, 120, 20)))
    mallory.barrier()
    rooms = {line.params[0] for line in mallory.lines if line.command == "JOIN" and line.source.startswith("mallory!")}
    refused = [line for line in mallory.lines if line.command in REFUSALS]
    assert len(rooms - {"#lobby"}) == PERSON, "%d rooms" % len(rooms - {"#lobby"})
    assert len(refused) == 120 - PERSON and all(is_a_sentence(line.raw) for line in refused), [l.raw for l in refused[:3]]
    for number in range(PERSON):
        assert enter(ann, "#a%d" % number)[0], "ann is refused a room for what mallory has"
    assert not enter(ann, "#a10")[0]
    # What others have opened takes none of one's own places.
    assert enter(ann, "#m0")[0] and enter(mallory, "#a0")[0]
    world.bridge.check_alive()


@scenario
def all_clients_of_an_account_are_one_person(world):
    """Neither a second connection nor another nick has places of its own; and log-in brings no more."""
    start(world, account("mallory", "secret"))
    links = [log_in_as(world, "mallory@%d" % number, "secret", "mallory") for number in range(3)]
    for link in links:
        link.nick = "mallory"
    for number in range(15):
        links[number % 3].send("JOIN #m%d" % number)
    # What another connection opened comes to all of them.
    for link in links + links:
        link.barrier()
    found = [
        {line.params[0] for line in link.lines if line.command == "JOIN" and line.source.startswith("mallory!")} for link in links]
    assert [len(rooms) for rooms in found] == [PERSON] * 3, [sorted(rooms) for rooms in found]


@scenario
def connections_that_come_and_go_take_no_more(world):
    """A guest who opens ten, leaves, comes under another nick and so on keeps nobody out for whom a room is there."""
    start(world)
    ann = world.irc("ann")
    for turn in range(12):
        guest = world.irc("guest%d" % turn, join=None)
        for number in range(PERSON):
            guest.send("JOIN #g%d-%d" % (turn, number))
        guest.barrier()
        guest.close()
    for number in range(PERSON):
        entered, why = enter(ann, "#a%d" % number)
        assert entered, why


@scenario
def one_spelling_is_open_at_a_time(world):
    """`#GENERAL` is the room GENERAL of the backend, and nobody who means `general` ends there."""
    start(world)
    mallory, ann, remy = world.irc("mallory", join=None), world.irc("ann", join=None), world.person("Remy", room="rooms/general")
    assert enter(mallory, "#GENERAL")[0]
    wait_until(lambda: opened(world) == ["rooms/GENERAL"], lambda: "GENERAL is open: %r" % opened(world))
    entered, why = enter(ann, "#general")
    assert not entered, "ann means general, and is in GENERAL"
    assert is_a_sentence(why) and "#GENERAL" in why, why
    assert opened(world) == ["rooms/GENERAL"]
    # What is said to the other spelling goes nowhere either.
    ann.say("#general", "for general alone")
    ann.barrier()
    mallory.barrier()
    assert not any("for general alone" in line.raw for line in mallory.lines)
    assert enter(ann, "#GENERAL")[0], "the spelling that is open is entered"
    other = world.irc("other", join=None)
    assert enter(other, "#quiet")[0]
    wait_until(lambda: "rooms/quiet" in opened(world), lambda: "exact by default: %r" % opened(world))
    assert remy.bodies() == []


@scenario
def an_account_limited_to_one_spelling(world):
    """`rooms = ["general"]` opens neither GENERAL nor what somebody else opened under the name."""
    start(world, account("eve", "secret", 'rooms = ["lobby", "general"]'))
    eve = log_in_as(world, "eve", "secret", "eve", caps=MODERN)
    assert not enter(eve, "#GENERAL")[0]
    mallory = world.irc("mallory", join=None)
    assert enter(mallory, "#General")[0]
    remy = world.person("Remy", room="rooms/General")
    for spelling in ("#general", "#General", "#GENERAL"):
        entered, why = enter(eve, spelling)
        assert not entered, "eve is in General by %s" % spelling
    remy.say("behind the door")
    mallory.expect_text("behind the door")
    eve.barrier()
    assert not any("behind the door" in line.raw for line in eve.lines)
    # What it may not enter, it is not told of: an open room and one that never was are one.
    assert enter(mallory, "#" + SECRET)[0]
    found = tell_apart(eve, ["JOIN #{}", "TOPIC #{}", "MODE #{}", "MODE #{} b", "NAMES #{}", "LIST #{}", "PRIVMSG #{} :x",
                             "WHO #{}", "CHATHISTORY LATEST #{} * 5", "PRIVMSG *bridge :status #{}", "LIST"])
    assert not found and NOWHERE != SECRET, "; ".join(found)


@scenario
def after_the_last_one_left_another_spelling_may_come(world):
    """A room is no more fixed than it is open: one that gives way to others takes its spelling along."""
    world.start(rooms=("lobby",), limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\n'
                'upstream_connects_per_second = "off"\ntemplate_rooms = 1', tables=(
                    '[[rooms]]\nname = "*"\nurl = "ws://127.0.0.1:%d/rooms/{room}"\n%s' % (world.relay.port, CALM)))
    mallory, ann = world.irc("mallory", join=None), world.irc("ann", join=None)
    assert enter(mallory, "#GENERAL")[0]
    mallory.send("PART #GENERAL")
    mallory.expect("PART")
    assert enter(ann, "#quiet")[0]
    ann.send("PART #quiet")
    ann.expect("PART")
    assert enter(ann, "#general")[0]
    wait_until(lambda: "rooms/general" in opened(world), lambda: "general is open: %r" % opened(world))


def is_refused_before_the_backend_sees_it(world, names):
    start(world)
    ann = world.irc("ann")
    for name in names:
        entered, why = enter(ann, name)
        assert not entered, "%s is a room: %r" % (name, opened(world))
        assert is_a_sentence(why), why
    assert not opened(world), opened(world)
    return ann


@scenario
def names_that_climb_are_no_rooms(world):
    """`../admin` is `..%2Fadmin` in the address, which servers take for a path upwards: refused before the backend sees it."""
    ann = is_refused_before_the_backend_sees_it(world, ("#../admin", "#x/../../admin", "#..", "#.", "#a/.."))
    # What only looks like it is a name as any other.
    for name in ("#v1..2", "#a/b", "#...x", "#50%"):
        assert enter(ann, name)[0], name


@scenario
def names_that_climb_for_servers_that_decode_twice(world):
    """The same in percent signs of its own, and with the other slash."""
    is_refused_before_the_backend_sees_it(
        world, ("#..%2Fadmin", "#%2e%2e/admin", "#%2e%2e%2fadmin", "#.%2e/admin", "#..\\admin", "#a\\..\\..\\admin"))


@on("jwt-rooms")
def a_backend_that_lists_its_rooms_decides_about_spelling(setting):
    """Names of its list are found in any case, as before; and for accounts that may not enter there is no such room."""
    setting.serve(arguments=("--seed-room", "General", "--seed-room", "Random", "--seed-room", SECRET))
    setting.start(more='\n[[rooms]]\nname = "*"\nbackend = "main"\n' + CALM + "\n[identity]\n" + account(
        "eve", "secret", 'rooms = ["lobby"]'))
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.join("#random")
    bob.send("JOIN #RANDOM")
    bob.expect("JOIN", lambda line: line.params[0].lower() == "#random")
    eve = log_in_as(setting, "eve", "secret", "eve", "#lobby")
    questions = ["JOIN #{}", "TOPIC #{}", "MODE #{}", "MODE #{} b", "NAMES #{}", "LIST #{}", "PRIVMSG #{} :x", "LIST"]
    found = tell_apart(eve, questions)
    assert not found, "; ".join(found)
    ann.join("#" + SECRET)
    found = tell_apart(eve, questions)
    assert not found, "; ".join(found)
    assert not any(SECRET in line.raw for line in eve.lines if line.command == "322")
