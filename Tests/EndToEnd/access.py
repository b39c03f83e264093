"""Rooms that an account may not enter (`rooms = […]`): every reply about one is identical to that about a room that does
not exist. Also the warnings of `check` where `rooms` has no effect.
"""

import itertools
import os

from accounts import account
from claims import check
from history import ask as ask_history
from media import ask as ask_http
from media import basic
from peer import MODERN
from restarts import folder, kill, log_in_as, settle
from world import scenario

# Of one length, so that no answer is cut elsewhere.
SECRET, NOWHERE = "vaultroom", "otherroom"
CAPS = MODERN + [
    "draft/chathistory", "soju.im/search", "draft/message-redaction", "draft/multiline", "draft/metadata-2",
    "multi-prefix", "draft/event-playback"]
# {} stands for the room. Each is asked about the one and the other, one after the other.
QUESTIONS = """
TOPIC #{}
TOPIC #{} :mine now
MODE #{}
MODE #{} b
MODE #{} +b
MODE #{} +b eve!*@*
MODE #{} +o eve
MODE #{} +i
MODE #{} +v-m eve
JOIN #{}
JOIN #{} key
JOIN #lobby,#{}
PART #{}
PART #{} :bye
NAMES #{}
WHO #{}
WHO #{} %tcuhnfar,7
LIST #{}
LIST #{},#lobby
KICK #{} ann :out
INVITE ann #{}
INVITE eve #{}
PRIVMSG #{} :hello
PRIVMSG #lobby,#{} :both
NOTICE #{} :hello
TAGMSG #{}
MARKREAD #{}
MARKREAD #{} timestamp=2026-01-01T08:00:00.000Z
REDACT #{} AAAAAAAAAAAAAAAAAAAAAA
CHATHISTORY LATEST #{} * 10
CHATHISTORY AROUND #{} timestamp=2026-01-01T08:00:00.000Z 10
CHATHISTORY BETWEEN #{} timestamp=2026-01-01T08:00:00.000Z timestamp=2126-01-01T08:00:00.000Z 10
SEARCH in=#{};text=hello
RELAYMSG #{} eve/libera :hello
METADATA #{} LIST
METADATA #{} GET display-name
METADATA #{} SYNC
BATCH +b draft/multiline #{}
WHOIS #{}
PRIVMSG *bridge :status #{}
PRIVMSG *bridge :who #{}
PRIVMSG *bridge :seen #{}
PRIVMSG *bridge :history #{}
PRIVMSG *bridge :history #{} 5
PRIVMSG *bridge :search #{} hello
PRIVMSG *bridge :search hello
PRIVMSG *bridge :reconnect #{}
PRIVMSG *bridge :rooms
LIST
LIST >0
LIST *{}*
SEARCH text=hello
WHOIS ann
WHO ann
""".strip().splitlines()


def answers(client, question, room):
    """Every line that a question gets, with the room's name made the same and what changes by itself left out."""
    begin = len(client.lines)
    client.send(question.format(room))
    if question.startswith("BATCH +b"):
        client.send("BATCH -b")
    client.barrier()
    found = []
    for line in client.lines[begin:]:
        if line.command in ("PONG", "PING") or (line.command == "BATCH" and not line.params):
            continue
        # What was said elsewhere comes back when the backend has it.
        if line.command == "PRIVMSG" and line.source.startswith(client.nick + "!"):
            continue
        tags = sorted(name for name in line.tags if name not in ("time", "msgid", "batch"))
        params = ["~" if line.command == "BATCH" and place == 0 else param for place, param in enumerate(line.params)]
        found.append((tags, line.source, line.command, [param.replace(room, "ROOM") for param in params]))
    return found


def tell_apart(client, questions=QUESTIONS):
    """Those questions whose answers differ, with the answers."""
    found = []
    for question in questions:
        secret, nowhere = answers(client, question, SECRET), answers(client, question, NOWHERE)
        if secret != nowhere:
            found.append("%s: %r / %r" % (question.format("…"), secret[:2], nowhere[:2]))
    return found


PEOPLE = "[identity]\n" + account("eve", "secret", 'rooms = ["lobby"]\nrelaymsg = true') + account("ann", "other")


def with_somebody_inside(world, rooms=("lobby", SECRET)):
    """A room in which somebody said something, with a topic, a ban and a person upstream."""
    world.start(rooms=rooms, server_extra=PEOPLE)
    ann = log_in_as(world, "ann", "other", "ann", "#lobby", "#" + SECRET, caps=CAPS)
    remy = world.person("Remy", room=SECRET)
    remy.say("hello from the inside")
    ann.expect_text("hello from the inside")
    ann.send("MODE #%s +b gus!*@*" % SECRET, "TOPIC #%s :what we plan" % SECRET)
    ann.barrier()
    return ann


@scenario
def a_room_that_one_may_not_enter_does_not_exist(world):
    """"to the letter as for a room that does not exist", for every command, also while it is shut (`+i`)."""
    ann = with_somebody_inside(world)
    eve = log_in_as(world, "eve", "secret", "eve", "#lobby", caps=CAPS)
    found = tell_apart(eve)
    assert not found, "%d: %s" % (len(found), "; ".join(found))
    ann.send("MODE #%s +im" % SECRET)
    ann.barrier()
    found = tell_apart(eve, ["JOIN #{}", "MODE #{}", "MODE #{} +i", "TOPIC #{}", "PRIVMSG #{} :x", "NAMES #{}", "INVITE ann #{}"])
    assert not found, "%d: %s" % (len(found), "; ".join(found))
    for line in eve.lines:
        assert "what we plan" not in line.raw and "from the inside" not in line.raw, line.raw
    # The room itself has noticed nothing.
    ann.barrier()
    heard = [line.raw for line in ann.lines if line.source.startswith("eve!") and SECRET in line.raw]
    assert not heard, heard


