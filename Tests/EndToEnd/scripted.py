"""Backends controlled step by step by a scenario: reading, processing, answers, losses and history.

    Scripted   a WebSocket and HTTP server on one free port, and everything that can be made to go wrong with it
    JWTRooms   the wire of `jwt-rooms`: one account, nothing confirms a message, a history over HTTP
    Homemade   a backend that only a description (`custom`) connects, in several shapes: silent, acks, echoes
    Plain      the wire of `plainjson` without anybody who acknowledges
    Envelope   the wire of `envelope`, with or without echo
    Typed      the wire of `typed`, with or without receipts and echo
    Stage      such a backend with a bridge in front of it and the IRC clients of a scenario

A frame goes three ways here, which other test servers do as one: it is *read* (`Socket.frames`), its ping is *answered*,
and it is *processed* (`rows`). A server that reads and dies, one that answers pings by a proxy while its own queue is
stuck, and one that works through a dead connection's queue later are all of these, one without another.
"""

import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timezone

from accounts import account
from peer import IRC, MODERN, Bridge
from relay import BINARY, CLOSE, MAGIC, PATIENCE, PING, PONG, TEXT, FrameReader, envelope, frame, new_id, wait_until
from restarts import log_in_as

SPACE = uuid.UUID("5a0d5c3e-0000-4000-8000-5c7197ed0000")
APPLE_EPOCH = 978307200.0
PASSWORDS = {"liaison": "pw-of-the-bridge", "alice": "pw-of-alice"}
CALM = 'backoff = { min = "100ms", max = "400ms", jitter = 0 }\n'
ASKING = tuple(MODERN) + ("draft/chathistory",)


def stable_id(name):
    return str(uuid.uuid5(SPACE, name)).upper()


class Socket:
    """One WebSocket of the bridge, while it lives and afterwards.

    `answers_pings` and `processing` ("now", "hold", "lose") are its own, so that an old one can hang while the next does not.
    """

    def __init__(self, sock, backend, path, query, user):
        self.sock, self.backend, self.path, self.query, self.user = sock, backend, path, query, user
        self.is_open = True
        self.answers_pings = backend.answers_pings
        self.processing = backend.processing
        # Text and binary frames and pings in the order in which they were read: (opcode, payload, monotonic time).
        self.frames = []
        self.unanswered = []
        self.held = []
        # How the reader's thread is to end it: None, "reset", or a Close code.
        self.ending = None
        self.write_lock = threading.Lock()

    def send(self, payload, opcode=TEXT):
        with self.write_lock, contextlib.suppress(OSError):
            self.sock.sendall(frame(payload, opcode))

    def pings(self):
        return [f for f in self.frames if f[0] == PING]

    def saw(self, text):
        """Places in `frames` of messages of just these words, with or without `<nick> ` before them."""
        found = ((n, self.backend.words(f[1])) for n, f in enumerate(self.frames) if f[0] != PING)
        return [n for n, words in found if words == text or words.endswith("> " + text)]


