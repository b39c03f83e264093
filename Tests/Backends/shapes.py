#!/usr/bin/env python3
"""Chat backends that nobody has: each of a shape that described dialects are to connect. Standard library alone.

    shapes.py --shape NAME

    home      token in the first frame; one frame tells the log-in, who one is, the topic and the members; an ack with the
              sender's nonce and the server's id, and no echo; heartbeat; refusals with and without nonce; "read up to"; presence,
              edits, deletions, reactions, topic; paged history over HTTP and files, both behind the token
    echo      everything to everybody, with the sender's own id beside the server's
    plain     the same without it
    socketio  42["message",{…}] of Socket.IO, with its open, connect and ping packets
    numbered  the same with numbered acknowledgements in place of an echo: 42<n>["message",{…}] is answered by 43<n>[{…}], and the
              answer to "join" has the last messages
    rows      rows of a collection for messages, as Directus has them: events carry lists of rows, and each request is answered by
              its uid, before or behind the event that it caused
    phoenix   [join_ref, ref, topic, event, payload], with replies to each frame

Prints {"port": N} when it listens. Lines on standard input, each answered by a line of JSON:

    log             what was said
    say NAME TEXT   a person speaks
    binary TEXT     a frame of no meaning, and not of text
    links           how many sockets there are
    people          how many of them are in the room
    drop            tears all sockets off
    lose 1|0        messages are taken, and their sender's socket is torn off before it hears of it
    miss 1|0        messages are lost together with their sender's socket
    refuse CODE     the next message is refused
    topic TEXT      home: another topic
    room STATE      home: "missing", "closed" (only read) or "open"
"""

import argparse
import asyncio
import base64
import hashlib
import json
import os
import re
import sys
import time
import urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd"))
from relay import BINARY, CLOSE, MAGIC, PING, PONG, TEXT, FrameReader, frame  # noqa: E402

TOKEN = "home-token-5d1f"
PAGE = 20
USERS = {"dot": "u-11", "ann": "u-12"}


def now():
    return time.time_ns() // 1_000_000


def uid(name):
    return USERS.get(name) or "u-" + hashlib.sha256(name.encode()).hexdigest()[:6]


class Shape:
    """What all have in common: people, numbered messages, and one room. `account` is who an app is that does not say it."""

    def __init__(self, room="lobby", account="dot"):
        self.room, self.account = room, account
        self.log, self.links, self.topic = [], [], "all things"
        self.next_id, self.loses, self.misses, self.refuses = 101, False, False, None

    def find(self, number):
        return next((row for row in self.log if row["id"] == number), None)

    def tell(self, fields, but=None):
        for link in list(self.links):
            if link is not but and link.name:
                link.send(self.wrap(fields))

    def post(self, name, text, nonce=None, reply=None, files=(), link=None):
        self.next_id += 1
        row = {"id": self.next_id, "name": name, "text": text, "nonce": nonce, "reply": reply, "at": now(), "files": list(files)}
        self.log.append(row)
        return row

    def take(self, link, text, nonce, reply=None, files=()):
        """A message of a link: the row, or None when it is refused or its sender is gone."""
        if self.refuses:
            code, self.refuses = self.refuses, None
            self.refuse(link, code, nonce)
            return None
        if self.misses:
            link.tear()
            return None
        row = self.post(link.name, text, nonce, reply, files, link)
        if self.loses:
            link.tear()
            self.tell(self.message(row), but=link)
            return None
        return row

    def say(self, name, text):
        self.tell(self.message(self.post(name, text)))

    def refuse(self, link, code, nonce):
        pass

    def wrap(self, fields):
        return json.dumps(fields)

    def opened(self, link):
        pass

    def gone(self, link):
        pass

    def call(self, link, method, path, query, fields, body):
        return "404 Not Found", {"why": "no such place"}


