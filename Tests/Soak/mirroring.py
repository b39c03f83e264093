"""Mirrors of every kind in the soak: their rooms, the tools and the network at the other end, their faults, and the judge.

    wharf    out to a tool of the plain JSON form, which tells a repeated message by its id, and to one like Discord, which cannot
    haven    in by a webhook, whose poster repeats a post until it is taken
    canal    both ways, an IRC network: another relay, with the room `strait`
    isle     both ways, the room `cape`

The rooms have a backend connection of their own, and nobody of the other clients is in them: what is said there says people
upstream, or a mirror. What is there in the end is in files, as README.md says.
"""

import asyncio
import collections
import json
import os
import random
import secrets
import subprocess
import time

from journal import Journal, read
from plan import MIRRORED, Key, compose, find_keys, key_text, read_key
from processes import Process
from proxy import Proxy

SECRET = "5oak-of-the-hook"
POSTER = "Hook-haven"
# Seconds between two posts, and between two tries of one; between two of the mirrors' own faults.
POST_PAUSE, TRY_PAUSE, FAULT_PAUSE = 0.5, 0.3, 4
# Of an answer of a tool, while there are faults.
FATES = {"taken": 86, "429": 5, "reset": 3, "reset taken": 3, "cut": 3}
# So long a tool, or the network, is away at most, in seconds.
AWAY = 3


def milliseconds():
    return time.time_ns() // 1_000_000


# MARK: - A tool


