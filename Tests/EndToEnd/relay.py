"""The backend's side: WebSocket frames, the objects of the `envelope` dialect, and a relay with injected failures."""

import base64
import hashlib
import json
import os
import re
import selectors
import socket
import struct
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


def frame(payload, opcode=TEXT, masked=False, final=True):
    if isinstance(payload, str):
        payload = payload.encode()
    bit, first = 0x80 if masked else 0, (0x80 if final else 0) | opcode
    if len(payload) < 126:
        head = struct.pack("!BB", first, bit | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", first, bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, bit | 127, len(payload))
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
        answer_next(bytes)      answers the next handshake with exactly these bytes, and closes
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
        # A full pipe wakes as well as another byte would; waiting for room in it would be for a thread that waits for us.
        self.wake_out.setblocking(False)
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

    def answer_next(self, data):
        with self.lock:
            self.refusals.append((None, data))

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
            if status is None:
                return self._send(peer, headers)
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
