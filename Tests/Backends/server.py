#!/usr/bin/env python3
"""Chat backends to test against, one for each dialect.

    python3 server.py --dialect NAME --port N [--control-port M] [options]

One process = one backend on 127.0.0.1.  When it listens it prints one JSON line on stdout:
    {"ready": true, "dialect": ..., "port": ..., "control_port": ..., "url": ..., "pid": ...}
Everything a test may want a *remote* person or a broken network to do goes through the control
port (HTTP, JSON) -- see README.md.  Nothing here leaves the loopback interface.
"""
from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import signal
import ssl
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any, Optional
from urllib.parse import unquote

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp import __version__ as aiohttp_release

aiohttp_version = tuple(int(part) for part in aiohttp_release.split(".")[:2])
APPLE_EPOCH = 978307200.0
NS = uuid.UUID("6f1c1c1e-0000-4000-8000-c4a7b21d6e00")


def now() -> float:
    return time.time()


def iso_ms(t: Optional[float] = None) -> str:
    d = datetime.fromtimestamp(now() if t is None else t, timezone.utc)
    return d.strftime("%Y-%m-%dT%H:%M:%S.") + f"{d.microsecond // 1000:03d}Z"


def iso_s(t: Optional[float] = None) -> str:
    return datetime.fromtimestamp(now() if t is None else t, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def user_uuid(name: str) -> str:
    """Stable UUID for a made-up user, upper-case as Swift prints them."""
    return str(uuid.uuid5(NS, name)).upper()


def new_uuid() -> str:
    return str(uuid.uuid4()).upper()


def dumps(obj: Any) -> str:
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":"))


def dumps_swift(obj: Any) -> str:
    """JSON the way Foundation's JSONEncoder spells it: '/' escaped, integral doubles without '.0'."""
    def fix(v: Any) -> Any:
        if isinstance(v, float) and v.is_integer() and abs(v) < 2 ** 53:
            return int(v)
        if isinstance(v, dict):
            return {k: fix(x) for k, x in v.items()}
        if isinstance(v, list):
            return [fix(x) for x in v]
        return v
    return json.dumps(fix(obj), ensure_ascii=False, separators=(",", ":")).replace("/", "\\/")


def is_subset(want: Any, got: Any) -> bool:
    if isinstance(want, dict):
        return isinstance(got, dict) and all(k in got and is_subset(v, got[k]) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(is_subset, want, got))
    return want == got


class ControlError(Exception):
    pass


class Conn:
    _next = 1

    def __init__(self, ws: web.WebSocketResponse, request: web.Request):
        self.id = Conn._next
        Conn._next += 1
        self.ws = ws
        self.path = request.path
        self.request = request
        self.lock = asyncio.Lock()
        self.room: Any = None
        self.user: Any = None
        self.token: Optional[str] = None
        self.data: dict[str, Any] = {}
        self.waiting_pong = False
        self.closing: Optional[asyncio.Event] = None
        self.opened = now()

    def describe(self) -> dict:
        return {"id": self.id, "path": self.path, "room": self.room, "user": self.user,
                "headers": dict(self.request.headers), "query": dict(self.request.query),
                "protocol": self.ws.ws_protocol}


class Backend:
    name = "?"
    max_msg_size = 4 * 1024 * 1024
    binary_out = False

    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.conns: dict[int, Conn] = {}
        self.received: list[dict] = []
        self.http_log: list[dict] = []
        self.handshakes = 0
        self.accepting = 0
        self.most_accepting = 0
        self.changed = asyncio.Condition()
        self.tasks: set[asyncio.Task] = set()
        self.stopping = asyncio.Event()
        self.files: dict[str, dict] = {}
        self.lying: list[tuple] = []
        self.cfg: dict[str, Any] = {
            "delay_ms": 0,          # delay before every frame the server sends
            "pong": True,           # answer protocol-level pings
            "ping_interval": 0.0,   # protocol-level pings from the server (0 = off)
            "ping_fail_code": 1000, # close code when a ping goes unanswered
            "echo": "none",         # none | all : does a message come back to its sender
            "stall": False,         # swallow everything the server would send
            "hang": False,          # frames are read and lie about until `take`
            "accept_delay_ms": 0,   # delay before completing the handshake
            "refuse": 0,            # refuse that many handshakes (-1 = all)
            "refuse_status": 502,
            "refuse_headers": {},
            "reject": None,         # {"code":..,"message":..,"count":-1}: refuse messages, dialect-specific
            "http_fail": None,      # {"status":500,"count":1,"path":"regex"}
            "http_delay_ms": 0,
        }
        self.cfg.update(self.defaults())
        for item in args.set or []:
            k, _, v = item.partition("=")
            try:
                self.cfg[k] = json.loads(v)
            except ValueError:
                self.cfg[k] = v

    # ---- overridden per dialect -------------------------------------------------------------
    def defaults(self) -> dict:
        return {}

    def ws_path(self) -> str:
        return "/"

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/{tail:.*}", self.ws_entry)

    async def handshake(self, request: web.Request) -> Any:
        """Return a web.Response to refuse, or a dict stored on the connection."""
        return {}

    def protocols(self, request: web.Request) -> list[str]:
        return []

    async def on_open(self, conn: Conn) -> None:
        pass

    async def on_text(self, conn: Conn, text: str, op: str) -> None:
        pass

    async def on_close(self, conn: Conn) -> None:
        pass

    def swift_json(self) -> bool:
        return True

    # ---- plumbing ---------------------------------------------------------------------------
    def spawn(self, coro) -> asyncio.Task:
        t = asyncio.create_task(coro)
        self.tasks.add(t)
        t.add_done_callback(self.tasks.discard)
        return t

    def room_conns(self, room: Any = None) -> list[Conn]:
        return [c for c in self.conns.values() if room is None or c.room == room]

    async def send_raw(self, conn: Conn, payload: str | bytes) -> None:
        async with conn.lock:
            if self.cfg["stall"]:
                return
            if self.cfg["delay_ms"]:
                await asyncio.sleep(self.cfg["delay_ms"] / 1000)
            if conn.ws.closed:
                return
            with contextlib.suppress(ConnectionError, RuntimeError):
                if isinstance(payload, bytes):
                    await conn.ws.send_bytes(payload)
                else:
                    await conn.ws.send_str(payload)

    async def send(self, conn: Conn, obj: Any) -> None:
        text = dumps_swift(obj) if self.swift_json() else dumps(obj)
        await self.send_raw(conn, text.encode() if self.binary_out else text)

    async def close(self, conn: Conn, code: int = 1000, reason: str = "") -> None:
        """Close with this code even when another task is the reader (which then waits in ws_entry)."""
        conn.closing = asyncio.Event()
        try:
            await conn.ws.close(code=code, message=reason.encode())
        finally:
            conn.closing.set()

    async def broadcast(self, obj: Any, room: Any = None, exclude: Optional[Conn] = None) -> int:
        targets = [c for c in self.room_conns(room) if c is not exclude]
        for c in targets:
            await self.send(c, obj)
        return len(targets)

    async def note(self, conn: Conn, op: str, data: str | bytes) -> None:
        rec: dict[str, Any] = {"n": len(self.received) + 1, "conn": conn.id, "room": conn.room, "op": op, "at": now()}
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        if isinstance(data, bytes):
            rec["b64"] = base64.b64encode(data).decode()
        rec["text"] = text
        with contextlib.suppress(ValueError):
            rec["json"] = json.loads(text)
        self.received.append(rec)
        async with self.changed:
            self.changed.notify_all()

    async def ws_entry(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(status=426, text="this endpoint speaks WebSocket")
        self.handshakes += 1
        async with self.changed:
            self.changed.notify_all()
        if self.cfg["refuse"]:
            if self.cfg["refuse"] > 0:
                self.cfg["refuse"] -= 1
            return web.Response(status=int(self.cfg["refuse_status"]), headers=self.cfg["refuse_headers"])
        if self.cfg["accept_delay_ms"]:
            self.accepting += 1
            self.most_accepting = max(self.most_accepting, self.accepting)
            await asyncio.sleep(self.cfg["accept_delay_ms"] / 1000)
            self.accepting -= 1
        ctx = await self.handshake(request)
        if isinstance(ctx, web.StreamResponse):
            return ctx
        ws = web.WebSocketResponse(autoping=False, compress=False, heartbeat=None, timeout=1.0,
                                   max_msg_size=self.max_msg_size, protocols=self.protocols(request))
        if self.cfg.get("force_protocol"):
            ws.headers["Sec-WebSocket-Protocol"] = self.cfg["force_protocol"]
        await ws.prepare(request)
        conn = Conn(ws, request)
        for k, v in (ctx or {}).items():
            setattr(conn, k, v) if k in ("room", "user", "token") else conn.data.__setitem__(k, v)
        self.conns[conn.id] = conn
        pinger = self.spawn(self.ping_loop(conn))
        try:
            await self.on_open(conn)
            async for msg in ws:
                if msg.type == WSMsgType.PING:
                    if self.cfg["pong"] and not self.cfg["stall"]:
                        await ws.pong(msg.data)
                elif msg.type == WSMsgType.PONG:
                    conn.waiting_pong = False
                elif msg.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await self.note(conn, "text" if msg.type == WSMsgType.TEXT else "binary", msg.data)
                    if self.cfg["hang"]:
                        self.received[-1]["taken"] = False
                        self.lying.append((conn, self.received[-1], msg.data))
                    else:
                        await self.act_upon(conn, msg.data)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            pinger.cancel()
            self.conns.pop(conn.id, None)
            if conn.closing is not None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(conn.closing.wait(), 2)
            await self.on_close(conn)
            async with self.changed:
                self.changed.notify_all()
        return ws

    async def act_upon(self, conn: Conn, data: str | bytes) -> None:
        if isinstance(data, str):
            await self.on_text(conn, data, "text")
        else:
            await self.on_binary(conn, data)

    async def on_binary(self, conn: Conn, data: bytes) -> None:
        await self.on_text(conn, data.decode("utf-8", "replace"), "binary")

    async def ping_loop(self, conn: Conn) -> None:
        last = now()
        with contextlib.suppress(ConnectionError, RuntimeError):
            while not conn.ws.closed:
                await asyncio.sleep(0.1)
                every = self.cfg["ping_interval"]
                if every and now() - last >= every:
                    last = now()
                    if conn.waiting_pong:
                        # websocket-kit maps its internal 1006 to 1000 on the wire; uvicorn says 1011
                        self.spawn(self.close(conn, int(self.cfg["ping_fail_code"])))
                        return
                    conn.waiting_pong = True
                    if not self.cfg["stall"]:
                        await conn.ws.ping()

    @web.middleware
    async def http_faults(self, request: web.Request, handler):
        is_ws = request.headers.get("Upgrade", "").lower() == "websocket"
        if is_ws:
            return await handler(request)
        entry = {"n": len(self.http_log) + 1, "method": request.method, "path": request.path, "at": now(),
                 "query": dict(request.query), "status": None}
        self.http_log.append(entry)
        try:
            answer = await self.http_answer(request, handler)
            entry["status"] = answer.status
            return answer
        except web.HTTPException as e:
            entry["status"] = e.status
            raise

    async def http_answer(self, request: web.Request, handler):
        if self.cfg["http_delay_ms"]:
            await asyncio.sleep(self.cfg["http_delay_ms"] / 1000)
        f = self.cfg["http_fail"]
        if f and re.search(f.get("path", ""), request.path):
            left = f.get("count", -1)
            if left:
                if left > 0:
                    f["count"] = left - 1
                return web.json_response(f.get("body", {"detail": "injected"}), status=f.get("status", 500),
                                         headers=f.get("headers"))
        return await handler(request)

    # ---- control ----------------------------------------------------------------------------
    async def control(self, op: str, a: dict) -> dict:
        fn = getattr(self, "op_" + op.replace("-", "_"), None)
        if fn is None:
            raise ControlError(f"no operation {op!r} in dialect {self.name}")
        res = await fn(a)
        return {"ok": True, **(res or {})}

    async def op_state(self, a: dict) -> dict:
        return {"dialect": self.name, "handshakes": self.handshakes, "handshakes_at_once": self.most_accepting, "received": len(self.received),
                "connections": [c.describe() for c in self.conns.values()],
                "cfg": self.cfg, **self.extra_state()}

    def extra_state(self) -> dict:
        return {}

    async def op_received(self, a: dict) -> dict:
        since = int(a.get("since", 0))
        return {"frames": self.received[since:], "next": len(self.received)}

    async def op_http(self, a: dict) -> dict:
        """Every HTTP request beside the socket, in order."""
        since = int(a.get("since", 0))
        return {"requests": self.http_log[since:], "next": len(self.http_log)}

    async def op_wait(self, a: dict) -> dict:
        """Wait until `count` received frames since `since` match (recursive subset), or for N connections."""
        since, count = int(a.get("since", 0)), int(a.get("count", 1))
        match, op, want = a.get("match"), a.get("frame_op"), a.get("connections")
        hs = a.get("handshakes")

        def hits() -> list[dict]:
            return [r for r in self.received[since:]
                    if (match is None or is_subset(match, r.get("json"))) and (op is None or r["op"] == op)
                    and (a.get("contains") is None or a["contains"] in r["text"])]

        def done() -> bool:
            if want is not None:
                return len(self.conns) == want
            if hs is not None:
                return self.handshakes >= hs
            return len(hits()) >= count
        deadline = now() + float(a.get("timeout", 5))
        async with self.changed:
            while not done():
                left = deadline - now()
                if left <= 0:
                    return {"ok": False, "timeout": True, "frames": [] if want is not None or hs is not None else hits(),
                            "connections": len(self.conns), "handshakes": self.handshakes}
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), left)
        return {"frames": [] if want is not None or hs is not None else hits(), "next": len(self.received),
                "connections": len(self.conns), "handshakes": self.handshakes}

    async def op_set(self, a: dict) -> dict:
        unknown = [k for k in a if k not in self.cfg]
        if unknown:
            raise ControlError(f"unknown setting(s) {unknown}; known: {sorted(self.cfg)}")
        self.cfg.update(a)
        return {"cfg": self.cfg}

    async def op_raw(self, a: dict) -> dict:
        payload: Any
        if "b64" in a:
            payload = base64.b64decode(a["b64"])
            if a.get("frame_op") == "text":
                payload = payload.decode("utf-8")
        elif "text" in a:
            payload = a["text"].encode() if a.get("frame_op") == "binary" else a["text"]
        else:
            text = dumps(a["json"])
            payload = text.encode() if a.get("frame_op") == "binary" else text
        targets = [c for c in self.room_conns(a.get("room")) if a.get("conn") in (None, c.id)]
        for c in targets:
            await self.send_raw(c, payload)
        return {"sent": len(targets)}

    async def op_drop(self, a: dict) -> dict:
        targets = [c for c in self.room_conns(a.get("room")) if a.get("conn") in (None, c.id)]
        for c in targets:
            if a.get("abort"):
                tr = c.request.transport
                if tr is not None:
                    tr.abort()
            else:
                self.spawn(self.close(c, int(a.get("code", 1001)), str(a.get("reason", ""))))
        if a.get("refuse") is not None:
            self.cfg["refuse"] = int(a["refuse"])
        return {"dropped": len(targets)}

    async def op_take(self, a: dict) -> dict:
        """What lies about is taken, in order; with drop:true it is gone."""
        lying, self.lying = self.lying, []
        for conn, record, data in lying if not a.get("drop") else ():
            record["taken"] = True
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self.act_upon(conn, data)
        return {"lying": len(lying)}

    async def op_reset(self, a: dict) -> dict:
        self.received.clear()
        return {}

    async def op_shutdown(self, a: dict) -> dict:
        asyncio.get_running_loop().call_later(0.05, self.stopping.set)
        return {}

    # operations that have no wire form in a dialect still succeed, so a test can be generic
    async def _nowire(self, a: dict) -> dict:
        return {"wire": False}

    op_join = op_leave = op_read = op_typing = op_edit = op_delete = op_react = _nowire

    async def op_expire_tokens(self, a: dict) -> dict:
        return {"wire": False}

    def take_reject(self) -> Optional[dict]:
        r = self.cfg["reject"]
        if not r:
            return None
        left = r.get("count", -1)
        if left == 0:
            return None
        if left > 0:
            r["count"] = left - 1
        return r