class Home(Shape):
    state = "open"

    def message(self, row):
        said = {"did": "post", "room": self.room, "id": row["id"], "by": self.person(row["name"]), "body": row["text"], "at": row["at"]}
        if row["reply"]:
            said["re"] = row["reply"]
        if row["files"]:
            said["files"] = row["files"]
        return said

    @staticmethod
    def person(name):
        return {"uid": uid(name), "nick": name}

    def refuse(self, link, code, nonce):
        words = {"slow": "not so fast", "no-room": "nothing of that name", "closed": "it is read-only"}
        said = {"did": "refused", "code": code, "say": words.get(code, "no")}
        if code == "slow":
            said["retry"] = 1
        if code != "lost":
            said["nonce"] = nonce
        link.send(self.wrap(said))

    def received(self, link, text):
        f = json.loads(text)
        do = f["do"]
        if do == "hello":
            if f["token"] != TOKEN:
                link.send(self.wrap({"did": "goodbye", "why": "bad token"}))
                return link.close()
            if self.state == "missing" or f["room"] != self.room:
                return self.refuse(link, "no-room", None)
            link.name = f.get("as", self.account)
            here = sorted({one.name for one in self.links if one.name})
            self.tell({"did": "came", "room": self.room, "who": self.person(link.name)}, but=link)
            return link.send(self.wrap({
                "did": "welcome", "room": self.room, "you": self.person(link.name), "topic": self.topic,
                "members": [{**self.person(name), "state": "here"} for name in here]}))
        if not link.name:
            return link.close()
        by = self.person(link.name)
        if do == "beat":
            link.send(self.wrap({"did": "beat"}))
        elif do == "post" and self.state == "closed":
            self.refuse(link, "closed", f["nonce"])
        elif do == "post":
            row = self.take(link, f["body"], f["nonce"], f.get("re"), f.get("files", ()))
            if row:
                link.send(self.wrap({"did": "took", "room": self.room, "nonce": f["nonce"], "id": row["id"], "at": row["at"]}))
                self.tell(self.message(row), but=link)
        elif do == "typing":
            self.tell({"did": "typing", "room": self.room, "by": by, "on": f["on"]}, but=link)
        elif do == "read":
            self.tell({"did": "read", "room": self.room, "by": by, "upto": f["upto"], "at": now()}, but=link)
        elif do == "react":
            self.tell({"did": "react", "room": self.room, "by": by, "id": f["id"], "emoji": f["emoji"], "on": f["on"]}, but=link)
        elif do in ("edit", "delete") and self.find(f["id"]):
            if do == "edit":
                self.find(f["id"])["text"] = f["body"]
                self.tell({"did": "edit", "room": self.room, "id": f["id"], "body": f["body"], "by": by, "at": now()})
            else:
                self.log.remove(self.find(f["id"]))
                self.tell({"did": "delete", "room": self.room, "id": f["id"], "by": by})
        elif do == "state":
            self.tell({"did": "state", "room": self.room, "who": by, "state": f["state"]}, but=link)

    def gone(self, link):
        self.tell({"did": "went", "room": self.room, "who": self.person(link.name)}, but=link)

    def call(self, link, method, path, query, fields, body):
        if fields.get("authorization") != "Bearer " + TOKEN:
            return "401 Unauthorized", {"why": "no token"}
        if path == ["rooms", self.room, "log"]:
            before = int(query.get("before") or 1 << 60)
            rows = [row for row in self.log if row["id"] < before][-min(int(query.get("limit", PAGE)), PAGE):]
            return "200 OK", {"rows": [
                {"id": row["id"], "by": self.person(row["name"]), "body": row["text"], "at": row["at"], "nonce": row["nonce"],
                 "re": row["reply"], "files": row["files"]} for row in rows[::-1]]}
        if path[0] == "files":
            return "200 OK", {"file": path[-1]}
        return super().call(link, method, path, query, fields, body)


class Echo(Shape):
    own_ids = True

    def message(self, row):
        said = {"type": "message", "channel": self.room, "messageId": row["id"], "userId": uid(row["name"]), "userName": row["name"],
                "content": row["text"], "createdAt": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(row["at"] / 1000)) + ".%03dZ" % (row["at"] % 1000)}
        if self.own_ids and row["nonce"]:
            said["clientId"] = row["nonce"]
        return said

    def received(self, link, text):
        f = json.loads(text)
        if f["type"] == "subscribe":
            link.name = f.get("userName", self.account)
            link.send(self.wrap({"type": "subscribed", "channel": self.room}))
        elif f["type"] == "send":
            row = self.take(link, f["content"], f.get("clientId"))
            if row:
                self.tell(self.message(row))
        elif f["type"] == "typing":
            self.tell({**f, "userId": uid(link.name), "userName": link.name}, but=link)


class Plain(Echo):
    own_ids = False


