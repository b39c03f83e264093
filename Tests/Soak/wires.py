"""The wires of the soak's backends: frames, calls over HTTP and tokens, each as the real servers have them.

    typed      payloads in base64, ids from the sender; confirms with chat.receipt, sends the author nothing back; at
               the handshake it sends the newest messages as chat.history
    envelope   ids from the sender, everything to everybody, the author included; keeps nothing
    swiftchat  ids and times from the server, everything to everybody, the author included; keeps nothing
    plainjson  ids from the sender, whole seconds, nothing back; in one room an ack for each message, in the other none;
               the history over HTTP
    jwt-rooms  numbers from the server, whole seconds, tokens in the address, answers nothing to a message; the history
               over HTTP. In one room the socket ends with its token, in the other it outlives it
    directus   numbers from the server, an answer and an event for each row; the login is a frame and ends on the open
               socket; the history comes with the subscription, and by queries
    custom     made up: tokens over HTTP; in one room the server's numbers and an ack that names them and our reference,
               the history over HTTP; in the other the message comes back under our id, the history by a frame
    home       the home-grown backend of Tests/Backends/shapes.py: an ack with the server's number and our nonce, the
               history over HTTP in pages
    shapes     the others there, a room each; they keep nothing, and number messages themselves. An echo with our id beside
               that number, an echo without, Socket.IO's frames, and Phoenix's with a reply to each

An id of the sender's that comes again is logged as such and is no second message: `typed` and `plainjson` confirm it again
and show it to nobody, the others send it to everybody again, as such servers do.
"""

import asyncio
import base64
import datetime
import functools
import hashlib
import hmac
import json
import os
import sys
import time
import urllib.parse
import uuid

from journal import Journal, read
from plan import TOPICS, WIRES
from relay import BINARY, CLOSE, MAGIC, PING, PONG, TEXT, FrameReader, frame, new_id

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Backends"))
from shapes import SHAPES, uid  # noqa: E402

# Seconds from 1970 to 2001, where two of the wires begin to count.
REFERENCE_DATE = 978307200
# The newest ones that a history has that is sent unasked: as many as the relay takes.
HISTORY = 1000
PASSWORD = "upstream-77ab"


def person_id(name):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "soak:" + name)).upper()


def milliseconds():
    return time.time_ns() // 1_000_000


def iso(at, timespec, zone="Z"):
    return datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc).replace(tzinfo=None).isoformat(
        timespec=timespec) + zone


def text_frame(fields):
    return frame(json.dumps(fields, ensure_ascii=False))


