"""The effects of the options of each dialect, against a server that requires exactly these."""

import base64
import json
import time

from backends import CALM, on
from dialects import introduce, nick_of, shown_at, wait_line
from logins import check_talk
from peer import wait_until


# MARK: - jwt-rooms


@on("jwt-rooms")
def jwt_typing_as_the_published_backend_wants_it(setting):
    """It knows `typing` alone, and ignores `typing_start` and `typing_stop`."""
    setting.serve(typing="head")
    setting.start(room_extra=CALM + 'options = { typing = "typing" }\n')
    ann = setting.irc("ann")
    ann.send("@+typing=active TAGMSG #lobby")
    frame = setting.backend.expect("typing", kind="typing")
    assert frame["raw"]["type"] == "typing", frame
    setting.backend.do("typing", "Remy", style="typing")
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active" and nick_of(line) == "Remy")


@on("jwt-rooms")
def jwt_rooms_by_number_and_by_name(setting):
    """The socket takes either, frames and calls want the number that the server announces."""
    setting.serve()
    setting.start(room="2", more='\n[[rooms]]\nname = "tech"\nbackend = "main"\nupstream_room = "tech talk"\n' + CALM)
    setting.wait_up(2)
    ann, bob = setting.irc("ann"), setting.irc("bob", join="#tech")
    setting.backend.say("Remy", "in two", room=2)
    setting.backend.say("Remy", "in three", room=3)
    at = ann.expect_text("in two").tags["time"]
    later = bob.expect_text("in three").tags["time"]
    ann.send("MARKREAD #lobby timestamp=" + at)
    bob.send("MARKREAD #tech timestamp=" + later)
    wait_until(
        lambda: {r["path"] for r in setting.backend.requests("/mark-read")}
        == {"/api/rooms/2/mark-read", "/api/rooms/3/mark-read"},
        lambda: "both rooms are marked as read: %r" % setting.backend.requests("/mark-read"))
    for client in (ann, bob):
        client.barrier()
        assert len(client.texts()) == 1, client.texts()


@on("jwt-rooms")
def jwt_a_room_number_that_is_not_there(setting):
    setting.serve()
    setting.start(linked=False, room="77")
    ann = setting.irc("ann")
    wait_until(lambda: ann.drain() or any("not found" in text.lower() for text in ann.texts(command="NOTICE")) or
               "Room not found" in setting.bridge.log(), "it is said")
    handshakes = setting.backend.state()["handshakes"]
    time.sleep(1)
    assert setting.backend.state()["handshakes"] - handshakes < 8, "a storm"


@on("jwt-rooms")
def jwt_a_reaction_to_ones_own_message(setting):
    """Nobody tells its id: it is looked up in the history when somebody needs it."""
    setting.start()
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "who wants soup")
    msgid = bob.expect_text("who wants soup").tags["msgid"]
    setting.backend.expect_text("ann", "who wants soup")
    bob.send("@+reply=%s;+draft/react=👍 TAGMSG #lobby" % msgid)
    frame = setting.backend.expect("the reaction", kind="reaction")
    assert frame["target"] == str(setting.backend.state()["messages"][-1]["message_id"]), frame
    setting.backend.do("react", "Remy", id=frame["target"], emoji="❤️")
    line = ann.expect("TAGMSG", lambda line: line.tags.get("+draft/react") == "❤️")
    assert line.tags["+reply"] == msgid and nick_of(line) == "Remy", line.raw


# MARK: - plainjson


def with_options(text):
    return CALM + "options = { %s }\n" % text


@on("plainjson")
def plainjson_times_of_servers_built_from_the_sample(setting):
    setting.serve(timestamp="reference")
    setting.start(room_extra=with_options('timestamp = "reference"'))
    ann = setting.irc("ann")
    setting.backend.say("Remy", "down")
    line = ann.expect_text("down")
    assert abs(shown_at(line) - time.time()) < 3, line.raw
    ann.say("#lobby", "up")
    frame = setting.backend.expect_text("ann", "up")
    assert abs(frame["raw"]["timestamp"] + 978307200 - time.time()) < 3, frame