class SocketIO(Shape):
    def wrap(self, fields):
        fields = dict(fields)
        return "42" + json.dumps([fields.pop("event"), fields])

    def opened(self, link):
        link.send('0{"sid":"x%d","upgrades":[],"pingInterval":2000,"pingTimeout":5000}' % id(link))
        link.ping = asyncio.get_running_loop().call_later(2, self.beat, link)

    def beat(self, link):
        if link in self.links:
            link.send("2")
            link.ping = asyncio.get_running_loop().call_later(2, self.beat, link)

    def message(self, row):
        return {"event": "message", "room": self.room, "id": row["id"], "user": {"id": uid(row["name"]), "name": row["name"]},
                "text": row["text"], "time": row["at"], "tempId": row["nonce"]}

    def received(self, link, text):
        if text == "40":
            link.send('40{"sid":"s%d"}' % id(link))
        if not text.startswith("42"):
            return
        event, f = json.loads(text[2:])
        if event == "join":
            link.name = f.get("name", self.account)
            link.send("42" + json.dumps(["joined", {"room": self.room}]))
        elif event == "message":
            row = self.take(link, f["text"], f["tempId"])
            if row:
                self.tell(self.message(row))
        elif event == "typing":
            self.tell({"event": "typing", "room": self.room, "user": {"id": uid(link.name), "name": link.name}, "typing": f["typing"]}, but=link)


class Numbered(SocketIO):
    def message(self, row):
        said = super().message(row)
        del said["tempId"]
        return said

    def received(self, link, text):
        asked = re.fullmatch(r"42(\d+)(\[.*)", text, re.S)
        if not asked:
            return super().received(link, text)
        event, f = json.loads(asked[2])

        def answer(**fields):
            link.send("43%s%s" % (asked[1], json.dumps([{"status": "ok", **fields}])))
        if event == "join":
            link.name = f.get("name", self.account)
            rows = [self.message(row) for row in self.log[-PAGE:]]
            answer(messages=[{name: value for name, value in row.items() if name not in ("event", "room")} for row in rows])
        elif event == "message":
            row = self.take(link, f["text"], None)
            if row:
                answer(id=row["id"], time=row["at"])
                self.tell(self.message(row), but=link)
        return None


class Rows(Shape):
    """Source: Directus' documentation of its realtime API: authentication, subscriptions, items."""

    def __init__(self, room="messages", account="dot"):
        super().__init__(room, account)

    def tell(self, fields, but=None):
        for link in self.links:
            if link is not but and link.name:
                link.send(self.wrap({**fields, "uid": link.uid}))

    @staticmethod
    def row(row):
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(row["at"] / 1000)) + ".%03dZ" % (row["at"] % 1000)
        return {"id": row["id"], "text": row["text"], "user_created": {"id": uid(row["name"]), "first_name": row["name"]}, "date_created": at}

    def event(self, event, data):
        return {"type": "subscription", "event": event, "data": data}

    def message(self, row):
        return self.event("create", [self.row(row)])

    def received(self, link, text):
        f = json.loads(text)
        if f["type"] == "auth":
            begin, name = f["access_token"][:len(TOKEN)], f["access_token"][len(TOKEN) + 1:]
            if begin != TOKEN:
                return link.send(self.wrap({"type": "auth", "status": "error", "error": {"code": "INVALID_CREDENTIALS", "message": "no such token"}}))
            link.account = name or self.account
            link.beat = asyncio.get_running_loop().call_later(2, self.beat, link)
            return link.send(self.wrap({"type": "auth", "status": "ok"}))
        if not getattr(link, "account", None):
            return link.close()
        if f["type"] == "subscribe" and f["collection"] == self.room:
            link.name, link.uid = link.account, f["uid"]
            rows = [self.row(row) for row in self.log[:-f["query"]["limit"] - 1:-1]]
            link.send(self.wrap({**self.event("init", rows), "uid": link.uid}))
        elif f["type"] == "items" and f["collection"] == self.room:
            self.act(link, f)
        return None

    def beat(self, link):
        if link in self.links:
            link.send(self.wrap({"type": "ping"}))
            link.beat = asyncio.get_running_loop().call_later(2, self.beat, link)

    def act(self, link, f):
        def answer(data):
            return self.wrap({"type": "items", **({"data": data} if data else {}), "uid": f["uid"]})
        if f["action"] == "create":
            row = self.take(link, f["data"]["text"], None)
            if not row:
                return
            # Either may come first.
            if row["id"] % 2:
                link.send(answer(self.row(row)))
            self.tell(self.message(row))
            if not row["id"] % 2:
                link.send(answer(self.row(row)))
        elif f["action"] in ("update", "delete") and self.find(f["id"]):
            row = self.find(f["id"])
            if f["action"] == "update":
                row["text"] = f["data"]["text"]
                self.tell(self.event("update", [self.row(row)]))
                link.send(answer(self.row(row)))
            else:
                self.log.remove(row)
                self.tell(self.event("delete", [row["id"]]))
                link.send(answer(None))