class Wire:
    """What all have in common: HTTP answers, the handshake, pings."""

    def __init__(self, backend, logs):
        self.backend = backend
        self.rooms = backend.rooms

    async def watch(self):
        """What happens by itself."""

    def expire(self, all_of_them):
        """No tokens here."""

    # -- HTTP

    def answer(self, link, fields, status="200 OK"):
        body = json.dumps(fields, ensure_ascii=False).encode() if fields is not None else b""
        link.write(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            status.encode(), len(body), body))

    def request(self, link, method, target, fields, body):
        address = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(address.query))
        path = [urllib.parse.unquote(part) for part in address.path.strip("/").split("/")]
        if fields.get("upgrade", "").lower() == "websocket":
            room, status = self.enter(link, path, query, fields)
            if room is None and status:
                return self.answer(link, {"detail": "no"}, status)
            accept = base64.b64encode(hashlib.sha1(fields["sec-websocket-key"].encode() + MAGIC).digest()).decode()
            link.write((
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Accept: %s\r\n\r\n" % accept).encode())
            link.reader = FrameReader()
            if room is not None:
                self.join(link, room)
            return None
        return self.call(link, method, path, query, fields, json.loads(body) if body else {})

    def enter(self, link, path, query, fields):
        """(room, status): the room of a handshake; None and a status when it is refused, None and "" when none is named."""
        room = self.rooms.get(path[-1])
        return room, "" if room else "404 Not Found"

    def join(self, link, room):
        link.room = room
        self.opened(link, room)
        room.links.add(link)

    def opened(self, link, room):
        """Before the link hears what is said."""

    def call(self, link, method, path, query, fields, body):
        self.answer(link, {"detail": "no such call"}, "404 Not Found")

    # -- Frames

    def lies_about(self, opcode, payload):
        """Whether a hanging backend leaves this frame lying about.

        Where there is no history, a ping's answer is the last word about what came before it, so it waits its turn. Where
        there is one, the connection answers it and the backend has not looked at anything yet.
        """
        if opcode in (TEXT, BINARY):
            return self.is_message(payload)
        return opcode == PING and not self.has_history

    has_history = True
    # Whether what lay about is gone with its connection. Where nothing settles what became of a message, one that is taken
    # late stands behind those that went over the next connection, and nobody could help it.
    forgets_the_gone = False

    def is_message(self, payload):
        return True

    def frame(self, link, opcode, payload):
        if opcode in (TEXT, BINARY):
            try:
                self.received(link, opcode, payload)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self.backend.complain(repr(error), payload)
        elif opcode == PING:
            self.ping(link, payload)
        elif opcode == CLOSE:
            link.write(frame(payload[:2], CLOSE))
            link.close()

    def ping(self, link, payload):
        link.write(frame(payload, PONG))


class Typed(Wire):
    def __init__(self, backend, logs):
        super().__init__(backend, logs)
        self.reads = Journal(os.path.join(logs, "typed.reads"))

    def wrap(self, kind, payload):
        inner = base64.b64encode(json.dumps(payload).encode()).decode()
        return frame(json.dumps({"type": kind, "payload": inner}), BINARY)

    def payload(self, room, entry):
        return {
            "id": entry["id"], "room": room.name, "senderId": entry["sender_id"], "senderName": entry["sender"],
            "text": entry["text"], "sentAt": entry["said_at"] / 1000 - REFERENCE_DATE,
        }

    def opened(self, link, room):
        link.write(self.wrap("chat.history", {
            "room": room.name, "messages": [self.payload(room, entry) for entry in room.messages[-HISTORY:]],
        }))

    def received(self, link, opcode, payload):
        fields = json.loads(payload)
        kind, fields = fields["type"], json.loads(base64.b64decode(fields["payload"]))
        if kind == "chat.receipt" and fields["state"] == "read":
            self.reads.append(t=milliseconds(), room=fields["room"], reader=fields["senderName"], ids=fields["ids"])
        if kind != "chat.message":
            return
        entry, is_new = link.room.log(
            fields["id"], fields["senderName"], fields["senderId"], fields["text"],
            round((fields["sentAt"] + REFERENCE_DATE) * 1000), link)
        link.write(self.wrap("chat.receipt", {"room": link.room.name, "ids": [fields["id"]], "state": "sent"}))
        if is_new:
            link.room.tell(self.wrap("chat.message", self.payload(link.room, entry)), but=link)

    def say(self, room, person, text):
        entry, _ = room.log(new_id(), room.plan.people[person], person_id(person), text)
        room.tell(self.wrap("chat.message", self.payload(room, entry)))


class Envelope(Wire):
    has_history = False

    def shown(self, entry):
        return text_frame({
            "event": "message", "message_id": entry["id"], "sender_id": entry["sender_id"],
            "sender_name": entry["sender"], "body": entry["text"], "sent_at": entry["said_at"] / 1000,
        })

    def received(self, link, opcode, payload):
        fields = json.loads(payload)
        if fields["event"] == "message":
            entry, _ = link.room.log(
                fields["message_id"], fields["sender_name"], fields["sender_id"], fields["body"],
                round(fields["sent_at"] * 1000), link)
            link.room.tell(self.shown(entry))

    def say(self, room, person, text):
        entry, _ = room.log(new_id(), room.plan.people[person], person_id(person), text)
        room.tell(self.shown(entry))


class SwiftChat(Wire):
    has_history = False
    forgets_the_gone = True

    def shown(self, entry):
        return text_frame({
            "id": entry["id"], "date": entry["said_at"] / 1000 - REFERENCE_DATE, "message": entry["text"],
            "user": entry["sender"], "userID": entry["sender_id"],
        })

    def received(self, link, opcode, payload):
        if opcode == TEXT:
            fields = json.loads(payload)
            entry, _ = link.room.log(new_id(), fields["user"], fields["userID"], fields["message"], None, link)
            link.room.tell(self.shown(entry))

    def say(self, room, person, text):
        entry, _ = room.log(new_id(), room.plan.people[person], person_id(person), text)
        room.tell(self.shown(entry))


class PlainJSON(Wire):
    def shown(self, room, entry):
        return {
            "id": entry["id"], "senderId": entry["sender_id"], "senderName": entry["sender"], "text": entry["text"],
            "timestamp": iso(entry["said_at"], "seconds"), "type": "text", "conversationId": room.name,
        }

    def received(self, link, opcode, payload):
        fields, room = json.loads(payload), link.room
        if fields["type"] != "text":
            return
        at = round(datetime.datetime.fromisoformat(fields["timestamp"].replace("Z", "+00:00")).timestamp() * 1000)
        entry, is_new = room.log(fields["id"], fields["senderName"], fields["senderId"], fields["text"], at, link)
        if room.plan.kind == "acks":
            link.write(text_frame({"type": "ack", "messageId": entry["id"]}))
        if is_new:
            room.tell(text_frame(self.shown(room, entry)), but=link)

    def is_message(self, payload):
        return b'"text"' in payload

    def say(self, room, person, text):
        entry, _ = room.log(new_id(), room.plan.people[person], person_id(person), text)
        room.tell(text_frame(self.shown(room, entry)))

    def call(self, link, method, path, query, fields, body):
        if path[0] != "messages":
            return super().call(link, method, path, query, fields, body)
        room = self.rooms[path[1]]
        # By when the server took them, in the whole seconds of the wire.
        since = datetime.datetime.fromisoformat(query["since"].replace("Z", "+00:00")).timestamp() * 1000
        found = [entry for entry in room.messages if entry["at"] - entry["at"] % 1000 > since]
        return self.answer(link, [self.shown(room, entry) for entry in found[-int(query["limit"]):]])


# MARK: - Wires with tokens


class Tokens:
    """Access tokens that say by themselves whose they are and when they end; and what is known of them, on file."""

    def __init__(self, path, seed, lifetime, keeps_one=False, serves_once=True):
        self.secret = b"soak %d" % seed
        self.lifetime, self.keeps_one, self.serves_once = lifetime, keeps_one, serves_once
        self.revoked_before, self.refresh, self.count = 0, {}, 0
        for entry in read(path):
            self.count += 1
            self.apply(entry)
        self.journal = Journal(path)

    def apply(self, entry):
        what = entry["what"]
        if what == "issued":
            if self.keeps_one:
                self.refresh = {token: user for token, user in self.refresh.items() if user != entry["user"]}
            self.refresh[entry["token"]] = entry["user"]
        elif what == "used":
            self.refresh.pop(entry["token"], None)
        else:
            self.revoked_before = entry["t"]
            if what == "expire-all":
                self.refresh.clear()

    def note(self, **entry):
        self.count += 1
        self.journal.append(**entry)
        self.apply(entry)

    def issue(self, user):
        """(access, refresh)"""
        now = milliseconds()
        body = {"sub": user, "iat_ms": now, "exp": int(now / 1000 + self.lifetime), "jti": "%d.%d" % (self.count, now)}
        parts = [_unpadded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, body)]
        signed = ".".join(parts)
        access = signed + "." + _unpadded(hmac.new(self.secret, signed.encode(), hashlib.sha256).digest())
        refresh = hashlib.sha256(b"%d %s %d" % (now, self.secret, self.count)).hexdigest()
        self.note(what="issued", user=user, token=refresh)
        return access, refresh

    def renew(self, refresh):
        """(access, refresh); None: it serves no more."""
        user = self.refresh.get(refresh)
        if user is None:
            return None
        if self.serves_once:
            self.note(what="used", token=refresh)
        return self.issue(user)

    def check(self, access):
        """(user, when it ends in milliseconds); None: refused."""
        try:
            signed, _, mark = access.rpartition(".")
            if mark != _unpadded(hmac.new(self.secret, signed.encode(), hashlib.sha256).digest()):
                return None
            body = signed.split(".")[1]
            body = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, IndexError, AttributeError):
            return None
        if body["exp"] * 1000 <= milliseconds() or body["iat_ms"] <= self.revoked_before:
            return None
        return body["sub"], body["exp"] * 1000

    def expire(self, all_of_them):
        self.note(what="expire-all" if all_of_them else "expire", t=milliseconds())