# =================================================================================== envelope
class Envelope(Backend):
    """Broadcast relay: every frame goes, as text, to every client including its sender."""
    name = "envelope"

    def defaults(self) -> dict:
        return {"echo": "all", "rooms_by_path": False}

    async def handshake(self, request):
        return {"room": request.path if self.cfg["rooms_by_path"] else None}

    async def on_text(self, conn, text, op):
        if self.take_reject():
            return
        for c in self.room_conns(conn.room):
            if c is conn and self.cfg["echo"] == "none":
                continue
            await self.send_raw(c, text)

    def frame(self, a: dict, event: str, body: str = "", mid: Optional[str] = None) -> dict:
        user = a.get("user", "Bo")
        return {"event": event, "message_id": mid or a.get("id") or new_uuid(),
                "sender_id": a.get("user_id") or user_uuid(user), "sender_name": user,
                "body": body, "sent_at": a.get("at", now())}

    async def op_say(self, a):
        f = self.frame(a, "message", a.get("text", ""))
        return {"sent": await self.broadcast(f, a.get("room")), "id": f["message_id"], "frame": f}

    async def op_typing(self, a):
        if a.get("state", "start") == "stop":
            return {"wire": False}
        return {"sent": await self.broadcast(self.frame(a, "typing"), a.get("room"))}

    async def op_read(self, a):
        return {"sent": await self.broadcast(self.frame(a, "readReceipt", mid=a["id"]), a.get("room"))}

    async def op_upload(self, a):
        body = a.get("url") or "data:%s;base64,%s" % (a.get("mime", "application/octet-stream"), a.get("data_b64", ""))
        return await self.op_say({**a, "text": body})


# ================================================================================== swiftchat
class SwiftChat(Backend):
    """Vapor /chat: server stamps id and date, echoes to everybody, silently ignores what it cannot decode."""
    name = "swiftchat"
    max_msg_size = (1 << 14) + 1

    def defaults(self) -> dict:
        return {"echo": "all", "ping_interval": 10.0}

    def ws_path(self):
        return "/chat"

    def routes(self, app):
        app.router.add_get("/chat", self.ws_entry)

    async def on_binary(self, conn, data):
        return  # the server only registers a text handler

    async def on_text(self, conn, text, op):
        if self.take_reject():
            return
        try:
            m = json.loads(text)
            message, user, uid = m["message"], m["user"], m["userID"]
            if not isinstance(message, str) or not isinstance(user, str) or not isinstance(uid, str):
                return
            if not re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", uid):
                return
        except (ValueError, KeyError, TypeError):
            return
        await self.relay(conn, message, user, uid)

    async def relay(self, conn, message, user, uid, mid=None, at=None):
        f = {"date": (now() if at is None else at) - APPLE_EPOCH, "id": mid or new_uuid(),
             "message": message, "user": user, "userID": uid.upper()}
        n = await self.broadcast(f, exclude=conn if self.cfg["echo"] == "none" else None)
        return {"sent": n, "id": f["id"], "frame": f}

    async def op_say(self, a):
        user = a.get("user", "Kim")
        return await self.relay(None, a.get("text", ""), user, a.get("user_id") or user_uuid(user), a.get("id"), a.get("at"))

    async def op_upload(self, a):
        return await self.op_say({**a, "text": a.get("url", a.get("filename", ""))})


# ====================================================================================== typed
class Typed(Backend):
    """{type, payload: base64} envelopes in binary frames; token in header or query; subprotocols."""
    name = "typed"
    binary_out = True

    def defaults(self) -> dict:
        return {"auth": "none", "tokens": ["test-token"], "subprotocols": [], "echo": "none",
                "receipts": True, "force_protocol": None}

    async def handshake(self, request):
        q, h = request.query.get("token"), request.headers.get("Authorization", "")
        token = h[7:] if h[:7].lower() == "bearer " else q
        if self.cfg["auth"] != "none" and token not in self.cfg["tokens"]:
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return {"token": token, "via": "header" if h else "query" if q else None,
                "room": request.path.strip("/").split("/")[-1] or None}

    def protocols(self, request):
        return [] if self.cfg["force_protocol"] else list(self.cfg["subprotocols"])

    @staticmethod
    def wrap(type_: str, payload: Any) -> dict:
        return {"type": type_, "payload": base64.b64encode(dumps_swift(payload).encode()).decode()}

    async def on_text(self, conn, text, op):
        try:
            env = json.loads(text)
            payload = json.loads(base64.b64decode(env["payload"], validate=True))
        except (ValueError, KeyError, TypeError):
            return
        r = self.take_reject()
        ref = payload.get("id") if isinstance(payload, dict) else None
        if r:
            await self.send(conn, self.wrap("chat.error", {"code": r.get("code", "rejected"),
                                                           "message": r.get("message", "rejected"), "ref": ref}))
            return
        for c in self.room_conns(conn.room):
            if c is conn and self.cfg["echo"] != "all":
                continue
            await self.send(c, env)
        if env.get("type") == "chat.message" and self.cfg["receipts"]:
            await self.send(conn, self.wrap("chat.receipt", {"room": conn.room, "ids": [ref], "state": "sent"}))

    async def cast(self, a, type_, payload):
        return {"sent": await self.broadcast(self.wrap(type_, payload), a.get("room")), "payload": payload,
                "id": payload.get("id")}

    def who(self, a):
        u = a.get("user", "dot")
        return {"room": a.get("room"), "senderId": a.get("user_id") or user_uuid(u), "senderName": u}

    async def op_say(self, a):
        p = {"id": a.get("id") or new_uuid(), **self.who(a), "text": a.get("text", ""),
             "sentAt": a.get("at", now()) - APPLE_EPOCH}
        if a.get("attachments"):
            p["attachments"] = a["attachments"]
        if a.get("reply_to"):
            p["replyTo"] = a["reply_to"]
        return await self.cast(a, "chat.message", p)

    async def op_typing(self, a):
        return await self.cast(a, "chat.typing", {**self.who(a), "active": a.get("state", "start") == "start"})

    async def op_read(self, a):
        return await self.cast(a, "chat.receipt", {**self.who(a), "ids": [a["id"]], "state": a.get("state", "read")})

    async def op_edit(self, a):
        return await self.cast(a, "chat.edit", {"id": a["id"], **self.who(a), "text": a["text"], "editedAt": now() - APPLE_EPOCH})

    async def op_delete(self, a):
        return await self.cast(a, "chat.delete", {**self.who(a), "ids": [a["id"]]})

    async def op_react(self, a):
        return await self.cast(a, "chat.reaction", {**self.who(a), "messageId": a["id"], "emoji": a["emoji"],
                                                    "active": a.get("action", "add") == "add"})

    async def op_join(self, a):
        w = self.who(a)
        return await self.cast(a, "chat.presence", {"room": w["room"], "userId": w["senderId"], "userName": w["senderName"], "state": "joined"})

    async def op_leave(self, a):
        w = self.who(a)
        return await self.cast(a, "chat.presence", {"room": w["room"], "userId": w["senderId"], "userName": w["senderName"], "state": "left"})

    async def op_upload(self, a):
        fid = "%s-%s" % (uuid.uuid4(), os.path.basename(a.get("filename", "file.bin")))
        self.files[fid] = {"data": base64.b64decode(a.get("data_b64", "")), "mime": a.get("mime", "application/octet-stream")}
        return await self.op_say({**a, "attachments": [{"url": a.get("url", "https://files.invalid/" + fid), "name": a.get("filename"),
                                                        "mimeType": a.get("mime"), "size": len(self.files[fid]["data"])}]})


