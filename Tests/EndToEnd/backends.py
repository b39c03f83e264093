"""The seven dialects for scenarios: the features of each, the configuration of a bridge for it, its frames.

    Wire       one row of the table: a dialect with its abilities and its configuration
    Backend    a running Tests/Backends/server.py and its control port
    Setting    a backend with a bridge in front of it; owns all processes that it starts
"""

import base64
import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

from peer import IRC, MODERN, PATIENCE, Bridge, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "Backends"))
try:
    import server
except ImportError:  # without aiohttp the scenarios of other files run all the same
    server = None

QUICK = (
    'backoff = { min = "100ms", max = "400ms", jitter = 0 }\n'
    'ping = "600ms"\npong_timeout = "600ms"\nhandshake_timeout = "2s"\nconnect_timeout = "2s"\n'
)
CALM = 'backoff = { min = "100ms", max = "400ms", jitter = 0 }\n'


# MARK: - The table


@dataclasses.dataclass(frozen=True)
class Wire:
    # Name in configurations, and the kind of server that plays it.
    name: str
    server: str = ""
    # Whether each IRC user speaks under an own identity ("puppet"), or all through one account ("single").
    identity: str = "puppet"
    # Who gives messages their id. Frames with a client's id may come twice: apps count them once.
    ids: str = "client"
    typing_in: str = ""  # "", "start", "start_stop"
    typing_out: str = ""
    # How reading is told: "", "frame", "call".
    receipts_in: str = ""
    receipts_out: str = ""
    joins_in: bool = False
    leaves_in: bool = False
    joins_out: bool = False
    media: bool = False
    edits: bool = False
    deletes_in: bool = False
    deletes_out: bool = False
    reactions: bool = False
    # Whether an answer to a message is a field of its own; else it is quoted.
    replies: bool = False
    # Where what was said meanwhile comes from: "", "call", "pushed".
    history: str = ""
    # Whether a refused message is refused aloud.
    refuses: bool = False
    # Whether a message on its way when the link dies can be settled: sent again under its id, or found in the history.
    settles: bool = False
    # Whether the bridge logs in there with a name and a password.
    login: bool = False
    # The account, as others see it.
    account: str = ""
    # The room of the backend behind #lobby, as the control port and the configuration name it.
    room: str = ""

    def __str__(self):
        return self.name

    def spoken(self, nick, text):
        """What reaches the backend when `nick` says `text`."""
        return text if self.identity == "puppet" else "<%s> %s" % (nick, text)

    def speaker(self, nick):
        """Under which name it does."""
        return nick if self.identity == "puppet" else self.account


WIRES = [
    Wire("envelope", typing_in="start", typing_out="start", receipts_in="frame", receipts_out="frame", settles=True),
    Wire(
        "jwt-rooms", identity="single", ids="server", typing_in="start_stop", typing_out="start_stop",
        receipts_out="call", joins_in=True, media=True, reactions=True, history="call", refuses=True, settles=True,
        login=True, account="liaison", room="General"),
    Wire(
        "typed", typing_in="start_stop", typing_out="start_stop", receipts_in="frame", receipts_out="frame",
        joins_in=True, leaves_in=True, joins_out=True, media=True, edits=True, deletes_in=True, deletes_out=True,
        reactions=True, replies=True, refuses=True, settles=True, room="lobby"),
    Wire(
        "plainjson", typing_in="start_stop", typing_out="start_stop", receipts_in="frame", receipts_out="frame",
        media=True, history="call", settles=True, room="lobby"),
    Wire(
        "directus", identity="single", ids="server", media=True, edits=True, deletes_in=True, deletes_out=True,
        replies=True, history="pushed", refuses=True, settles=True, login=True, account="Liaison", room="lobby"),
    Wire("swiftchat", ids="server"),
    Wire(
        "custom", server="parlour", typing_in="start_stop", typing_out="start_stop", receipts_in="frame",
        receipts_out="frame", joins_in=True, leaves_in=True, joins_out=True, media=True, edits=True, deletes_in=True,
        deletes_out=True, reactions=True, replies=True, history="call", refuses=True, settles=True, room="lobby"),
]
WIRE = {wire.name: wire for wire in WIRES}

PASSWORD = "pw-of-the-bridge-7f3a"


# MARK: - A backend


def shown(value):
    """A text without the invisible mark by which mirrors know what they have brought."""
    return re.sub("\u2063[\ufe00-\ufe0f]+", "", value) if isinstance(value, str) else value