def _unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bearer(fields):
    word, _, token = fields.get("authorization", "").partition(" ")
    return token if word.lower() == "bearer" else ""


class JWTRooms(Wire):
    lifetime = WIRES["jwt-rooms"].token

    def __init__(self, backend, logs):
        super().__init__(backend, logs)
        self.tokens = Tokens(os.path.join(logs, "jwt-rooms.tokens"), backend.seed, self.lifetime, keeps_one=True)
        self.numbers = {room.plan.number: room for room in self.rooms.values()}

    def expire(self, all_of_them):
        self.tokens.expire(all_of_them)

    async def watch(self):
        while True:
            await asyncio.sleep(0.1)
            for room in self.rooms.values():
                for link in list(room.links) if room.plan.kind == "strict" else ():
                    if self.tokens.check(link.data["token"]) is None and not link.transport.is_closing():
                        link.write(frame(b"\x03\xf0Invalid authentication token", CLOSE))
                        link.close()

    def room(self, word):
        return self.numbers.get(int(word)) if word.isdigit() else self.rooms.get(word.lower())

    def enter(self, link, path, query, fields):
        room, token = self.room(path[-1]), query.get("token", "")
        if room is None or self.tokens.check(token) is None:
            return None, "403 Forbidden"
        link.data["token"] = token
        return room, ""

    def opened(self, link, room):
        link.write(text_frame({
            "type": "connected", "room_id": room.plan.number, "room_name": room.name,
            "message": "Connected to " + room.name, "timestamp": iso(milliseconds(), "microseconds", ""),
        }))

    def shown(self, room, entry):
        return {
            "room_id": room.plan.number, "message_id": entry["id"], "sender": entry["sender"], "message": entry["text"],
            "message_type": "text", "file_url": None, "file_name": None, "file_size": None, "mime_type": None,
            "timestamp": iso(entry["said_at"], "seconds", ""), "reactions": [], "user_reaction": None,
        }

    def received(self, link, opcode, payload):
        fields, room = json.loads(payload), link.room
        if fields["type"] == "message":
            name = room.plan.account
            entry, _ = room.log(self.backend.new_number(), name, name, fields["content"], None, link)
            room.tell(text_frame({"type": "message", **self.shown(room, entry)}), but=link)

    def is_message(self, payload):
        return b'"content"' in payload

    def say(self, room, person, text):
        name = room.plan.people[person]
        entry, _ = room.log(self.backend.new_number(), name, name, text)
        room.tell(text_frame({"type": "message", **self.shown(room, entry)}))

    def pair(self, link, pair):
        if pair is None:
            return self.answer(link, {"detail": "Invalid or expired refresh token"}, "401 Unauthorized")
        return self.answer(link, {"access_token": pair[0], "refresh_token": pair[1], "token_type": "bearer"})

    def call(self, link, method, path, query, fields, body):
        if path[:2] == ["api", "auth"] and path[2] in ("login", "refresh"):
            if path[2] == "refresh":
                return self.pair(link, self.tokens.renew(body["refresh_token"]))
            if body["password"] != PASSWORD:
                return self.answer(link, {"detail": "Incorrect username or password"}, "401 Unauthorized")
            return self.pair(link, self.tokens.issue(body["username"]))
        known = self.tokens.check(bearer(fields))
        if known is None:
            return self.answer(link, {"detail": "Could not validate credentials"}, "401 Unauthorized")
        if path == ["api", "auth", "me"]:
            return self.answer(link, {"username": known[0], "id": 1, "created_at": "2026-01-01T00:00:00"})
        if path == ["api", "rooms"]:
            return self.answer(link, [
                {"name": room.name, "id": number, "created_at": "2026-01-01T00:00:00", "last_message": None,
                 "unread_count": 0} for number, room in self.numbers.items()
            ])
        if path[:2] == ["api", "messages"]:
            room = self.room(path[2])
            rows = [self.shown(room, entry) for entry in room.messages]
            if len(path) > 3:
                # As the real one: newest first by whole seconds, those of one second in order, cut, turned round.
                rows.sort(key=lambda row: row["timestamp"], reverse=True)
                rows = rows[:int(query.get("limit", 50))][::-1]
            return self.answer(link, rows)
        if path[-1] == "mark-read":
            return self.answer(link, {"message": "Marked 0 messages as read", "read_count": 0})
        return super().call(link, method, path, query, fields, body)


