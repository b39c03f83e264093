"""Both sides of the bridge for the end-to-end tests, with the standard library alone.

    Relay      a chat backend of the `envelope` dialect that can drop, refuse, stall, delay and swallow
    Person     somebody on that backend, over a WebSocket of their own
    IRC        an IRC client that keeps every line it saw
    Bridge     the program under test, with a configuration of its own, on free ports

Nothing here sleeps for a fixed time: whoever waits polls up to a deadline, and says what was missing when it passes.
"""

import base64
import collections
import hashlib
import json
import os
import re
import select
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import uuid

# Long enough for a loaded machine; nothing waits for it when all is well.
PATIENCE = float(os.environ.get("PATIENCE", "15"))
POLL = 0.01


def wait_until(condition, what, patience=None):
    """Polls until `condition()` is true and returns what it returned."""
    end = time.monotonic() + (patience or PATIENCE)
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (patience or PATIENCE, what() if callable(what) else what))
        time.sleep(POLL)


# MARK: - WebSocket frames (RFC 6455 §5)

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def _mask(payload, key):
    """XORs in one go: a loop over bytes would be the slowest part of the suite."""
    if not payload:
        return payload
    pad = (key * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(payload), "big")


def frame(payload, opcode=TEXT, masked=False):
    if isinstance(payload, str):
        payload = payload.encode()
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        head = struct.pack("!BB", 0x80 | opcode, bit | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", 0x80 | opcode, bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, bit | 127, len(payload))
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + _mask(payload, key)


class FrameReader:
    """Bytes in, (opcode, payload) out. Fragments are not expected: no peer of ours sends any."""

    def __init__(self):
        self.buffer = bytearray()

    def feed(self, data):
        self.buffer += data
        out = []
        at = 0
        while True:
            have = len(self.buffer) - at
            if have < 2:
                break
            first, second = self.buffer[at], self.buffer[at + 1]
            length, head = second & 127, 2
            if length == 126:
                if have < 4:
                    break
                (length,) = struct.unpack_from("!H", self.buffer, at + 2)
                head = 4
            elif length == 127:
                if have < 10:
                    break
                (length,) = struct.unpack_from("!Q", self.buffer, at + 2)
                head = 10
            masked = second & 0x80
            total = head + (4 if masked else 0) + length
            if have < total:
                break
            body = bytes(self.buffer[at + total - length : at + total])
            if masked:
                body = _mask(body, bytes(self.buffer[at + head : at + head + 4]))
            out.append((first & 15, body))
            at += total
        del self.buffer[:at]
        return out


# MARK: - Envelope frames


def new_id():
    return str(uuid.uuid4()).upper()


def envelope(event, sender_id, sender_name, body="", message_id=None, sent_at=None):
    return json.dumps(
        {
            "event": event,
            "message_id": message_id or new_id(),
            "sender_id": sender_id,
            "sender_name": sender_name,
            "body": body,
            "sent_at": time.time() if sent_at is None else sent_at,
        },
        ensure_ascii=False,
    )


# MARK: - The relay


class _Peer:
    def __init__(self, sock):
        self.sock = sock
        self.head = b""
        self.room = None
        self.reader = FrameReader()
        self.out = bytearray()
        self.stalled = False
        self.ending = False
        self.close_code = None
        self.user_agent = ""

    @property
    def is_bridge(self):
        return self.user_agent.startswith("chatbridge/")


class Relay:
    """Rooms by path; everything goes to everybody in the room, the sender included. One thread of its own.

    What can be made to go wrong, always for the bridge's connections alone unless said otherwise:
        refuse(status, times)   answers the next handshakes with that status
        hold_handshakes()       answers none until release_handshakes()
        stall()                 the present connection reads and writes nothing any more, and stays open
        drop(close=...)         ends the present connections, with that Close code, or without any Close
        swallow = True          takes frames of the bridge and relays them to nobody (they count as `swallowed`)
        keep_echo = True        relays the bridge's frames to the others, but never back to the bridge
        raw(text)               sends any bytes as a text frame
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.selector = selectors.DefaultSelector()
        self.listener = None
        self.port = 0
        self.peers = {}
        self.refusals = []
        self.holding = False
        self.swallow = False
        self.keep_echo = False
        self.silent_pings = False
        self.swallowed = []
        # Every frame that the bridge sent, as (room, object), in order, whatever became of it.
        self.from_bridge = []
        # One (status or "accepted") for each handshake of the bridge, with its monotonic time.
        self.handshakes = []
        # Close codes that the bridge sent.
        self.closes = []
        self.running = True
        wake_in, self.wake_out = socket.socketpair()
        wake_in.setblocking(False)
        self.selector.register(wake_in, selectors.EVENT_READ, "wake")
        self.listen()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # -- What a test asks

    def url(self, room="{room}"):
        return "ws://127.0.0.1:%d/%s" % (self.port, room)

    def listen(self):
        with self.lock:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=4096)
            self.listener.setblocking(False)
            self.port = self.listener.getsockname()[1]
            self.selector.register(self.listener, selectors.EVENT_READ, "listener")
            self._wake()

    def stop_listening(self):
        with self.lock:
            self.selector.unregister(self.listener)
            self.listener.close()
            self.listener = None

    def bridges(self, room=None):
        with self.lock:
            return [p for p in self.peers.values() if p.is_bridge and p.room and room in (None, p.room)]

    def wait_for_bridge(self, room=None, count=1, patience=None):
        wait_until(
            lambda: len(self.bridges(room)) >= count,
            lambda: "the bridge links to %s (%d of %d are)" % (room or "its rooms", len(self.bridges(room)), count),
            patience,
        )

    def refuse(self, status, times=1, headers=""):
        with self.lock:
            self.refusals += [(status, headers)] * times

    def hold_handshakes(self):
        with self.lock:
            self.holding = True

    def release_handshakes(self):
        with self.lock:
            self.holding = False
            for peer in list(self.peers.values()):
                if peer.room is None and b"\r\n\r\n" in peer.head:
                    self._answer(peer)
            self._wake()

    def stall(self, room=None):
        with self.lock:
            for peer in self.bridges(room):
                peer.stalled = True
                self.selector.unregister(peer.sock)

    def drop(self, room=None, close=None):
        with self.lock:
            for peer in self.bridges(room):
                if close is None:
                    self._forget(peer)
                else:
                    peer.ending = True
                    self._send(peer, frame(struct.pack("!H", close) + b"going", CLOSE))
            self._wake()

    def raw(self, payload, room=None, opcode=TEXT, bridge_only=False):
        """Sends to everybody in the room, as if somebody had said it."""
        data = frame(payload, opcode)
        with self.lock:
            for peer in list(self.peers.values()):
                if peer.room and room in (None, peer.room) and (peer.is_bridge or not bridge_only):
                    self._send(peer, data)
            self._wake()

    def raw_bytes(self, data, room=None):
        """Bytes straight into the bridge's connections."""
        with self.lock:
            for peer in self.bridges(room):
                self._send(peer, data)
            self._wake()

    def messages_from_bridge(self, room=None):
        with self.lock:
            return [f for r, f in self.from_bridge if room in (None, r) and f.get("event") == "message"]

    def stop(self):
        self.running = False
        self._wake()
        self.thread.join(5)
        for peer in list(self.peers.values()):
            peer.sock.close()
        if self.listener:
            self.listener.close()

    # -- The thread

    def _wake(self):
        try:
            self.wake_out.send(b"x")
        except OSError:
            pass

    def _run(self):
        while self.running:
            for key, mask in self.selector.select(1):
                with self.lock:
                    if key.data == "wake":
                        key.fileobj.recv(4096)
                    elif key.data == "listener":
                        self._accept()
                    elif key.data.sock in self.peers:
                        self._ready(key.data, mask)

    def _accept(self):
        for _ in range(200):
            try:
                sock, _ = self.listener.accept()
            except (BlockingIOError, AttributeError, OSError):
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.peers[sock] = _Peer(sock)
            self.selector.register(sock, selectors.EVENT_READ, self.peers[sock])

    def _ready(self, peer, mask):
        if mask & selectors.EVENT_WRITE:
            self._flush(peer)
        if mask & selectors.EVENT_READ and peer.sock in self.peers:
            try:
                data = peer.sock.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._forget(peer)
            elif peer.room is None:
                self._head(peer, data)
            else:
                self._frames(peer, data)

    def _head(self, peer, data):
        peer.head += data
        if b"\r\n\r\n" not in peer.head:
            return
        match = re.search(rb"(?im)^user-agent: *(.*?)\r?$", peer.head)
        peer.user_agent = match.group(1).decode("latin-1") if match else ""
        if self.holding and peer.is_bridge:
            return
        self._answer(peer)

    def _answer(self, peer):
        head, _, rest = peer.head.partition(b"\r\n\r\n")
        if peer.is_bridge and self.refusals:
            status, headers = self.refusals.pop(0)
            self.handshakes.append((status, time.monotonic()))
            peer.ending = True
            self._send(peer, ("HTTP/1.1 %d No\r\n%sContent-Length: 0\r\n\r\n" % (status, headers)).encode())
            return
        key = re.search(rb"(?im)^sec-websocket-key: *(\S+)", head)
        if not key:
            return self._forget(peer)
        accept = base64.b64encode(hashlib.sha1(key.group(1) + MAGIC).digest()).decode()
        peer.room = head.split(b" ", 2)[1].decode().lstrip("/")
        if peer.is_bridge:
            self.handshakes.append(("accepted", time.monotonic()))
        self._send(
            peer,
            (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Accept: %s\r\n\r\n" % accept
            ).encode(),
        )
        if rest:
            self._frames(peer, rest)

    def _frames(self, peer, data):
        for opcode, payload in peer.reader.feed(data):
            if opcode in (TEXT, BINARY):
                self._relay(peer, payload)
            elif opcode == PING:
                if not self.silent_pings:
                    self._send(peer, frame(payload, PONG))
            elif opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else None
                if peer.is_bridge:
                    self.closes.append(code)
                if not peer.ending:
                    peer.ending = True
                    self._send(peer, frame(payload[:2], CLOSE))
                else:
                    self._forget(peer)

    def _relay(self, sender, payload):
        if sender.is_bridge:
            try:
                self.from_bridge.append((sender.room, json.loads(payload)))
            except ValueError:
                self.from_bridge.append((sender.room, {"event": "unreadable"}))
            if self.swallow:
                self.swallowed.append(payload)
                return
        data = frame(payload)
        for peer in list(self.peers.values()):
            if peer.room == sender.room and not (self.keep_echo and peer is sender and peer.is_bridge):
                self._send(peer, data)

    def _send(self, peer, data):
        if peer.stalled or peer.sock not in self.peers:
            return
        peer.out += data
        self._flush(peer)

    def _flush(self, peer):
        try:
            while peer.out:
                sent = peer.sock.send(memoryview(peer.out)[: 1 << 18])
                del peer.out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            return self._forget(peer)
        if peer.ending and not peer.out:
            try:
                peer.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.out else 0)
        if self.selector.get_key(peer.sock).events != wanted:
            self.selector.modify(peer.sock, wanted, peer)

    def _forget(self, peer):
        if self.peers.pop(peer.sock, None) is None:
            return
        try:
            self.selector.unregister(peer.sock)
        except KeyError:
            pass
        peer.sock.close()


