"""A room mirrored into another room of the relay."""

from fulldisk import empty_disk, fill_disk
from marks import slow
from mirrors import irc_numbers, mirrored, say_all, table
from peer import wait_until

ACROSS = table("across", "room", to="den", direction="both")


def both(m, *tables, **options):
    """#lobby and #den, joined by these mirrors; an IRC user in each."""
    m.open(*(tables or (ACROSS,)), rooms=("lobby", "den"), **options)
    return clients(m)


def clients(m, names=("ann", "bob"), more=()):
    return m.irc(names[0], "#lobby", more=more), m.irc(names[1], "#den", more=more)


def nick_of(line):
    return line.source.split("!")[0]


@mirrored()
def messages_cross_both_ways(m):
    ann, bob = both(m)
    ann.say("#lobby", "from the lobby")
    line = bob.expect_text("from the lobby")
    assert nick_of(line) == "ann/across" and line.params[0] == "#den", line.raw
    bob.say("#den", "from the den")
    assert nick_of(ann.expect_text("from the den")) == "bob/across"
    m.backend.do("say", "Remy", text="up in the lobby", room="lobby")
    assert nick_of(bob.expect_text("up in the lobby")) == "Remy/across"
    m.backend.do("say", "Linguini", text="up in the den", room="den")
    assert nick_of(ann.expect_text("up in the den")) == "Linguini/across"
    ann.say("#lobby", "end")
    bob.expect_text("end")
    wait_until(lambda: len(m.upstream("den")) >= 4, "the backend has them")
    assert m.upstream("den") == [
        ("ann/across", "from the lobby"), ("bob", "from the den"), ("Remy/across", "up in the lobby"), ("ann/across", "end"),
    ], m.upstream("den")
    assert m.upstream("lobby") == [
        ("ann", "from the lobby"), ("bob/across", "from the den"), ("Linguini/across", "up in the den"), ("ann", "end"),
    ], m.upstream("lobby")


@mirrored()
def one_way_out(m):
    ann, bob = both(m, table("across", "room", to="den", direction="out"))
    bob.say("#den", "stays in the den")
    bob.expect_text("stays in the den")
    ann.say("#lobby", "goes out")
    bob.expect_text("goes out")
    ann.barrier()
    assert "stays in the den" not in ann.texts()


@mirrored()
def one_way_in(m):
    ann, bob = both(m, table("across", "room", to="den", direction="in"))
    ann.say("#lobby", "stays in the lobby")
    ann.expect_text("stays in the lobby")
    bob.say("#den", "comes in")
    ann.expect_text("comes in")
    bob.barrier()
    assert "stays in the lobby" not in bob.texts()


@mirrored()
def one_user_in_both_rooms(m):
    """Sees each message in both, once in each; the nick in the other room is another."""
    m.open(ACROSS, rooms=("lobby", "den"))
    ann = m.irc("ann")
    ann.join("#den")
    ann.say("#lobby", "hello")
    seen = sorted((ann.expect_text("hello").params[0], nick_of(ann.lines[ann.cursor - 1])) for _ in range(2))
    assert seen == [("#den", "ann/across"), ("#lobby", "ann")], seen
    ann.say("#den", "end")
    ann.expect_text("end")
    ann.expect_text("end")
    ann.barrier()
    assert len(ann.texts()) == 4, ann.texts()


@mirrored()
def changes_and_answers_cross(m):
    m.open(ACROSS, rooms=("lobby", "den"))
    ann, bob = clients(m, more=["draft/message-redaction"])
    first = m.backend.do("say", "Remy", text="teh cheese", room="lobby")["id"]
    here, there = ann.expect_text("teh cheese").tags["msgid"], bob.expect_text("teh cheese").tags["msgid"]
    m.backend.do("edit", "Remy", id=first, text="the cheese", room="lobby")
    line = bob.expect("PRIVMSG", lambda line: "the cheese" in line.params[-1])
    assert line.tags.get("+reply") == there, line.raw
    m.backend.do("react", "Linguini", id=first, emoji="👍", room="lobby")
    line = bob.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "👍")
    assert line.tags["+reply"] == there, line.raw
    # An answer over there leads back to the first one.
    bob.send("@+reply=%s PRIVMSG #den :delicious" % there)
    line = ann.expect_text("delicious")
    assert line.tags.get("+reply") == here, line.raw
    m.backend.do("delete", "Remy", id=first, room="lobby")
    assert bob.expect("REDACT").params[:2] == ["#den", there]


@mirrored()
def orders_are_kept_both_ways(m):
    ann, bob = both(m)
    for begin in range(0, 300, 50):
        ann.send(*("PRIVMSG #lobby :a %d" % number for number in range(begin, begin + 50)))
        bob.send(*("PRIVMSG #den :b %d" % number for number in range(begin, begin + 50)))
        for client in (ann, bob):
            client.barrier()
    for client, word in ((bob, "a"), (ann, "b")):
        wait_until(lambda: len(irc_numbers(client, word)) >= 300, "%s has all" % client.nick, 30)
    for client in (ann, bob):
        for word in ("a", "b"):
            assert irc_numbers(client, word) == list(range(300)), (client.nick, word)
    for room in ("lobby", "den"):
        texts = [text for _, text in m.upstream(room)]
        for word in ("a", "b"):
            assert [text for text in texts if text.startswith(word)] == ["%s %d" % (word, n) for n in range(300)], room