class Directus(Wire):
    lifetime = WIRES["directus"].token
    # Seconds that a socket may stay without a valid login.
    patience = 30

    def __init__(self, backend, logs):
        super().__init__(backend, logs)
        self.tokens = Tokens(os.path.join(logs, "directus.tokens"), backend.seed, self.lifetime)
        self.open = set()

    def expire(self, all_of_them):
        self.tokens.expire(all_of_them)

    def enter(self, link, path, query, fields):
        if path != ["websocket"]:
            return None, "404 Not Found"
        self.open.add(link)
        link.data.update(is_greeted=False, token=None, expired=False, until=time.monotonic() + self.patience, subs={})
        return None, ""

    async def watch(self):
        while True:
            await asyncio.sleep(0.1)
            for link in list(self.open):
                if link.transport.is_closing():
                    self.open.discard(link)
                    continue
                data = link.data
                if data["token"] and not data["expired"] and self.tokens.check(data["token"]) is None:
                    data.update(expired=True, until=time.monotonic() + self.patience)
                    self.refuse(link, "auth", "TOKEN_EXPIRED", "Token expired.")
                if (data["expired"] or not data["is_greeted"]) and time.monotonic() > data["until"]:
                    self.refuse(link, "auth", "AUTH_TIMEOUT", "Authentication timed out.")
                    link.close()

    def refuse(self, link, area, code, words, uid=None):
        error = {"type": area, "status": "error", "error": {"code": code, "message": words}}
        link.write(text_frame({**error, **({"uid": uid} if uid is not None else {})}))

    def ping(self, link, payload):
        """It does not answer the protocol's ping."""

    def is_message(self, payload):
        return b'"action":"create"' in payload

    @staticmethod
    def person(name, key):
        return {"id": key, "first_name": name, "last_name": None}

    def row(self, room, entry):
        return {
            "id": entry["id"], "status": "published", "user_created": self.person(entry["sender"], entry["sender_id"]),
            "date_created": iso(entry["said_at"], "milliseconds"), "date_updated": None, "room": room.name,
            "text": entry["text"], "reply_to": None, "file": None,
            **({"sender_name": entry["alias"], "client_id": entry.get("client_id")}
               if room.plan.kind == "columns" else {}),
        }

    def select(self, query):
        """Rows that pass the filter, newest first; only what the relay asks for is understood."""
        rows = [(entry["at"], entry["id"], self.row(room, entry))
                for room in self.rooms.values() for entry in room.messages]
        for condition in query.get("filter", {}).get("_and", []):
            (field, test), = condition.items()
            (operator, value), = test.items()
            rows = [row for row in rows if {
                "_eq": lambda got: got == value, "_lt": lambda got: got < value, "_gt": lambda got: got > value,
            }[operator](row[2][field])]
        assert query["sort"] == ["-date_created", "-id"], query
        rows.sort(key=lambda row: (row[2]["date_created"], row[1]), reverse=True)
        limit = query.get("limit", 100)
        return [row[2] for row in (rows if limit < 0 else rows[:limit])]

    def received(self, link, opcode, payload):
        fields, data = json.loads(payload), link.data
        kind, uid = fields["type"], fields.get("uid")
        if kind == "auth":
            if self.tokens.check(fields.get("access_token")) is None:
                self.refuse(link, "auth", "AUTH_FAILED", "Authentication failed.", uid)
                return link.close()
            data.update(is_greeted=True, expired=False, token=fields["access_token"])
            return link.write(text_frame({"type": "auth", "status": "ok", **({"uid": uid} if uid else {})}))
        if not data["is_greeted"]:
            self.refuse(link, "auth", "AUTH_FAILED", "Authentication handshake failed.")
            return link.close()
        if kind == "ping":
            return link.write(text_frame({"type": "pong", **({"uid": uid} if uid else {})}))
        if kind not in ("subscribe", "items"):
            return None
        if data["expired"] or self.tokens.check(data["token"]) is None:
            return self.refuse(link, kind, "FORBIDDEN", "You don't have permission to access this.", uid)
        if kind == "subscribe":
            data["subs"][uid] = fields["query"]
            link.write(text_frame({
                "type": "subscription", "event": "init", "data": self.select(fields["query"]), "uid": uid}))
        elif fields["action"] == "read":
            link.write(text_frame({"type": "items", "data": self.select(fields["query"]), "uid": uid}))
        elif fields["action"] == "create":
            row = fields["data"]
            room = self.rooms[row["room"]]
            name = room.plan.account
            entry, _ = room.log(
                self.backend.new_number(), name, person_id(name), row["text"], None, link, row.get("sender_name"),
                client_id=row.get("client_id"))
            answer = text_frame({"type": "items", "data": self.row(room, entry), "uid": uid})
            # Answer and event come in either order.
            if entry["id"] % 2:
                link.write(answer)
            self.emit(room, entry)
            if not entry["id"] % 2:
                link.write(answer)
        return None

    def emit(self, room, entry):
        for link in self.open:
            data = link.data
            if data["token"] is None or data["expired"] or self.tokens.check(data["token"]) is None:
                continue
            for uid, query in data["subs"].items():
                if {"room": {"_eq": room.name}} in query["filter"]["_and"]:
                    link.write(text_frame({
                        "type": "subscription", "event": "create", "data": [self.row(room, entry)], "uid": uid}))

    def say(self, room, person, text):
        name = room.plan.people[person]
        entry, _ = room.log(self.backend.new_number(), name, person_id(name), text)
        self.emit(room, entry)

    def call(self, link, method, path, query, fields, body):
        def pair(found):
            if found is None:
                return self.answer(link, {"errors": [{
                    "message": "Invalid user credentials.", "extensions": {"code": "INVALID_CREDENTIALS"}}]},
                    "401 Unauthorized")
            return self.answer(link, {"data": {
                "expires": self.lifetime * 1000, "refresh_token": found[1], "access_token": found[0]}})
        if path == ["auth", "login"]:
            return pair(self.tokens.issue(body["email"]) if body["password"] == PASSWORD else None)
        if path == ["auth", "refresh"]:
            return pair(self.tokens.renew(body["refresh_token"]))
        known = self.tokens.check(bearer(fields))
        if known is None:
            return pair(None)
        if path == ["users", "me"]:
            return self.answer(link, {"data": self.person(known[0], person_id(known[0]))})
        return super().call(link, method, path, query, fields, body)