class Scripted:
    """The part of a backend that is the same for every wire. All that a scenario calls may be called from its own thread."""

    opcode = TEXT
    dialect = ""

    def __init__(self):
        self.lock = threading.RLock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.origin = "http://127.0.0.1:%d" % self.port
        self.sockets = []
        # What sockets begin with.
        self.answers_pings = True
        self.processing = "now"
        # What was processed: dictionaries with number, id, user (account or sender's id), name, text, at.
        self.rows = []
        self.numbers = 0
        # Whether sockets are told of what is stored.
        self.tells = True
        # One for each history that was asked for: (monotonic time, path with query, status, texts that were told).
        self.histories = []
        self.history_statuses = []
        self.history_gate = threading.Event()
        self.history_gate.set()
        self.history_limit = None
        # Connections that are reset at once, and handshakes answered with a status.
        self.refuse = 0
        self.refusals = []
        self.handshakes = []
        self.running = True
        threading.Thread(target=self._accept, daemon=True).start()

    # -- What a wire says itself

    def words(self, payload):
        """A frame in a form in which the words of a message can be looked for."""
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload

    def process(self, link, payload):
        """What the server does about a frame."""
        raise NotImplementedError

    def row_frame(self, row):
        """A message as the others get it."""
        raise NotImplementedError

    def opened(self, link):
        """A handshake is done."""

    def admit(self, path, query):
        """(status, user) of a handshake."""
        return 101, None

    def http(self, method, path, query, headers, body):
        """(status, JSON) of a request beside the sockets."""
        return 404, {"detail": "Not found"}

    def configuration(self, directory, room_extra):
        raise NotImplementedError

    # -- What a scenario asks for

    def live(self, user=None):
        with self.lock:
            return [s for s in self.sockets if s.is_open and user in (None, s.user)]

    def wait_link(self, count=1, user=None):
        """The newest live socket, once there were so many in all."""
        def found():
            with self.lock:
                mine = [s for s in self.sockets if user in (None, s.user)]
                return len(mine) >= count and mine[-1].is_open and mine[-1]
        return wait_until(found, lambda: "socket %d of %s; %r" % (count, user, self.handshakes[-5:]))

    def wait_read(self, text, count=1, user=None, patience=None):
        """Until so many frames with these words were read, over all sockets; the socket that read the last."""
        def found():
            with self.lock:
                hits = [s for s in self.sockets if user in (None, s.user) for _ in s.saw(text)]
                return hits[count - 1] if len(hits) >= count else None
        return wait_until(found, lambda: "the backend reads %r %d times; it read %r" % (text, count, self.read()), patience)

    def times_read(self, text):
        with self.lock:
            return sum(len(s.saw(text)) for s in self.sockets)

    def read(self):
        with self.lock:
            return [self.words(f[1])[:160] for s in self.sockets for f in s.frames if f[0] != PING][-8:]

    def hang(self, link):
        """Goes on reading, but neither processes nor answers anything of this socket."""
        with self.lock:
            link.answers_pings, link.processing = False, "hold"

    def lose(self, link):
        """Reads and answers pings, and will never process: a server with a queue that dies with it."""
        with self.lock:
            link.processing = "lose"

    def pong(self, link):
        """Answers what was not answered; returns how many pings that were."""
        with self.lock:
            waiting, link.unanswered = link.unanswered, []
        for payload in waiting:
            link.send(payload, PONG)
        return len(waiting)

    def work(self, link, most=None, quietly=False):
        """Processes what was held of a socket, whether or not it lives; `quietly`: without telling any socket of it."""
        with self.lock:
            held, link.held = link.held[:most], link.held[len(link.held[:most]):]
            was, self.tells = self.tells, self.tells and not quietly
            for payload in held:
                self.process(link, payload)
            self.tells = was
        return len(held)

    def end(self, link, how="reset"):
        """Ends a socket by RST, or with a Close code, and waits until that is done."""
        link.ending = how
        wait_until(lambda: not link.is_open, "the socket is closed")

    def say(self, name, text):
        """Somebody on the backend speaks."""
        return self.store(user=stable_id(name), name=name, text=text)

    def store(self, user, name, text, message_id=None, source=None, skip=()):
        """Keeps a message and tells it to all but `skip`. The row."""
        with self.lock:
            self.numbers += 1
            row = {
                "number": self.numbers, "id": message_id or self.make_id(self.numbers), "user": user, "name": name,
                "text": text, "at": time.time()}
            self.rows.append(row)
            data = self.row_frame(row)
            for link in self.sockets:
                if self.tells and link.is_open and link not in skip:
                    link.send(data, self.opcode)
            return row

    def make_id(self, number):
        return str(number)

    def texts(self):
        """What people there can read, in order."""
        with self.lock:
            return [row["text"] for row in self.rows]

    def asked(self, since=0):
        """Histories that were answered with 200."""
        with self.lock:
            return [h for h in self.histories[since:] if h[2] == 200]

    def wait_asked(self, since, count=1, patience=None):
        return wait_until(
            lambda: self.asked(since)[count - 1] if len(self.asked(since)) >= count else None,
            lambda: "the history is asked for (%d of %d times): %r" % (len(self.asked(since)), count, self.histories), patience)

    def told_rows(self):
        """What a history tells, oldest first."""
        return self.rows if self.history_limit is None else self.rows[-self.history_limit:]

    def answer_history(self, path, told):
        """Notes that it was asked for, and waits where a scenario wants it to."""
        self.history_gate.wait(PATIENCE)
        with self.lock:
            status = self.history_statuses.pop(0) if self.history_statuses else 200
            rows = list(told()) if status == 200 else []
            self.histories.append((time.monotonic(), path, status, [row["text"] for row in rows]))
            return status, rows

    def stop(self):
        self.running = False
        self.history_gate.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    # -- Threads

    def _accept(self):
        while self.running:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            if self.refuse:
                self.refuse -= 1
                self._reset(sock)
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    @staticmethod
    def _reset(sock):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def _serve(self, sock):
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                more = sock.recv(65536)
                if not more:
                    return sock.close()
                data += more
            head, _, rest = data.partition(b"\r\n\r\n")
            first, *fields = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            headers = {k.strip().lower(): v.strip() for k, _, v in (field.partition(":") for field in fields)}
            path, _, text = target.partition("?")
            query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
            path = urllib.parse.unquote(path)
            if headers.get("upgrade", "").lower() == "websocket":
                return self._upgrade(sock, path, query, headers, rest)
            while len(rest) < int(headers.get("content-length", "0")):
                rest += sock.recv(65536)
            status, body = self.http(method, path, query, headers, rest)
            body = json.dumps(body).encode()
            sock.sendall(
                b"HTTP/1.1 %d Answer\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (status, len(body), body))
            sock.close()
        except OSError:
            sock.close()

    def _upgrade(self, sock, path, query, headers, rest):
        status, user = self.admit(path, query)
        with self.lock:
            if status == 101 and self.refusals:
                status = self.refusals.pop(0)
            self.handshakes.append((time.monotonic(), path, status))
        if status != 101:
            sock.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
            return sock.close()
        accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + MAGIC).digest())
        sock.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept)
        with self.lock:
            link = Socket(sock, self, path, query, user)
            self.sockets.append(link)
            self.opened(link)
        try:
            self._read(link, rest)
        finally:
            with self.lock:
                link.is_open = False

    def _read(self, link, data):
        reader, sock = FrameReader(), link.sock
        while True:
            for opcode, payload in reader.feed(data):
                self._frame(link, opcode, payload)
            data = b""
            if link.ending == "reset":
                with link.write_lock:
                    return self._reset(sock)
            if isinstance(link.ending, int):
                link.send(struct.pack("!H", link.ending), CLOSE)
                with link.write_lock:
                    return sock.close()
            if not self.running:
                return sock.close()
            if not select.select([sock], [], [], 0.02)[0]:
                continue
            try:
                data = sock.recv(1 << 18)
            except OSError:
                data = b""
            if not data:
                with link.write_lock:
                    return sock.close()

    def _frame(self, link, opcode, payload):
        with self.lock:
            if opcode == CLOSE:
                link.ending = link.ending or 1000
            elif opcode == PING:
                link.frames.append((opcode, payload, time.monotonic()))
                if link.answers_pings:
                    link.send(payload, PONG)
                else:
                    link.unanswered.append(payload)
            elif opcode in (TEXT, BINARY):
                link.frames.append((opcode, payload, time.monotonic()))
                if link.processing == "now":
                    self.process(link, payload)
                elif link.processing == "hold":
                    link.held.append(payload)


