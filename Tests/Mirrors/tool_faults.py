"""Faults of a web service, in three places that add up: before the answer, instead of it, and on its way.

    slow      seconds            waits before anything else
    hang      [taken]            gives no answer until `release`; then the connection is reset
    status    status [retry_after]   answers with this status; 429 in the tool's own form
    gone                         answers as if the hook did not exist
    reset     [taken]            resets the connection before the answer
    cut                          resets it in the middle of the answer
    length    off                Content-Length is wrong by so many bytes; negative: too small

`taken` says whether the message is taken (shown in the tool) although the sender is not told. Each fault counts the requests
it is for; without a count it stays until `clear`. Of several in the same place the first one set comes first.
"""

import asyncio
import socket
import struct

BEFORE, INSTEAD, ON_ITS_WAY = ("slow",), ("hang", "status", "gone", "reset"), ("cut", "length")


class Faults:
    def __init__(self):
        self.active = []
        self.released = asyncio.Event()

    def set(self, kind, count=None, **arguments):
        if kind not in BEFORE + INSTEAD + ON_ITS_WAY:
            raise ValueError("no fault %r" % kind)
        needed = {"slow": "seconds", "status": "status", "length": "off"}.get(kind)
        if needed and needed not in arguments:
            raise ValueError("%s needs %s" % (kind, needed))
        if kind == "hang":
            self.released.clear()
        self.active.append({"kind": kind, "left": count, **arguments})

    def clear(self):
        self.active.clear()
        self.released.set()

    def due(self, *kinds):
        """The first active fault of these kinds, which is one use nearer to its end."""
        for fault in self.active:
            if fault["kind"] in kinds:
                if fault["left"] is not None:
                    fault["left"] -= 1
                    if fault["left"] <= 0:
                        self.active.remove(fault)
                return fault
        return None


def reset(transport):
    """Ends a connection with RST instead of FIN."""
    if transport is None or transport.is_closing():
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