class Custom(Wire):
    lifetime = WIRES["custom"].token

    def __init__(self, backend, logs):
        super().__init__(backend, logs)
        self.tokens = Tokens(os.path.join(logs, "custom.tokens"), backend.seed, self.lifetime, serves_once=False)

    def expire(self, all_of_them):
        self.tokens.expire(all_of_them)

    def enter(self, link, path, query, fields):
        if self.tokens.check(bearer(fields)) is None:
            return None, "401 Unauthorized"
        return super().enter(link, path, query, fields)

    def join(self, link, room):
        # Nobody hears anything before they asked to.
        link.room = room

    def shown(self, entry):
        return {
            "id": entry["id"], "who": {"key": entry["sender_id"], "label": entry["sender"]}, "words": entry["text"],
            "when": entry["said_at"],
        }

    def news(self, room, entry):
        return text_frame({"op": "said", "place": room.name, "what": self.shown(entry)})

    def received(self, link, opcode, payload):
        fields, room = json.loads(payload), link.room
        if fields["op"] == "enter":
            link.write(text_frame({"op": "entered", "place": room.name}))
            room.links.add(link)
        elif fields["op"] == "log":
            found = [entry for entry in room.messages if entry["at"] < (fields.get("before") or 1 << 60)]
            link.write(text_frame({
                "op": "logged", "place": room.name, "ref": fields.get("ref"),
                "rows": [self.shown(entry) for entry in found[-fields["limit"]:]],
            }))
        elif fields["op"] == "say" and link in room.links:
            who = fields["as"]
            if room.plan.kind == "ack":
                entry, _ = room.log(self.backend.new_number(), who["label"], who["key"], fields["words"], None, link)
                link.write(text_frame({"op": "taken", "tag": fields["tag"], "id": entry["id"], "place": room.name}))
                room.tell(self.news(room, entry), but=link)
            else:
                entry, _ = room.log(fields["tag"], who["label"], who["key"], fields["words"], None, link)
                room.tell(self.news(room, entry))

    def is_message(self, payload):
        return b'"say"' in payload

    def say(self, room, person, text):
        number = self.backend.new_number() if room.plan.kind == "ack" else new_id()
        entry, _ = room.log(number, room.plan.people[person], person_id(person), text)
        room.tell(self.news(room, entry))

    def call(self, link, method, path, query, fields, body):
        def keys(found):
            if found is None:
                return self.answer(link, {"why": "no"}, "401 Unauthorized")
            return self.answer(link, {"key": found[0], "renew": found[1], "seconds": self.lifetime})
        if path == ["keys"]:
            return keys(self.tokens.issue(body["who"]) if body["word"] == PASSWORD else None)
        if path == ["keys", "renew"]:
            return keys(self.tokens.renew(body["renew"]))
        if self.tokens.check(bearer(fields)) is None:
            return keys(None)
        if path[0] == "log":
            room = self.rooms[path[1]]
            before = int(query["before"]) if query.get("before") else 1 << 60
            found = [entry for entry in room.messages if entry["at"] < before][-int(query["limit"]):]
            return self.answer(link, {"rows": [self.shown(entry) for entry in found[::-1]]})
        return super().call(link, method, path, query, fields, body)