# ================================================================================== plainjson
class PlainJSON(Backend):
    """The article's own JSON: messages, typing/stopTyping, ack; one socket per conversation."""
    name = "plainjson"

    def defaults(self) -> dict:
        return {"auth": "none", "tokens": ["test-token"], "echo": "none", "replay": "off",
                "conversation_key": True, "timestamp": "iso8601", "ack_extras": True, "auto_ack": False}

    def ws_path(self):
        return "/ws/main"

    def routes(self, app):
        self.log: dict[str, list[dict]] = {}
        self.owner: dict[str, Conn] = {}
        app.router.add_get("/ws", self.ws_entry)
        app.router.add_get("/ws/{room}", self.ws_entry)
        app.router.add_get("/messages/{room}", self.http_history)

    def _auth(self, request):
        h = request.headers.get("Authorization", "")
        token = h[7:] if h[:7].lower() == "bearer " else request.query.get("token")
        return self.cfg["auth"] == "none" or token in self.cfg["tokens"]

    async def handshake(self, request):
        if not self._auth(request):
            return web.Response(status=401)
        return {"room": unquote(request.match_info.get("room") or "main")}

    async def http_history(self, request):
        if not self._auth(request):
            return web.json_response({"error": "unauthorized"}, status=401)
        msgs = self.log.get(request.match_info["room"], [])
        since = request.query.get("since")
        if since:
            msgs = [m for m in msgs if str(m["timestamp"]) > since]
        return web.json_response(msgs[-int(request.query.get("limit", 50)):])

    async def on_text(self, conn, text, op):
        try:
            m = json.loads(text)
        except ValueError:
            return
        if not isinstance(m, dict):
            return
        t = m.get("type")
        if t == "ack":
            owner = self.owner.get(str(m.get("messageId")))
            if owner is not None and owner in self.conns.values():
                await self.send(owner, m)
            return
        if t in ("typing", "stopTyping"):
            await self.broadcast(m, conn.room, exclude=conn)
            return
        if t == "lastOnline":
            missed = [x for x in self.log.get(conn.room, []) if str(x["timestamp"]) > str(m.get("timestamp", ""))]
            if self.cfg["replay"] == "array":
                await self.send(conn, missed)
            elif self.cfg["replay"] == "frames":
                for x in missed:
                    await self.send(conn, x)
            return
        if not isinstance(m.get("text"), str) or not isinstance(m.get("id"), str):
            return
        if self.take_reject():
            return
        self.owner[m["id"]] = conn
        self.log.setdefault(conn.room, []).append(m)
        await self.broadcast(m, conn.room, exclude=None if self.cfg["echo"] == "all" else conn)
        if self.cfg["auto_ack"]:      # somebody else's client shows it at once
            await self.send(conn, {"type": "ack", "messageId": m["id"]})

    def stamp(self, a):
        t = a.get("at", now())
        return iso_s(t) if self.cfg["timestamp"] == "iso8601" else t - APPLE_EPOCH

    async def op_say(self, a):
        u, room = a.get("user", "nia"), a.get("room")
        m = {"id": a.get("id") or new_uuid(), "senderId": a.get("user_id") or user_uuid(u), "senderName": u,
             "text": a.get("text", ""), "timestamp": self.stamp(a), "type": a.get("type", "text")}
        if a.get("metadata") is not None:
            m["metadata"] = a["metadata"]
        if self.cfg["conversation_key"] and room:
            m["conversationId"] = room
        self.log.setdefault(room or "main", []).append(m)
        return {"sent": await self.broadcast(m, room), "id": m["id"], "frame": m}

    async def op_typing(self, a):
        u = a.get("user", "nia")
        return {"sent": await self.broadcast({"type": "typing" if a.get("state", "start") == "start" else "stopTyping",
                                              "userId": a.get("user_id") or user_uuid(u), "conversationId": a.get("room") or "main"}, a.get("room"))}

    async def op_read(self, a):
        f = {"type": "ack", "messageId": a["id"]}
        if self.cfg["ack_extras"] and a.get("user"):
            f.update(userId=a.get("user_id") or user_uuid(a["user"]), status=a.get("state", "read"))
        owner = self.owner.get(a["id"])
        if owner is not None and owner in self.conns.values():
            await self.send(owner, f)
            return {"sent": 1}
        return {"sent": await self.broadcast(f, a.get("room"))}

    async def op_upload(self, a):
        kind = a.get("mime", "").split("/")[0]
        return await self.op_say({**a, "type": kind if kind in ("image", "video") else "text", "text": a.get("text", ""),
                                  "metadata": {"url": a.get("url", "https://files.invalid/" + a.get("filename", "f")),
                                               "filename": a.get("filename", "f"), "mimeType": a.get("mime", ""),
                                               "size": str(len(base64.b64decode(a.get("data_b64", ""))))}})

    async def op_system(self, a):
        return await self.op_say({**a, "user": a.get("user", "system"), "type": "system"})


# ================================================================================== jwt-rooms
def b64u(b: bytes) -> str:
    return base64.urlsafe_b64encode(b).rstrip(b"=").decode()


