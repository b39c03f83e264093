"""Confusable nicks, nicks of absent users, names that change all the time, and `/` in nicks."""

import time

from accounts import account, client, log_in, respond, start
from backends import on
from peer import new_id, wait_until
from restarts import folder, kill, settle
from world import scenario

# Of confusables.txt of Unicode, each written otherwise and read as the name beside it.
CONFUSABLE = (
    ("alice", "aIice"), ("alice", "ａｌｉｃｅ"), ("alice", "𝐚𝐥𝐢𝐜𝐞"), ("alice", "𝓪lice"), ("alice", "аlice"), ("alice", "a|ice"),
    ("alice", "aⅼice"), ("alice", "ɑlice"), ("alice", "ALICE"), ("alice", "aℓice"), ("Paul", "PauI"), ("marc", "rnarc"),
    ("scope", "ѕсоре"), ("scope", "ｓcope"), ("hero", "һero"), ("hero", "𝗁ero"), ("Olga", "Οlga"), ("dora", "ⅾora"),
    ("jill", "jiIl"), ("jill", "jіll"), ("vera", "ｖera"), ("vera", "ᴠera"), ("zoe", "ᴢoe"), ("peter", "ⲣeter"),
    ("yves", "ყves"),
    ("ines", "ınes"), ("gina", "ɡina"), ("lisa", "1isa"), ("tom", "tоm"),
)
# And what is no more like it than names are.
DIFFERENT = (("alice", "alicia"), ("Paul", "Pavel"), ("jill", "gill"), ("tom", "tim"), ("bob", "rob"))


@scenario
def an_accounts_nick_in_other_letters(world):
    """"An account's nick, and what looks like it, is nobody else's": by Unicode's table and not by a list of one's own."""
    names = sorted({name for name, _ in CONFUSABLE})
    start(world, *[account(name, "secret") for name in names])
    taken, free = [], []
    for number, (name, other) in enumerate(CONFUSABLE + DIFFERENT):
        link = client(world)
        link.nick = "probe"
        link.send("NICK probe%d" % number, "USER p 0 * :p")
        link.expect("001")
        link.send("NICK " + other)
        link.barrier()
        accepted = [line for line in link.lines if line.command == "NICK"]
        (taken if accepted else free).append((name, other))
        link.close()
    assert not [pair for pair in taken if pair in CONFUSABLE], "taken by strangers: %r" % [p for p in taken if p in CONFUSABLE]
    assert not [pair for pair in free if pair in DIFFERENT], "refused for nothing: %r" % free
    # At registration too.
    link = client(world)
    link.send("NICK aIice", "USER p 0 * :p")
    link.expect("433")


@scenario
def people_upstream_who_look_alike_are_told_apart(world):
    """Nobody upstream gets a nick that reads as another's there, or as an IRC user's."""
    start(world, account("marc", "secret"))
    ann = world.irc("ann")
    nicks = {}
    for name, other in (("Paul", "PauI"), ("jill", "jiIl"), ("scope", "ѕсоре"), ("hero", "𝗁ero"), ("Zed", "Ｚed"), (None, "rnarc")):
        for display in filter(None, (name, other)):
            world.person(display).say("I am " + display)
            line = ann.expect("PRIVMSG", lambda line: line.params[-1] == "I am " + display)
            nicks[display] = line.source.split("!")[0]
        assert nicks[other] != other and (name is None or nicks[name] == name), nicks


@on("typed", "custom")
def nicks_of_absent_people_are_given_up(setting):
    """An account, and a person upstream who is there, have a nick before somebody who is gone."""
    setting.start(more="\n[identity]\n" + account("zoe", "secret") + account("max", "other"))
    ann = setting.irc("ann")
    for name in ("Kim", "Lea"):
        setting.backend.do("join", name)
        setting.backend.say(name, "I am " + name)
        line = ann.expect_text("I am " + name)
        assert line.source.split("!")[0] == name, line.raw
    # While she is there, nobody gets her nick.
    link = log_in(setting, "max", "other", "max")
    link.expect("903")
    link.send("CAP END")
    link.expect("001")
    link.nick = "max"
    link.send("NICK Kim")
    link.expect("433")
    for name in ("Kim", "Lea"):
        setting.backend.do("leave", name)
        ann.expect("PART", lambda line: line.source.split("!")[0] == name)
    link.send("NICK Kim")
    link.expect("NICK", lambda line: line.params[-1] == "Kim", patience=5)
    # Another person of the name comes, under an id of their own.
    setting.backend.do("join", "Lea", user_id="99999999-0000-4000-8000-000000000001")
    setting.backend.say("Lea", "I am another", user_id="99999999-0000-4000-8000-000000000001")
    assert ann.expect_text("I am another").source.split("!")[0] == "Lea"
    # Those who were gone come back, and take nothing away.
    for name in ("Kim", "Lea"):
        setting.backend.do("join", name)
        setting.backend.say(name, "back, " + name)
        source = ann.expect_text("back, " + name).source.split("!")[0]
        assert source != name and source.startswith(name), source
    setting.backend.say("Lea", "still another", user_id="99999999-0000-4000-8000-000000000001")
    assert ann.expect_text("still another").source.split("!")[0] == "Lea"


@scenario
def nicks_of_absent_people_over_a_restart(world):
    """Whom the store alone remembers keeps nobody from a name."""
    directory = folder(world)
    people = "[identity]\n" + account("max", "secret")
    world.start(directory=directory, server_extra=people)
    ann, remy = world.irc("ann"), world.person("Remy")
    remy.say("hello")
    ann.expect_text("hello")
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory, server_extra=people)
    link = log_in(world, "max", "secret", "Remy")
    link.expect("903")
    # Refused to who was nobody yet.
    link.send("NICK Remy", "CAP END")
    assert link.expect("001", patience=5).params[0] == "Remy"
    link.nick = "Remy"
    link.join("#lobby")
    bob = world.irc("bob")
    remy.say("and back")
    source = bob.expect_text("and back").source.split("!")[0]
    assert source != "Remy", "two people have one nick"


