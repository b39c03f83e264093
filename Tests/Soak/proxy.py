"""The wires between the processes, in the harness's hand: each connection goes through here and can be cut.

    fin      both ends are told, what was on its way is gone
    rst      both ends are torn off
    silent   nobody is told anything: bytes vanish, or wait for ever, in one direction or in both
    stall    bytes wait, and go on their way when it is over; what an end has left behind that went away meanwhile follows,
             unless it went longer ago than the proxy's `stale`

A connection that the relay ends, while the harness does nothing to it, is recorded, with what the relay said last.
"""

import asyncio
import contextlib
import re
import select
import socket
import struct
import time

from plan import PEOPLE, nick_of
from relay import CLOSE

# A silent connection that neither end gives up is torn off after so long, in seconds.
SILENCE = 90
# Of what the relay sends, the end is kept, in bytes: a last line, or a close frame.
TAIL = 512
# Who is at the near end, from what comes from there first: a client's log-in, a room's handshake.
_USER = re.compile(rb"USER (\S+) 0 \* :(\S+)\r\n")
# A person in plain mode types a name and little else.
_PERSON = re.compile(rb"(?<![A-Za-z])(%s)[\r\n]" % "|".join(map(nick_of, PEOPLE)).encode())
_NAMES = {nick_of(name): name for name in PEOPLE}
_HANDSHAKE = re.compile(rb"GET (\S+) HTTP/1.1\r\n(?:.*\r\n)*?upgrade: *websocket\r\n", re.IGNORECASE)


