"""Both sides of the bridge for the end-to-end tests, with the standard library alone.

    Relay      a chat backend of the `envelope` dialect that can drop, refuse, stall, delay and swallow (relay.py)
    Person     a user of that backend, over a WebSocket of its own
    IRC        an IRC client that records every line
    Bridge     the program under test, with a configuration of its own, on free ports

There are no fixed sleeps: waits poll up to a deadline, and report the missing event when it passes.
"""

import base64
import collections
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# What scenarios need of the other file, so that they look in one place.
from relay import (  # noqa: F401
    BINARY, CLOSE, PATIENCE, PING, PONG, TEXT, FrameReader, Relay, envelope, frame, new_id, wait_until,
)


# MARK: - A reader of sockets with a deadline


class _Link:
    """A blocking socket read by polling."""

    def __init__(self, host, port, source=None):
        self.sock = socket.create_connection((host, port), PATIENCE, source and (source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.closed = False

    def _read(self, seconds):
        """Some bytes, b"" when there were none in time; sets `closed` at the end."""
        if self.closed:
            return b""
        ready, _, _ = select.select([self.sock], [], [], max(seconds, 0))
        if not ready:
            return b""
        try:
            data = self.sock.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            self.closed = True
        return data

    def pump(self, seconds=0.0):
        raise NotImplementedError

    def drain(self):
        """Takes in all that has come."""
        while self.pump(0):
            pass

    def close(self):
        self.closed = True
        self.sock.close()


class Person(_Link):
    """Somebody on the backend. `frames` keeps every object that came, their own included."""

    def __init__(self, port, room, name, sender_id=None):
        super().__init__("127.0.0.1", port)
        self.name = name
        self.id = sender_id or new_id()
        self.frames = []
        self.reader = FrameReader()
        self.cursor = 0
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(
            (
                "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nUser-Agent: person\r\n\r\n" % (room, port, key)
            ).encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.sock.recv(1)
            assert data, "the backend refused %s" % name
            head += data
        assert head.startswith(b"HTTP/1.1 101"), head

    def pump(self, seconds=0.0):
        data = self._read(seconds)
        for opcode, payload in self.reader.feed(data):
            if opcode == TEXT:
                try:
                    self.frames.append(json.loads(payload))
                except ValueError:
                    self.frames.append({"event": "unreadable", "bytes": payload})
            elif opcode == PING:
                self.sock.sendall(frame(payload, PONG, masked=True))
        return bool(data)

    def send_raw(self, payload, opcode=TEXT):
        self.sock.sendall(frame(payload, opcode, masked=True))

    def say(self, body, message_id=None, sent_at=None):
        message_id = message_id or new_id()
        self.send_raw(envelope("message", self.id, self.name, body, message_id, sent_at))
        return message_id

    def type(self):
        self.send_raw(envelope("typing", self.id, self.name))

    def read(self, message_id):
        self.send_raw(envelope("readReceipt", self.id, self.name, message_id=message_id))

    def expect(self, what, accept, patience=None):
        """The next frame, after those already taken, that `accept` likes."""
        end = time.monotonic() + (patience or PATIENCE)
        while True:
            while self.cursor < len(self.frames):
                found = self.frames[self.cursor]
                self.cursor += 1
                if accept(found):
                    return found
            if self.closed or time.monotonic() > end:
                raise AssertionError("%s never got %s; last: %r" % (self.name, what, self.frames[-3:]))
            self.pump(0.05)

    def expect_message(self, body, patience=None):
        return self.expect(
            "the message %r" % body[:80],
            lambda f: f.get("event") == "message" and f.get("body") == body,
            patience,
        )

    def bodies(self, sender=None):
        """Bodies of messages, each message id counted once: a message sent again keeps its id, and apps know that."""
        self.drain()
        seen, out = set(), []
        for f in self.frames:
            if f.get("event") != "message" or (sender and f.get("sender_name") != sender):
                continue
            if (f["message_id"], f["sender_id"]) not in seen:
                seen.add((f["message_id"], f["sender_id"]))
                out.append(f["body"])
        return out


# MARK: - IRC

Line = collections.namedtuple("Line", "tags source command params raw")


def parse_irc(raw):
    rest, tags, source = raw, {}, ""
    if rest.startswith("@"):
        block, _, rest = rest[1:].partition(" ")
        for item in block.split(";"):
            name, _, value = item.partition("=")
            tags[name] = value
    rest = rest.lstrip(" ")
    if rest.startswith(":"):
        source, _, rest = rest[1:].partition(" ")
    middle, colon, trailing = rest.partition(" :")
    params = middle.split()
    command = params.pop(0) if params else ""
    if colon:
        params.append(trailing)
    return Line(tags, source, command, params, raw)


MODERN = (
    "message-tags server-time echo-message labeled-response batch standard-replies account-tag draft/read-marker"
).split()


class IRC(_Link):
    """A client that keeps every line, answers PING, and can wait for what it wants."""

    def __init__(self, port, nick=None, caps=(), join=(), host="127.0.0.1", source=None):
        super().__init__(host, port, source)
        self.nick = nick
        self.lines = []
        self.cursor = 0
        self.rest = b""
        if nick is None:
            return
        if caps:
            self.send("CAP LS 302")
        self.send("NICK " + nick, "USER %s 0 * :%s" % (nick, nick))
        if caps:
            self.send("CAP REQ :" + " ".join(caps), "CAP END")
        self.expect("001")
        for channel in join:
            self.join(channel)

    def join(self, channel):
        self.send("JOIN " + channel)
        self.expect("366", lambda line: line.params[1] == channel)

    def send(self, *lines):
        self.send_bytes("".join(line + "\r\n" for line in lines).encode())

    def send_bytes(self, data):
        self.sock.settimeout(PATIENCE)
        self.sock.sendall(data)

    def say(self, target, text):
        self.send("PRIVMSG %s :%s" % (target, text))

    def pump(self, seconds=0.0):
        data = self._read(seconds)
        if not data:
            return False
        *whole, self.rest = (self.rest + data).split(b"\n")
        for raw in whole:
            # A line that is not UTF-8, or holds a control that ends lines, is a finding: fail where it is seen.
            line = parse_irc(raw.rstrip(b"\r").decode("utf-8"))
            assert "\r" not in line.raw and "\0" not in line.raw, "a control crossed: %r" % line.raw
            self.lines.append(line)
            if line.command == "PING":
                self.send("PONG :" + line.params[-1])
        return True

    def expect(self, command, accept=lambda line: True, patience=None):
        """The next line, after those already taken, of that command that `accept` likes."""
        end = time.monotonic() + (patience or PATIENCE)
        while True:
            while self.cursor < len(self.lines):
                line = self.lines[self.cursor]
                self.cursor += 1
                if line.command == command and accept(line):
                    return line
            if self.closed or time.monotonic() > end:
                raise AssertionError(
                    "%s never got that %s%s; last:\n  %s"
                    % (
                        self.nick, command, " (connection closed)" if self.closed else "",
                        "\n  ".join(line.raw[:200] for line in self.lines[-6:]),
                    )
                )
            self.pump(0.05)

    def expect_text(self, text, command="PRIVMSG", patience=None):
        return self.expect(command, lambda line: line.params[-1] == text, patience)

    def barrier(self):
        """Everything the bridge queued for this client before now has been read afterwards."""
        token = "b%d" % time.monotonic_ns()
        self.send("PING :" + token)
        self.expect("PONG", lambda line: line.params[-1] == token)

    def texts(self, source=None, command="PRIVMSG"):
        self.drain()
        return [
            line.params[-1]
            for line in self.lines
            if line.command == command and (source is None or line.source.split("!")[0] == source)
        ]

    def wait_closed(self, patience=None):
        end = time.monotonic() + (patience or PATIENCE)
        while not self.closed:
            if time.monotonic() > end:
                raise AssertionError("%s is still connected" % self.nick)
            self.pump(0.05)


# MARK: - The program under test

BINARY_PATH = os.environ.get("CHATBRIDGE", "")

# No limit on what a test's own clients say: scenarios about limits set their own.
OPEN_LIMITS = 'messages_per_second = "off"\nupstream_messages_per_second = "off"\nupstream_connects_per_second = "off"'


class Bridge:
    """`chatbridge run` with a configuration of its own. `directory` keeps configuration, state and log.

    `tables` is more of the configuration, as it is written; `wrapper` a command that becomes the relay.
    With `listens=False` its start is not waited for.
    """

    def __init__(
        self, rooms, limits=OPEN_LIMITS, room_extra="", server_extra="", directory=None, port=0, tables="",
        log_extra='level = "debug"', wrapper=(), log_format="json", listens=True,
    ):
        self.owns_directory = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="chatbridge-")
        text = ['[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n%s' % (self.directory, server_extra)]
        text.append('[[listeners]]\nbind = "irc://127.0.0.1:%d"' % port)
        for name, url in rooms.items():
            text.append(
                '[[rooms]]\nname = "%s"\nurl = "%s"\nbackoff = { min = "100ms", max = "400ms", jitter = 0 }\n%s'
                % (name, url, room_extra)
            )
        if "[room_defaults" not in tables:
            # Scenarios count the lines that a client gets; those about the last lines ask for them (`room_extra`).
            text.append("[room_defaults]\nhistory_on_join = 0")
        text.append(tables)
        text.append("[limits]\n" + limits)
        text.append('[log]\nformat = "%s"\n%s' % (log_format, log_extra))
        self.config_path = os.path.join(self.directory, "chatbridge.toml")
        self.log_path = os.path.join(self.directory, "log")
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write("\n\n".join(text) + "\n")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
        with open(self.log_path, "a", encoding="utf-8") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*wrapper, BINARY_PATH, "run", "--config", self.config_path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )
        self.log_begin = begin
        if not listens:
            return
        try:
            self.port = int(
                wait_until(self._address, lambda: "the bridge listens; it said:\n" + self.log()[-2000:]).rsplit(":")[-1]
            )
        except AssertionError:
            self.process.kill()
            raise

    def _address(self):
        for entry in self.log_entries("listening"):
            return entry["address"]
        if self.process.poll() is not None:
            raise AssertionError("the bridge ended with %d:\n%s" % (self.process.returncode, self.log()[-2000:]))
        return None

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            file.seek(self.log_begin)
            return file.read()

    def log_entries(self, event):
        found = []
        for line in self.log().splitlines():
            if '"event":"%s"' % event in line:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found

    def logged(self, event, level, *metadata):
        """The first entry of an event, which has this level and these keys beside those of every entry."""
        entry = wait_until(
            lambda: self.log_entries(event), lambda: "the log has %s; it says:\n%s" % (event, self.log()[-2000:]))[0]
        keys = set(entry) - {"ts", "level", "subsystem", "event", "msg", "instance"}
        assert entry["level"] == level and keys == set(metadata), entry
        return entry

    def check_alive(self):
        status = self.process.poll()
        assert status is None, "the bridge ended with %r:\n%s" % (status, self.log()[-2000:])

    def rss_kib(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def terminate(self, patience=None):
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(patience or PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("the bridge did not stop on SIGTERM") from None

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
