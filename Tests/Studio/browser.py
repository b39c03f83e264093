"""A headless Chromium over its DevTools protocol: tabs, input as people make it, and what the page did."""
import asyncio
import base64
import itertools
import json
import os
import pathlib
import shutil
import signal
import tempfile

import aiohttp

DEADLINE = float(os.environ.get("STUDIO_DEADLINE", "30"))


class Tab:
    """One page. `requests` are the addresses it asked for, `errors` what its console complained of."""

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session
        self.requests, self.errors = [], []

    async def call(self, method, **parameters):
        return await self.browser.call(method, parameters, self.session)

    def received(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requests.append(parameters["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            entry = parameters["entry"]
            self.errors.append("%s: %s %s" % (entry["source"], entry["text"], entry.get("url", "")))

    async def evaluate(self, expression):
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError("%s\n%s" % (expression, details.get("exception", {}).get("description", details)))
        return answer["result"].get("value")

    async def until(self, expression, what=None, patience=DEADLINE):
        """Waits until the expression is true, as the page changes."""
        end = asyncio.get_running_loop().time() + patience
        while True:
            if await self.evaluate("!!(%s)" % expression):
                return
            if asyncio.get_running_loop().time() > end:
                raise AssertionError("not within %d s: %s" % (patience, what or expression))
            # The next frame, in which something may have changed.
            await self.evaluate("new Promise(done => setTimeout(done, 30))")

    async def open(self, address):
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")

    async def focus(self):
        await self.call("Page.bringToFront")
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    async def type(self, selector, text):
        await self.evaluate("document.querySelector(%s).focus()" % json.dumps(selector))
        await self.call("Input.insertText", text=text)

    async def key(self, key, code=None, modifiers=0, text=None):
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "Delete": 46, "F6": 117}
        number = codes.get(key) or (ord(key.upper()) if len(key) == 1 else 0)
        text = text if text is not None else {"Enter": "\r"}.get(key, key if len(key) == 1 and not modifiers else "")
        common = {"key": key, "code": code or key, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **({"text": text} if text else {}), **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def click(self, selector):
        place = await self.evaluate(
            "(() => { const e = document.querySelector(%s); e.scrollIntoView({ block: 'nearest' }); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()" % json.dumps(selector))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1],
                **({} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}))

    async def size(self, width, height, scale=1, mobile=False):
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    async def theme(self, name):
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    async def picture(self, path):
        answer = await self.call("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))

    async def close(self):
        await self.browser.call("Target.closeTarget", {"targetId": self.target})


class Browser:
    """`async with Browser() as browser: tab = await browser.tab(address)`"""

    def __init__(self):
        self.numbers, self.answers, self.tabs = itertools.count(1), {}, {}

    async def __aenter__(self):
        program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "there is no chromium"
        self.directory = tempfile.mkdtemp(prefix="studio-chromium-")
        flags = ["--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + self.directory, "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu",
                 "--disable-dev-shm-usage", "--hide-scrollbars", "--font-render-hinting=none", "--lang=en-GB"]
        if os.getuid() == 0:
            flags.append("--no-sandbox")
        self.process = await asyncio.create_subprocess_exec(
            program, *flags, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            start_new_session=True)
        address = await asyncio.wait_for(self.address(), DEADLINE)
        self.drain = asyncio.create_task(self.process.stderr.read())
        self.http = aiohttp.ClientSession()
        self.socket = await self.http.ws_connect(address, max_msg_size=0)
        self.reader = asyncio.create_task(self.read())
        return self

    async def address(self):
        async for line in self.process.stderr:
            if b"DevTools listening on " in line:
                return line.decode().split("DevTools listening on ")[1].strip()
        raise AssertionError("chromium did not start")

    async def __aexit__(self, *_):
        self.reader.cancel()
        await self.socket.close()
        await self.http.close()
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        self.drain.cancel()
        shutil.rmtree(self.directory, ignore_errors=True)

    async def read(self):
        async for message in self.socket:
            data = json.loads(message.data)
            if "id" in data:
                waiting = self.answers.pop(data["id"], None)
                if waiting and not waiting.done():
                    waiting.set_result(data)
            else:
                tab = self.tabs.get(data.get("sessionId"))
                if tab:
                    tab.received(data["method"], data["params"])

    async def call(self, method, parameters=None, session=None):
        number = next(self.numbers)
        self.answers[number] = asyncio.get_running_loop().create_future()
        frame = {"id": number, "method": method, "params": parameters or {}}
        if session:
            frame["sessionId"] = session
        await self.socket.send_json(frame)
        answer = await asyncio.wait_for(self.answers[number], 2 * DEADLINE)
        if "error" in answer:
            raise AssertionError("%s: %s" % (method, answer["error"]["message"]))
        return answer["result"]

    async def tab(self, address, width=1440, height=900, scale=1, mobile=False, theme="light"):
        # A context of its own: other storage, as another person's browser.
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = (await self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context}))["targetId"]
        session = (await self.call("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"]
        tab = self.tabs[session] = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            await tab.call(domain + ".enable")
        await tab.size(width, height, scale, mobile)
        await tab.theme(theme)
        await tab.focus()
        await tab.open(address)
        return tab
