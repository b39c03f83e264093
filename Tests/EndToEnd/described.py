"""A described backend that answers each message with an ack, both ids in it, and sends no echo to the sender."""

import functools
import subprocess

import peer
from backends import CALM, on
from peer import wait_until

IDENTITIES = ("puppet", "single")


def acks(description, has_history=True, reads_tags=False):
    """The parlour as somebody would describe it who saw its acks and left `echo` out."""
    del description["echo"]
    description["reconnect"] = {"first": 0.2, "cap": 0.5}
    description["decode"].insert(0, {
        "when": {"/did": "took"}, "event": "receipt",
        "fields": {"state": {"const": "sent"}, "ids": "/no", "ref": "/tag"}})
    if not has_history:
        del description["history"]
    if reads_tags:
        rows = next(rule for rule in description["decode"] if "/no" in rule["when"])
        rows["fields"]["ref"] = "/tag"
    return description


def start(setting, identity="puppet", **description):
    if setting.backend is None:
        setting.serve(echo="ack", log_tags=True)
    setting.start(
        describe=functools.partial(acks, **description),
        room_extra=CALM + 'identity = "%s"\n' % identity)


def log(setting):
    return setting.backend.state()["log"].get("lobby", [])


def words(setting):
    return [row["words"] for row in log(setting)]


def spoken(identity, nick, text):
    return text if identity == "puppet" else "<%s> %s" % (nick, text)


def lose_the_ack(setting, client, identity, text, recover):
    """The backend takes the message, and the link goes before its ack comes."""
    setting.backend.set(lose_acks=True)
    client.say("#lobby", text)
    wait_until(lambda: spoken(identity, client.nick, text) in words(setting), "the backend has it")
    recover()
    setting.backend.set(lose_acks=False)


def is_shown_once(setting, identity, clients, *texts):
    setting.backend.say("Remy", "end")
    for client in clients:
        client.expect_text("end")
        assert [text for text in client.texts("ann") if text in texts] == list(texts), (client.nick, client.texts())
        strangers = [line.raw for line in client.lines if line.command in ("JOIN", "PRIVMSG")
                     and line.source.split("!")[0] not in ("ann", "bob", "Remy")]
        assert not strangers, strangers
    for text in texts:
        assert words(setting).count(spoken(identity, "ann", text)) == 1, words(setting)


@on("custom")
def an_ack_names_the_message_for_reactions_receipts_and_deletions(setting):
    start(setting)
    ann, bob = (setting.irc(nick, more=["draft/message-redaction"]) for nick in ("ann", "bob"))
    ann.say("#lobby", "hello")
    msgid = ann.expect_text("hello").tags["msgid"]
    assert bob.expect_text("hello").tags["msgid"] == msgid
    number = log(setting)[-1]["no"]
    setting.backend.do("react", "Linguini", id=number, emoji="👍")
    line = ann.expect("TAGMSG", lambda line: "+draft/react" in line.tags)
    assert line.tags["+reply"] == msgid, line.raw
    setting.backend.do("read", "Linguini", id=number)
    line = ann.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
    assert line.tags["+draft/read"] == msgid, line.raw
    bob.send("@+reply=%s;+draft/react=😂 TAGMSG #lobby" % msgid)
    assert setting.backend.expect("the reaction", kind="reaction")["target"] == number
    ann.send("REDACT #lobby %s :by mistake" % msgid)
    assert setting.backend.expect("the deletion", kind="delete")["ids"] == [number]


@on("custom")
def own_lines_are_known_after_an_outage_and_a_lost_ack_doubles_nothing(setting):
    for identity in IDENTITIES:
        for reads_tags in (False, True):
            with type(setting)(setting.wire) as one:
                start(one, identity, reads_tags=reads_tags)
                ann, bob = one.irc("ann"), one.irc("bob")
                ann.say("#lobby", "confirmed")
                bob.expect_text("confirmed")

                def drop():
                    ups = one.ups()
                    one.backend.control("drop", abort=True)
                    one.wait_up(ups + 1)

                lose_the_ack(one, ann, identity, "in between", drop)
                ann.expect_text("in between")
                is_shown_once(one, identity, (ann, bob), "confirmed", "in between")


@on("custom")
def a_lost_ack_before_a_kill_doubles_nothing(setting):
    start(setting)
    ann = setting.irc("ann")
    ann.say("#lobby", "confirmed")
    ann.expect_text("confirmed")

    def kill():
        setting.bridge.process.kill()
        setting.bridge.process.wait()
        wait_until(lambda: not setting.backend.connections(), "the old link is gone")

    lose_the_ack(setting, ann, "puppet", "in between", kill)
    start(setting)
    bob = setting.irc("bob")
    bob.say("#lobby", "after the kill")
    bob.expect_text("after the kill")
    assert words(setting) == ["confirmed", "in between", "after the kill"], words(setting)


@on("custom")
def check_says_what_confirms_and_what_a_lost_link_means(setting):
    start(setting)
    checked = subprocess.run(
        [peer.BINARY_PATH, "check", "--config", setting.bridge.config_path], capture_output=True, text=True, timeout=60,
        check=False)
    assert checked.returncode == 0, checked
    assert checked.stdout.startswith(
        'room "lobby": confirmed by: ack (receipt with ids and ref); after a lost link: the history decides, else the'
        " author is told"), checked.stdout
    assert checked.stdout.endswith("\nok\n"), checked.stdout
