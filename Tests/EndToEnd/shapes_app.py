"""The own app of each backend of Tests/Backends/shapes.py, as a person uses it who was asked by `chatbridge learn`.

    Shape    a running backend
    record   what app and backend said to each other meanwhile, as lines of a recording
    learn    what is proposed for such lines
    correct  what a person makes of it
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

from peer import PATIENCE, TEXT, _Link, wait_until
from relay import FrameReader, frame

HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = "home-token-5d1f"
# Pings that each app answers.
ANSWERS = {"2": "3", '{"type": "ping"}': '{"type": "pong"}'}
# What a person corrects in the proposal for the home-grown backend, each a line: refusals and another topic were not
# recorded, and files open with the token alone.
CORRECTIONS = {"home": {
    "files": "token",
    "decode": [
        {"when": {"/did": "refused"}, "event": "error",
         "fields": {"code": "/code", "text": "/say", "ref": "/nonce", "retry": "/retry",
                    "room_state": {"ptr": "/code", "map": {"no-room": "unknown", "closed": "read-only"}}}},
        {"when": {"/did": "topic"}, "event": "topic", "fields": {"text": "/topic"}},
        {"when": {"/did": "goodbye"}, "event": "auth", "fields": {"state": {"const": "failed"}, "text": "/why"}},
    ],
}}


class Shape:
    """A running backend; each command is answered."""

    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "..", "Backends", "shapes.py"), "--shape", name], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self.process.stdout.readline())["port"]

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def texts(self):
        return [row["text"] for row in self.do("log")]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class App(_Link):
    """One person's app. With `lines`, all that it says and hears is written down."""

    def __init__(self, port, lines=None):
        super().__init__("127.0.0.1", port)
        self.lines, self.heard, self.reader = lines, [], FrameReader()
        self.sock.sendall((
            "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.sock.recv(1)
        assert head.startswith(b"HTTP/1.1 101"), head

    def note(self, direction, text):
        if self.lines is not None:
            try:
                shown = json.loads(text)
                shown = shown if isinstance(shown, (dict, list)) else text
            except ValueError:
                shown = text
            self.lines.append(json.dumps({"dir": direction, "at": time.time_ns() // 1_000_000, "frame": shown}))

    def pump(self, seconds=0.0):
        data = self._read(seconds)
        for opcode, payload in self.reader.feed(data):
            if opcode == TEXT:
                text = payload.decode()
                self.note("in", text)
                self.heard.append(text)
                if text in ANSWERS:
                    self.say(ANSWERS[text])
        return bool(data)

    def say(self, frames):
        for one in [frames] if isinstance(frames, (str, dict)) else frames:
            text = one if isinstance(one, str) else json.dumps(one)
            self.note("out", text)
            self.sock.sendall(frame(text, TEXT, masked=True))

    def hears(self, word, count=1):
        def found():
            self.pump(0.05)
            return sum(word in text for text in self.heard) >= count
        wait_until(found, lambda: "%r among %r" % (word, self.heard))


def _number(app, word):
    """The id in the last frame with the word."""
    text = next(text for text in reversed(app.heard) if word in text)
    value = json.loads(text)
    return value["id"]


def _home(app, other, port, step, lines):
    app.say({"do": "hello", "token": TOKEN, "room": "lobby"})
    app.hears("welcome")
    other.say({"do": "hello", "token": TOKEN, "room": "lobby", "as": "ann"})
    app.hears("came")
    app.say({"do": "beat"})
    app.hears('"beat"')
    url = "http://127.0.0.1:%d/rooms/lobby/log?limit=20" % port

    def history():
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + TOKEN})
        with urllib.request.urlopen(request) as answer:
            lines.append(json.dumps({"http": {"method": "GET", "url": url + "&before=99", "status": 200, "answer": json.load(answer)}}))
    step("say")
    app.say({"do": "post", "nonce": "n-7fa1", "room": "lobby", "body": "learn-1"})
    app.hears("took")
    own = _number(app, "took")
    step("hear")
    other.say({"do": "post", "nonce": "n-0001", "room": "lobby", "body": "learn-2"})
    app.hears("learn-2")
    theirs = _number(app, "learn-2")
    step("type")
    app.say([{"do": "typing", "room": "lobby", "on": True}, {"do": "typing", "room": "lobby", "on": False}])
    other.say([{"do": "typing", "room": "lobby", "on": True}, {"do": "typing", "room": "lobby", "on": False}])
    app.hears("typing", 2)
    step("read")
    app.say({"do": "read", "room": "lobby", "upto": theirs})
    other.say({"do": "read", "room": "lobby", "upto": own})
    app.hears('"read"')
    step("reply")
    app.say({"do": "post", "nonce": "n-7fa2", "room": "lobby", "body": "learn-3", "re": theirs})
    app.hears("took", 2)
    step("react")
    app.say({"do": "react", "room": "lobby", "id": theirs, "emoji": "👍", "on": True})
    other.say({"do": "react", "room": "lobby", "id": own, "emoji": "👍", "on": True})
    app.hears("emoji")
    other.say({"do": "post", "nonce": "n-0002", "room": "lobby", "body": "", "files": [
        {"href": "/files/7/a.png", "label": "a.png", "bytes": 12, "mime": "image/png"}]})
    app.hears("a.png")
    history()
    step("edit")
    app.say({"do": "edit", "room": "lobby", "id": own, "body": "learn-1b"})
    app.hears("learn-1b")
    step("delete")
    app.say({"do": "delete", "room": "lobby", "id": own})
    app.hears('"delete"')
    app.say({"do": "beat"})
    app.hears('"beat"', 2)
    step("leave")
    other.say({"do": "state", "state": "away"})
    app.hears('"away"')
    other.close()
    app.hears("went")


def _echo(app, other, port, step, lines, own_ids=True):
    app.say({"type": "subscribe", "channel": "lobby"})
    app.hears("subscribed")
    other.say({"type": "subscribe", "channel": "lobby", "userName": "ann"})

    def said(number, text):
        more = {"clientId": "c-%d-4e1b" % number} if own_ids else {}
        return {"type": "send", "channel": "lobby", "content": text, **more}
    step("say")
    app.say(said(1, "learn-1"))
    app.hears("learn-1")
    step("hear")
    other.say(said(2, "learn-2"))
    app.hears("learn-2")
    step("type")
    other.say([{"type": "typing", "channel": "lobby", "isTyping": on} for on in (True, False)])
    app.say([{"type": "typing", "channel": "lobby", "isTyping": on} for on in (True, False)])
    app.hears("isTyping", 2)
    step("reply")
    app.say(said(3, "learn-3"))
    app.hears("learn-3")


def _plain(*arguments):
    _echo(*arguments, own_ids=False)


def _socketio(app, other, port, step, lines):
    def packet(event, fields):
        return "42" + json.dumps([event, fields])
    for one, name in ((app, "dot"), (other, "ann")):
        one.hears("0{")
        one.say("40")
        one.hears("40{")
        one.say(packet("join", {"room": "lobby"} if name == "dot" else {"room": "lobby", "name": name}))
        one.hears("joined")
    step("say")
    app.say(packet("message", {"room": "lobby", "text": "learn-1", "tempId": "t-1-93ab"}))
    app.hears("learn-1")
    step("hear")
    other.say(packet("message", {"room": "lobby", "text": "learn-2", "tempId": "t-2-93ab"}))
    app.hears("learn-2")
    step("type")
    for one in (app, other):
        one.say([packet("typing", {"room": "lobby", "typing": on}) for on in (True, False)])
    app.hears('"typing"', 2)
    step("reply")
    app.say(packet("message", {"room": "lobby", "text": "learn-3", "tempId": "t-3-93ab"}))
    app.hears("learn-3")
    wait_until(lambda: app.pump(0.05) or "2" in app.heard, "a ping")
    app.hears("2")


def _numbered(app, other, port, step, lines):
    def packet(event, fields, number=""):
        return "42%s%s" % (number, json.dumps([event, fields]))
    # The other person has said something before.
    for one, name in ((other, "ann"), (app, "dot")):
        one.hears("0{")
        one.say("40")
        one.hears("40{")
        one.say(packet("join", {"room": "lobby"} if name == "dot" else {"room": "lobby", "name": name}, 0))
        one.hears("430[")
        if one is other:
            one.say(packet("message", {"room": "lobby", "text": "good morning"}, 1))
            one.hears("431[")
    step("say")
    app.say(packet("message", {"room": "lobby", "text": "learn-1"}, 1))
    app.hears("431[")
    step("hear")
    other.say(packet("message", {"room": "lobby", "text": "learn-2"}, 2))
    app.hears("learn-2")
    step("type")
    for one in (app, other):
        one.say([packet("typing", {"room": "lobby", "typing": on}) for on in (True, False)])
    app.hears('"typing"', 2)
    step("reply")
    app.say(packet("message", {"room": "lobby", "text": "learn-3"}, 2))
    app.hears("432[")
    wait_until(lambda: app.pump(0.05) or "2" in app.heard, "a ping")


def _rows(app, other, port, step, lines):
    def request(uid, action, **fields):
        return {"type": "items", "collection": "messages", "action": action, **fields, "uid": uid}
    for one, token in ((other, TOKEN + "-ann"), (app, TOKEN)):
        one.say({"type": "auth", "access_token": token})
        one.hears('"auth"')
        one.say({
            "type": "subscribe", "collection": "messages", "uid": "1",
            "query": {"fields": ["*", "user_created.id", "user_created.first_name"], "sort": "-date_created", "limit": 25}})
        one.hears('"init"')
        if one is other:
            for uid, text in (("2", "good morning"), ("3", "is there soup?")):
                one.say(request(uid, "create", data={"text": text}))
                one.hears('"items"', int(uid) - 1)
    step("say")
    app.say(request("2", "create", data={"text": "learn-1"}))
    app.hears('"items"')
    app.hears('"create"')
    own = json.loads(next(text for text in app.heard if '"items"' in text))["data"]["id"]
    step("hear")
    other.say(request("4", "create", data={"text": "learn-2"}))
    app.hears("learn-2")
    step("reply")
    app.say(request("3", "create", data={"text": "learn-3"}))
    app.hears("learn-3", 2)
    step("edit")
    app.say(request("4", "update", id=own, data={"text": "learn-1b"}))
    app.hears("learn-1b", 2)
    step("delete")
    app.say(request("5", "delete", id=own))
    app.hears('"delete"')
    app.hears('"items"', 4)
    app.hears('"ping"')


def _phoenix(app, other, port, step, lines):
    def push(ref, event, fields, topic="room:lobby", join="1"):
        return json.dumps([join, ref, topic, event, fields])
    app.say(push("1", "phx_join", {}))
    app.hears("phx_reply")
    other.say(push("1", "phx_join", {"name": "ann"}))
    other.hears("phx_reply")
    app.say(push("2", "heartbeat", {}, "phoenix", None))
    app.hears("phx_reply", 2)
    step("say")
    app.say(push("3", "new_msg", {"body": "learn-1"}))
    app.hears("phx_reply", 3)
    step("hear")
    other.say(push("2", "new_msg", {"body": "learn-2"}))
    app.hears("learn-2")
    step("type")
    for one in (app, other):
        one.say([push("4", "typing", {"typing": on}) for on in (True, False)])
    app.hears("typing", 2)
    step("reply")
    app.say(push("6", "new_msg", {"body": "learn-3"}))
    app.hears("phx_reply", 4)


_USES = {"home": _home, "echo": _echo, "plain": _plain, "socketio": _socketio, "numbered": _numbered, "rows": _rows, "phoenix": _phoenix}


def record(shape, port=None, step=None):
    """The lines of a recording. `port` is where the app connects to, where that is not the backend itself."""
    lines = [json.dumps({"url": "ws://127.0.0.1:%d/ws" % shape.port})]
    app, other = App(port or shape.port, lines), App(shape.port)
    _USES[shape.name](app, other, port or shape.port, step or (lambda name: lines.append(json.dumps({"step": name}))), lines)
    app.close()
    other.close()
    wait_until(lambda: shape.do("links") == 0, "the app is gone")
    return lines


def learn(binary, directory, lines):
    """Puts mine.json and its companions there, and checks them with the recording. What was printed."""
    def run(*words):
        done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=60, check=False, cwd=directory)
        assert done.returncode == 0, done
        return done.stdout

    for name, text in (("recording.jsonl", "\n".join(lines)), ("token", TOKEN)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.chmod(os.path.join(directory, name), 0o600)
    printed = run("learn", "--frames", "recording.jsonl", "--name", "mine")
    run("check", "--config", "mine.toml", "--frame", "mine.frames.jsonl")
    return printed


def correct(path, corrections):
    """Rules of a person come before those that were proposed."""
    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    for key, value in corrections.items():
        description[key] = value + description[key] if isinstance(value, list) else value
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)


if __name__ == "__main__":
    backend = Shape(sys.argv[1])
    print("\n".join(record(backend)))
    backend.stop()