@on("plainjson")
def plainjson_acks_at_delivery(setting):
    setting.start(room_extra=with_options('ack_on = "delivered"'))
    ann = setting.irc("ann")
    message = setting.backend.say("Remy", "down")
    ann.expect_text("down")
    setting.backend.expect("the ack", kind="receipt", ids=[message])


@on("plainjson")
def plainjson_acks_never(setting):
    setting.start(room_extra=with_options('ack_on = "never"'))
    ann = setting.irc("ann")
    setting.backend.say("Remy", "down")
    at = ann.expect_text("down").tags["time"]
    ann.send("MARKREAD #lobby timestamp=" + at)
    ann.barrier()
    check_talk(setting, ann, "after")
    assert not [f for f in setting.backend.frames() if f["kind"] == "receipt"]


def plainjson_replay(setting, replay):
    setting.serve(replay=replay)
    setting.start(room_extra=with_options("send_last_online = true"))
    ann = setting.irc("ann")
    check_talk(setting, ann, "before")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    time.sleep(1.1)
    missed = ["missed %d" % n for n in range(4)]
    for text in missed:
        setting.backend.say("Remy", text)
    time.sleep(1.1)
    setting.backend.set(refuse=0)
    ann.expect_text(missed[-1], patience=20)
    check_talk(setting, ann, "after")
    wait_line(ann, "up after")
    ann.barrier()
    assert ann.texts("Remy") == ["down before"] + missed + ["down after"], ann.texts("Remy")
    assert ann.texts("ann") == ["up before", "up after"], ann.texts("ann")


@on("plainjson")
def plainjson_asks_for_what_it_missed_and_gets_an_array(setting):
    plainjson_replay(setting, "array")


@on("plainjson")
def plainjson_asks_for_what_it_missed_and_gets_frames(setting):
    plainjson_replay(setting, "frames")


@on("plainjson")
def plainjson_frames_of_another_conversation_are_ignored(setting):
    setting.start()
    ann = setting.irc("ann")
    setting.backend.control("raw", json={
        "id": "X1", "senderId": "S", "senderName": "Remy", "text": "elsewhere", "timestamp": "2026-01-01T00:00:00Z",
        "type": "text", "conversationId": "kitchen"})
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    assert ann.texts() == ["end"], ann.texts()


@on("plainjson")
def plainjson_without_anybody_to_acknowledge(setting):
    """Acks come from people: where nobody is there to send one, what was said has been said all the same."""
    setting.serve(auto_ack=False)
    setting.start(room_extra=CALM + 'queue = { max_age = "4s" }\nping = "600ms"\n')
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for n in range(3):
        ann.say("#lobby", "into the silence %d" % n)
    texts = ["into the silence %d" % n for n in range(3)]
    for client in (ann, bob):
        wait_line(client, texts[-1])
        client.barrier()
        assert client.texts("ann") == texts, client.texts("ann")
    time.sleep(4.5)
    ann.barrier()
    assert not [line for line in ann.lines if line.command == "FAIL"], "told that it failed"
    assert setting.backend.heard("ann") == texts
    # One that lately comes is nothing new.
    setting.backend.do("read", "Remy", id=setting.backend.frames()[-1]["id"])
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    assert ann.texts("ann") == texts, ann.texts("ann")


# MARK: - directus


@on("directus")
def directus_names_in_a_column_of_their_own(setting):
    """No prefix then: who speaks stands beside the text."""
    setting.start(room_extra=CALM + "options = { send_sender_name = true, send_client_id = true }\n")
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", "by name")
    frame = setting.backend.expect("the message", kind="message")
    assert (frame["text"], frame["name"]) == ("by name", "ann") and frame["raw"]["data"]["client_id"], frame
    for client in (ann, bob):
        wait_line(client, "by name")
        client.barrier()
        assert client.texts("ann") == ["by name"], client.texts()


