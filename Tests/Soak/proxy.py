"""The wires between the processes, in the harness's hand: each connection goes through here and can be cut.

    fin      both ends are told, what was on its way is gone
    rst      both ends are torn off
    silent   nobody is told anything: bytes vanish, or wait for ever, in one direction or in both
    stall    bytes wait, and go on their way when it is over; what an end has left behind that went away meanwhile follows,
             unless it went longer ago than the proxy's `stale`
"""

import asyncio
import contextlib
import select
import socket
import struct
import time

# A silent connection that neither end gives up is torn off after so long, in seconds.
SILENCE = 90


class Proxy:
    """Listens on a port of its own for as long as the soak runs; `target()` is the port behind it, or None."""

    def __init__(self, target, stale=0):
        self.target, self.stale = target, stale
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
        self.pumps = []

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
                data = await loop.sock_recv(source, 1 << 16)
                # What was being waited for comes in although bytes wait here from now on.
                while self.fate[source] == "frozen":
                    await asyncio.sleep(0.1)
                if self.fate[source]:
                    if not data:
                        # One end has given up; the other is not told.
                        return
                    continue
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    break
                await loop.sock_sendall(sink, data)
        except OSError:
            if not any(self.fate.values()):
                self.tear()
            return
        if all(pump.done() or pump is asyncio.current_task() for pump in self.pumps):
            self._close()

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
