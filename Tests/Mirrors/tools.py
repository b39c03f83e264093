#!/usr/bin/env python3
"""Stand-ins for the web services that mirrors post to: one process, one port for each tool, and a control port.

    python3 tools.py --tool team=slack --tool other=discord [--exit-on-eof] [--lifetime S]

When all listen it prints one JSON line on standard output: {"ready": true, "control": URL, "tools": {NAME: {"type", "port",
"url", "secret"}}}. README.md lists the operations of the control port. Nothing leaves the loopback interface.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time

import aiohttp
from aiohttp import web

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from tool_faults import BEFORE, INSTEAD, ON_ITS_WAY, Faults, reset  # noqa: E402
from tool_outgoing import FORMS  # noqa: E402
from tool_base import Answer, Request, Tool  # noqa: E402
from tool_services import TOOLS  # noqa: E402

LARGEST = 64 * 1024 * 1024


class Pipe(Tool):
    """No tool, but the way to one: passes requests on to `target` as they are, and the answers back.

    Two relays that mirror into each other need each other's address before either runs; a pipe has its address from the start.
    """

    path = "/mirror"
    # The signature and the key are the sender's own.
    PASSED = ("content-type", "authorization", "chatbridge-timestamp", "chatbridge-signature", "idempotency-key")

    def __init__(self, name):
        super().__init__(name)
        self.settings["target"] = None

    async def take(self, request):
        if not self.settings["target"]:
            return Answer(503, "no target")
        headers = {name: request.headers[name] for name in self.PASSED if name in request.headers}
        try:
            async with aiohttp.ClientSession() as session:
                async with session.post(self.settings["target"], data=request.body, headers=headers) as answer:
                    text = await answer.text()
                    kept = {"Retry-After": answer.headers["Retry-After"]} if "Retry-After" in answer.headers else {}
                    if answer.status == 200:
                        self.show(request.body.decode("utf-8", "replace"), {"text": ""})
                    return Answer(answer.status, text, kept)
        except aiohttp.ClientError as error:
            return Answer(502, "%s" % error)


class Service:
    """One tool at its port, with its faults and a record of all requests."""

    def __init__(self, tool, host):
        self.tool = tool
        self.host = host
        self.port = 0
        self.faults = Faults()
        self.requests = []
        self.echoes = []
        self.busy = self.most_busy = 0
        self.site = self.runner = None
        self.tasks = set()

    async def listen(self):
        app = web.Application(client_max_size=LARGEST)
        app.router.add_route("*", "/{rest:.*}", self.handle)
        self.runner = web.AppRunner(app, handle_signals=False, access_log=None)
        await self.runner.setup()
        await self.open()

    async def open(self):
        if self.site is None:
            site = web.TCPSite(self.runner, self.host, self.port, reuse_address=True)
            await site.start()
            self.port = site._server.sockets[0].getsockname()[1]
            self.site = site

    async def close(self):
        """Refuses connections, and ends those that there are."""
        if self.site is not None:
            site, self.site = self.site, None
            await site.stop()
            for connection in self.runner.server.connections:
                reset(connection.transport)

    @property
    def url(self):
        return "http://%s:%d%s" % (self.host, self.port, self.tool.url_suffix())

    async def handle(self, http):
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            return await self.answer(http)
        finally:
            self.busy -= 1

    async def answer(self, http):
        request = Request(
            http.method, http.path, dict(http.query), {name.lower(): value for name, value in http.headers.items()},
            await http.read())
        record = {
            "n": len(self.requests) + 1, "method": request.method, "path": http.path_qs, "headers": request.headers,
            "bytes": len(request.body), "began": time.time(), "ended": None, "status": None, "fault": None}
        self.requests.append(record)
        slow = self.faults.due(*BEFORE)
        if slow:
            await asyncio.sleep(slow["seconds"])
        instead = self.faults.due(*INSTEAD)
        shown = []
        answer = await self.instead(instead, request, shown) if instead else await self.tool_answer(request, shown)
        on_its_way = self.faults.due(*ON_ITS_WAY)
        told = answer is not None and not on_its_way
        for message in shown:
            message.update(answered=told, request=record["n"])
        if shown and self.tool.settings["echo"]:
            for message in shown:
                self.spawn(self.echo(message))
        record.update(
            ended=time.time(), status=answer.status if answer else "reset",
            fault=[fault["kind"] for fault in (instead, on_its_way) if fault])
        if answer is None:
            reset(http.transport)
            return web.Response()
        if on_its_way:
            await self.spoil(http, answer, on_its_way)
            return web.Response()
        return web.Response(
            status=answer.status, body=None if answer.status == 204 else answer.encoded(),
            headers={**answer.headers, **({} if answer.status == 204 else {"Content-Type": answer.kind})})

    async def tool_answer(self, request, shown):
        """What the request makes the tool show is added to `shown`."""
        wait = self.tool.wait_of(time.monotonic()) if request.method != "GET" else 0
        if wait > 0:
            return self.tool.too_many(wait)
        before = len(self.tool.messages)
        answer = await self.tool.take(request)
        shown += self.tool.messages[before:]
        return answer

    async def instead(self, fault, request, shown):
        """None: the connection is reset."""
        if fault["kind"] == "gone":
            return self.tool.gone()
        if fault["kind"] == "status":
            if fault["status"] == 429:
                return self.tool.too_many(fault.get("retry_after", 1))
            answer = self.tool.failure(fault["status"])
            if "retry_after" in fault:
                answer.headers["Retry-After"] = str(fault["retry_after"])
            return answer
        if fault.get("taken"):
            await self.tool_answer(request, shown)
        if fault["kind"] == "hang":
            await self.faults.released.wait()
        return None

    @staticmethod
    async def spoil(http, answer, fault):
        """Writes the answer's bytes wrong, and ends the connection."""
        body = answer.encoded()
        length = len(body) + (fault["off"] if fault["kind"] == "length" else 0)
        head = "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (answer.status, answer.kind, max(length, 0))
        head += "".join("%s: %s\r\n" % pair for pair in answer.headers.items())
        data = head.encode() + b"\r\n" + body
        if http.transport is None:
            return
        if fault["kind"] == "cut":
            http.transport.write(data[: len(data) - max(len(body) // 2, 1) - (0 if body else 2)])
            # The bytes are on their way before the reset drops what is not.
            await asyncio.sleep(0)
            reset(http.transport)
        else:
            http.transport.write(data)
            http.transport.close()

    async def echo(self, message):
        """What was shown comes back to the relay's hook, as the tool's outgoing form has it."""
        echo = self.tool.settings["echo"]
        form = FORMS[echo.get("type") or next(name for name, kind in TOOLS.items() if isinstance(self.tool, kind))]
        headers, body = form.message(
            echo["secret"], message["id"], message["name"] or "ann", message["raw"], bot=echo.get("bot", False))
        try:
            async with aiohttp.ClientSession() as session:
                async with session.post(echo["url"], data=body, headers=headers) as answer:
                    self.echoes.append(answer.status)
        except aiohttp.ClientError as error:
            self.echoes.append(str(error))

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Control:
    """Operations of the control port, one method each."""

    def __init__(self, services):
        self.services = services
        self.stopping = asyncio.Event()

    async def run(self, op, arguments):
        method = getattr(self, "op_" + op, None)
        if method is None:
            raise ValueError("no operation %r" % op)
        if "tool" in arguments:
            arguments["service"] = self.services[arguments.pop("tool")]
        return await method(**arguments)

    async def op_messages(self, service, since=0):
        return {"messages": service.tool.messages[since:]}

    async def op_requests(self, service, since=0):
        return {"requests": service.requests[since:], "most_at_once": service.most_busy}

    async def op_state(self, service):
        return {
            "messages": len(service.tool.messages), "requests": len(service.requests), "echoes": service.echoes,
            "faults": service.faults.active, "repeated": getattr(service.tool, "repeated", 0),
            "known": getattr(service.tool, "known", 0), "open": service.site is not None}

    async def op_fault(self, service, kind, count=None, **arguments):
        service.faults.set(kind, count, **arguments)
        return {}

    async def op_clear(self, service):
        service.faults.clear()
        return {}

    async def op_refuse(self, service):
        await service.close()
        return {}

    async def op_accept(self, service):
        await service.open()
        return {}

    async def op_set(self, service, **settings):
        for name, value in settings.items():
            if name not in service.tool.settings:
                raise ValueError("%s has no setting %r" % (service.tool.name, name))
            service.tool.settings[name] = value
        return {}

    async def op_secret(self, service, secret):
        """What the relay signs with, where the tool checks it."""
        service.tool.secret = secret
        return {}

    async def op_shutdown(self):
        self.stopping.set()
        return {}

    def app(self):
        async def post(request):
            try:
                arguments = await request.json() if request.can_read_body else {}
                return web.json_response(await self.run(request.match_info["op"], arguments))
            except (KeyError, TypeError, ValueError) as error:
                return web.json_response({"error": "%s: %s" % (type(error).__name__, error)}, status=400)

        app = web.Application(client_max_size=LARGEST)
        app.router.add_post("/{op}", post)
        return app


async def main_async(options):
    services = {}
    for pair in options.tool:
        name, _, kind = pair.partition("=")
        services[name] = Service({**TOOLS, "pipe": Pipe}[kind or name](name), options.host)
    for service in services.values():
        await service.listen()
    control = Control(services)
    runner = web.AppRunner(control.app(), handle_signals=False, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, options.host, options.control_port)
    await site.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, control.stopping.set)
    kinds = {kind: name for name, kind in {**TOOLS, "pipe": Pipe}.items()}
    print(json.dumps({
        "ready": True, "pid": os.getpid(),
        "control": "http://%s:%d" % (options.host, site._server.sockets[0].getsockname()[1]),
        "tools": {name: {"type": kinds[type(s.tool)], "port": s.port, "url": s.url, "secret": s.tool.secret}
                  for name, s in services.items()}}), flush=True)
    watch = asyncio.ensure_future(end_of_input(control)) if options.exit_on_eof else None
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(control.stopping.wait(), options.lifetime or None)
    if watch:
        watch.cancel()
    for service in services.values():
        service.faults.clear()
        await service.close()
    return 0


async def end_of_input(control):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    control.stopping.set()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", metavar="NAME=TYPE", required=True, help=", ".join([*TOOLS, "pipe"]))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--exit-on-eof", action="store_true", help="exit when standard input closes")
    parser.add_argument("--lifetime", type=float, default=0, help="exit after so many seconds")
    return asyncio.run(main_async(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