@slow("four kills")
@mirrored()
def exactly_once_through_kills(m):
    count = 0
    m.open(ACROSS, rooms=("lobby", "den"))
    for turn in range(4):
        ann, bob = clients(m)
        say_all(ann, ["a %d" % number for number in range(count, count + 100)])
        say_all(bob, ["b %d" % number for number in range(count, count + 100)], "#den")
        count += 100
        m.kill()
        m.open(ACROSS, rooms=("lobby", "den"))
    for room in ("lobby", "den"):
        wait_until(
            lambda: len(set(m.upstream(room))) >= 2 * count,
            lambda: "%s has all: %d of %d" % (room, len(set(m.upstream(room))), 2 * count), 60)
        for word in ("a", "b"):
            got = [int(text.split()[1]) for _, text in m.upstream(room) if text.startswith(word + " ")]
            assert got == list(range(count)), "%s %s: %d, %d different" % (room, word, len(got), len(set(got)))


@mirrored()
def the_other_rooms_link_is_down(m):
    """Its messages wait for the link as anybody's do, and no echo of the one room reaches the other twice."""
    ann, bob = both(m)
    m.backend.set(refuse=-1)
    m.backend.control("drop", room="den")
    bob.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    say_all(ann, ["a %d" % number for number in range(20)])
    m.backend.set(refuse=0)
    wait_until(lambda: len(irc_numbers(bob, "a")) >= 20, "all are there", 30)
    assert irc_numbers(bob, "a") == irc_numbers(ann, "a") == list(range(20))


@mirrored()
def three_rooms_in_a_ring(m):
    """lobby → den → attic → lobby: each message once in each room."""
    rooms = ("lobby", "den", "attic")
    m.open(*(
        table("to-" + to, "room", rooms=[one], to=to, direction="out") for one, to in zip(rooms, rooms[1:] + rooms[:1])),
        rooms=rooms)
    people = {room: m.irc("in-" + room, "#" + room) for room in rooms}
    for room in rooms:
        say_all(people[room], ["%s %d" % (room, number) for number in range(20)], "#" + room)
    for room in rooms:
        for word in rooms:
            wait_until(lambda: len(irc_numbers(people[room], word)) >= 20, "%s has those of %s" % (room, word), 30)
    say_all(people["lobby"], ["end 0"])
    people["attic"].expect_text("end 0")
    for room in rooms:
        people[room].barrier()
        for word in rooms:
            assert irc_numbers(people[room], word) == list(range(20)), (room, word, irc_numbers(people[room], word))


@mirrored()
def two_mirrors_between_the_same_rooms(m):
    """A mistake of the operator's: at worst it is said to him, and messages are not doubled without end."""
    ann, bob = both(m, table("one", "room", to="den"), table("two", "room", rooms=["den"], to="lobby"))
    say_all(ann, ["a %d" % number for number in range(10)])
    say_all(bob, ["b %d" % number for number in range(10)], "#den")
    ann.expect_text("b 9")
    bob.expect_text("a 9")
    say_all(ann, ["end 0"])
    bob.expect_text("end 0")
    for client in (ann, bob):
        client.barrier()
        for word in ("a", "b"):
            assert irc_numbers(client, word) == list(range(10)), (client.nick, word, irc_numbers(client, word))


@mirrored(other="json")
def a_room_to_a_room_and_out_to_a_tool(m):
    """What came across goes on to a tool that mirrors the other room, once."""
    m.open(ACROSS, m.mirror("other", mirror_name="out", rooms=["den"]), rooms=("lobby", "den"))
    ann, bob = clients(m)
    ann.say("#lobby", "hello")
    m.tools.expect_said("other", "ann/across", "hello")
    m.tool_says("other", "ada", "hi", room="den")
    bob.expect_text("hi")
    line = ann.expect_text("hi")
    assert nick_of(line).startswith("ada/out"), line.raw
    ann.say("#lobby", "end")
    m.tools.expect_said("other", "ann/across", "end")
    assert len(m.tools.messages("other")) == 2, m.tools.messages("other")


@mirrored()
def a_full_disk_loses_nothing(m):
    """What the other room could not store is not taken there, and comes when there is space."""
    both(m)
    count = 0
    fill_disk(m.bridge.process.pid)
    while not m.bridge.log_entries("store-failing"):
        for _ in range(20):
            m.backend.say("Remy", "n %d %s" % (count, "x" * 300), room="lobby")
            count += 1
        assert count < 3000, "3000 messages were stored on a full disk"
    empty_disk(m.bridge.process.pid)
    wait_until(lambda: m.bridge.log_entries("store-sound"), "they are stored again", 30)
    m.backend.say("Remy", "n %d" % count, room="lobby")

    def there():
        return [int(text.split()[1]) for _, text in m.upstream("den") if text.startswith("n ")]

    wait_until(lambda: len(set(there())) > count, lambda: "all of %d are there: %d" % (count + 1, len(set(there()))), 60)
    assert there() == list(range(count + 1)), there()
    return "%d messages" % (count + 1)
