"""A bridge that mirrors its rooms into tools, for the scenarios `mirrors_*`.

    Tools      the stand-ins of Tests/Mirrors in a process of their own
    Mirrored   a Setting with tools: a backend, a bridge, its mirrors and its hooks
    on_tools   a scenario that runs once for each kind of tool
"""

import base64
import collections
import http.client
import json
import os
import re
import sys
import time

from backends import CALM, HERE, WIRE, Served, Setting
from peer import PATIENCE, wait_until

sys.path.append(os.path.join(HERE, "..", "Mirrors"))
from tool_outgoing import FORMS  # noqa: E402
from tool_base import visible  # noqa: E402

try:
    import tools
except ImportError:  # without aiohttp the scenarios of other files run all the same
    tools = None

TOOLS = ("slack", "mattermost", "rocketchat", "discord", "teams", "json")
# Secrets as the tools have them: Teams' is in Base64.
SECRETS = {kind: "5ecret-of-the-%s" % kind for kind in TOOLS} | {"teams": "c2VjcmV0LW9mLXRoZS10ZWFtcy10b29s"}
# Where a tool has a form for it, in the direction of the relay.
EDITS_IN = ("slack", "rocketchat", "discord", "json")
DELETES_IN = ("slack", "discord", "json")
REACTIONS_IN = ("slack", "discord", "json")
REPLIES_IN = ("slack", "rocketchat", "discord", "json")
# Room for all that is said before a busy machine has brought it to the backend.
DEEP = CALM + "queue = { max_messages = 10000 }\n"
SERVED = '\n[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["health", "metrics", "status", "hooks"]\n'

Answer = collections.namedtuple("Answer", "status headers body")


def on_tools(*kinds, **more):
    """A scenario that runs once for each of these kinds: it gets a Mirrored with one tool, and the tool's kind.

    `more` are further tools, by name.
    """

    def mark(function):
        function.wires = kinds
        # The others differ in their forms, which the unit tests have one by one.
        function.quick_wires = [kind for kind in kinds if kind in ("discord", "json")] or kinds[:1]

        def run_on(function, kind):
            with Mirrored(**{kind: kind}, **more) as mirrored:
                result = function(mirrored, kind)
                if mirrored.bridge:
                    mirrored.bridge.check_alive()
                return result

        function.run_on = run_on
        return function

    return mark


def mirrored(**kinds):
    """A scenario that gets one Mirrored with these tools, by name."""

    def mark(function):
        def run():
            with Mirrored(**kinds) as setting:
                result = function(setting)
                if setting.bridge:
                    setting.bridge.check_alive()
                return result

        run.__dict__.update(function.__dict__)
        run.__name__, run.__module__, run.__wrapped__ = function.__name__, function.__module__, function
        run.is_scenario = True
        return run

    return mark


