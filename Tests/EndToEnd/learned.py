"""Backends that nobody has, connected by what `chatbridge learn` proposes for a recording of their own apps."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import media
import peer
import shapes_app
from backends import CALM
from peer import IRC, MODERN, PATIENCE, Bridge, wait_until
from world import scenario


class Learned:
    """A backend of a shape, and a bridge by the description that was proposed for it."""

    def __init__(self, name):
        self.shape = shapes_app.Shape(name)
        self.directory = tempfile.mkdtemp(prefix="chatbridge-")
        self.bridge, self.clients = None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        if self.bridge:
            self.bridge.stop()
        self.shape.stop()
        shutil.rmtree(self.directory, True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o600)

    def learn(self, lines):
        return shapes_app.learn(peer.BINARY_PATH, self.directory, lines)

    def correct(self, corrections):
        shapes_app.correct(self.path("mine.json"), corrections)

    def start(self, is_up=True, more=""):
        has_token = self.shape.name in ("home", "rows")
        auth = 'auth = { type = "message", token_file = "%s" }\n' % self.path("token") if has_token else ""
        rooms = {"phoenix": "room:lobby", "rows": "messages"}
        tables = (
            '[dialects.mine]\nfile = "%s"\n\n[[rooms]]\nname = "lobby"\ndialect = "mine"\nurl = "ws://127.0.0.1:%d/ws"\n'
            'upstream_room = "%s"\n%s%s\n%s' % (
                self.path("mine.json"), self.shape.port, rooms.get(self.shape.name, "lobby"), auth, CALM, more))
        self.bridge = Bridge({}, tables=tables, log_extra='level = "debug"', directory=self.directory)
        if is_up:
            self.wait_up()

    def ups(self):
        return len(self.bridge.log_entries("upstream-up"))

    def wait_up(self, count=1):
        wait_until(lambda: self.ups() >= count, lambda: "the bridge is linked; it said:\n" + self.bridge.log()[-2000:])

    def irc(self, nick):
        client = IRC(self.bridge.port, nick, caps=[*MODERN, "away-notify", "draft/message-redaction"], join=["#lobby"])
        self.clients.append(client)
        return client

    def spoken(self, nick, text):
        return "<%s> %s" % (nick, text)

    def taken(self, text):
        return sum(text in one for one in self.shape.texts())


def _relays(name):
    with Learned(name) as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS.get(name, {}))
        one.start()
        ann, bob = one.irc("ann"), one.irc("bob")
        ann.say("#lobby", "hello up")
        bob.expect_text("hello up")
        wait_until(lambda: one.taken("hello up") == 1, lambda: "it is taken: %r" % one.shape.texts())
        one.shape.do("say Remy hello down")
        for client in (ann, bob):
            client.expect_text("hello down")
        for number in range(5):
            ups = one.ups()
            one.shape.do("drop")
            one.wait_up(ups + 1)
            ann.say("#lobby", "after %d" % number)
            wait_until(lambda: one.taken("after %d" % number) == 1, lambda: "it is taken: %r" % one.shape.texts())
        one.shape.do("say Remy end")
        for client in (ann, bob):
            client.expect_text("end")
            texts = client.texts()
            for text in ("hello up", "hello down", *("after %d" % number for number in range(5))):
                assert texts.count(text) == (0 if client is ann and text != "hello down" and "echo-message" not in MODERN else 1), (
                    client.nick, text, texts)
        one.bridge.check_alive()


@scenario
def an_echo_with_a_client_id():
    _relays("echo")


@scenario
def an_echo_without():
    _relays("plain")


@scenario
def frames_like_socket_io():
    _relays("socketio")


@scenario
def frames_like_socket_io_with_numbered_acknowledgements():
    _relays("numbered")


@scenario
def rows_of_a_collection():
    _relays("rows")


@scenario
def frames_like_phoenix():
    _relays("phoenix")


@scenario
def a_home_grown_backend():
    _relays("home")


def _is_taken_once(name):
    """Through acks that are lost with their links, cut links, and a kill."""
    with Learned(name) as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS.get(name, {}))
        one.start()
        bob = one.irc("bob")
        said = []
        for number in range(12):
            text = "number %d." % number
            said.append(text)
            ups, how = one.ups(), number % 4
            if how == 1:
                one.shape.do("lose 1")
            if how == 2 and name == "home":
                one.shape.do("refuse slow")
            bob.say("#lobby", text)
            if how == 0:
                one.shape.do("drop")
            wait_until(lambda: one.taken(text), lambda: "%s is taken: %r" % (text, one.shape.texts()))
            if how == 1:
                one.shape.do("lose 0")
            if how in (0, 1):
                one.wait_up(ups + 1)
            if number == 7:
                one.bridge.process.kill()
                one.bridge.process.wait(PATIENCE)
                wait_until(lambda: one.shape.do("links") == 0, "the old link is gone")
                bob.close()
                one.start()
                bob = one.irc("bob")
        one.shape.do("say Remy end")
        bob.expect_text("end")
        for text in said:
            assert one.taken(text) == 1, (text, one.shape.texts())


@scenario
def nothing_is_lost_or_doubled_by_lost_acks_cut_links_and_a_kill():
    _is_taken_once("home")


@scenario
def nothing_is_lost_or_doubled_where_acknowledgements_are_numbered():
    _is_taken_once("numbered")


@scenario
def nothing_is_lost_or_doubled_where_messages_are_rows():
    _is_taken_once("rows")


def _is_sent_again(name):
    """What the backend never had: its history lacks it twice, 10 s apart."""
    with Learned(name) as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS.get(name, {}))
        one.start()
        bob = one.irc("bob")
        bob.say("#lobby", "before")
        bob.expect_text("before")
        ups = one.ups()
        one.shape.do("miss 1")
        bob.say("#lobby", "missing")
        one.wait_up(ups + 1)
        one.shape.do("miss 0")
        bob.expect_text("missing", patience=2 * PATIENCE)
        one.shape.do("say Remy end")
        bob.expect_text("end")
        assert [one.taken(text) for text in ("before", "missing")] == [1, 1], one.shape.texts()


@scenario
def a_message_that_was_lost_is_sent_again():
    _is_sent_again("home")


@scenario
def a_message_that_was_lost_is_sent_again_where_acknowledgements_are_numbered():
    _is_sent_again("numbered")


@scenario
def a_message_that_was_lost_is_sent_again_where_messages_are_rows():
    _is_sent_again("rows")


@scenario
def what_else_a_home_grown_backend_says():
    with Learned("home") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS["home"])
        one.start()
        ann = one.irc("ann")
        wait_until(lambda: ann.pump(0.1) or any("all things" in line.raw for line in ann.lines), "the topic")
        one.shape.do("topic soup of the day")
        ann.expect("TOPIC", lambda line: line.params[-1] == "soup of the day")
        app = shapes_app.App(one.shape.port)
        app.say({"do": "hello", "token": shapes_app.TOKEN, "room": "lobby", "as": "ann2"})
        ann.expect("JOIN", lambda line: line.source.startswith("ann2"))
        app.say({"do": "state", "state": "away"})
        away = ann.expect("AWAY", lambda line: line.source.startswith("ann2"))
        assert "time" in away.tags, away.raw
        app.close()
        ann.expect("PART", lambda line: line.source.startswith("ann2"))


@scenario
def files_behind_the_token_open_without_it_by_links_of_the_bridge():
    with Learned("home") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS["home"])
        one.start(more=media.tables())
        one.http = int(one.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
        ann = one.irc("ann")
        app = shapes_app.App(one.shape.port)
        app.say({"do": "hello", "token": shapes_app.TOKEN, "room": "lobby", "as": "Remy"})
        app.say({"do": "post", "nonce": "n-1", "room": "lobby", "body": "look", "files": [
            {"href": "/files/7/soup.png", "label": "soup.png", "bytes": 20, "mime": "image/png"}]})
        line = ann.expect("PRIVMSG", lambda line: media.PUBLIC in line.params[-1])
        assert shapes_app.TOKEN not in line.raw and "127.0.0.1:%d" % one.shape.port not in line.raw, line.raw
        link = next(word for word in line.params[-1].split() if word.startswith(media.PUBLIC))
        answer = media.get(one, link)
        assert (answer.status, answer.body) == (200, b'{"file": "soup.png"}'), (answer.status, answer.body)
        bare = urllib.request.Request("http://127.0.0.1:%d/files/7/soup.png" % one.shape.port)
        try:
            with urllib.request.urlopen(bare, timeout=PATIENCE) as opened:
                raise AssertionError("it opens without the token: %d" % opened.status)
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 401, refusal
            refusal.close()
        # Of the past, by the call for the history.
        bob = one.irc("bob")
        bob.send("CHATHISTORY LATEST #lobby * 10")
        bob.expect("PRIVMSG", lambda line: link in line.params[-1])
        app.close()


@scenario
def an_unknown_room_is_refused_at_join_and_a_read_only_one_tells_it():
    with Learned("home") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS["home"])
        one.shape.do("room missing")
        one.start(is_up=False)
        ann = IRC(one.bridge.port, "ann", caps=MODERN)
        one.clients.append(ann)
        ann.send("JOIN #lobby")
        refusal = ann.expect("403")
        assert refusal.params[1] == "#lobby" and "no such room" in refusal.params[-1], refusal.raw
        ann.barrier()
        assert not [line for line in ann.lines if line.command == "JOIN"], ann.lines
        one.shape.do("room open")
        one.wait_up()
        ann.join("#lobby")
        ann.say("#lobby", "before")
        wait_until(lambda: one.taken("before") == 1, lambda: "it is taken: %r" % one.shape.texts())
        one.shape.do("room closed")
        ann.say("#lobby", "refused by the backend")
        ann.expect("FAIL", lambda line: "refused by the backend" in line.params[-1])
        ann.say("#lobby", "refused by the bridge")
        refusal = ann.expect("404")
        assert refusal.params[1] == "#lobby" and "it is read-only" in refusal.params[-1], refusal.raw
        bob = one.irc("bob")
        refusal = bob.expect("404")
        assert refusal.params[1] == "#lobby", refusal.raw
        one.shape.do("room open")
        ups = one.ups()
        one.shape.do("drop")
        one.wait_up(ups + 1)
        bob.say("#lobby", "after")
        wait_until(lambda: one.taken("after") == 1, lambda: "it is taken: %r" % one.shape.texts())
        assert not one.taken("refused"), one.shape.texts()
        # A room that was there can become unknown.
        one.shape.do("room missing")
        one.shape.do("drop")
        carl = IRC(one.bridge.port, "carl", caps=MODERN)
        one.clients.append(carl)

        def is_refused():
            carl.send("JOIN #lobby", "PART #lobby")
            carl.barrier()
            return any(line.command == "403" for line in carl.lines)
        wait_until(is_refused, "the room is refused")
        one.bridge.check_alive()


@scenario
def any_channel_is_a_room_of_the_backend_or_refused():
    with Learned("home") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct(shapes_app.CORRECTIONS["home"])
        one.start(more='\n[[rooms]]\nname = "*"\ndialect = "mine"\nurl = "ws://127.0.0.1:%d/ws"\n'
                       'auth = { type = "message", token_file = "%s" }\n%s' % (one.shape.port, one.path("token"), CALM))
        ann = one.irc("ann")
        for _ in range(2):
            ann.send("JOIN #nosuch")
            refusal = ann.expect("403")
            assert refusal.params[1] == "#nosuch" and "nothing of that name" in refusal.params[-1], refusal.raw
        ann.barrier()
        assert not [line for line in ann.lines if line.command == "JOIN" and line.params[0] == "#nosuch"], ann.lines
        # Its link is closed soon.
        one.bridge.logged("room-closed", "info", "room")
        ann.say("#lobby", "still here")
        wait_until(lambda: one.taken("still here") == 1, lambda: "it is taken: %r" % one.shape.texts())


@scenario
def a_word_for_a_room_that_is_none_is_a_mistake():
    with Learned("home") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct({"decode": [{"event": "error", "when": {"/did": "refused"}, "fields": {
            "code": "/code", "room_state": {"ptr": "/code", "map": {"closed": "readonly"}}}}]})
        done = subprocess.run(
            [peer.BINARY_PATH, "check", "--config", "mine.toml"], capture_output=True, text=True, timeout=60, check=False,
            cwd=one.directory)
        assert done.returncode, done
        assert '/decode/0/fields/room_state/map/closed: "readonly" is none of "unknown", "read-only"' in done.stderr + done.stdout, done


@scenario
def the_same_is_learned_through_the_proxy():
    with Learned("home") as one:
        process = subprocess.Popen(
            [peer.BINARY_PATH, "learn", "ws://127.0.0.1:%d/ws" % one.shape.port, "--proxy", "127.0.0.1:0", "--name", "mine"],
            cwd=one.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        port = int(first.split("ws://127.0.0.1:")[1].split()[0])

        def step(_):
            process.stdin.write("\n")
            process.stdin.flush()
        shapes_app.record(one.shape, port, step)
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == 0, (first, rest)
        process.stdout.close()
        assert "history: the app called" in rest, rest
        one.write("token", shapes_app.TOKEN + "\n")
        one.correct(shapes_app.CORRECTIONS["home"])
        one.start()
        ann = one.irc("ann")
        ann.say("#lobby", "hello")
        wait_until(lambda: one.taken("hello") == 1, lambda: "it is taken: %r" % one.shape.texts())


@scenario
def an_edited_description_is_taken_up_without_disconnecting_anybody():
    with Learned("echo") as one:
        one.learn(shapes_app.record(one.shape))
        one.correct({"decode": [{"when": {"/type": "message", "/userName": "Remy"}, "event": "ignore"}]})
        one.start()
        ann = one.irc("ann")
        one.shape.do("say Remy unheard")
        one.shape.do("say Linguini heard")
        ann.expect_text("heard")
        with open(one.path("mine.json"), encoding="utf-8") as file:
            description = json.load(file)
        description["decode"] = description["decode"][1:]
        one.write("mine.json", json.dumps(description))
        ups = one.ups()
        one.bridge.process.send_signal(signal.SIGHUP)
        one.wait_up(ups + 1)
        assert one.bridge.log_entries("reloaded")[-1]["changes"] == "rooms-reconnected lobby", one.bridge.log()[-1000:]
        one.shape.do("say Remy now")
        ann.expect_text("now")
        assert "unheard" not in ann.texts(), ann.texts()
        # Confirmed in another way: at the next start.
        one.correct({"echo": "by-text"})
        one.bridge.process.send_signal(signal.SIGHUP)
        entry = one.bridge.logged("reload-deferred", "warn", "key")
        assert entry["key"] == "dialects.mine.echo", entry
        ann.barrier()


@scenario
def a_live_connection_logs_in_and_writes_its_token_nowhere():
    with Learned("home") as one:
        one.write("secret", shapes_app.TOKEN + "\n")
        process = subprocess.Popen(
            [peer.BINARY_PATH, "learn", "ws://127.0.0.1:%d/ws" % one.shape.port, "--name", "mine", "--token-file", "secret",
             "--send", '{"do":"hello","token":"{token}","room":"lobby"}'],
            cwd=one.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait_until(lambda: one.shape.do("people") == 1, "it is in the room")
        one.shape.do("say ann learn-2")
        # A backend may repeat the token, in any frame.
        one.shape.do("say ann you said " + shapes_app.TOKEN)
        one.shape.do("binary and in bytes " + shapes_app.TOKEN)
        process.stdin.write("\n\n")
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == 0, rest
        process.stdout.close()
        written = {}
        for name in ("mine.json", "mine.toml", "mine.frames.jsonl"):
            assert os.stat(one.path(name)).st_mode & 0o777 == 0o600, name
            with open(one.path(name), encoding="utf-8") as file:
                written[name] = file.read()
        for text in [rest, *written.values()]:
            assert shapes_app.TOKEN not in text, text
        assert "and in bytes ***" in written["mine.frames.jsonl"], written
        assert json.loads(written["mine.json"])["encode"]["auth"]["token"] == "{{access_token}}", written
        assert 'auth = { type = "message", token_file = "secret" }' in written["mine.toml"], written
        # What is proposed gets in.
        done = subprocess.run(
            [peer.BINARY_PATH, "check", "--connect", "--config", "mine.toml"], capture_output=True, text=True,
            timeout=60, check=False, cwd=one.directory)
        assert done.returncode == 0, done


@scenario
def a_live_connection_hears_what_comes_in():
    with Learned("echo") as one:
        process = subprocess.Popen(
            [peer.BINARY_PATH, "learn", "ws://127.0.0.1:%d/ws" % one.shape.port, "--name", "mine", "--send",
             '{"type":"subscribe","channel":"lobby"}'],
            cwd=one.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait_until(lambda: one.shape.do("people") == 1, "it is in the room")
        one.shape.do("say ann learn-2")
        process.stdin.write("\n\n")
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == 0, rest
        process.stdout.close()
        with open(one.path("mine.json"), encoding="utf-8") as file:
            rules = json.load(file)["decode"]
        assert any(rule["event"] == "message" and rule["fields"]["text"] == "/content" for rule in rules), rules
