"""Talking to `*bridge` from clients without any capability, over sockets."""

from accounts import account, start
from peer import wait_until
from restarts import folder, kill, settle
from world import scenario


def ask(client, text):
    """What the service answers."""
    begin = client.cursor
    client.say("*bridge", text)
    # The answer to the next line comes behind this one's, however long that is.
    client.barrier()
    return [
        line.params[-1]
        for line in client.lines[begin : client.cursor]
        if line.command == "PRIVMSG" and line.source.startswith("*bridge!")
    ]


@scenario
def a_client_without_capabilities_asks_for_everything(world):
    world.start(rooms=("lobby", "attic"))
    ann, remy = world.plain("ann"), world.person("Remy")
    remy.say("the soup is ready")
    ann.expect_text("the soup is ready")
    helped = ask(ann, "help")
    assert any(line.startswith("history ") for line in helped), helped
    assert not any("reconnect" in line for line in helped), helped
    rooms = ask(ann, "rooms")
    assert rooms[0].startswith("#lobby: 2 people, you among them; linked to "), rooms
    assert rooms[-1].startswith("2 rooms."), rooms
    assert "linked to" in ask(ann, "status #attic")[0]
    assert ask(ann, "who")[1].endswith(": Remy")
    assert ask(ann, "history #lobby")[0].endswith("<Remy> the soup is ready")
    found = ask(ann, "search SOUP")
    assert "<Remy> the soup is ready (" in found[0] and found[-1] == "1 message.", found
    assert "Did you mean rooms?" in ask(ann, "romos")[0]
    assert "You are not logged in." in ask(ann, "whoami")
    ann.send("WHOIS *bridge")
    ann.expect("335")


@scenario
def a_message_of_many_lines_is_shown_whole(world):
    world.start()
    ann, remy = world.plain("ann"), world.person("Remy")
    lines = ["step %d" % number for number in range(1, 251)]
    remy.say("\n".join(lines))
    hint = ann.expect("PRIVMSG", lambda line: "more lines: /msg *bridge " in line.params[-1]).params[-1]
    command, shown, parts = hint.split("*bridge ", 1)[1], [], 0
    while command and parts < 10:
        answer = ask(ann, command)
        shown += [line for line in answer if line.startswith("step ")]
        command = answer[-1].split("bytes: ", 1)[1] if "more bytes: " in answer[-1] else None
        parts += 1
    assert shown == lines, "%d lines" % len(shown)
    return "%d parts" % parts


@scenario
def the_past_is_there_after_a_restart(world):
    directory = folder(world)
    world.start(directory=directory)
    ann = world.irc("ann")
    world.person("Remy").say("before the restart")
    ann.expect_text("before the restart")
    settle(ann, "kept")
    kill(world)
    world.start(directory=directory)
    bob = world.plain("bob")
    told = ask(bob, "history #lobby 5")
    assert any(line.endswith("<Remy> before the restart") for line in told), told
    found = ask(bob, "search before the")[0]
    msgid = found.rsplit("(", 1)[1].rstrip(")")
    assert ask(bob, "show " + msgid)[-1] == "before the restart"


@scenario
def a_plain_client_hears_who_read_what_it_said(world):
    world.start()
    ann, remy = world.plain("ann"), world.person("Remy")
    ann.say("#lobby", "have you read this?")
    remy.read(remy.expect_message("have you read this?")["message_id"])
    # Behind the receipt on the same way, so that is known too.
    remy.say("I have")
    ann.expect_text("I have")
    told = ask(ann, "seen #lobby")
    assert '"have you read this?"' in told[0] and told[1] == "Read by Remy.", told


@scenario
def who_read_it_is_known_after_a_restart(world):
    directory = folder(world)
    world.start(directory=directory)
    ann, bob, remy = world.plain("ann"), world.irc("bob"), world.person("Remy")
    ann.say("#lobby", "read before the restart")
    remy.read(remy.expect_message("read before the restart")["message_id"])
    remy.say("I have")
    ann.expect_text("I have")
    settle(bob, "kept")
    kill(world)
    world.start(directory=directory)
    told = ask(world.plain("ann"), "seen #lobby")
    assert '"read before the restart"' in told[0] and told[1] == "Read by Remy.", told


@scenario
def somebody_logs_in_mutes_and_logs_out(world):
    start(world, account("ann", "secret", "admin = true"))
    guest, remy = world.plain("guest"), world.person("Remy")
    remy.say("hello")
    guest.expect_text("hello")
    guest.say("*bridge", "login ann wrong")
    guest.expect_text("Name or password are wrong.")
    guest.say("*bridge", "login ann secret")
    guest.expect("900")
    assert "You are an administrator of this bridge." in ask(guest, "whoami")
    ask(guest, "mute Remy")
    remy.say("unheard")
    linguini = world.person("Linguini")
    # Behind it on the same way.
    remy.say("unheard too")
    linguini.expect_message("unheard too")
    linguini.say("heard")
    guest.expect_text("heard")
    assert guest.texts("Remy") == ["hello"]
    ask(guest, "unmute Remy")
    remy.say("heard again")
    guest.expect_text("heard again")
    guest.say("*bridge", "logout")
    guest.expect("901")
    assert ask(guest, "reconnect #lobby")[-1] == "reconnect is for administrators."
    assert "secret" not in world.bridge.log()


@scenario
def an_administrator_opens_a_link_anew(world):
    start(world, account("chef", "secret", "admin = true"))
    ann = world.plain("ann")
    ann.send("OPER chef secret")
    ann.expect("381")
    before = len(world.bridge.log_entries("upstream-up"))
    assert "opened anew" in ask(ann, "reconnect #lobby")[0]
    wait_until(lambda: len(world.bridge.log_entries("upstream-up")) > before, "the link is back")
    # What succeeds at once is no outage.
    assert not any("was lost" in text or "is back" in text for text in ann.texts(command="NOTICE"))
    remy = world.person("Remy")
    ann.say("#lobby", "over the new link")
    remy.expect_message("over the new link")