# MARK: - jwt-rooms


def _segment(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class JWTRooms(Scripted):
    """One room, General, number 1. The account `liaison` is the bridge's, `alice` has one of her own.

    As the published backend does it, a message goes to every socket but the one it came from.
    """

    dialect = "jwt-rooms"

    def __init__(self):
        super().__init__()
        self.tokens = {}
        self.refreshes = {}
        self.logins = 0

    def words(self, payload):
        try:
            found = json.loads(payload)
        except ValueError:
            return ""
        return (found.get("content") or "") if isinstance(found, dict) and found.get("type") == "message" else ""

    def issue(self, user):
        token = ".".join(
            (_segment({"alg": "HS256", "typ": "JWT"}),
             _segment({"sub": user, "exp": int(time.time()) + 1800, "jti": secrets.token_hex(6)}), secrets.token_urlsafe(24)))
        refresh = secrets.token_urlsafe(24)
        with self.lock:
            self.tokens[token], self.refreshes = user, {r: u for r, u in self.refreshes.items() if u != user}
            self.refreshes[refresh] = user
        return {"access_token": token, "refresh_token": refresh, "token_type": "bearer"}

    def revoke(self, user):
        """Access tokens of this account end now; open sockets stay, as on the published backend."""
        with self.lock:
            self.tokens = {t: u for t, u in self.tokens.items() if u != user}

    def admit(self, path, query):
        user = self.tokens.get(query.get("token", ""))
        if user is None or path not in ("/ws/chat/General", "/ws/chat/1"):
            return 403, None
        return 101, user

    def opened(self, link):
        link.send(json.dumps({
            "type": "connected", "room_id": 1, "room_name": "General", "message": "Connected to General",
            "timestamp": datetime.now().isoformat()}))

    def process(self, link, payload):
        found = json.loads(payload)
        if found.get("type") == "message":
            self.store(link.user, link.user, found["content"], skip=(link,))

    def as_user(self, user, text):
        """The account speaks from another device."""
        return self.store(user, user, text)

    def view(self, row):
        at = datetime.fromtimestamp(row["at"], timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds")
        return {
            "message_id": row["number"], "room_id": 1, "sender": row["name"], "message": row["text"], "message_type": "text",
            "file_url": None, "file_name": None, "file_size": None, "mime_type": None, "timestamp": at, "reactions": [],
            "user_reaction": None}

    def row_frame(self, row):
        return json.dumps({"type": "message", **self.view(row)})

    def refuse_message(self, link, text):
        link.send(json.dumps({"type": "error", "message": text}))

    def http(self, method, path, query, headers, body):
        if path in ("/api/auth/login", "/api/auth/refresh"):
            found = json.loads(body)
            if path.endswith("login"):
                user = found["username"] if PASSWORDS.get(found["username"]) == found["password"] else None
                self.logins += 1
            else:
                user = self.refreshes.get(found["refresh_token"])
            return (200, self.issue(user)) if user else (401, {"detail": "Incorrect username or password"})
        user = self.tokens.get(headers.get("authorization", "").partition(" ")[2])
        if user is None:
            return 401, {"detail": "Could not validate credentials"}
        if path == "/api/auth/me":
            return 200, {"username": user, "id": 1 + sorted(PASSWORDS).index(user), "created_at": "2026-01-01T00:00:00"}
        if path == "/api/rooms":
            return 200, [{"id": 1, "name": "General", "created_at": "2026-01-01T00:00:00", "last_message": None, "unread_count": 0}]
        if path.endswith("/mark-read"):
            return 200, {"message": "Marked 0 messages as read", "read_count": 0}
        if path.startswith("/api/messages/"):
            limit = int(query.get("limit", 50)) if path.endswith("/recent") else None
            status, rows = self.answer_history(
                "%s?%s" % (path, query), lambda: self.told_rows()[-limit:] if limit else self.told_rows())
            return (200, [self.view(row) for row in rows]) if status == 200 else (status, {"detail": "injected"})
        return 404, {"detail": "Not found"}

    def configuration(self, directory, room_extra):
        return (
            '[backends.main]\ndialect = "jwt-rooms"\nurl = "ws://127.0.0.1:%d/ws/chat/{room}"\n'
            'user = "liaison"\npassword = "%s"\n\n[[rooms]]\nname = "lobby"\nbackend = "main"\nupstream_room = "General"\n%s'
            % (self.port, PASSWORDS["liaison"], room_extra))


# MARK: - custom


class Homemade(Scripted):
    """What a company made for itself, known to the bridge by a description alone. The server makes the ids.

    `shape`: "silent" confirms nothing; "ack" answers with its id and our nonce; "echo" sends everything to everybody under
    our nonce, "others" the same but not to its sender; "nameless" has no ids, and its sender alone gets our nonce with it.
    `has_history`: whether the description has the call.
    """

    dialect = "homemade"

    def __init__(self, shape="silent", has_history=True, echo=None, identity="puppet"):
        super().__init__()
        self.shape, self.has_history, self.echo, self.identity = shape, has_history, echo, identity
        # Whether "ack" is told; a lost one is told to nobody.
        self.acks = True
        self.reactions, self.deletions = [], []

    def words(self, payload):
        try:
            found = json.loads(payload)
        except ValueError:
            return ""
        return (found.get("text") or "") if isinstance(found, dict) and found.get("op") == "send" else ""

    def make_id(self, number):
        return "srv-%d" % number

    def process(self, link, payload):
        found = json.loads(payload)
        op, who = found.get("op"), found.get("from") or {}
        if op == "send":
            named = self.shape in ("echo", "others")
            skip = () if self.shape == "echo" else (link,)
            row = self.store(
                who.get("id"), who.get("name"), found["text"], message_id=found["nonce"] if named else None, skip=skip)
            if self.shape == "nameless" and self.tells:
                link.send(json.dumps({**self.view(row), "nonce": found["nonce"]}))
            if self.shape == "ack" and self.acks:
                link.send(json.dumps({"op": "ack", "nonce": found["nonce"], "id": row["id"]}))
        elif op == "react":
            self.reactions.append((found["on"], found["mark"]))
        elif op == "gone":
            self.deletions += found["ids"]
            link.send(json.dumps({"op": "gone", "ids": found["ids"], "from": who}))

    def view(self, row):
        view = {
            "op": "msg", "id": row["id"], "from": {"id": row["user"], "name": row["name"]}, "text": row["text"],
            "at": int(row["at"] * 1000)}
        if self.shape == "nameless":
            del view["id"]
        return view

    def row_frame(self, row):
        return json.dumps(self.view(row))

    def tell(self, op, **fields):
        for link in self.live():
            link.send(json.dumps({"op": op, **fields}))

    def http(self, method, path, query, headers, body):
        if path != "/log":
            return 404, {}
        status, rows = self.answer_history(path, lambda: self.told_rows()[-int(query.get("limit", 50)):])
        return (200, {"rows": [self.view(row) for row in rows]}) if status == 200 else (status, {"error": "injected"})

    def description(self):
        message = {"op": "send", "text": "{{text}}", "from": {"id": "{{sender.id}}", "name": "{{sender.name}}"}}
        if self.shape != "silent":
            message["nonce"] = "{{id}}"
        who = {"sender.id": "/from/id", "sender.name": "/from/name"}
        found = {
            "identity": self.identity,
            "decode": [
                {"when": {"/op": "msg"}, "event": "message",
                 "fields": {"id": "/id", "text": "/text", "at": {"ptr": "/at", "as": "time:unix_ms"}, **who}},
                {"when": {"/op": "react"}, "event": "reaction",
                 "fields": {"target": "/on", "emoji": "/mark", "op": {"const": "add"}, **who}},
                {"when": {"/op": "gone"}, "event": "delete", "fields": {"ids": "/ids", **who}},
                {"when": {"/op": "seen"}, "event": "receipt",
                 "fields": {"state": {"const": "read"}, "ids": "/ids", "by.id": "/from/id", "by.name": "/from/name"}},
                {"when": {"/op": "err"}, "event": "error", "fields": {"code": "/code", "text": "/why", "ref": "/nonce"}},
            ],
            "encode": {
                "message": message,
                "delete": {"op": "gone", "ids": "{{ids}}", "from": {"id": "{{sender.id}}", "name": "{{sender.name}}"}},
                "reaction.add": {
                    "op": "react", "on": "{{target}}", "mark": "{{emoji}}",
                    "from": {"id": "{{sender.id}}", "name": "{{sender.name}}"}},
            },
        }
        if self.shape == "nameless":
            fields = found["decode"][0]["fields"]
            del fields["id"]
            fields["ref"] = "/nonce"
        if self.shape == "ack":
            found["decode"].append({
                "when": {"/op": "ack"}, "event": "receipt",
                "fields": {"state": {"const": "sent"}, "ids": "/id", "ref": "/nonce"}})
        if self.echo:
            found["echo"] = self.echo
        if self.has_history:
            found["history"] = {"get": self.origin + "/log?limit={limit}", "items": "/rows", "order": "oldest-first"}
        return found

    def configuration(self, directory, room_extra):
        with open(os.path.join(directory, "homemade.json"), "w", encoding="utf-8") as file:
            json.dump(self.description(), file)
        return (
            '[dialects.homemade]\nfile = "homemade.json"\n\n[[rooms]]\nname = "lobby"\ndialect = "homemade"\n'
            'url = "ws://127.0.0.1:%d/rt"\n%s' % (self.port, room_extra))


# MARK: - plainjson, envelope, typed


class Plain(Scripted):
    dialect = "plainjson"

    def __init__(self, has_history=True):
        super().__init__()
        self.has_history = has_history

    def words(self, payload):
        try:
            return json.loads(payload).get("text") or ""
        except (ValueError, AttributeError):
            return ""

    def make_id(self, number):
        return new_id()

    def process(self, link, payload):
        found = json.loads(payload)
        if found.get("type") == "text":
            with self.lock:
                again = [row for row in self.rows if row["id"] == found["id"]]
            if not again:
                self.store(found["senderId"], found["senderName"], found["text"], found["id"], skip=(link,))

    def view(self, row):
        return {
            "id": row["id"], "senderId": row["user"], "senderName": row["name"], "text": row["text"], "type": "text",
            "timestamp": datetime.fromtimestamp(row["at"], timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}

    def row_frame(self, row):
        return json.dumps(self.view(row))

    def http(self, method, path, query, headers, body):
        if not path.startswith("/messages/"):
            return 404, {}
        since = query.get("since", "")
        status, rows = self.answer_history(
            path, lambda: [row for row in self.told_rows() if self.view(row)["timestamp"] > since])
        return (200, [self.view(row) for row in rows]) if status == 200 else (status, {})

    def configuration(self, directory, room_extra):
        options = 'options = { history_url = "/messages/{room}?since={since}&limit={limit}" }\n' if self.has_history else ""
        return (
            '[[rooms]]\nname = "lobby"\ndialect = "plainjson"\nurl = "ws://127.0.0.1:%d/ws/{room}"\n%s%s'
            % (self.port, options, room_extra))


class Envelope(Scripted):
    """Sends everything to everybody; to the sender only while `echoes`."""

    dialect = "envelope"

    def __init__(self, echoes=True):
        super().__init__()
        self.echoes = echoes
        # Echoes that are late: links and frames, until `release`.
        self.holds_echoes = False
        self.late = []
        # Words with which the next messages are refused, on wires that have a form for it.
        self.refusing = []

    def words(self, payload):
        try:
            found = json.loads(payload)
        except ValueError:
            return ""
        return found.get("body") or "" if found.get("event") == "message" else ""

    def make_id(self, number):
        return new_id()

    def process(self, link, payload):
        found = json.loads(payload)
        if found.get("event") == "message":
            self.deliver(link, found["sender_id"], found["sender_name"], found["body"], found["message_id"], payload)

    def deliver(self, link, user, name, text, message_id, payload):
        """Such servers know nothing of a message that they had: it goes to everybody once more, and apps know its id."""
        with self.lock:
            if self.refusing:
                return self.error(link, self.refusing.pop(0), message_id)
            if message_id not in [row["id"] for row in self.rows]:
                self.store(user, name, text, message_id, skip=(link,))
            if self.echoes and self.holds_echoes:
                self.late.append((link, payload))
            elif self.echoes:
                link.send(payload, self.opcode)

    def release(self):
        with self.lock:
            late, self.late = self.late, []
        for link, payload in late:
            link.send(payload, self.opcode)
        return len(late)

    def row_frame(self, row):
        return envelope("message", row["user"], row["name"], row["text"], row["id"], row["at"])

    def configuration(self, directory, room_extra):
        return '[[rooms]]\nname = "lobby"\nurl = "ws://127.0.0.1:%d/chat"\n%s' % (self.port, room_extra)


class Typed(Envelope):
    """Neither receipts nor, unless `echoes`, echoes."""

    dialect = "typed"
    opcode = BINARY

    @staticmethod
    def payload(data):
        try:
            found = json.loads(data)
            return found.get("type"), json.loads(base64.b64decode(found["payload"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None, {}

    @staticmethod
    def wrap(kind, payload):
        return json.dumps({"type": kind, "payload": base64.b64encode(json.dumps(payload).encode()).decode()}).encode()

    def words(self, payload):
        kind, found = self.payload(payload)
        return found.get("text") or "" if kind == "chat.message" else ""

    def process(self, link, payload):
        kind, found = self.payload(payload)
        if kind == "chat.message":
            self.deliver(link, found["senderId"], found["senderName"], found["text"], found["id"], payload)

    def row_frame(self, row):
        return self.wrap("chat.message", {
            "id": row["id"], "room": "lobby", "senderId": row["user"], "senderName": row["name"], "text": row["text"],
            "sentAt": row["at"] - APPLE_EPOCH})

    def error(self, link, text, ref=None):
        link.send(self.wrap("chat.error", {"code": "refused", "message": text, **({"ref": ref} if ref else {})}), BINARY)

    def receipt(self, link, message_id):
        link.send(self.wrap("chat.receipt", {"room": "lobby", "ids": [message_id], "state": "sent"}), BINARY)

    def configuration(self, directory, room_extra):
        return (
            '[[rooms]]\nname = "lobby"\ndialect = "typed"\nurl = "ws://127.0.0.1:%d/{room}"\n%s' % (self.port, room_extra))


class Broadcast(Homemade, Envelope):
    """A described backend that sends everything to everybody under our id; to the sender only while `echoes`."""

    dialect = "custom"
    make_id = Envelope.make_id
    configuration = Homemade.configuration

    def __init__(self, echoes=True):
        Homemade.__init__(self, "echo", has_history=False, echo="auto")
        self.echoes, self.holds_echoes, self.late, self.refusing = echoes, False, [], []

    def error(self, link, text, ref=None):
        link.send(json.dumps({"op": "err", "code": 7, "why": text, **({"nonce": ref} if ref else {})}))

    def process(self, link, payload):
        found = json.loads(payload)
        if found.get("op") == "send":
            echo = json.dumps({
                "op": "msg", "id": found["nonce"], "from": found["from"], "text": found["text"], "at": int(time.time() * 1000)})
            self.deliver(link, found["from"]["id"], found["from"]["name"], found["text"], found["nonce"], echo)


# MARK: - The stage


def for_each(make, *names):
    """A scenario that runs once for each name, with the Stage that `make` begins for it; the runner shows the name."""
    def mark(function):
        @functools.wraps(function)
        def run(setting):
            with make(setting.wire) as stage:
                result = function(stage)
                stage.bridge.check_alive()
                return result
        run.wires = list(names)
        return run
    return mark


class Stage:
    """A scripted backend and a bridge with #lobby on it. Everything that it started ends with it."""

    def __init__(self, backend):
        self.backend = backend
        self.stack = contextlib.ExitStack()
        self.directory = tempfile.mkdtemp(prefix="chatbridge-")
        self.stack.callback(shutil.rmtree, self.directory, True)
        self.stack.callback(backend.stop)
        self.bridge = None
        self.options = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, room_extra="", more="", linked=True, **options):
        """Started again without arguments it has the same configuration, and the state that the last one left."""
        self.options = dict(room_extra=room_extra, more=more, **options)
        return self.again(linked)

    def again(self, linked=True):
        options = dict(self.options)
        text = self.backend.configuration(self.directory, CALM + options.pop("room_extra")) + "\n" + options.pop("more")
        before = len(self.backend.sockets)
        self.bridge = Bridge({}, tables=text, directory=self.directory, **options)
        self.stack.callback(self.bridge.stop)
        if linked:
            self.backend.wait_link(before + 1)
            wait_until(lambda: self.bridge.log_entries("upstream-up"), lambda: "linked; " + self.bridge.log()[-1500:])
        return self.bridge

    def kill(self):
        self.bridge.process.send_signal(signal.SIGKILL)
        self.bridge.process.wait()
        wait_until(lambda: not self.backend.live(), "the old sockets are gone")

    def irc(self, nick, join="#lobby", caps=ASKING):
        client = IRC(self.bridge.port, nick, caps=caps, join=[join] if join else [])
        self.stack.callback(client.close)
        return client

    def log_in(self, name, nick=None, caps=ASKING):
        return log_in_as(self, name, "secret", nick or name, "#lobby", caps=caps)


def own_account(name="alice"):
    """An account of the bridge with a login of its own upstream."""
    return account(
        name, "secret",
        'upstream = { lobby = { type = "login", user = "%s", password = "%s" } }' % (name, PASSWORDS[name]))


def holds_for(seconds, condition, what, *clients):
    """Something stays true for a while. What comes for the clients meanwhile is taken in."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for client in clients:
            client.drain()
        assert condition(), what() if callable(what) else what
        time.sleep(0.02)


def told(client, words):
    """Lines by which the bridge tells a client something about a message of its own; not that it is still on its way."""
    client.drain()
    return [
        line.raw for line in client.lines
        if line.command in ("FAIL", "WARN", "NOTE", "NOTICE") and words in line.raw and "QUEUED" not in line.raw
    ]


def is_doubtful(line):
    """Whether a line says that nobody knows, rather than that a message did not arrive."""
    return re.search(r"know|whether|may|might|doubt|uncertain", line) is not None