@scenario
def plain_clients_are_answered_alike_as_well(world):
    """Without capabilities there are numerics and notices alone."""
    with_somebody_inside(world)
    eve = log_in_as(world, "eve", "secret", "eve", "#lobby", caps=())
    found = tell_apart(eve, [
        question for question in QUESTIONS
        if question.split()[0] not in ("TAGMSG", "MARKREAD", "REDACT", "CHATHISTORY", "SEARCH", "METADATA", "BATCH")])
    assert not found, "%d: %s" % (len(found), "; ".join(found))


@scenario
def rooms_of_another_spelling_and_rooms_that_are_empty(world):
    """Neither upper case nor an empty room without link makes a difference."""
    world.start(rooms=("lobby", SECRET), server_extra=PEOPLE)
    world.relay.hold_handshakes()
    eve = log_in_as(world, "eve", "secret", "eve", "#lobby", caps=CAPS)
    found = []
    for question in (
        "JOIN #{}", "TOPIC #{}", "MODE #{}", "MODE #{} b", "NAMES #{}", "PRIVMSG #{} :x", "CHATHISTORY LATEST #{} * 5"
    ):
        for change in (str.upper, str.title):
            secret, nowhere = (answers(eve, question, change(room)) for room in (SECRET, NOWHERE))
            if secret != nowhere:
                found.append("%s: %r / %r" % (question, secret, nowhere))
    world.relay.release_handshakes()
    assert not found, "%d: %s" % (len(found), "; ".join(found))


@scenario
def uploads_do_not_tell_either(world):
    """`?room=` of an upload names rooms too."""
    world.start(
        rooms=("lobby", SECRET), server_extra=PEOPLE,
        tables='[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["health", "media"]\n'
        '[media]\npublic_url = "http://files.test"\n')
    world.http = int(world.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    log_in_as(world, "eve", "secret", "eve", "#lobby", caps=CAPS)
    found = []
    for room in (SECRET, NOWHERE):
        answer = ask_http(
            world, "POST", "/media/upload?room=" + room, b"x",
            {**basic("eve", "secret"), "Content-Disposition": 'attachment; filename="a.txt"'})
        found.append((answer.status, answer.body.replace(room.encode(), b"ROOM")))
    assert found[0] == found[1], found
    assert found[0][0] != 201, found


@scenario
def an_account_loses_a_room_over_a_restart(world):
    """Who was in the room, and has a marker and history there, is told of it no more than anybody else."""
    directory = folder(world)
    everything = "[identity]\n" + account("eve", "secret") + account("ann", "other")
    world.start(rooms=("lobby", SECRET), directory=directory, server_extra=everything)
    eve = log_in_as(world, "eve", "secret", "eve", "#lobby", "#" + SECRET, caps=CAPS)
    world.person("Remy", room=SECRET).say("hello from the inside")
    at = eve.expect_text("hello from the inside").tags["time"]
    eve.send("MARKREAD #%s timestamp=%s" % (SECRET, at))
    settle(eve, "kept")
    kill(world)
    world.start(rooms=("lobby", SECRET), directory=directory, server_extra=PEOPLE)
    eve = log_in_as(world, "eve", "secret", "eve", "#lobby", caps=CAPS)
    found = tell_apart(eve)
    assert not found, "%d: %s" % (len(found), "; ".join(found))
    assert not [line for line in eve.lines if "from the inside" in line.raw or SECRET in line.raw and line.command == "JOIN"]
    targets = ask_history(eve, "CHATHISTORY TARGETS timestamp=2001-01-01T00:00:00.000Z timestamp=2200-01-01T00:00:00.000Z 50")
    assert not [line.raw for line in targets if SECRET in line.raw], targets


# MARK: - What the configuration promises


ROOMS = '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:9/x"\n\n[[rooms]]\nname = "vault"\nurl = "ws://127.0.0.1:9/x"\n\n'
LIMITED = '[[accounts]]\nname = "eve"\npassword = "%s"\nrooms = ["lobby"]\n'
HASH = (
    "$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    "$wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")


def warnings(identity, accounts_table=LIMITED % HASH):
    """What `check` says of `rooms`, where the configuration is right as such."""
    code, said = check(ROOMS + "[identity]\n" + identity + "\n\n" + accounts_table)
    assert code == 0, (code, said)
    return [line for line in said.splitlines() if "rooms" in line]


@scenario
def check_warns_where_rooms_protects_nothing():
    """A list of rooms keeps nobody out who may come without an account, or makes one."""
    for identity in ('require_login = "never"', 'require_login = "remote"', "",
                     'require_login = "always"\nregistration = "on"', 'require_login = "always"\nregistration = "local"'):
        assert warnings(identity), "no word about %r" % identity
    for identity in ('require_login = "always"', 'require_login = "always"\nregistration = "off"'):
        assert not warnings(identity), (identity, warnings(identity))
    # Without a list there is nothing to warn of.
    assert not warnings('require_login = "never"', LIMITED.replace('["lobby"]', '["*"]') % HASH)


@scenario
def the_documents_say_so_loudly():
    """Where `rooms` of an account is explained, it says whom it does not keep out."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    for name in (os.path.join("docs", "CONFIGURATION.md"), os.path.join("config", "chatbridge.toml")):
        with open(os.path.join(here, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        near = [
            " ".join(itertools.islice(lines, max(place - 2, 0), place + 4)) for place, line in enumerate(lines)
            if line.startswith("| `rooms` |") or line.lstrip("#").startswith("rooms = [")]
        # Mirrors have a key of that name.
        near = [text for text in near if "always connected" not in text]
        assert near and all("without an account" in text or "registration" in text or "register" in text for text in near), (
            name, near)