class Phoenix(Shape):
    def wrap(self, fields):
        fields = dict(fields)
        return json.dumps([None, None, "room:" + self.room, fields.pop("event"), fields])

    def message(self, row):
        return {"event": "new_msg", "id": row["id"], "user": {"id": uid(row["name"]), "name": row["name"]}, "body": row["text"],
                "inserted_at": row["at"]}

    def received(self, link, text):
        join, ref, topic, event, f = json.loads(text)

        def reply(response, status="ok"):
            link.send(json.dumps([join, ref, topic, "phx_reply", {"status": status, "response": response}]))
        if event == "heartbeat":
            reply({})
        elif event == "phx_join":
            link.name = f.get("name", self.account)
            reply({"joined": True})
        elif event == "new_msg":
            row = self.take(link, f["body"], ref)
            if row:
                reply({"id": row["id"]})
                self.tell(self.message(row), but=link)
        elif event == "typing":
            self.tell({"event": "typing", "user": {"id": uid(link.name), "name": link.name}, "typing": f["typing"]}, but=link)


SHAPES = {"home": Home, "echo": Echo, "plain": Plain, "socketio": SocketIO, "numbered": Numbered, "rows": Rows, "phoenix": Phoenix}


class Link(asyncio.Protocol):
    def __init__(self, shape):
        self.shape, self.name, self.head, self.reader = shape, None, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        if self in self.shape.links:
            self.shape.links.remove(self)
            if self.name:
                self.shape.gone(self)

    def send(self, text, opcode=TEXT):
        if not self.transport.is_closing():
            self.transport.write(frame(text, opcode))

    def close(self):
        self.transport.write(frame(b"\x03\xe8", CLOSE))
        self.transport.close()

    def tear(self):
        self.transport.abort()

    def data_received(self, data):
        if self.reader is None:
            self.head += data
            head, end, rest = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            self.request(head.decode("latin-1"), rest)
            data = rest if self.reader else b""
        for opcode, payload in self.reader.feed(data) if self.reader else ():
            if opcode == TEXT:
                self.shape.received(self, payload.decode())
            elif opcode == PING:
                self.transport.write(frame(payload, PONG))
            elif opcode == CLOSE:
                self.transport.close()

    def request(self, head, body):
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, _ = first.split(" ")
        address = urllib.parse.urlsplit(target)
        if fields.get("upgrade", "").lower() == "websocket":
            accept = base64.b64encode(hashlib.sha1(fields["sec-websocket-key"].encode() + MAGIC).digest()).decode()
            self.transport.write((
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Accept: %s\r\n\r\n" % accept).encode())
            self.reader = FrameReader()
            self.shape.links.append(self)
            return self.shape.opened(self)
        status, answer = self.shape.call(
            self, method, address.path.strip("/").split("/"), dict(urllib.parse.parse_qsl(address.query)), fields, body)
        text = json.dumps(answer).encode()
        self.transport.write(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            status.encode(), len(text), text))
        self.head = b""
        return None


def obey(shape, line):
    word, _, rest = line.strip().partition(" ")
    if word == "log":
        return shape.log
    if word == "links":
        return len(shape.links)
    if word == "people":
        return sum(link.name is not None for link in shape.links)
    if word == "say":
        name, _, text = rest.partition(" ")
        shape.say(name, text)
    elif word == "binary":
        for link in shape.links:
            link.send(rest.encode(), BINARY)
    elif word == "drop":
        for link in list(shape.links):
            link.tear()
    elif word == "lose":
        shape.loses = rest == "1"
    elif word == "miss":
        shape.misses = rest == "1"
    elif word == "refuse":
        shape.refuses = rest
    elif word == "room":
        shape.state = rest
    elif word == "topic":
        shape.topic = rest
        shape.tell({"did": "topic", "room": shape.room, "topic": rest})
    return True


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", required=True, choices=sorted(SHAPES))
    shape = SHAPES[parser.parse_args().shape]()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Link(shape), "127.0.0.1", 0)
    ended, buffer = asyncio.Event(), b""

    def command():
        nonlocal buffer
        data = os.read(0, 65536)
        if not data:
            loop.remove_reader(0)
            return ended.set()
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            print(json.dumps(obey(shape, line.decode())), flush=True)
        return None

    loop.add_reader(0, command)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
