"""IRC over a WebSocket, as a page in a browser has it: text frames, a line in each, the subprotocol text.ircv3.net."""

import asyncio
import base64
import hashlib
import os

from relay import CLOSE, MAGIC, PING, PONG, TEXT, FrameReader, frame

PATH, SUBPROTOCOL = "/irc", "text.ircv3.net"
# What a client's record says of frames that no page could read, and of a close frame of the relay.
BAD, CLOSED = "no frame for a page: ", "closed by the relay: "


class Ended(ConnectionError):
    """The relay said good-bye, or something that no page understands."""


class Page:
    """Looks like the two streams of a connection to a client of IRC."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.transport = reader, writer, writer.transport
        self.frames, self.waiting = FrameReader(), []

    async def open(self, port):
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write((
            "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: %s\r\n\r\n" % (PATH, port, port, key, SUBPROTOCOL)).encode())
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            raise Ended("the connection ended") from None
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        accept = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
        if " 101 " not in head[0] or fields.get("sec-websocket-accept") != accept:
            raise Ended(BAD + head[0])
        if fields.get("sec-websocket-protocol") != SUBPROTOCOL or "sec-websocket-extensions" in fields:
            raise Ended(BAD + "what it did not ask for: %r" % head)

    async def readline(self):
        """A line, with its end; b"": the connection ended."""
        while not self.waiting:
            data = await self.reader.read(1 << 16)
            if not data:
                return b""
            self.waiting = self.frames.feed(data)
        opcode, payload = self.waiting.pop(0)
        if opcode == TEXT:
            try:
                payload.decode()
            except UnicodeDecodeError:
                raise Ended(BAD + repr(payload)) from None
            if b"\n" in payload or b"\r" in payload:
                raise Ended(BAD + repr(payload))
            return payload + b"\n"
        if opcode == CLOSE:
            self.writer.write(frame(payload, CLOSE, masked=True))
            raise Ended("%s%d %s" % (CLOSED, int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace")))
        if opcode == PING:
            self.writer.write(frame(payload, PONG, masked=True))
        elif opcode != PONG:
            raise Ended(BAD + "opcode %d" % opcode)
        return await self.readline()

    def write(self, line):
        self.writer.write(frame(line.rstrip(b"\r\n"), TEXT, masked=True))