def toml(value):
    if isinstance(value, dict):
        return "{ %s }" % ", ".join("%s = %s" % (key, toml(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(toml, value))
    return json.dumps(value, ensure_ascii=False)


def table(name, kind, **keys):
    """A mirror's table; keys that are None are left out."""
    keys = {"name": name, "type": kind, "rooms": ["lobby"], **keys}
    return "\n[[mirrors]]\n" + "".join("%s = %s\n" % (key, toml(value)) for key, value in keys.items() if value is not None)


# MARK: - What a tool shows


def shows(message, nick, text):
    """Whether a reader there sees that `nick` said `text`: in the name, or in front of the text."""
    # Above an answer may stand what it answers.
    seen = visible(message["text"]).strip().rpartition("\n")[2] if "\n" not in text else visible(message["text"]).strip()
    if visible(message["name"]) == nick and seen == text:
        return True
    front = seen[: len(seen) - len(text)]
    return seen.endswith(text) and len(front) <= len(nick) + 24 and bool(re.search(r"(?<!\w)%s(?!\w)" % re.escape(nick), front))


class Tools(Served):
    def __init__(self, **kinds):
        assert tools, "this Python has no aiohttp; scripts/test-environment makes one that has"
        command = ["tools.py", "--exit-on-eof", "--lifetime", "900"]
        for name, kind in kinds.items():
            command += ["--tool", "%s=%s" % (name, kind)]
        super().__init__(tools.main, command)
        self.taken = collections.defaultdict(set)

    def kind(self, name):
        return self.ready["tools"][name]["type"]

    def url(self, name):
        return self.ready["tools"][name]["url"]

    def fault(self, name, kind, count=None, **arguments):
        self.control("fault", tool=name, kind=kind, count=count, **arguments)

    def clear(self, name):
        self.control("clear", tool=name)

    def refuse(self, name):
        self.control("refuse", tool=name)

    def accept(self, name):
        self.control("accept", tool=name)

    def set(self, name, **settings):
        self.control("set", tool=name, **settings)

    def messages(self, name, since=0):
        return self.control("messages", tool=name, since=since)["messages"]

    def requests(self, name, since=0):
        return self.control("requests", tool=name, since=since)["requests"]

    def state(self, name):
        return self.control("state", tool=name)

    def expect(self, name, what, accept, patience=None):
        """The first message, of those not taken yet, that `accept` likes: those of several authors come in any order."""
        taken = self.taken[name]
        end = time.monotonic() + (patience or PATIENCE)
        while True:
            found = self.messages(name)
            for number, message in enumerate(found):
                if number not in taken and accept(message):
                    taken.add(number)
                    return message
            if time.monotonic() > end:
                raise AssertionError("%s never showed %s; last: %r" % (
                    name, what, [(m["name"], m["raw"][:120]) for m in found[-4:]]))
            time.sleep(0.02)

    def expect_said(self, name, nick, text, patience=None):
        return self.expect(
            name, "that %s said %r" % (nick, text[:80]), lambda message: shows(message, nick, text), patience)


# MARK: - A bridge with mirrors


class Mirrored(Setting):
    def __init__(self, wire="typed", **kinds):
        super().__init__(WIRE[wire])
        # Before anything else here has threads.
        self.tools = Tools(**kinds) if kinds else None
        if self.tools:
            self.stack.callback(self.tools.stop)
            for name, kind in kinds.items():
                if kind != "pipe":
                    self.tools.control("secret", tool=name, secret=SECRETS[kind])

    def mirror(self, name, **keys):
        """The table of a mirror named `team`, or as `mirror_name` says, to that tool and from it."""
        kind = self.tools.kind(name)
        return table(keys.pop("mirror_name", "team"), keys.pop("type", kind), **{
            "url": self.tools.url(name), "path": "/hooks/" + name, "secret": SECRETS.get(kind), **keys})

    def open(self, *tables, rooms=("lobby",), more="", http=SERVED, **options):
        """Starts the bridge with these tables of mirrors, and further rooms on the same backend."""
        if self.backend is None:
            self.serve()
        for room in rooms:
            if room != "lobby":
                more += '\n[[rooms]]\nname = "%s"\ndialect = "typed"\nurl = "ws://127.0.0.1:%d/{room}"\n%s' % (
                    room, self.backend.port, 'backoff = { min = "100ms", max = "400ms", jitter = 0 }\n')
        self.start(more=more + http + "".join(tables), linked=False, **options)
        self.wait_up(len(rooms))
        return self

    def kill(self):
        self.bridge.process.kill()
        self.bridge.process.wait()

    def again(self, *tables, **options):
        """The next process on the same store."""
        return self.open(*tables, **options)

    # -- Hooks

    def http_port(self):
        entries = wait_until(lambda: self.bridge.log_entries("listening-http"), "HTTP is served")
        return int(entries[-1]["address"].rsplit(":", 1)[-1])

    def hook_url(self, path):
        return "http://127.0.0.1:%d%s" % (self.http_port(), path)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port(), timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def post(self, name, sent, path=None):
        """What a tool sends, as one of FORMS made it, to its hook."""
        headers, body = sent
        return self.ask("POST", path or "/hooks/" + name, body, headers)

    def tool_says(self, name, user, text, id=None, **more):
        """Somebody in the tool says something, and the hook takes it; its id there."""
        kind = self.tools.kind(name)
        id = id or new_id(kind)
        answer = self.post(name, FORMS[kind].message(SECRETS[kind], id, user, text, **more))
        assert answer.status == 200, answer
        # A tool would say in the room there what the answer has as text.
        assert b'"text"' not in answer.body or answer.body == b'{"type":"message","text":""}', answer.body
        return id

    # -- What happened

    def logged_of(self, mirror="team"):
        """Entries of the log that name the mirror, from `info` on."""
        found = []
        for line in self.bridge.log().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("level") in ("info", "warn", "error") and entry.get("mirror") == mirror:
                found.append(entry)
        return found

    def upstream(self, room="lobby"):
        """(nick, text) of what the bridge sent to that room of the backend; sent again under its id counts once."""
        seen, out = set(), []
        for record in self.backend.control("received")["frames"]:
            if record["room"] != room or not isinstance(record.get("json"), dict):
                continue
            if record["json"].get("type") != "chat.message":
                continue
            payload = json.loads(base64.b64decode(record["json"]["payload"]))
            if payload["id"] not in seen:
                seen.add(payload["id"])
                out.append((payload["senderName"], visible(payload["text"])))
        return out


COUNTER = [0]


def new_id(kind):
    """An id as the tool gives them, greater than those before."""
    COUNTER[0] += 1
    if kind == "slack":
        return "%d.%06d" % (time.time(), COUNTER[0])
    if kind == "discord":
        return str((round(time.time() * 1000) - 1420070400000 << 22) + COUNTER[0])
    return "%s%d-%d" % (kind, time.time() * 1000, COUNTER[0])


def say_all(client, texts, channel="#lobby", chunk=50):
    """Says them, and returns when all are accepted; more than 1000 at a time want `DEEP`."""
    for begin in range(0, len(texts), chunk):
        client.send(*("PRIVMSG %s :%s" % (channel, text) for text in texts[begin : begin + chunk]))
        client.barrier()
    refused = [line.raw for line in client.lines if line.command == "FAIL" and line.params[0] == "PRIVMSG"]
    assert not refused, "%d were refused: %s" % (len(refused), refused[0])


def numbers(messages, word):
    """The numbers behind `word` in what a tool shows, in its order; a record may hold several messages."""
    form = re.compile(r"\b%s (\d+)\b" % re.escape(word))
    return [int(number) for message in messages for number in form.findall(visible(message["text"]))]


def account_for(messages, word, count, doubles=0):
    """Each of 0 … count-1 is there once and in order; at most `doubles` come again, right behind themselves.

    Where a tool cannot tell two copies apart, one whose sender was not told may come again.
    """
    got = numbers(messages, word)
    missing = sorted(set(range(count)) - set(got))
    assert not missing, "%d of %d are lost, the first is %d" % (len(missing), count, missing[0])
    assert got == sorted(got), "out of order: %r" % [pair for pair in zip(got, got[1:]) if pair[0] > pair[1]][:5]
    permitted = doubles + sum(1 for message in messages if not message["answered"])
    extra = len(got) - len(set(got))
    assert extra <= permitted, "%d doubled, %d could not be told apart" % (extra, permitted)
    return extra


def await_number(setting, name, word, number, patience=None, since=0):
    """Until the tool shows that one; all messages there, or all but the first `since`."""
    def last():
        found = setting.tools.messages(name, since)
        return found if number in numbers(found, word) else None

    return wait_until(
        last, lambda: "%s shows %s %d; it has %r…" % (name, word, number, numbers(setting.tools.messages(name), word)[-5:]),
        patience)


def irc_numbers(client, word, source=None):
    client.drain()
    form = re.compile(r"\b%s (\d+)\b" % re.escape(word))
    found = []
    for line in client.lines:
        if line.command == "PRIVMSG" and (source is None or line.source.split("!")[0] == source):
            found += [int(number) for number in form.findall(line.params[-1])]
    return found