class Proxy:
    """Listens on a port of its own for as long as the soak runs; `target()` is the port behind it, or None."""

    def __init__(self, target, stale=0, side="", journal=None, who=None):
        self.target, self.stale = target, stale
        # What is behind it, or in front of it: a wire, or "clients". `who`: the only one in front of it.
        self.side, self.journal, self.who = side, journal, who
        self.connections = set()
        self.tasks = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    def start(self):
        self._spawn(self._accept())

    def _spawn(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _accept(self):
        loop = asyncio.get_running_loop()
        while True:
            near, _ = await loop.sock_accept(self.listener)
            self._spawn(self._connect(near))

    async def _connect(self, near):
        loop = asyncio.get_running_loop()
        port = self.target()
        far = socket.socket()
        far.setblocking(False)
        try:
            if port is None:
                raise ConnectionRefusedError
            await loop.sock_connect(far, ("127.0.0.1", port))
        except OSError:
            near.close()
            far.close()
            return
        for end in (near, far):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(self, near, far)
        self.connections.add(connection)
        connection.start()

    def stop(self):
        for connection in list(self.connections):
            connection.tear()
        for task in list(self.tasks):
            task.cancel()
        self.listener.close()


class Connection:
    def __init__(self, proxy, near, far):
        self.proxy, self.near, self.far = proxy, near, far
        # What happens to bytes to the far and to the near end: "", "swallowed" or "frozen".
        self.fate = {near: "", far: ""}
        self.pumps, self.is_silent = [], False
        self.began, self.who, self.head, self.tail = time.time_ns() // 1_000_000, proxy.who, b"", b""
        self.relay = far if proxy.side == "clients" else near

    @property
    def is_whole(self):
        return not any(self.fate.values()) and self in self.proxy.connections

    def start(self):
        self.pumps = [
            self.proxy._spawn(self._pump(self.near, self.far)), self.proxy._spawn(self._pump(self.far, self.near)),
        ]

    async def _pump(self, source, sink):
        loop = asyncio.get_running_loop()
        try:
            while True:
                end = source
                data = await loop.sock_recv(source, 1 << 16)
                end = sink
                self._follow(source, data)
                # What was being waited for comes in although bytes wait here from now on.
                while self.fate[source] == "frozen":
                    await asyncio.sleep(0.1)
                if self.fate[source]:
                    if not data:
                        # One end has given up; the other is not told.
                        return
                    continue
                if not data:
                    self._ended_by(source)
                    sink.shutdown(socket.SHUT_WR)
                    break
                await loop.sock_sendall(sink, data)
        except OSError:
            if not any(self.fate.values()):
                self._ended_by(end)
                self.tear()
            return
        if all(pump.done() or pump is asyncio.current_task() for pump in self.pumps):
            self._close()

    def _follow(self, source, data):
        if source is self.near and self.who is None and len(self.head) < 4096:
            self.head += data
            if user := _USER.search(self.head):
                self.who = "%s@%s" % (user[2].decode(), user[1].decode())
            elif self.proxy.side == "clients" and (person := _PERSON.search(self.head)):
                self.who = _NAMES[person[1].decode()]
            elif handshake := _HANDSHAKE.match(self.head):
                self.who = handshake[1].decode().partition("?")[0]
        if source is self.relay:
            self.tail = (self.tail + data)[-TAIL:]

    def _ended_by(self, source):
        """The first end that closes it, or is torn off, by itself."""
        proxy = self.proxy
        if proxy.journal is None or self.who is None or self not in proxy.connections or self.relay is None:
            return
        words = self._last_words()
        # A backend closes what the relay said good-bye to.
        if source is self.relay or words.get("code"):
            proxy.journal.append(
                t=time.time_ns() // 1_000_000, began=self.began, side=proxy.side, who=self.who, **words)
        self.relay = None

    def _last_words(self):
        if self.proxy.side == "clients":
            last = self.tail.rstrip(b"\r\n").rpartition(b"\n")[2]
            return {"last": "" if self.proxy.who or self.who in PEOPLE else last.decode("utf-8", "replace")}
        # A close frame of a client: a mask, a code, a reason.
        for length in range(2, min(126, len(self.tail) - 5)):
            at = len(self.tail) - length - 6
            if at >= 0 and self.tail[at] == 0x80 | CLOSE and self.tail[at + 1] == 0x80 | length:
                mask, data = self.tail[at + 2:at + 6], self.tail[at + 6:]
                data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
                return {"code": int.from_bytes(data[:2], "big"), "last": data[2:].decode("utf-8", "replace")}
        return {"code": None, "last": ""}

    def _close(self):
        if self in self.proxy.connections:
            self.proxy.connections.discard(self)
            self.proxy._spawn(self._dispose())

    async def _dispose(self):
        # The pumps first: a descriptor that is closed under them may be somebody else's in the next moment.
        for pump in self.pumps:
            pump.cancel()
        await asyncio.gather(*self.pumps, return_exceptions=True)
        for end in (self.near, self.far):
            end.close()

    def tear(self):
        """RST to both."""
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._close()

    def finish(self):
        """FIN to both."""
        self.fate = dict.fromkeys(self.fate, "swallowed")
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_WR)
        self.proxy._spawn(self._close_later(2))

    def silence(self, fate, near=True, far=True):
        """From here on nothing comes through from the near, the far, or both ends."""
        self.is_silent = True
        if near:
            self.fate[self.near] = fate
        if far:
            self.fate[self.far] = fate
        self.proxy._spawn(self._close_later(SILENCE))

    async def stall(self, seconds):
        self.fate = dict.fromkeys(self.fate, "frozen")
        gone, poll = {}, select.poll()
        ends = {end.fileno(): end for end in self.fate}
        for number in ends:
            poll.register(number, select.POLLRDHUP)
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            await asyncio.sleep(0.2)
            if self not in self.proxy.connections:
                return
            for number, _ in poll.poll(0):
                gone.setdefault(number, time.monotonic())
        if any(time.monotonic() - when >= self.proxy.stale for when in gone.values()):
            self.tear()
        elif all(fate == "frozen" for fate in self.fate.values()):
            self.fate = dict.fromkeys(self.fate, "")

    def stall_for(self, seconds):
        self.proxy._spawn(self.stall(seconds))

    async def _close_later(self, seconds):
        await asyncio.sleep(seconds)
        if self in self.proxy.connections:
            self.tear()