# MARK: - A reader of sockets with a deadline


class _Link:
    """A blocking socket read by polling."""

    def __init__(self, host, port):
        self.sock = socket.create_connection((host, port), timeout=PATIENCE)
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

    def __init__(self, port, nick=None, caps=(), join=(), host="127.0.0.1"):
        super().__init__(host, port)
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
    """`chatbridge run` with a configuration of its own. `directory` keeps configuration, state and log."""

    def __init__(self, rooms, limits=OPEN_LIMITS, room_extra="", server_extra="", directory=None, port=0):
        self.owns_directory = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="chatbridge-")
        text = ['[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n%s' % (self.directory, server_extra)]
        text.append('[[listeners]]\nbind = "irc://127.0.0.1:%d"' % port)
        for name, url in rooms.items():
            text.append(
                '[[rooms]]\nname = "%s"\nurl = "%s"\nbackoff = { min = "100ms", max = "400ms", jitter = 0 }\n%s'
                % (name, url, room_extra)
            )
        text.append("[limits]\n" + limits)
        text.append('[log]\nformat = "json"\nlevel = "debug"')
        self.config_path = os.path.join(self.directory, "chatbridge.toml")
        self.log_path = os.path.join(self.directory, "log")
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write("\n\n".join(text) + "\n")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
        with open(self.log_path, "a", encoding="utf-8") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [BINARY_PATH, "run", "--config", self.config_path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )
        self.log_begin = begin
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