class JwtRooms(Backend):
    """Room-based backend: JWT in ?token=, REST for login/refresh/rooms/messages/upload, no self-echo."""
    name = "jwt-rooms"
    EMOJI = ["👍", "❤️", "😂", "😮", "😢", "😡"]

    def defaults(self) -> dict:
        return {"ping_interval": 20.0, "ping_fail_code": 1011,      # uvicorn's defaults
                "access_ttl": 1800, "refresh_ttl": 7 * 86400, "typing": "compat", "user_left": False,
                "json_ping": 0.0, "close_on_expiry": False, "max_upload": 10 * 1024 * 1024,
                "naive_offset": 0}

    def swift_json(self):
        return False

    def ws_path(self):
        return "/ws/chat/1"

    def routes(self, app):
        self.secret = secrets.token_bytes(32)
        self.users: dict[str, dict] = {}
        self.rooms: dict[int, dict] = {}
        self.messages: dict[int, dict] = {}
        self.revoked: set[str] = set()
        self.issued: dict[str, str] = {}
        for spec in self.args.seed_user or ["admin:admin123", "user1:password123", "user2:password123"]:
            n, _, p = spec.partition(":")
            self.add_user(n, p)
        for r in self.args.seed_room or ["General", "Random", "Tech Talk"]:
            self.add_room(r)
        r = app.router
        r.add_get("/ws/chat/{room}", self.ws_entry)
        r.add_get("/health", self._wrap(lambda q: {"status": "healthy"}))
        r.add_post("/api/auth/signup", self.h_signup)
        r.add_post("/api/auth/login", self.h_login)
        r.add_post("/api/auth/refresh", self.h_refresh)
        r.add_post("/api/auth/logout", self.h_logout)
        r.add_get("/api/auth/me", self.h_me)
        r.add_get("/api/rooms", self.h_rooms)
        r.add_post("/api/rooms", self.h_new_room)
        r.add_get("/api/rooms/{id}", self.h_room)
        r.add_post("/api/rooms/{id}/mark-read", self.h_mark_read)
        r.add_get("/api/messages/{id}", self.h_messages)
        r.add_get("/api/messages/{id}/recent", self.h_recent)
        r.add_post("/api/upload-file", self.h_upload)
        r.add_get("/api/files/{name}", self.h_file)
        r.add_post("/api/reactions/add", self.h_react)
        r.add_delete("/api/reactions/remove/{id}", self.h_unreact)
        r.add_get("/api/reactions/available", self._wrap(lambda q: self.EMOJI))

    @staticmethod
    def _wrap(fn):
        async def h(request):
            return web.json_response(fn(request))
        return h

    # -- model
    def add_user(self, name, password):
        self.users[name] = {"id": len(self.users) + 1, "username": name, "password": password,
                            "refresh": None, "refresh_exp": 0.0, "created_at": self.naive(sec=True)}
        return self.users[name]

    def add_room(self, name):
        rid = len(self.rooms) + 1
        self.rooms[rid] = {"id": rid, "name": name, "created_at": self.naive(sec=True)}
        return self.rooms[rid]

    def naive(self, sec=False, local=False):
        d = datetime.now(timezone.utc).replace(tzinfo=None)
        if local:
            d += timedelta(seconds=self.cfg["naive_offset"])
        return d.isoformat(timespec="seconds" if sec else "microseconds")

    def token(self, name):
        head = b64u(b'{"alg":"HS256","typ":"JWT"}')
        body = b64u(json.dumps({"sub": name, "exp": int(now() + self.cfg["access_ttl"]), "jti": secrets.token_hex(4)}).encode())
        sig = b64u(hmac.new(self.secret, f"{head}.{body}".encode(), hashlib.sha256).digest())
        tok = f"{head}.{body}.{sig}"
        self.issued[tok] = name
        return tok

    def verify(self, tok) -> Optional[dict]:
        try:
            head, body, sig = (tok or "").split(".")
            good = b64u(hmac.new(self.secret, f"{head}.{body}".encode(), hashlib.sha256).digest())
            if not hmac.compare_digest(good, sig) or tok in self.revoked:
                return None
            c = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            if c["exp"] <= now():
                return None
            return self.users.get(c["sub"])
        except (ValueError, KeyError, TypeError):
            return None

    # -- HTTP
    def auth(self, request):
        h = request.headers.get("Authorization")
        if not h or not h.lower().startswith("bearer "):
            raise web.HTTPForbidden(text=json.dumps({"detail": "Not authenticated"}), content_type="application/json")
        u = self.verify(h[7:])
        if u is None:
            raise web.HTTPUnauthorized(text=json.dumps({"detail": "Could not validate credentials"}),
                                       content_type="application/json", headers={"WWW-Authenticate": "Bearer"})
        return u

    @staticmethod
    def fail(status, detail):
        return web.json_response({"detail": detail}, status=status)

    async def body(self, request, *keys):
        try:
            b = await request.json()
            if not isinstance(b, dict) or any(not isinstance(b.get(k), str) for k in keys):
                raise ValueError
            return b
        except ValueError:
            raise web.HTTPUnprocessableEntity(text=json.dumps({"detail": [{"type": "missing", "loc": ["body", k], "msg": "Field required"} for k in keys]}),
                                              content_type="application/json")

    def pair(self, u):
        u["refresh"], u["refresh_exp"] = secrets.token_urlsafe(32), now() + self.cfg["refresh_ttl"]
        return web.json_response({"access_token": self.token(u["username"]), "refresh_token": u["refresh"], "token_type": "bearer"})

    async def h_signup(self, q):
        b = await self.body(q, "username", "password")
        if b["username"] in self.users:
            return self.fail(400, "Username already registered")
        self.add_user(b["username"], b["password"])
        return web.json_response({"message": "User registered successfully"})

    async def h_login(self, q):
        b = await self.body(q, "username", "password")
        u = self.users.get(b["username"])
        if not u or u["password"] != b["password"]:
            return self.fail(401, "Incorrect username or password")
        return self.pair(u)

    async def h_refresh(self, q):
        b = await self.body(q, "refresh_token")
        for u in self.users.values():
            if u["refresh"] and u["refresh"] == b["refresh_token"] and u["refresh_exp"] > now():
                return self.pair(u)
        return self.fail(401, "Invalid or expired refresh token")

    async def h_logout(self, q):
        self.auth(q)["refresh"] = None
        return web.json_response({"message": "Successfully logged out"})

    async def h_me(self, q):
        u = self.auth(q)
        return web.json_response({k: u[k] for k in ("username", "id", "created_at")})

    def unread(self, rid, u):
        return sum(1 for m in self.messages.values() if m["room_id"] == rid and m["sender"] != u["username"] and u["username"] not in m["_read"])

    async def h_rooms(self, q):
        u = self.auth(q)
        out = []
        for r in reversed(self.rooms.values()):
            last = [m for m in self.messages.values() if m["room_id"] == r["id"]][-1:]
            out.append({"name": r["name"], "id": r["id"], "created_at": r["created_at"],
                        "last_message": {k: last[0][k] for k in ("message_id", "sender", "message", "message_type", "timestamp")} if last else None,
                        "unread_count": self.unread(r["id"], u)})
        return web.json_response(out)

    async def h_new_room(self, q):
        self.auth(q)
        return web.json_response(self.add_room((await self.body(q, "name"))["name"]))

    def room_of(self, q):
        try:
            r = self.rooms.get(int(q.match_info["id"]))
        except ValueError:
            raise web.HTTPUnprocessableEntity(text='{"detail":[{"type":"int_parsing"}]}', content_type="application/json")
        if r is None:
            raise web.HTTPNotFound(text='{"detail":"Room not found"}', content_type="application/json")
        return r

    async def h_room(self, q):
        self.auth(q)
        return web.json_response(self.room_of(q))

    def mark(self, rid, u):
        n = 0
        for m in self.messages.values():
            if m["room_id"] == rid and m["sender"] != u["username"] and u["username"] not in m["_read"]:
                m["_read"].append(u["username"])
                n += 1
        return n

    async def h_mark_read(self, q):
        u = self.auth(q)
        n = self.mark(self.room_of(q)["id"], u)
        return web.json_response({"message": f"Marked {n} messages as read", "read_count": n})

    def view(self, m, u):
        out = {k: v for k, v in m.items() if not k.startswith("_")}
        out["reactions"] = self.summary(m)
        out["user_reaction"] = m["_react"].get(u["username"]) if u else None
        return out

    def summary(self, m):
        by: dict[str, list[str]] = {}
        for who, e in m["_react"].items():
            by.setdefault(e, []).append(who)
        return [{"reaction_type": e, "count": len(w), "users": w} for e, w in by.items()]

    async def h_messages(self, q):
        u, r = self.auth(q), self.room_of(q)
        return web.json_response([self.view(m, u) for m in self.messages.values() if m["room_id"] == r["id"]])

    async def h_recent(self, q):
        u, r = self.auth(q), self.room_of(q)
        ms = [self.view(m, u) for m in self.messages.values() if m["room_id"] == r["id"]]
        limit = int(q.query.get("limit", 50))
        # as the real backend: newest first by whole seconds, ties in id order, cut, then turned round
        ms.sort(key=lambda m: m["timestamp"], reverse=True)
        return web.json_response(ms[:limit][::-1])

    def store(self, name, data, mime):
        fn = f"{uuid.uuid4()}{os.path.splitext(name or 'file')[1]}"
        self.files[fn] = {"data": data, "mime": mime or "application/octet-stream", "name": name}
        return fn

    async def h_upload(self, q):
        self.auth(q)
        if not q.content_type.startswith("multipart/"):
            return self.fail(422, [{"type": "missing", "loc": ["body", "file"], "msg": "Field required"}])
        async for part in await q.multipart():
            if part.name == "file":
                data = bytes(await part.read(decode=False))
                if len(data) > self.cfg["max_upload"]:
                    return self.fail(400, "File size must be less than 10MB")
                mime = part.headers.get("Content-Type", "application/octet-stream")
                fn = self.store(part.filename, data, mime)
                return web.json_response({"file_url": f"/api/files/{fn}", "filename": fn, "file_size": len(data),
                                          "mime_type": mime, "message": "File uploaded successfully"})
        return self.fail(422, [{"type": "missing", "loc": ["body", "file"], "msg": "Field required"}])

    async def h_file(self, q):
        f = self.files.get(q.match_info["name"])
        if f is None:
            return self.fail(404, "File not found")
        return web.Response(body=f["data"], headers={"Content-Type": f["mime"]})

    async def h_react(self, q):
        u, b = self.auth(q), await q.json()
        m = self.messages.get(b.get("message_id"))
        if not m:
            return self.fail(404, "Message not found")
        m["_react"][u["username"]] = b["reaction_type"]
        return web.json_response({"success": True, "message": "Reaction added successfully", "reaction": None, "reaction_summary": self.summary(m)})

    async def h_unreact(self, q):
        u, m = self.auth(q), self.messages.get(int(q.match_info["id"]))
        if not m or u["username"] not in m["_react"]:
            return self.fail(404, "Reaction not found")
        del m["_react"][u["username"]]
        return web.json_response({"success": True, "message": "Reaction removed successfully", "reaction": None, "reaction_summary": self.summary(m)})

    # -- WebSocket
    async def handshake(self, request):
        ident = request.match_info["room"]
        try:
            rid: Optional[int] = int(ident)
        except ValueError:
            rid = next((r["id"] for r in self.rooms.values() if r["name"].lower() == unquote(ident).lower()), None)
        u = self.verify(request.query.get("token"))
        if rid is None or u is None:   # the real backend closes before accepting: HTTP 403, no close frame
            return web.Response(status=403)
        return {"room": rid, "user": u["username"], "token": request.query["token"]}

    async def on_open(self, conn):
        await self.broadcast({"type": "user_joined", "room_id": conn.room, "sender": conn.user,
                              "message": f"{conn.user} joined the chat", "timestamp": self.naive(local=True)}, conn.room, exclude=conn)
        room = self.rooms.get(conn.room)
        if room is None:
            await self.send(conn, {"type": "error", "message": "Room not found"})
            await self.close(conn)
            return
        self.mark(conn.room, self.users[conn.user])
        await self.send(conn, {"type": "connected", "room_id": conn.room, "room_name": room["name"],
                               "message": f"Connected to {room['name']}", "timestamp": self.naive(local=True)})
        if self.cfg["json_ping"]:
            self.spawn(self.json_pings(conn))
        if self.cfg["close_on_expiry"]:
            self.spawn(self.expiry(conn))

    async def json_pings(self, conn):
        while not conn.ws.closed:
            await self.send(conn, {"type": "ping", "timestamp": self.naive(local=True)})
            await asyncio.sleep(self.cfg["json_ping"])

    async def expiry(self, conn):
        while not conn.ws.closed:
            if self.verify(conn.token) is None:
                await self.close(conn, 1008, "Invalid authentication token")
                return
            await asyncio.sleep(0.1)

    async def on_close(self, conn):
        if self.cfg["user_left"]:
            await self.broadcast({"type": "user_left", "room_id": conn.room, "sender": conn.user,
                                  "message": f"{conn.user} left the chat", "timestamp": self.naive(local=True)}, conn.room)

    async def err(self, conn, text):
        await self.send(conn, {"type": "error", "message": text})

    async def on_text(self, conn, text, op):
        try:
            m = json.loads(text)
        except ValueError:
            return await self.err(conn, "Invalid JSON format")
        if not isinstance(m, dict):
            return await self.err(conn, f"Error processing message: '{type(m).__name__}' object has no attribute 'get'")
        t = m.get("type")
        if t == "message":
            r = self.take_reject()
            if r:
                return await self.err(conn, r.get("message", "rejected"))
            if not any(k in m for k in ("content", "file_url", "attachment")):
                return await self.err(conn, f"Missing 'content', 'file_url', or 'attachment' field. Received: {list(m)}")
            att = m.get("attachment", {})
            if not isinstance(att, dict):
                return await self.err(conn, f"Error processing message: '{type(att).__name__}' object has no attribute 'get'")
            if m.get("content") is not None and not isinstance(m["content"], str):
                return await self.err(conn, "Error processing message: 1 validation error for MessageCreate")
            url = m.get("file_url") or att.get("url")
            if url and url.startswith("http"):
                hit = re.search(r"/api/files/([^/]+)", url)
                url = f"/api/files/{hit.group(1)}" if hit else url
            await self.post(conn.user, conn.room, m.get("content"), m.get("message_type", "text"), url,
                            m.get("file_name") or att.get("filename"), m.get("file_size") or att.get("size"),
                            m.get("mime_type") or att.get("mime_type"), exclude=None if self.cfg["echo"] == "all" else conn)
        elif t == "typing" or (t in ("typing_start", "typing_stop") and self.cfg["typing"] == "compat"):
            out = {"type": t, "room_id": conn.room, "sender": conn.user, "timestamp": self.naive(local=True)}
            if t == "typing":
                out["message"] = f"{conn.user} is typing..."
            await self.broadcast(out, conn.room, exclude=conn)
        elif t == "reaction":
            await self.react(conn.user, conn.room, m.get("message_id"), m.get("reaction_type"), m.get("action", "add"), conn)

    async def post(self, user, room, content, mtype="text", url=None, name=None, size=None, mime=None, exclude=None, at=None):
        mid = len(self.messages) + 1
        ts = self.naive(sec=True) if at is None else datetime.fromtimestamp(at, timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds")
        m = {"message_id": mid, "room_id": room, "sender": user, "message": content, "message_type": mtype, "file_url": url,
             "file_name": name, "file_size": size, "mime_type": mime, "timestamp": ts, "_read": [], "_react": {}}
        self.messages[mid] = m
        n = await self.broadcast({"type": "message", **self.view(m, None)}, room, exclude=exclude)
        return {"id": mid, "sent": n}

    async def react(self, user, room, mid, emoji, action, conn=None):
        m = self.messages.get(mid) if isinstance(mid, int) else None
        if not mid or not emoji:
            return await self.err(conn, "Missing message_id or reaction_type") if conn else None
        if m is None or emoji not in self.EMOJI:
            return await self.err(conn, "Failed to process reaction: Message not found") if conn else None
        if action == "add":
            m["_react"][user] = emoji
        elif m["_react"].pop(user, None) is None:
            return await self.err(conn, "Reaction not found") if conn else None
        return await self.broadcast({"type": "reaction_added" if action == "add" else "reaction_removed", "room_id": room,
                                     "message_id": mid, "sender": user, "reaction_type": emoji,
                                     "reaction_summary": self.summary(m), "timestamp": self.naive(local=True)}, room)

    # -- control
    def extra_state(self):
        return {"rooms": list(self.rooms.values()), "users": {k: {"id": v["id"], "refresh": v["refresh"]} for k, v in self.users.items()},
                "messages": [{k: v for k, v in m.items() if k != "_react"} for m in self.messages.values()]}

    def rid(self, a):
        r = a.get("room", 1)
        if isinstance(r, str) and not r.isdigit():
            return next((x["id"] for x in self.rooms.values() if x["name"].lower() == r.lower()), 1)
        return int(r)

    def ensure(self, a):
        n = a.get("user", "user1")
        return (self.users.get(n) or self.add_user(n, "x"))["username"]

    async def op_say(self, a):
        return await self.post(self.ensure(a), self.rid(a), a.get("text", ""), at=a.get("at"))

    async def op_typing(self, a):
        style = a.get("style", "typing_start")
        t = "typing_stop" if a.get("state") == "stop" else style
        f = {"type": t, "room_id": self.rid(a), "sender": self.ensure(a), "timestamp": self.naive(local=True)}
        if t == "typing":
            f["message"] = f"{f['sender']} is typing..."
        return {"sent": await self.broadcast(f, self.rid(a))}

    async def op_read(self, a):
        self.mark(self.rid(a), self.users[self.ensure(a)])
        return {"wire": False}

    async def op_join(self, a):
        u = self.ensure(a)
        return {"sent": await self.broadcast({"type": "user_joined", "room_id": self.rid(a), "sender": u,
                                              "message": f"{u} joined the chat", "timestamp": self.naive(local=True)}, self.rid(a))}

    async def op_leave(self, a):
        if not (self.cfg["user_left"] or a.get("force")):
            return {"wire": False}
        u = self.ensure(a)
        return {"sent": await self.broadcast({"type": "user_left", "room_id": self.rid(a), "sender": u,
                                              "message": f"{u} left the chat", "timestamp": self.naive(local=True)}, self.rid(a))}

    async def op_react(self, a):
        return {"sent": await self.react(self.ensure(a), self.rid(a), int(a["id"]), a["emoji"], a.get("action", "add"))}

    async def op_upload(self, a):
        data, mime = base64.b64decode(a.get("data_b64", "")), a.get("mime", "application/octet-stream")
        fn = self.store(a.get("filename"), data, mime)
        kind = mime.split("/")[0]
        kind = kind if kind in ("image", "video", "audio") else "document"
        text = a.get("text")
        r = await self.post(self.ensure(a), self.rid(a), text, f"text_with_{kind}" if text else kind,
                            f"/api/files/{fn}", a.get("filename") if not a.get("stored_name") else fn, len(data), mime)
        return {**r, "file_url": f"/api/files/{fn}"}

    async def op_expire_tokens(self, a):
        self.revoked.update(t for t, n in self.issued.items() if a.get("user") in (None, n))
        if a.get("refresh"):
            for n, u in self.users.items():
                if a.get("user") in (None, n):
                    u["refresh"] = None
        return {"expired": len(self.revoked)}

    async def op_room(self, a):
        return {"room": self.add_room(a["name"])}


# =================================================================================== directus
class Directus(Backend):
    """Subset of the Directus realtime endpoint and REST API that a chat client needs."""
    name = "directus"

    def defaults(self) -> dict:
        return {"auth_mode": "handshake", "auth_timeout": 30.0, "access_ttl": 900.0, "refresh_ttl": 7 * 86400.0,
                "heartbeat_period": 30.0, "heartbeat": True, "pong": False, "event_order": "response_first",
                "error_uid": True, "rate_limit": 0, "deletes": True, "pk": "int", "assets_public": False, "typing_extension": False,
                "query_limit_default": 100,
                "query_limit_max": 0,    # rows that a query gives at most, whatever it asks for (0 = no bound)
                "expires": None}         # what a login says of its life, in place of access_ttl in milliseconds

    def swift_json(self):
        return False

    def ws_path(self):
        return "/websocket"

    def routes(self, app):
        self.users: dict[str, dict] = {}
        self.access: dict[str, dict] = {}
        self.refresh_tokens: dict[str, dict] = {}
        self.static: dict[str, str] = {}
        self.coll: dict[str, dict[Any, dict]] = {"messages": {}, "directus_users": {}, "directus_files": {}}
        self.next_id = 1
        for spec in self.args.seed_user or ["admin@example.com:admin123", "wes@example.com:password", "bea@example.com:password"]:
            parts = spec.split(":")
            self.add_user(parts[0], parts[1] if len(parts) > 1 else "password", parts[2] if len(parts) > 2 else None)
        r = app.router
        r.add_get("/websocket", self.ws_entry)
        r.add_get("/server/ping", self._pong)
        r.add_post("/auth/login", self.h_login)
        r.add_post("/auth/refresh", self.h_refresh)
        r.add_post("/auth/logout", self.h_logout)
        r.add_get("/users/me", self.h_me)
        r.add_post("/files", self.h_upload)
        r.add_get("/files/{id}", self.h_file)
        r.add_get("/assets/{id}", self.h_asset)
        r.add_get("/assets/{id}/{name}", self.h_asset)
        r.add_get("/items/{coll}", self.h_items)
        r.add_post("/items/{coll}", self.h_create)
        r.add_get("/items/{coll}/{id}", self.h_item)
        r.add_patch("/items/{coll}/{id}", self.h_patch)
        r.add_delete("/items/{coll}/{id}", self.h_delete)

    async def _pong(self, q):
        return web.Response(text="pong")

    # -- model
    def add_user(self, email, password, static=None):
        uid = str(uuid.uuid5(NS, email))
        first = email.split("@")[0].split(".")[0].capitalize()
        self.users[email] = {"id": uid, "email": email, "password": password}
        self.coll["directus_users"][uid] = {"id": uid, "first_name": first, "last_name": None, "email": email, "avatar": None}
        if static:
            self.static[static] = uid
        return self.users[email]

    def by_user(self, who):
        who = who or "wes@example.com"
        email = who if "@" in who else f"{who.lower()}@example.com"
        return (self.users.get(email) or self.add_user(email, secrets.token_hex(4)))["id"]

    def issue(self, uid):
        at, rt = "at." + secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        self.access[at] = {"user": uid, "exp": now() + self.cfg["access_ttl"]}
        self.refresh_tokens[rt] = {"user": uid, "exp": now() + self.cfg["refresh_ttl"]}
        return at, rt

    def check(self, token):
        """-> (user, exp|None) or raises KeyError / PermissionError('expired')."""
        if token in self.static:
            return self.static[token], None
        a = self.access[token]
        if a["exp"] <= now():
            raise PermissionError("expired")
        return a["user"], a["exp"]

    @staticmethod
    def err(status, code, message):
        return web.json_response({"errors": [{"message": message, "extensions": {"code": code}}]}, status=status)

    class Http(Exception):
        def __init__(self, resp):
            self.resp = resp

    def auth(self, q, required=True):
        h = q.headers.get("Authorization", "")
        tok = h[7:] if h.lower().startswith("bearer ") else q.query.get("access_token")
        if tok:
            try:
                return self.check(tok)[0]
            except KeyError:
                raise self.Http(self.err(401, "INVALID_CREDENTIALS", "Invalid user credentials."))
            except PermissionError:
                raise self.Http(self.err(401, "TOKEN_EXPIRED", "Token expired."))
        if required and self.cfg["auth_mode"] != "public":
            raise self.Http(self.err(403, "FORBIDDEN", "You don't have permission to access this."))
        return None

    async def http_answer(self, request, handler):
        try:
            return await super().http_answer(request, handler)
        except self.Http as e:
            return e.resp

    # -- query engine
    REL = {"user_created": "directus_users", "user_updated": "directus_users", "file": "directus_files"}

    def match(self, item, flt) -> bool:
        for k, v in (flt or {}).items():
            if k == "_and":
                if not all(self.match(item, x) for x in v):
                    return False
            elif k == "_or":
                if v and not any(self.match(item, x) for x in v):
                    return False
            elif k.startswith("_"):
                raise ValueError(k)
            else:
                val = item.get(k)
                if isinstance(v, dict) and v and not next(iter(v)).startswith("_") and k in self.REL:
                    rel = self.coll[self.REL[k]].get(val)
                    if rel is None or not self.match(rel, v):
                        return False
                    continue
                for op, want in (v if isinstance(v, dict) else {"_eq": v}).items():
                    s = None if val is None else str(val)
                    w = want.split(",") if isinstance(want, str) and op in ("_in", "_nin") else want
                    ok = {"_eq": lambda: s == str(want), "_neq": lambda: s != str(want),
                          "_in": lambda: s in [str(x) for x in w], "_nin": lambda: s not in [str(x) for x in w],
                          "_gt": lambda: val is not None and val > type(val)(want), "_gte": lambda: val is not None and val >= type(val)(want),
                          "_lt": lambda: val is not None and val < type(val)(want), "_lte": lambda: val is not None and val <= type(val)(want),
                          "_null": lambda: (val is None) == bool(want), "_nnull": lambda: (val is not None) == bool(want),
                          "_contains": lambda: s is not None and str(want) in s}.get(op)
                    if ok is None:
                        raise ValueError(op)
                    if not ok():
                        return False
        return True

    def project(self, item, fields):
        if isinstance(fields, str):
            fields = fields.split(",")
        fields = fields or ["*"]
        out: dict[str, Any] = {}
        for f in fields:
            head, _, rest = f.partition(".")
            if head == "*":
                out.update({k: v for k, v in item.items() if k not in out})
            elif rest and head in self.REL:
                rel = self.coll[self.REL[head]].get(item.get(head))
                cur = out.get(head) if isinstance(out.get(head), dict) else {}
                out[head] = None if rel is None else {**cur, **self.project(rel, [rest])}
            elif head in item:
                out[head] = item[head]
        return out

    def select(self, coll, query):
        query = query or {}
        rows = [r for r in self.coll[coll].values() if self.match(r, query.get("filter"))]
        sort = query.get("sort") or ["id"]
        for s in reversed(sort.split(",") if isinstance(sort, str) else sort):
            rows.sort(key=lambda r: (r.get(s.lstrip("-")) is not None, r.get(s.lstrip("-")) if r.get(s.lstrip("-")) is not None else 0), reverse=s.startswith("-"))
        lim = int(query.get("limit", self.cfg["query_limit_default"]))
        if self.cfg["query_limit_max"]:
            lim = self.cfg["query_limit_max"] if lim < 0 else min(lim, self.cfg["query_limit_max"])
        off = int(query.get("offset", 0))
        rows = rows[off:] if lim < 0 else rows[off:off + lim]
        return [self.project(r, query.get("fields")) for r in rows]

    def key(self, coll, k):
        for real in (k, int(k) if str(k).isdigit() else k, str(k)):
            if real in self.coll[coll]:
                return real
        return None

    # -- mutations (emit events)
    async def create(self, coll, data, uid):
        pk = str(uuid.uuid4()) if coll != "messages" or self.cfg["pk"] == "uuid" else self.next_id
        self.next_id += 1
        base = {"id": pk, "status": "published", "user_created": uid, "date_created": iso_ms(data.pop("_at", None)),
                "user_updated": None, "date_updated": None, "room": None, "text": None, "sender_name": None, "type": "text",
                "client_id": None, "file": None, "reply_to": None}
        self.coll[coll][pk] = {**base, **{k: v for k, v in data.items() if k in base and k != "id"}}
        return pk

    async def update(self, coll, pk, data, uid):
        row = self.coll[coll][pk]
        row.update({k: v for k, v in data.items() if k in row and k != "id"})
        row["date_updated"], row["user_updated"] = iso_ms(), uid

    async def emit(self, coll, action, keys):
        for c in list(self.conns.values()):
            if not c.data.get("authed") and self.cfg["auth_mode"] != "public":
                continue
            if c.data.get("expired"):
                continue
            for uid, s in list(c.data.get("subs", {}).items()):
                if s["collection"] != coll or (s.get("event") and s["event"] != action):
                    continue
                if action == "delete":
                    data = keys            # not filtered: the rows are gone, so filters cannot apply
                else:
                    data = [self.project(self.coll[coll][k], (s.get("query") or {}).get("fields")) for k in keys
                            if self.match(self.coll[coll][k], (s.get("query") or {}).get("filter"))]
                if not data:
                    continue
                f = {"type": "subscription", "event": action, "data": data}
                if s.get("uid") is not None:
                    f["uid"] = s["uid"]
                await self.send(c, f)

    # -- HTTP
    def expires(self):
        return int(self.cfg["access_ttl"] * 1000) if self.cfg["expires"] is None else self.cfg["expires"]

    async def h_login(self, q):
        b = await q.json()
        u = self.users.get(b.get("email"))
        if "email" not in b or "password" not in b:
            return self.err(400, "INVALID_PAYLOAD", 'Invalid payload. "email" is required.')
        if not u or u["password"] != b["password"]:
            return self.err(401, "INVALID_CREDENTIALS", "Invalid user credentials.")
        at, rt = self.issue(u["id"])
        return web.json_response({"data": {"expires": self.expires(), "refresh_token": rt, "access_token": at}})

    async def h_refresh(self, q):
        b = await q.json()
        r = self.refresh_tokens.pop(b.get("refresh_token"), None)
        if r is None or r["exp"] <= now():
            return self.err(401, "INVALID_CREDENTIALS", "Invalid user credentials.")
        at, rt = self.issue(r["user"])
        return web.json_response({"data": {"expires": self.expires(), "refresh_token": rt, "access_token": at}})

    async def h_logout(self, q):
        self.refresh_tokens.pop((await q.json()).get("refresh_token"), None)
        return web.Response(status=204)

    async def h_me(self, q):
        return web.json_response({"data": self.coll["directus_users"][self.auth(q)]})

    async def h_upload(self, q):
        uid = self.auth(q)
        props: dict[str, str] = {}
        out = []
        async for part in await q.multipart():
            if part.filename is None:
                props[part.name] = await part.text()
                continue
            out.append(self.put_file(uid, part.filename, part.headers.get("Content-Type"), bytes(await part.read(decode=False)), props.get("title")))
            props = {}
        if not out:
            return self.err(400, "INVALID_PAYLOAD", "Invalid payload. No files were included in the body.")
        return web.json_response({"data": out[0] if len(out) == 1 else out})

    def put_file(self, uid, name, mime, data, title=None):
        fid = str(uuid.uuid4())
        self.files[fid] = {"data": data, "mime": mime or "application/octet-stream", "name": name}
        row = {"id": fid, "storage": "local", "filename_disk": fid + os.path.splitext(name)[1], "filename_download": name,
               "title": title or os.path.splitext(name)[0], "type": mime, "filesize": str(len(data)), "width": None, "height": None,
               "duration": None, "uploaded_by": uid, "created_on": iso_ms()}
        self.coll["directus_files"][fid] = row
        return row

    async def h_file(self, q):
        self.auth(q)
        row = self.coll["directus_files"].get(q.match_info["id"])
        return web.json_response({"data": row}) if row else self.err(403, "FORBIDDEN", "You don't have permission to access this.")

    async def h_asset(self, q):
        if not self.cfg["assets_public"]:
            self.auth(q)
        f = self.files.get(q.match_info["id"])
        if not f:
            return self.err(403, "FORBIDDEN", "You don't have permission to access this.")
        h = {"Content-Type": f["mime"]}
        if "download" in q.query:
            h["Content-Disposition"] = f'attachment; filename="{f["name"]}"'
        # one range, as the real server
        if m := re.fullmatch(r"bytes=(\d+)-(\d*)", q.headers.get("Range", "")):
            size, start = len(f["data"]), int(m[1])
            end = min(int(m[2] or size - 1), size - 1)
            if start > end:
                return web.Response(status=416, headers={"Content-Range": f"bytes */{size}"})
            h |= {"Content-Range": f"bytes {start}-{end}/{size}", "Accept-Ranges": "bytes"}
            return web.Response(status=206, body=f["data"][start:end + 1], headers=h)
        return web.Response(body=f["data"], headers=h)

    def rest_query(self, q):
        out: dict[str, Any] = {}
        for k, v in q.query.items():
            m = re.match(r"filter((?:\[[^\]]*\])+)$", k)
            if m:
                cur = out.setdefault("filter", {})
                path = re.findall(r"\[([^\]]*)\]", m.group(1))
                for p in path[:-1]:
                    cur = cur.setdefault(p, {})
                cur[path[-1]] = v
            elif k == "filter":
                out["filter"] = json.loads(v)
            elif k in ("fields", "fields[]"):
                out.setdefault("fields", []).extend(v.split(","))
            elif k in ("sort", "limit", "offset"):
                out[k] = v
        return out

    def need(self, coll):
        if coll not in self.coll or coll.startswith("directus_"):
            raise self.Http(self.err(403, "FORBIDDEN", "You don't have permission to access this."))

    async def h_items(self, q):
        self.auth(q)
        self.need(q.match_info["coll"])
        try:
            return web.json_response({"data": self.select(q.match_info["coll"], self.rest_query(q))})
        except ValueError as e:
            return self.err(400, "INVALID_QUERY", f"Invalid query. {e}")

    async def h_item(self, q):
        self.auth(q)
        c = q.match_info["coll"]
        self.need(c)
        k = self.key(c, q.match_info["id"])
        if k is None:
            return self.err(403, "FORBIDDEN", "You don't have permission to access this.")
        return web.json_response({"data": self.project(self.coll[c][k], self.rest_query(q).get("fields"))})

    async def h_create(self, q):
        uid, c = self.auth(q), q.match_info["coll"]
        self.need(c)
        b = await q.json()
        keys = [await self.create(c, x, uid) for x in (b if isinstance(b, list) else [b])]
        for k in keys:
            self.spawn(self.emit(c, "create", [k]))
        rows = [self.project(self.coll[c][k], self.rest_query(q).get("fields")) for k in keys]
        return web.json_response({"data": rows if isinstance(b, list) else rows[0]})

    async def h_patch(self, q):
        uid, c = self.auth(q), q.match_info["coll"]
        self.need(c)
        k = self.key(c, q.match_info["id"])
        if k is None:
            return self.err(403, "FORBIDDEN", "You don't have permission to access this.")
        await self.update(c, k, await q.json(), uid)
        self.spawn(self.emit(c, "update", [k]))
        return web.json_response({"data": self.coll[c][k]})

    async def h_delete(self, q):
        self.auth(q)
        c = q.match_info["coll"]
        self.need(c)
        k = self.key(c, q.match_info["id"])
        if k is None:
            return self.err(403, "FORBIDDEN", "You don't have permission to access this.")
        del self.coll[c][k]
        self.spawn(self.emit(c, "delete", [q.match_info["id"]]))   # REST keys arrive as strings
        return web.Response(status=204)

    # -- WebSocket
    async def handshake(self, request):
        tok = request.query.get("access_token")
        if self.cfg["auth_mode"] == "strict" or tok:
            try:
                user, exp = self.check(tok)
            except (KeyError, PermissionError):
                return web.Response(status=401)
            return {"authed": True, "user": user, "token": tok, "exp": exp, "subs": {}, "hs": True}
        return {"authed": False, "subs": {}, "exp": None, "hs": self.cfg["auth_mode"] == "public"}

    async def on_open(self, conn):
        conn.data["seen"] = now()
        conn.data["hits"] = []
        if not conn.data["hs"]:
            conn.data["deadline"] = now() + self.cfg["auth_timeout"]
        self.spawn(self.watch(conn))

    async def wserr(self, conn, type_, code, message, uid=None):
        f = {"type": type_, "status": "error", "error": {"code": code, "message": message}}
        if uid is not None:
            f["uid"] = uid
        await self.send(conn, f)

    async def watch(self, conn):
        last_ping = now()
        while not conn.ws.closed:
            await asyncio.sleep(0.05)
            d = conn.data
            if not d["hs"] and now() >= d["deadline"]:
                await self.wserr(conn, "auth", "AUTH_FAILED", "Authentication handshake failed.")
                await self.close(conn)
                return
            if d.get("exp") and now() >= d["exp"]:
                d["exp"], d["expired"], d["deadline2"] = None, True, now() + self.cfg["auth_timeout"]
                await self.wserr(conn, "auth", "TOKEN_EXPIRED", "Token expired.")
            if d.get("deadline2") and now() >= d["deadline2"]:
                d["deadline2"] = None
                await self.wserr(conn, "auth", "AUTH_TIMEOUT", "Authentication timed out.")
                if self.cfg["auth_mode"] != "public":
                    await self.close(conn)
                    return
            if self.cfg["heartbeat"] and d["hs"] and now() - last_ping >= self.cfg["heartbeat_period"]:
                if d.get("pinged") and d["seen"] < d["pinged"]:
                    await self.close(conn)
                    return
                last_ping = d["pinged"] = now()
                await self.send(conn, {"type": "ping"})

    async def on_text(self, conn, text, op):
        d = conn.data
        try:
            m = json.loads(text)
        except ValueError:
            m = None
        if not d["hs"]:
            if not isinstance(m, dict) or m.get("type") != "auth" or not await self.ws_auth(conn, m, first=True):
                await self.wserr(conn, "auth", "AUTH_FAILED", "Authentication handshake failed.")
                await self.close(conn)
            return
        if self.cfg["rate_limit"]:
            d["hits"] = [t for t in d["hits"] if t > now() - 1] + [now()]
            if len(d["hits"]) > self.cfg["rate_limit"]:
                return await self.wserr(conn, "server", "REQUESTS_EXCEEDED", "Too many messages, retry after 1000ms.")
        if m is None:
            return await self.wserr(conn, "server", "INVALID_PAYLOAD", "Unable to parse the incoming message.")
        t = m.get("type") if isinstance(m, dict) else None
        if t == "auth":
            if not any(k in m for k in ("access_token", "refresh_token", "email")):
                return      # not parseable as an auth message: ignored
            if not await self.ws_auth(conn, m):
                d["authed"], d["exp"] = False, None
                await self.wserr(conn, "auth", "AUTH_FAILED", "Authentication failed.", m.get("uid"))
                if self.cfg["auth_mode"] != "public":
                    await self.close(conn)
            return
        d["seen"] = now()
        if t == "ping":
            await self.send(conn, {"type": "pong", **({"uid": m["uid"]} if "uid" in m else {})})
        elif t in ("subscribe", "unsubscribe"):
            await self.ws_sub(conn, m)
        elif t == "items":
            await self.ws_items(conn, m)
        elif self.cfg["typing_extension"] and t == "typing":
            for c in self.conns.values():
                if c is not conn:
                    await self.send(c, {"type": "typing", "room": m.get("room"), "user": conn.user, "name": m.get("name"),
                                        "state": m.get("state", "start")})
        # any other type: no handler, no answer

    async def ws_auth(self, conn, m, first=False):
        rt = None
        try:
            if "email" in m:
                u = self.users.get(m["email"])
                if not u or u["password"] != m.get("password"):
                    return False
                tok, rt = self.issue(u["id"])
            elif "refresh_token" in m:
                r = self.refresh_tokens.pop(m["refresh_token"], None)
                if r is None or r["exp"] <= now():
                    return False
                tok, rt = self.issue(r["user"])
            else:
                tok = m["access_token"]
            user, exp = self.check(tok)
        except (KeyError, PermissionError, TypeError):
            return False
        conn.user, conn.token = user, tok
        conn.data.update(authed=True, hs=True, exp=exp, expired=False, deadline2=None, seen=now())
        await self.send(conn, {"type": "auth", "status": "ok", **({"uid": m["uid"]} if "uid" in m else {}),
                               **({"refresh_token": rt} if rt else {})})
        return True

    def allowed(self, conn):
        return self.cfg["auth_mode"] == "public" or (conn.data["authed"] and not conn.data.get("expired"))

    async def ws_sub(self, conn, m):
        uid = str(m["uid"]) if "uid" in m else None
        subs = conn.data["subs"]
        if m["type"] == "unsubscribe":
            if uid is None:
                subs.clear()
            else:
                subs.pop(uid, None)
            return await self.send(conn, {"type": "subscription", "event": "unsubscribe", **({"uid": m["uid"]} if "uid" in m else {})})
        if not isinstance(m.get("collection"), str) or m.get("event") not in (None, "create", "update", "delete"):
            return await self.wserr(conn, "subscribe", "INVALID_PAYLOAD", 'Validation error: Required at "collection"', m.get("uid") if self.cfg["error_uid"] else None)
        if m["collection"] not in self.coll:
            return await self.wserr(conn, "subscribe", "INVALID_COLLECTION", "The provided collection does not exists or is not accessible.", m.get("uid"))
        if not self.allowed(conn):
            return await self.wserr(conn, "subscribe", "FORBIDDEN", "You don't have permission to access this.", m.get("uid") if self.cfg["error_uid"] else None)
        f: dict[str, Any] = {"type": "subscription", "event": "init"}
        try:
            if "event" not in m:
                f["data"] = self.select(m["collection"], m.get("query"))
        except ValueError as e:
            return await self.wserr(conn, "subscribe", "INVALID_QUERY", f"Invalid query. {e}", m.get("uid") if self.cfg["error_uid"] else None)
        subs[uid if uid is not None else f"#{len(subs)}"] = {"collection": m["collection"], "event": m.get("event"), "query": m.get("query"), "uid": uid}
        if uid is not None:
            f["uid"] = uid
        await self.send(conn, f)

    async def ws_items(self, conn, m):
        uid, coll, action = m.get("uid"), m.get("collection"), m.get("action")
        euid = uid if self.cfg["error_uid"] else None
        if not isinstance(coll, str) or action not in ("create", "read", "update", "delete") or (action in ("create", "update") and "data" not in m):
            return await self.wserr(conn, "items", "INVALID_PAYLOAD", "Validation error: Invalid input", euid)
        if coll not in self.coll or coll.startswith("directus_"):
            return await self.wserr(conn, "items", "INVALID_COLLECTION", "The provided collection does not exists or is not accessible.", uid)
        r = self.take_reject() if action == "create" else None
        if r or not self.allowed(conn):
            r = r or {}
            return await self.wserr(conn, "items", r.get("code", "FORBIDDEN"), r.get("message", "You don't have permission to access this."), euid)
        if action == "delete" and not self.cfg["deletes"]:
            return await self.wserr(conn, "items", "FORBIDDEN", "You don't have permission to access this.", euid)
        query, data = m.get("query") or {}, m.get("data")
        fields = query.get("fields")
        result: Any = None
        ev: Optional[tuple] = None
        ids = [m["id"]] if "id" in m else m.get("ids")
        keys = [self.key(coll, k) for k in ids] if ids is not None else None
        if keys is not None and None in keys:
            return await self.wserr(conn, "items", "FORBIDDEN", "You don't have permission to access this.", euid)
        if action == "create":
            made = [await self.create(coll, dict(x), conn.user) for x in (data if isinstance(data, list) else [data])]
            rows = [self.project(self.coll[coll][k], fields) for k in made]
            result, ev = (rows if isinstance(data, list) else rows[0]), ("create", made)
        elif action == "read":
            result = self.select(coll, query) if keys is None else [self.project(self.coll[coll][k], fields) for k in keys]
            result = result[0] if "id" in m else result
        elif action == "update":
            keys = keys if keys is not None else [r["id"] for r in self.select(coll, {**query, "fields": ["id"]})]
            for k in keys:
                await self.update(coll, k, data, conn.user)
            rows = [self.project(self.coll[coll][k], fields) for k in keys]
            result, ev = (rows[0] if "id" in m else rows), ("update", keys)
        else:
            if keys is None and "query" not in m:
                return await self.wserr(conn, "items", "INVALID_PAYLOAD", "Either 'ids', 'id' or 'query' is required for a DELETE request.", uid)
            keys = keys if keys is not None else [r["id"] for r in self.select(coll, {**query, "fields": ["id"]})]
            for k in keys:
                del self.coll[coll][k]
            result, ev = (m["id"] if "id" in m else keys), ("delete", keys)
        resp = {"type": "items", "data": result, **({"uid": uid} if uid is not None else {})}

        async def events():
            if ev and ev[0] == "create":
                for k in ev[1]:
                    await self.emit(coll, "create", [k])
            elif ev:
                await self.emit(coll, ev[0], list(ev[1]))
        if self.cfg["event_order"] == "event_first":
            await events()
            await self.send(conn, resp)
        else:
            await self.send(conn, resp)
            await events()

    # -- control
    def extra_state(self):
        return {"messages": list(self.coll["messages"].values()), "users": list(self.coll["directus_users"].values()),
                "subscriptions": [{"conn": c.id, "uid": u, **s} for c in self.conns.values() for u, s in c.data["subs"].items()]}

    async def op_say(self, a):
        d = {"text": a.get("text", ""), "room": a.get("room"), "reply_to": a.get("reply_to"), **(a.get("fields") or {})}
        if "at" in a:
            d["_at"] = a["at"]
        k = await self.create("messages", d, self.by_user(a.get("user")))
        await self.emit("messages", "create", [k])
        return {"id": k}

    async def op_edit(self, a):
        k = self.key("messages", a["id"])
        await self.update("messages", k, {"text": a["text"], **(a.get("fields") or {})}, self.by_user(a.get("user")))
        await self.emit("messages", "update", [k])
        return {}

    async def op_delete(self, a):
        ks = [self.key("messages", x) for x in (a["id"] if isinstance(a["id"], list) else [a["id"]])]
        for k in ks:
            del self.coll["messages"][k]
        await self.emit("messages", "delete", [str(k) for k in ks] if a.get("string_keys") else ks)
        return {}

    async def op_typing(self, a):
        if not self.cfg["typing_extension"]:
            return {"wire": False}
        return {"sent": await self.broadcast({"type": "typing", "room": a.get("room"), "user": self.by_user(a.get("user")),
                                              "name": a.get("user"), "state": a.get("state", "start")})}

    async def op_upload(self, a):
        uid = self.by_user(a.get("user"))
        row = self.put_file(uid, a.get("filename", "file.bin"), a.get("mime"), base64.b64decode(a.get("data_b64", "")))
        r = await self.op_say({**a, "text": a.get("text", ""), "fields": {"file": row["id"], "type": (a.get("mime") or "file/").split("/")[0]}})
        return {**r, "file": row["id"]}

    async def op_expire_tokens(self, a):
        for t in self.access.values():
            t["exp"] = min(t["exp"], now())
        if a.get("refresh"):
            self.refresh_tokens.clear()
        for c in self.conns.values():
            if c.data.get("exp"):
                c.data["exp"] = now()
        return {}

    async def op_ping(self, a):
        return {"sent": await self.broadcast({"type": "ping"})}


# ===================================================================================== custom
class Custom(Backend):
    """Records what it gets; sends only what the control port says (`raw`), or relays as told."""
    name = "custom"

    def defaults(self) -> dict:
        return {"relay": "none", "tokens": [], "reply": []}   # reply: [{"match": {...}, "json": {...}}]

    def swift_json(self):
        return False

    async def handshake(self, request):
        h = request.headers.get("Authorization", "")
        if self.cfg["tokens"] and (h[7:] if h.lower().startswith("bearer ") else request.query.get("token")) not in self.cfg["tokens"]:
            return web.Response(status=401)
        return {"room": request.path}

    async def on_text(self, conn, text, op):
        with contextlib.suppress(ValueError):
            m = json.loads(text)
            for rule in self.cfg["reply"]:
                if is_subset(rule.get("match", {}), m):
                    await self.send(conn, rule["json"])
        if self.cfg["relay"] != "none":
            for c in self.room_conns(conn.room):
                if c is not conn or self.cfg["relay"] == "all":
                    await self.send_raw(c, text)

    async def op_say(self, a):
        return await self.op_raw({"json": {"user": a.get("user"), "text": a.get("text")}, "room": a.get("room")})


# ==================================================================================== parlour
class Parlour(Backend):
    """A backend made up for the tests: nothing but a configuration connects it.

    Its frames nest a JSON text in JSON, number their errors, count time in milliseconds and keep a log behind HTTP, newest
    first. Whoever enters gets `entered`; only then are frames of theirs taken.

    `echo`: "all": messages go to their sender as well, under the sender's id. "ack": the parlour makes the id and tells it
    to the sender alone, beside the sender's own (`log_tags`: the log has that too); `lose_acks`: it does not come.
    """
    name = "parlour"

    def defaults(self) -> dict:
        return {"echo": "all", "keys": [], "knock": 0.0, "accounts": {}, "key_ttl": 900, "lose_acks": False,
                "log_tags": False}

    def extra_state(self) -> dict:
        return {"log": self.log}

    def swift_json(self):
        return False

    def ws_path(self):
        return "/live/parlour"

    def routes(self, app):
        self.log: dict[str, list[dict]] = {}
        self.granted: dict[str, float] = {}
        self.renewals: set[str] = set()
        app.router.add_get("/live/{room}", self.ws_entry)
        app.router.add_get("/places/{room}/log", self.http_history)
        app.router.add_post("/keys", self.http_keys)
        app.router.add_post("/keys/renew", self.http_renew)

    def allowed(self, request):
        word, _, key = request.headers.get("X-Parlour-Key", "").partition(" ")
        if word == "key" and (key in self.cfg["keys"] or self.granted.get(key, 0) > now()):
            return True
        return not self.cfg["keys"] and not self.cfg["accounts"]

    def grant(self):
        key, renew = "pk." + secrets.token_urlsafe(24), "pr." + secrets.token_urlsafe(24)
        self.granted[key] = now() + self.cfg["key_ttl"]
        self.renewals.add(renew)
        return web.json_response({"grant": {"key": key, "renew": renew, "seconds": self.cfg["key_ttl"]}})

    async def http_keys(self, request):
        m = await request.json()
        if self.cfg["accounts"].get(m.get("who")) != m.get("word"):
            return web.json_response({"why": "no such person"}, status=401)
        return self.grant()

    async def http_renew(self, request):
        m = await request.json()
        if m.get("renew") not in self.renewals:
            return web.json_response({"why": "used up"}, status=401)
        self.renewals.discard(m["renew"])
        return self.grant()

    async def op_expire_tokens(self, a):
        self.granted.clear()
        if a.get("refresh"):
            self.renewals.clear()
        return {}

    async def handshake(self, request):
        if not self.allowed(request):
            return web.Response(status=401)
        return {"room": unquote(request.match_info["room"]), "entered": False}

    async def on_open(self, conn):
        if self.cfg["knock"]:
            self.spawn(self.knocks(conn))

    async def knocks(self, conn):
        while not conn.ws.closed:
            await self.send(conn, {"did": "knock"})
            await asyncio.sleep(self.cfg["knock"])

    async def http_history(self, request):
        if not self.allowed(request):
            return web.json_response({"why": "who are you"}, status=401)
        rows = self.log.get(unquote(request.match_info["room"]), [])
        return web.json_response({"rows": rows[-int(request.query.get("limit", 50)):][::-1]})

    async def on_text(self, conn, text, op):
        try:
            m = json.loads(text)
            do, place, who = m.get("do"), conn.room, m.get("as")
        except (ValueError, AttributeError):
            return
        if do == "enter":
            conn.data["entered"] = True
            return await self.send(conn, {"did": "entered", "place": place, "number": 7})
        if not conn.data["entered"]:
            return
        if do == "say":
            r = self.take_reject()
            if r:
                return await self.send(conn, {"did": "refused", "tag": m.get("tag"), "number": r.get("code", 9),
                                              "why": r.get("message", "no")})
            what = {"no": m.get("tag"), "from": who, "words": m.get("words"), "when": int(now() * 1000)}
            what.update({k: m[k] for k in ("re", "things") if k in m})
            if self.cfg["echo"] == "ack":
                return await self.took(conn, m.get("tag"), what)
            return await self.said(place, what, exclude=None if self.cfg["echo"] == "all" else conn)
        frame = {"pen": {"did": "pen", "who": who, "state": m.get("state")},
                 "eyes": {"did": "eyes", "on": [m.get("on")], "who": who},
                 "burn": {"did": "burnt", "nos": m.get("nos"), "who": who},
                 "stamp": {"did": "stamped", "no": m.get("no"), "mark": m.get("mark"), "who": who, "off": m.get("off")},
                 "come": {"did": "crowd", "in": [who]}, "go": {"did": "crowd", "out": [who]}}.get(do)
        if frame:
            await self.broadcast({**frame, "place": place}, place, exclude=conn)

    async def took(self, conn, tag, what):
        what["no"] = secrets.token_hex(6)
        if self.cfg["log_tags"]:
            what["tag"] = tag
        await self.said(conn.room, what, exclude=conn)
        if not self.cfg["lose_acks"]:
            await self.send(conn, {"did": "took", "tag": tag, "no": what["no"]})

    async def said(self, place, what, exclude=None):
        self.log.setdefault(place, []).append(what)
        return await self.broadcast({"did": "said", "place": place, "what": dumps(what)}, place, exclude=exclude)

    @staticmethod
    def who(a):
        user = a.get("user", "Flo")
        return {"key": a.get("user_id") or user_uuid(user), "label": user}

    def place(self, a):
        return a.get("room") or "parlour"

    async def op_say(self, a):
        what = {"no": a.get("id") or secrets.token_hex(6), "from": self.who(a), "words": a.get("text", ""),
                "when": int(a.get("at", now()) * 1000)}
        if a.get("reply_to"):
            what["re"] = a["reply_to"]
        if a.get("things"):
            what["things"] = a["things"]
        return {"sent": await self.said(self.place(a), what), "id": what["no"]}

    async def cast(self, a, frame):
        return {"sent": await self.broadcast({**frame, "place": self.place(a)}, self.place(a))}

    async def op_typing(self, a):
        return await self.cast(a, {"did": "pen", "who": self.who(a), "state": "up" if a.get("state") == "stop" else "down"})

    async def op_read(self, a):
        return await self.cast(a, {"did": "eyes", "on": [a["id"]], "who": self.who(a)})

    async def op_edit(self, a):
        return await self.cast(a, {"did": "rewrote", "no": a["id"], "words": a["text"], "who": self.who(a)})

    async def op_delete(self, a):
        return await self.cast(a, {"did": "burnt", "nos": [a["id"]], "who": self.who(a)})

    async def op_react(self, a):
        return await self.cast(a, {"did": "stamped", "no": a["id"], "mark": a["emoji"], "who": self.who(a),
                                   "off": a.get("action", "add") == "remove"})

    async def op_join(self, a):
        return await self.cast(a, {"did": "crowd", "in": [self.who(a)]})

    async def op_leave(self, a):
        return await self.cast(a, {"did": "crowd", "out": [self.who(a)]})

    async def op_upload(self, a):
        return await self.op_say({**a, "things": [{
            "href": a.get("url", "https://files.invalid/" + a.get("filename", "f")), "label": a.get("filename", "f"),
            "bytes": len(base64.b64decode(a.get("data_b64", ""))), "ct": a.get("mime", "")}]})


DIALECTS = {c.name: c for c in (Envelope, JwtRooms, Typed, Directus, PlainJSON, SwiftChat, Custom, Parlour)}


# ====================================================================================== main
def make_tls(args) -> Optional[ssl.SSLContext]:
    if not args.tls_cert:
        return None
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(args.tls_cert, args.tls_key or args.tls_cert)
    return ctx


async def stdin_loop(be: Backend, control: bool) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while True:
        line = await reader.readline()
        if not line:
            be.stopping.set()
            return
        if control and line.strip():
            try:
                a = json.loads(line)
                out = await be.control(a.pop("op"), a)
            except Exception as e:  # noqa: BLE001 - reported to the test
                out = {"ok": False, "error": f"{type(e).__name__}: {e}"}
            print(json.dumps(out), flush=True)


def control_app(be: Backend) -> web.Application:
    async def run(op: str, a: dict) -> web.Response:
        try:
            res = await be.control(op, a)
            return web.json_response(res, dumps=lambda o: json.dumps(o, default=str))
        except ControlError as e:
            return web.json_response({"ok": False, "error": str(e)}, status=404)
        except (KeyError, ValueError, TypeError) as e:
            return web.json_response({"ok": False, "error": f"{type(e).__name__}: {e}"}, status=400)

    async def post(q: web.Request) -> web.Response:
        try:
            a = await q.json() if q.can_read_body else {}
        except ValueError as e:
            return web.json_response({"ok": False, "error": f"bad JSON: {e}"}, status=400)
        op = q.match_info.get("op") or a.pop("op", None)
        return await run(op or "", a)

    async def get(q: web.Request) -> web.Response:
        return await run(q.match_info["op"], dict(q.query))
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/control", post)
    app.router.add_post("/{op}", post)
    app.router.add_get("/{op}", get)
    return app


async def main_async(args: argparse.Namespace) -> int:
    be = DIALECTS[args.dialect](args)
    app = web.Application(client_max_size=64 * 1024 * 1024, middlewares=[be.http_faults])
    be.routes(app)
    runners = []
    # Debian's aiohttp 3.8 knows this option elsewhere, and ends in time without it.
    quick_shutdown = {"shutdown_timeout": 0.3} if aiohttp_version >= (3, 9) else {}

    async def listen(a: web.Application, port: int, tls: Optional[ssl.SSLContext]) -> int:
        runner = web.AppRunner(a, handle_signals=False, access_log=None, **quick_shutdown)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, args.host, port, ssl_context=tls, reuse_address=True)
        await site.start()
        return site._server.sockets[0].getsockname()[1]
    tls = make_tls(args)
    port = await listen(app, args.port, tls)
    cport = await listen(control_app(be), args.control_port, None)
    loop = asyncio.get_running_loop()
    for s in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(s, be.stopping.set)
    ready = {"ready": True, "dialect": args.dialect, "port": port, "control_port": cport,
             "url": f"{'wss' if tls else 'ws'}://{args.host}:{port}{be.ws_path()}",
             "control": f"http://{args.host}:{cport}", "pid": os.getpid()}
    print(json.dumps(ready), flush=True)
    stdin_task = None
    if args.stdin or args.exit_on_eof:
        stdin_task = asyncio.create_task(stdin_loop(be, args.stdin))
    try:
        await asyncio.wait_for(be.stopping.wait(), args.lifetime or None)
    except asyncio.TimeoutError:
        print("server.py: --lifetime reached", file=sys.stderr)
    if stdin_task:
        stdin_task.cancel()
    for c in list(be.conns.values()):
        with contextlib.suppress(Exception):
            await asyncio.wait_for(be.close(c, WSCloseCode.GOING_AWAY), 0.5)
    for t in list(be.tasks):
        t.cancel()
    for r in runners:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(r.cleanup(), 2)
    return 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dialect", required=True, choices=sorted(DIALECTS))
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=0, help="0 = pick a free one (read it from the ready line)")
    p.add_argument("--control-port", type=int, default=0)
    p.add_argument("--tls-cert", help="speak TLS with this certificate (PEM)")
    p.add_argument("--tls-key", help="its key; default: in the same file")
    p.add_argument("--seed-user", action="append", help="name:password (directus: email:password[:static-token])")
    p.add_argument("--seed-room", action="append", help="jwt-rooms room names, ids 1,2,3...")
    p.add_argument("--set", action="append", metavar="KEY=VALUE", help="initial setting, JSON value or string")
    p.add_argument("--stdin", action="store_true", help="also take one JSON control command per stdin line")
    p.add_argument("--exit-on-eof", action="store_true", help="exit when stdin closes (dies with its parent)")
    p.add_argument("--lifetime", type=float, default=0, help="exit after that many seconds (safety net in CI)")
    args = p.parse_args()
    try:
        return asyncio.run(main_async(args))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