class Tool:
    """A web service that takes posts, and keeps what it shows in a file."""

    def __init__(self, kind, journal, source):
        self.kind, self.journal, self.source = kind, Journal(journal), source
        self.is_hostile = False
        self.ids, self.count = set(), 0
        self.server, self.port, self.writers = None, 0, set()

    @property
    def url(self):
        path = {"json": "/mirror", "discord": "/api/webhooks/1/" + "t" * 16}[self.kind]
        return "http://127.0.0.1:%d%s" % (self.port, path)

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self):
        if self.server:
            self.server.close()
        for writer in self.writers:
            writer.transport.abort()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                await self.answer(json.loads(body), fields, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.writers.discard(writer)
            writer.transport.abort()

    async def answer(self, body, fields, writer):
        fate = self.source.choices(list(FATES), list(FATES.values()))[0] if self.is_hostile else "taken"
        if fate == "429":
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            return
        if fate == "reset":
            raise ConnectionResetError
        answered = fate == "taken"
        if self.kind == "discord":
            texts = [body["content"]]
        else:
            texts = [message["text"] for message in body["messages"] if message["id"] not in self.ids]
            self.ids.update(message["id"] for message in body["messages"])
        if texts:
            self.journal.append(t=milliseconds(), texts=texts, answered=answered)
        if fate == "reset taken":
            raise ConnectionResetError
        self.count += 1
        data = json.dumps({"id": str(self.count)}).encode()
        whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        writer.write(whole[:-5] if fate == "cut" else whole)
        if fate == "cut":
            await writer.drain()
            raise ConnectionResetError

    async def go_away(self, seconds):
        self.stop()
        await asyncio.sleep(seconds)
        await self.start()


# MARK: - All of them


class Mirrors:
    def __init__(self, binary, directory, seed, port_of_backend):
        self.binary, self.directory, self.seed = binary, directory, seed
        self.source = random.Random("mirrors %d" % seed)
        os.mkdir(self.path())
        os.mkdir(self.path("network"))
        self.backend = Proxy(port_of_backend, side="mirrors", journal=Journal(self.path("ends.jsonl")))
        self.network_port = None
        self.network_proxy = Proxy(lambda: self.network_port, side="network", journal=Journal(self.path("ends.jsonl")))
        self.tools = {
            kind: Tool(kind, self.path(kind + ".jsonl"), random.Random("%s %d" % (kind, seed))) for kind in ("json", "discord")}
        self.posts = Journal(self.path("hook.jsonl"))
        self.hook_port = None
        self.number = 1
        self.ends = collections.Counter()
        # When the mirror was in the network's channel for the first time, in milliseconds.
        self.joined = None
        self.tasks = []
        self.is_over = False
        self.network = Process(
            "network", lambda: [binary, "run", "--config", self.path("network.toml")], directory=self.path("network"),
            environment=lambda: {name: value for name, value in os.environ.items() if not name.startswith("CHATBRIDGE")},
            on_line=self.network_said, on_end=self.network_ended)

    def path(self, *names):
        return os.path.join(self.directory, "mirrors", *names)

    @property
    def places(self):
        """Where sockets of the relay lead, beside those of the others: {port: name}."""
        return {
            self.backend.port: "mirrors", self.network_proxy.port: "network",
            **{tool.port: "tools" for tool in self.tools.values()}}

    # MARK: - The configuration

    def configuration(self):
        """Of the relay, to be put behind the others."""
        text = ['[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["hooks"]']
        text.append('[backends.mirrors]\ndialect = "typed"\nurl = "ws://127.0.0.1:%d/{room}"' % self.backend.port)
        # The clock jumps by a day, and what waits when the relay is killed counts its age by it. The messages of mirrors
        # have nobody who could be told that they failed.
        text += [
            '[[rooms]]\nname = "%s"\nbackend = "mirrors"\nqueue = { max_age = "1000h" }' % name
            for name in MIRRORED if name != "strait"]
        late = 'retry = { max_age = "1000h" }'
        text += [
            '[[mirrors]]\nname = "%s"\ntype = "%s"\nrooms = ["wharf"]\nurl = "%s"\n%s' % (kind, kind, tool.url, late)
            for kind, tool in self.tools.items()]
        text.append(
            '[[mirrors]]\nname = "hook"\ntype = "json"\nrooms = ["haven"]\npath = "/hooks/haven"\nsecret = "%s"' % SECRET)
        text.append(
            '[[mirrors]]\nname = "net"\ntype = "irc"\nurl = "irc://127.0.0.1:%d"\nmap = { canal = "#strait" }\n%s\n'
            'messages_per_second = "off"\nsasl = { user = "mirror", password = "%s" }'
            % (self.network_proxy.port, late, SECRET))
        text.append('[[mirrors]]\nname = "across"\ntype = "room"\nrooms = ["isle"]\nto = "cape"\n%s' % late)
        return "\n\n".join(text)

    def network_configuration(self, hashed):
        return "\n\n".join((
            '[server]\nname = "network.soak"\nstate_dir = "%s"' % self.path("network"),
            '[[listeners]]\nbind = "irc://127.0.0.1:0"',
            '[storage]\nurl = "sqlite:chatbridge.db"',
            '[log]\nformat = "json"',
            '[room_defaults]\nbackoff = { min = "200ms", max = "1s" }\nqueue = { max_age = "1h" }\nping = "3s"\n'
            'pong_timeout = "3s"',
            '[limits]\nmessages_per_second = "off"\nupstream_messages_per_second = "off"\n'
            'upstream_connects_per_second = "off"',
            '[[rooms]]\nname = "strait"\ndialect = "typed"\nurl = "ws://127.0.0.1:%d/strait"' % self.backend.port,
            '[[accounts]]\nname = "mirror"\npassword = "%s"\nrelaymsg = true' % hashed)) + "\n"

    # MARK: - The run

    async def prepare(self):
        """Before the relay's configuration is written."""
        for tool in self.tools.values():
            await tool.start()
        hashed = subprocess.run(
            [self.binary, "hash-password", "--iterations=4096"], input=SECRET + "\n", capture_output=True, text=True,
            check=True).stdout.strip()
        with open(self.path("network.toml"), "w", encoding="utf-8") as file:
            file.write(self.network_configuration(hashed))
        os.chmod(self.path("network.toml"), 0o600)

    def start(self):
        self.backend.start()
        self.network_proxy.start()
        self.network.start()
        loop = asyncio.get_running_loop()
        self.tasks = [loop.create_task(self.post()), loop.create_task(self.trouble())]

    def network_said(self, line):
        if '"event":"listening"' in line:
            self.network_port = int(json.loads(line)["address"].rsplit(":")[-1])
        with open(self.path("network.log"), "a", encoding="utf-8") as file:
            print(line, file=file)

    def network_ended(self, _pid, _code, _own):
        self.network_port = None

    def relay_said(self, line):
        if '"event":"listening-http"' in line:
            self.hook_port = int(json.loads(line)["address"].rsplit(":")[-1])
        elif '"event":"mirror-joined"' in line and self.joined is None:
            self.joined = milliseconds()
        elif '"event":"mirror-connected"' in line:
            # What was under way when the connection before ended may come twice.
            self.ends["network"] += 1

    def relay_ended(self):
        self.hook_port = None
        self.ends["relay"] += 1

    def begin(self):
        for tool in self.tools.values():
            tool.is_hostile = True

    def peace(self):
        self.is_over = True
        for tool in self.tools.values():
            tool.is_hostile = False

    async def trouble(self):
        while True:
            await asyncio.sleep(self.source.expovariate(1 / FAULT_PAUSE))
            if self.is_over:
                return
            what = self.source.choice(("tool", "tool", "network", "cut network", "cut backend"))
            if not all(tool.is_hostile for tool in self.tools.values()):
                continue
            if what == "tool":
                await self.tools[self.source.choice(sorted(self.tools))].go_away(self.source.uniform(0.2, AWAY))
            elif what == "network":
                self.network.kill(self.source.uniform(0.1, AWAY))
            else:
                proxy = self.network_proxy if what == "cut network" else self.backend
                for connection in list(proxy.connections):
                    if connection.is_whole:
                        connection.tear()

    async def post(self):
        """Says one thing after another by the hook; the same again until it is taken."""
        source = random.Random("hook %d" % self.seed)
        while not self.is_over:
            text = compose(Key(POSTER, "haven", self.number), source)
            self.posts.append(t=milliseconds(), text=text)
            id = secrets.token_hex(8)
            while await self.request({"id": id, "nick": "ada", "text": text}) != 200:
                await asyncio.sleep(TRY_PAUSE)
            self.posts.append(t=milliseconds(), taken=text)
            self.number += 1
            await asyncio.sleep(source.expovariate(1 / POST_PAUSE))

    async def request(self, message):
        """The status; None: there was no answer."""
        body = json.dumps(message).encode()
        head = "POST /hooks/haven HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n" % (
            SECRET, len(body)) + "Content-Type: application/json\r\nConnection: close\r\n\r\n"
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.hook_port or 1)
                try:
                    writer.write(head.encode() + body)
                    return int((await reader.readline()).split()[1])
                finally:
                    writer.transport.abort()
        except (OSError, ValueError, IndexError, asyncio.TimeoutError):
            return None

    async def settle(self, seconds):
        """Until everything is there, at most so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any("lost" in words for words in self.judged()):
            await asyncio.sleep(1)

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await self.network.stop()
        self.backend.stop()
        self.network_proxy.stop()
        for tool in self.tools.values():
            tool.stop()

    # MARK: - The judge

    def logged(self, room):
        """[keys] that the backend of the room has, in its order."""
        entries = read(os.path.join(self.directory, "logs", room + ".log"))
        return [key for entry in entries if not entry.get("again") for key in [read_key(entry["text"])] if key]

    def heard_on_network(self, logs):
        """What was said there, but for what was said before the mirror came for the first time."""
        early = {read_key(entry["text"]) for entry in read(os.path.join(self.directory, "logs", "strait.log"))
                 if entry["said_at"] < (self.joined or 0)}
        brought = set(of("strait", logs["canal"]))
        return [key for key in of("strait", logs["strait"]) if key in brought or key not in early]

    def shown(self, tool):
        """([keys], how many posts were not answered that it took)"""
        posts = read(self.path(tool + ".jsonl"))
        keys = [key for post in posts for text in post["texts"] for key in find_keys(text)[:1]]
        return keys, sum(not post["answered"] for post in posts)

    def judged(self):
        """What is broken, in words."""
        logs = {room: self.logged(room) for room in MIRRORED}
        json_keys, _ = self.shown("json")
        discord_keys, unanswered = self.shown("discord")
        taken = [read_key(entry["taken"]) for entry in read(self.path("hook.jsonl")) if "taken" in entry]
        relay_ends, network_ends = self.ends["relay"], self.ends["network"]
        return [
            *judge("room to a JSON tool", of("wharf", logs["wharf"]), json_keys),
            # It cannot tell a post again whose answer was lost, or was under way when the relay was killed.
            *judge("room to a tool like Discord", of("wharf", logs["wharf"]), discord_keys, unanswered + relay_ends),
            *judge("hook to a room", taken, of("haven", logs["haven"], POSTER)),
            # One under way for each connection that ended.
            *judge("room to an IRC network", of("canal", logs["canal"]), of("canal", logs["strait"]), relay_ends + network_ends),
            *judge("IRC network to a room", self.heard_on_network(logs), of("strait", logs["canal"])),
            *judge("room to a room", of("isle", logs["isle"]), of("isle", logs["cape"])),
            *judge("room to a room, back", of("cape", logs["cape"]), of("cape", logs["isle"])),
        ]

    def promises(self):
        """[(sentence, [broken by])]"""
        return [("mirrors: none lost, doubled or out of order", self.judged())]

    def told(self):
        logs = {room: len(of(room, self.logged(room))) for room in MIRRORED}
        counts = [
            "%d to the JSON tool" % len(self.shown("json")[0]), "%d to the one like Discord" % len(self.shown("discord")[0]),
            "%d by the hook" % (self.number - 1), "%d to the network and %d from it" % (logs["canal"], logs["strait"]),
            "%d and %d between two rooms" % (logs["isle"], logs["cape"])]
        yield "mirrors: %s; the relay ended %d times, the connection to the network was made %d times" % (
            ", ".join(counts), self.ends["relay"], self.ends["network"])


def of(room, keys, author=None):
    """Those of the keys that were said first in that room, by that author or by people upstream."""
    return [key for key in keys if key.room == room and (author is None or key.author == author)]


def judge(name, said, seen, doubles=0):
    """What is broken, in words: each of `said` is in `seen` once, those of one author in their order.

    At most so many are there again, behind the first time.
    """
    broken = []
    lost = sorted(set(said) - set(seen))
    if lost:
        broken.append("%s: %d of %d lost, such as %s" % (name, len(lost), len(set(said)), key_text(lost[0])))
    extra = len(seen) - len(set(seen))
    if extra > doubles:
        twice = [key for key, count in collections.Counter(seen).items() if count > 1]
        broken.append("%s: %d doubled, such as %s; %d could not be told apart" % (name, extra, key_text(twice[0]), doubles))
    newest = {}
    for key in dict.fromkeys(seen):
        if key.number < newest.get(key.author, 0):
            broken.append("%s: %s is behind number %d" % (name, key_text(key), newest[key.author]))
            break
        newest[key.author] = key.number
    return broken