class Served:
    """A program of the tests that serves until its standard input ends, and has a control port.

    It is forked and not started anew: reading aiohttp in takes longer than most scenarios.
    """

    def __init__(self, main, command):
        child_in, self.stdin = os.pipe()
        output, child_out = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            serve(main, command, child_in, child_out)
        os.close(child_in)
        os.close(child_out)
        with open(output, encoding="utf-8") as file:
            line = file.readline()
        assert line, "%s did not start" % command[0]
        self.ready = json.loads(line)

    def stop(self):
        os.close(self.stdin)
        end = time.monotonic() + 5
        while os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                break
            time.sleep(0.01)

    def control(self, op, **arguments):
        request = urllib.request.Request(
            "%s/%s" % (self.ready["control"], op), json.dumps(arguments).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError("%s: %s" % (op, error.read().decode()[:200])) from None


class Backend(Served):
    """One server process. `frames()` are those the bridge sent, as the bridge's peers would read them."""

    def __init__(self, wire, seed=(), arguments=(), **settings):
        assert server, "this Python has no aiohttp; scripts/test-environment makes one that has"
        self.wire = wire
        command = ["server.py", "--dialect", wire.server or wire.name, "--exit-on-eof", "--lifetime", "300"]
        if wire.login:
            host = "@example.com" if wire.name == "directus" else ""
            command += ["--seed-user", "liaison%s:%s" % (host, PASSWORD)]
            for name, password in seed:
                command += ["--seed-user", "%s:%s" % (name, password)]
        if wire.name == "plainjson":
            # An ack of somebody else's client is what confirms a message there.
            settings.setdefault("auto_ack", True)
        for key, value in settings.items():
            command += ["--set", "%s=%s" % (key, json.dumps(value))]
        super().__init__(server.main, command + list(arguments))
        self.port = self.ready["port"]
        self.origin = "%s://127.0.0.1:%d" % ("https" if self.ready["url"].startswith("wss") else "http", self.port)
        self.cursor = 0

    # -- The control port

    def do(self, op, user, **arguments):
        """Somebody on the backend does something in the bridge's room."""
        if self.wire.room:
            arguments.setdefault("room", self.wire.room)
        answer = self.control(op, user=user, **arguments)
        assert answer.get("wire", True), "%s has no %s" % (self.wire, op)
        return answer

    def say(self, user, text, **arguments):
        """Its id, as a string."""
        return str(self.do("say", user, text=text, **arguments)["id"])

    def set(self, **settings):
        self.control("set", **settings)

    def requests(self, path="", since=0):
        """HTTP requests to the backend whose path has `path` in it."""
        return [r for r in self.control("http", since=since)["requests"] if path in r["path"]]

    def state(self):
        return self.control("state")

    def connections(self):
        return [c["id"] for c in self.state()["connections"]]

    # -- What the bridge sent

    def frames(self, since=0):
        return [dict(read(self.wire.name, r), n=r["n"]) for r in self.control("received", since=since)["frames"]]

    def expect(self, what, patience=None, **fields):
        """The next frame, after those already taken, that has these fields; marks of mirrors aside."""
        end = time.monotonic() + (patience or PATIENCE)
        while True:
            frames = self.frames(self.cursor)
            for frame in frames:
                self.cursor = frame["n"]
                if all(shown(frame.get(name)) == value for name, value in fields.items()):
                    return frame
            if time.monotonic() > end:
                raise AssertionError(
                    "the backend never got %s %r; last: %r" % (what, fields, self.frames()[-4:]))
            time.sleep(0.03)

    def expect_text(self, nick, text, patience=None):
        return self.expect("the message", patience, kind="message", text=self.wire.spoken(nick, text))

    def heard(self, nick):
        """What `nick` said, as the people there see it: a message sent again under its id is one message."""
        if self.wire.login:
            # What the backend kept: it may have refused what it got.
            texts = [m.get("text") or m.get("message") or "" for m in self.state()["messages"]]
            return [text[len(nick) + 3 :] for text in texts if text.startswith("<%s> " % nick)]
        seen, out = set(), []
        for frame in self.frames():
            if frame["kind"] != "message" or not frame["taken"]:
                continue
            if self.wire.ids == "client":
                if frame["id"] in seen:
                    continue
                seen.add(frame["id"])
            text = frame["text"] or ""
            if self.wire.identity == "single":
                if not text.startswith("<%s> " % nick):
                    continue
                text = text[len(nick) + 3 :]
            elif frame["name"] != nick:
                continue
            out.append(text)
        return out


def serve(main, arguments, stdin, stdout):
    """The child's whole life. It holds nothing of its parent's open, or others would wait for its end."""
    status = 1
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.closerange(3, 4096)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")
        sys.argv = arguments
        status = main()
    except Exception:  # nobody else would say why it did not start
        traceback.print_exc()
    finally:
        os._exit(status)


def read(dialect, record):
    """One frame of the bridge in a form that is the same for all dialects."""
    frame = record.get("json")
    if not isinstance(frame, dict):
        return {"kind": "unreadable", "raw": record["text"], "taken": True}
    found = READERS[dialect](frame)
    found.setdefault("kind", "other")
    return {**found, "raw": frame, "op": record["op"], "conn": record["conn"], "taken": record.get("taken", True)}


def _envelope(f):
    kind = {"message": "message", "typing": "typing", "readReceipt": "receipt"}.get(f.get("event"), "other")
    return {
        "kind": kind, "id": f.get("message_id"), "name": f.get("sender_name"), "sender": f.get("sender_id"),
        "text": f.get("body"), "state": {"typing": "start", "receipt": "read"}.get(kind),
        "ids": [f.get("message_id")],
    }


def _jwt(f):
    kind = f.get("type")
    if kind in ("typing_start", "typing_stop", "typing"):
        return {"kind": "typing", "state": "stop" if kind.endswith("stop") else "start", "name": "liaison"}
    if kind == "reaction":
        return {
            "kind": "reaction", "target": str(f["message_id"]), "emoji": f["reaction_type"], "action": f["action"],
            "name": "liaison",
        }
    return {"kind": kind, "text": f.get("content"), "name": f.get("sender"), "id": None}


def _typed(f):
    payload = json.loads(base64.b64decode(f["payload"], validate=True))
    kind = f["type"].removeprefix("chat.")
    out = {
        "kind": kind, "payload": payload, "id": payload.get("id"), "sender": payload.get("senderId"),
        "name": payload.get("senderName"), "text": payload.get("text"), "reply": payload.get("replyTo"),
        "ids": payload.get("ids"), "state": payload.get("state"), "target": payload.get("messageId"),
        "emoji": payload.get("emoji"),
    }
    if kind == "typing":
        out["state"] = "start" if payload["active"] else "stop"
    if kind == "reaction":
        out["action"] = "add" if payload["active"] else "remove"
    if kind == "presence":
        out["name"] = payload["userName"]
        out["kind"] = {"joined": "join", "left": "leave"}.get(payload["state"], "presence")
    return out


def _plainjson(f):
    kind = f.get("type")
    if kind in ("typing", "stopTyping"):
        return {"kind": "typing", "state": "start" if kind == "typing" else "stop", "sender": f.get("userId")}
    if kind == "ack":
        return {
            "kind": "receipt", "ids": [f.get("messageId")], "state": f.get("status", "read"), "sender": f.get("userId"),
        }
    if kind in ("text", "image", "video"):
        return {
            "kind": "message", "id": f["id"], "text": f["text"], "name": f["senderName"], "sender": f["senderId"],
        }
    return {"kind": kind}


def _directus(f):
    if f.get("type") != "items":
        return {"kind": f.get("type")}
    data = f.get("data") or {}
    if f.get("action") == "create":
        return {
            "kind": "message", "text": data.get("text"), "name": data.get("sender_name") or "Liaison",
            "room": data.get("room"), "reply": None if data.get("reply_to") is None else str(data["reply_to"]),
        }
    if f.get("action") == "delete":
        return {"kind": "delete", "ids": [str(key) for key in f.get("ids") or [f.get("id")]]}
    return {"kind": {"read": "fetch", "update": "edit"}.get(f.get("action"))}


def _swiftchat(f):
    assert set(f) == {"message", "user", "userID"}, f
    return {"kind": "message", "text": f["message"], "name": f["user"], "sender": f["userID"]}


def _custom(f):
    who = f.get("as") or {}
    out = {"name": who.get("label"), "sender": who.get("key")}
    do = f.get("do")
    if do == "say":
        out.update(kind="message", id=f["tag"], text=f["words"], reply=f.get("re"))
    elif do == "pen":
        out.update(kind="typing", state="start" if f["state"] == "down" else "stop")
    elif do == "eyes":
        out.update(kind="receipt", ids=[f["on"]], state="read")
    elif do == "burn":
        out.update(kind="delete", ids=f["nos"])
    elif do == "stamp":
        out.update(kind="reaction", target=f["no"], emoji=f["mark"], action="remove" if f["off"] else "add")
    else:
        out["kind"] = {"come": "join", "go": "leave"}.get(do, do)
    return out


READERS = {
    "envelope": _envelope, "jwt-rooms": _jwt, "typed": _typed, "plainjson": _plainjson, "directus": _directus,
    "swiftchat": _swiftchat, "custom": _custom,
}


# MARK: - A backend with a bridge


class Setting:
    """`backend` and, once started, `bridge`. Nothing is shared with another scenario."""

    def __init__(self, wire):
        self.wire = wire
        self.stack = contextlib.ExitStack()
        self.backend = None
        self.bridge = None
        self.clients = []
        self.directory = tempfile.mkdtemp(prefix="chatbridge-")
        self.stack.callback(shutil.rmtree, self.directory, True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def serve(self, **options):
        """Starts the backend; `start` does where nothing was said before."""
        self.backend = Backend(self.wire, **options)
        self.stack.callback(self.backend.stop)
        return self.backend

    def start(
        self, linked=True, room_extra=CALM, auth="", log='level = "debug"', more="", room="", describe=None, **options
    ):
        """A bridge with #lobby on the backend. `auth` stands for what the table would say of logging in; `describe`
        changes the description of the parlour.

        Started again, it finds the state that an earlier one left.
        """
        if self.backend is None:
            self.serve()
        wire = dataclasses.replace(self.wire, room=room or self.wire.room)
        text = tables(wire, self.backend, room_extra, auth, self.directory, describe) + more
        self.bridge = Bridge({}, tables=text, log_extra=log, directory=self.directory, **options)
        self.stack.callback(self.bridge.stop)
        if linked:
            self.wait_up()
        return self.bridge

    def wait_up(self, count=1, patience=None):
        """Until the bridge was linked so many times in all."""
        wait_until(
            lambda: len(self.bridge.log_entries("upstream-up")) >= count,
            lambda: "the bridge is linked (%d of %d); it said:\n%s"
            % (len(self.bridge.log_entries("upstream-up")), count, self.bridge.log()[-1500:]),
            patience,
        )

    def ups(self):
        return len(self.bridge.log_entries("upstream-up"))

    def irc(self, nick, join="#lobby", caps=MODERN, more=()):
        client = IRC(self.bridge.port, nick, caps=list(caps) + list(more), join=[join] if join else [])
        self.clients.append(client)
        self.stack.callback(client.close)
        return client

    def plain(self, nick, join="#lobby"):
        return self.irc(nick, join, caps=())


def tables(wire, backend, room_extra, auth, directory, describe=None):
    """The configuration of one room, #lobby, on that backend; the room's own table comes last."""
    host = "127.0.0.1:%d" % backend.port
    scheme = "wss" if backend.origin.startswith("https") else "ws"
    room = '[[rooms]]\nname = "lobby"\n'
    if wire.login:
        path = "ws/chat/{room}" if wire.name == "jwt-rooms" else "websocket"
        user = "liaison" if wire.name == "jwt-rooms" else "liaison@example.com"
        return (
            '[backends.main]\ndialect = "%s"\nurl = "%s://%s/%s"\n%s\n%sbackend = "main"\nupstream_room = "%s"\n%s'
            % (
                wire.name, scheme, host, path, auth or 'user = "%s"\npassword = "%s"\n' % (user, PASSWORD), room,
                wire.room, room_extra,
            ))
    if wire.name == "custom":
        with open(os.path.join(HERE, "parlour.json"), encoding="utf-8") as file:
            definition = file.read().replace("BASE", backend.origin)
        if describe:
            definition = json.dumps(describe(json.loads(definition)))
        with open(os.path.join(directory, "parlour.json"), "w", encoding="utf-8") as file:
            file.write(definition)
        return (
            '[dialects.parlour]\nfile = "parlour.json"\n\n%sdialect = "parlour"\nurl = "%s://%s/live/{room}"\n%s%s'
            % (room, scheme, host, auth, room_extra))
    path = {"envelope": "/chat", "typed": "/{room}", "plainjson": "/ws/{room}", "swiftchat": "/chat"}[wire.name]
    options = ""
    if wire.name == "plainjson" and "options =" not in room_extra:
        options = (
            'options = { history_url = "%s/messages/{room}?since={since}&limit={limit}" }\n' % backend.origin)
    return '%sdialect = "%s"\nurl = "%s://%s%s"\n%s%s%s' % (
        room, wire.name, scheme, host, path, options, auth, room_extra)


# MARK: - Scenarios over several wires


def on_wires(choose=lambda wire: True):
    """A scenario that runs once for each wire of the table that `choose` likes."""

    def mark(function):
        function.wires = [wire for wire in WIRES if choose(wire)]
        assert function.wires, function.__name__
        return function

    return mark


def on(*names):
    return on_wires(lambda wire: wire.name in names)


def run_on(function, wire):
    with Setting(wire) as setting:
        result = function(setting)
        if setting.bridge:
            setting.bridge.check_alive()
        return result