@on("directus")
def directus_typing_by_an_extension(setting):
    setting.serve(typing_extension=True)
    setting.start(room_extra=CALM + 'options = { typing = "extension" }\n')
    ann = setting.irc("ann")
    introduce(setting, ann, "Remy")
    setting.backend.control("typing", user="Remy", room="lobby")
    line = ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active")
    assert nick_of(line) == "Remy", line.raw
    ann.send("@+typing=active TAGMSG #lobby")
    frame = setting.backend.expect("typing", kind="typing")
    assert frame["raw"]["state"] == "start", frame


@on("directus")
def directus_keys_that_are_uuids(setting):
    setting.serve(pk="uuid")
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    check_talk(setting, ann, "one")
    message = setting.backend.say("Remy", "regrettable")
    msgid = ann.expect_text("regrettable").tags["msgid"]
    setting.backend.do("delete", "Remy", id=message)
    assert ann.expect("REDACT").params[1] == msgid
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "two")
    wait_line(ann, "up two")
    assert ann.texts("ann") == ["up one", "up two"], ann.texts("ann")


@on("directus")
def directus_a_filter_of_ones_own(setting):
    setting.start(room_extra=CALM + 'options = { filter = { status = { _eq = "published" } } }\n')
    ann = setting.irc("ann")
    setting.backend.say("Remy", "a draft", fields={"status": "draft"})
    setting.backend.say("Remy", "published")
    ann.expect_text("published")
    assert ann.texts() == ["published"], ann.texts()


@on("directus")
def directus_that_limits_how_fast_one_speaks(setting):
    """Whatever is over it is refused, and goes again when the server says: all of it arrives once, in order."""
    setting.serve(rate_limit=4)
    setting.start()
    ann = setting.irc("ann")
    texts = ["fast %d" % n for n in range(12)]
    for text in texts:
        ann.say("#lobby", text)

    def stored():
        return [m["text"].removeprefix("<ann> ") for m in setting.backend.state()["messages"]]

    wait_until(lambda: len(stored()) >= len(texts), lambda: "%d are there" % len(stored()), 30)
    ann.expect_text(texts[-1])
    ann.barrier()
    assert stored() == texts and ann.texts() == texts, (stored(), ann.texts())
    assert not [line.raw for line in ann.lines if line.command == "FAIL"]


# MARK: - typed


@on("typed")
def typed_with_names_of_the_servers_own(setting):
    setting.start(room_extra=CALM + 'options = { types = { "chat.message" = "msg", "chat.typing" = "dots" } }\n')
    ann = setting.irc("ann")
    payload = {"id": "M1", "room": "lobby", "senderId": "S1", "senderName": "Remy", "text": "renamed", "sentAt": 8e8}
    for kind, text in (("msg", "renamed"), ("chat.message", "old name")):
        body = base64.b64encode(json.dumps({**payload, "text": text}).encode()).decode()
        setting.backend.control("raw", json={"type": kind, "payload": body}, frame_op="binary")
    ann.expect_text("renamed")
    ann.say("#lobby", "mine")
    said = wait_until(lambda: [frame for frame in setting.backend.frames() if frame.get("text") == "mine"], "a message")
    assert said[0]["raw"]["type"] == "msg", said[0]


@on("typed")
def typed_that_sends_plain_objects_and_bytes(setting):
    setting.start()
    ann = setting.irc("ann")
    payload = {"id": "M1", "room": "lobby", "senderId": "S1", "senderName": "Remy", "text": "an object"}
    setting.backend.control("raw", json={"type": "chat.message", "payload": payload})
    payload = {**payload, "id": "M2", "text": "an array of bytes"}
    setting.backend.control("raw", json={"type": "chat.message", "payload": list(json.dumps(payload).encode())})
    ann.expect_text("an object")
    ann.expect_text("an array of bytes")


@on("typed")
def typed_as_bare_strings(setting):
    setting.start(room_extra=CALM + 'options = { fallback_text = true, fallback_sender = "Somebody" }\n')
    ann = setting.irc("ann")
    setting.backend.control("raw", text="just words")
    assert nick_of(ann.expect_text("just words")) == "Somebody"
    ann.say("#lobby", "words back")
    received = wait_until(lambda: setting.backend.control("received")["frames"], "a frame")
    assert received[-1]["text"] == "<ann> words back", received[-1]