def ask_for(world, nick, name=None, password=None):
    """As clients do: the nick first, and who asks for it later. The nick of the welcome; None: refused, and nobody's."""
    link = client(world)
    link.nick = nick
    link.send("CAP LS 302", "NICK " + nick, "USER u 0 * :u", "CAP REQ :sasl")
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    if name:
        link.send("AUTHENTICATE PLAIN")
        link.expect("AUTHENTICATE")
        respond(link, name, password)
        wait_until(lambda: link.drain() or [l for l in link.lines if l.command in ("903", "904")], lambda: "no verdict")
    link.send("CAP END")
    wait_until(lambda: link.drain() or [l for l in link.lines if l.command in ("001", "433")], lambda: "neither welcome nor refusal")
    answer = next(line for line in link.lines if line.command in ("001", "433"))
    return answer.params[0] if answer.command == "001" else None


@scenario
def a_nick_is_judged_when_registration_ends(world):
    people = "[identity]\n%s\n%s" % (account("bob", "secret"), account("max", "other"))
    directory = folder(world)
    world.start(directory=directory, server_extra=people)
    ann, kim, lea = world.irc("ann"), world.person("Kim"), world.person("Lea")
    for person in (kim, lea):
        person.say("I am here")
        ann.expect_text("I am here")
    settle(ann, "kept")
    strangers = (("bob", None, None), ("bob", "bob", "wrong"), ("bob", "max", "other"))
    for stranger in strangers:
        assert ask_for(world, *stranger) is None, stranger
    assert ask_for(world, "bob", "bob", "secret") == "bob"
    # With the other client there, which answers nothing, and again.
    for _ in range(2):
        assert ask_for(world, "bob", "bob", "secret") == "bob"
    for stranger in strangers:
        assert ask_for(world, *stranger) is None, stranger
    # Who is there upstream keeps the nick, and who is absent gives it up to an account.
    assert ask_for(world, "Kim", "max", "other") is None
    kill(world)
    world.start(directory=directory, server_extra=people)
    assert ask_for(world, "Kim") is None
    assert ask_for(world, "Kim", "max", "other") == "Kim"


@scenario
def names_that_change_all_the_time(world):
    """Under one id: told at most every few seconds, and the last of them in the end. Nothing that was said waits for it."""
    world.start()
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id=new_id())
    remy.say("hello")
    ann.expect_text("hello")
    began = time.monotonic()
    for number in range(60):
        remy.name = "Remy%d" % number
        remy.say("as %d" % number)
    ann.expect_text("as 59", patience=5)
    took = time.monotonic() - began
    told = [line.raw for line in ann.lines if line.command == "NICK"]
    assert len(told) <= 2 + took, "%d renames in %.1f s" % (len(told), took)
    assert ann.texts()[-60:] == ["as %d" % number for number in range(60)], "words are missing"
    # The others are no part of it.
    linguini = world.person("Linguini", sender_id=new_id())
    linguini.say("one")
    ann.expect_text("one")
    linguini.name = "Alfredo"
    linguini.say("two")
    ann.expect("NICK", lambda line: line.source.startswith("Linguini!") and line.params[-1] == "Alfredo", patience=8)
    # Sooner or later the present name is told, at the latest with what they say next.
    def settled():
        remy.say("still here")
        ann.drain()
        return any(line.command == "NICK" and line.params[-1] == "Remy59" for line in ann.lines)
    wait_until(settled, lambda: "Remy59 is told; told were %r" % [l.raw for l in ann.lines if l.command == "NICK"][-3:])


@scenario
def a_slash_belongs_to_relayed_names(world):
    """Where RELAYMSG is on, nobody has a nick that a relayed person could have: not at first, not later, not as an account."""
    start(world, account("mirror", "secret", "relaymsg = true"), identity='registration = "on"')
    remy = world.person("Remy")
    link = client(world)
    link.nick = "linguini"
    link.send("NICK linguini/libera", "USER l 0 * :l")
    link.expect("432", patience=5)
    ann = world.irc("ann")
    for nick in ("linguini/libera", "/ann", "ann/", "a/b/c"):
        ann.send("NICK " + nick)
        ann.expect("432", patience=5)
    ann.send("CAP REQ :draft/account-registration standard-replies", "REGISTER linguini/libera * correct-horse")
    ann.expect("FAIL", lambda line: line.params[0] == "REGISTER")
    mirror = log_in(world, "mirror", "secret")
    mirror.expect("903")
    mirror.send("CAP END")
    mirror.expect("001")
    mirror.nick = "mirror"
    mirror.join("#lobby")
    mirror.send("RELAYMSG #lobby linguini/libera :hello from afar")
    relayed = remy.expect_message("hello from afar")
    assert relayed["sender_name"] == "linguini/libera"
    ann.say("#lobby", "and from here")
    assert remy.expect_message("and from here")["sender_id"] != relayed["sender_id"]


@scenario
def without_relayed_names_nothing_changes(world):
    """A configuration without `relaymsg` has no one to be mistaken for."""
    world.start()
    ann = world.irc("ann")
    ann.send("NICK ann/phone")
    ann.barrier()
    lines = [line.command for line in ann.lines if line.command in ("NICK", "432")]
    assert len(lines) == 1, lines