# MARK: - Wires of learned descriptions


class Shaped(Wire):
    """Each room has a shape of its own, whose log and links are the room's."""

    def __init__(self, backend, logs):
        super().__init__(backend, logs)
        for room in self.rooms.values():
            shape = room.shape = SHAPES[room.plan.kind](room.name, room.plan.account)
            shape.log, shape.links = [self.row(entry) for entry in room.messages], room.links
            shape.topic = TOPICS.get(room.plan.wire.name)
            shape.post = functools.partial(self.post, room)

    @staticmethod
    def row(entry):
        return {"id": entry["id"], "name": entry["sender"], "text": entry["text"], "nonce": entry["nonce"], "reply": None,
                "at": entry["said_at"], "files": []}

    def post(self, room, name, text, nonce=None, reply=None, files=(), link=None):
        entry, _ = room.log(self.backend.new_number(), name, uid(name), text, None, link, nonce=nonce)
        room.shape.log.append(self.row(entry))
        return room.shape.log[-1]

    def enter(self, link, path, query, fields):
        # Phoenix has topics, such as room:NAME.
        return super().enter(link, [path[-1].removeprefix("room:")], query, fields)

    def opened(self, link, room):
        link.name, link.send = None, lambda text: link.write(frame(text))
        room.shape.opened(link)

    def received(self, link, opcode, payload):
        link.room.shape.received(link, payload.decode())

    def say(self, room, person, text):
        room.shape.say(room.plan.people[person], text)


class Home(Shaped):
    def is_message(self, payload):
        return b'"post"' in payload

    def call(self, link, method, path, query, fields, body):
        status, fields = self.rooms[path[1]].shape.call(link, method, path, query, fields, body)
        self.answer(link, fields, status)


class Shapes(Shaped):
    has_history = False
    forgets_the_gone = True


WIRE_CLASSES = {
    "typed": Typed, "envelope": Envelope, "swiftchat": SwiftChat, "plainjson": PlainJSON, "jwt-rooms": JWTRooms,
    "directus": Directus, "custom": Custom, "home": Home, "shapes": Shapes,
}
