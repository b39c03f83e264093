#!/usr/bin/env python3
"""The studio's page in a headless Chromium, against the built program.

    CHATBRIDGE=path python3 Tests/Studio/test_page.py [-v] [PageTest.test_name]

`STUDIO_SHOTS=directory` keeps the pictures that the last test takes.
"""
import asyncio
import json
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import tempfile
import unittest
import uuid

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import DEADLINE, Browser  # noqa: E402

BINARY = os.environ.get("CHATBRIDGE", ".build/debug/chatbridge")
IS_OPEN = "active && active.state === 'open'"
HOSTILE = [
    "<img src=x onerror=\"document.body.dataset.hit=1\">", "<script>document.body.dataset.hit=1</script>", "\"><b>bold</b>",
    "javascript:alert(1)", "https://evil.example/<script>", "&lt;b&gt; &amp; \u202egnp.exe", "{{constructor.constructor('x')()}}",
    "__proto__", "constructor", "\x01ACTION waves\x01", "a" * 5000, "\u0000\u0007\u001b[31mred", "🏳️‍🌈" * 50, "</textarea></script><svg onload=alert(1)>",
]


class Program:
    """`chatbridge demo` or `chatbridge studio`, with the page's address."""

    def __init__(self, *arguments):
        self.arguments = arguments

    async def __aenter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="studio-test-")
        self.process = await asyncio.create_subprocess_exec(
            os.path.abspath(BINARY), *self.arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            cwd=self.directory.name)
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", said)):
            line = await asyncio.wait_for(self.process.stdout.readline(), DEADLINE)
            assert line, "the program ended: " + said
            said += line.decode()
        self.page, self.port = found[0], int(found[1])
        listening = re.search(r"127\.0\.0\.1 port (\d+)|127\.0\.0\.1 (\d+)", said)
        self.irc_port = int(listening[1] or listening[2]) if listening else None
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(self.process.wait(), DEADLINE)
        self.directory.cleanup()


class Writer:
    """A client of the dialect `typed`, as another program would be one."""

    def __init__(self, program, room="lobby", name="Grace"):
        self.address = "ws://127.0.0.1:%d/typed/%s" % (program.port, room)
        self.room, self.name, self.number = room, name, 0
        # Ids are short, whatever the name is.
        self.prefix = uuid.uuid4().hex[:8]

    async def __aenter__(self):
        self.http = aiohttp.ClientSession()
        self.socket = await self.http.ws_connect(self.address, max_msg_size=0)
        return self

    async def __aexit__(self, *_):
        await self.socket.close()
        await self.http.close()

    async def send(self, kind, **payload):
        await self.socket.send_json({"type": kind, "payload": {
            "room": self.room, "senderId": "id-" + self.name, "senderName": self.name, **payload}})

    async def say(self, text, **more):
        self.number += 1
        identifier = "%s-%d" % (self.prefix, self.number)
        await self.send("chat.message", id=identifier, text=text, **{"sentAt": 785387936 + self.number, **more})
        return identifier

    async def confirmed(self, identifier):
        await asyncio.wait_for(self.receipt_of(identifier), DEADLINE)

    async def receipt_of(self, identifier):
        async for message in self.socket:
            frame = json.loads(message.data)
            if frame["type"] == "chat.receipt" and identifier in frame["payload"]["ids"]:
                return
        raise AssertionError("the studio ended the session")


class Terminal:
    """A person with telnet: keys out, and what was written so far."""

    def __init__(self, port, name):
        self.port, self.name, self.text = port, name, ""

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.task = asyncio.create_task(self.read())
        # DO ECHO, DO SUPPRESS-GO-AHEAD, a terminal type and a size.
        self.writer.write(bytes([255, 253, 1, 255, 253, 3, 255, 250, 24, 0]) + b"xterm" + bytes([255, 240, 255, 250, 31, 0, 100, 0, 40, 255, 240]))
        await self.sees("Your name")
        self.type(self.name + "\r")
        await self.sees("Which room")
        self.type("lobby\r")
        await self.sees("#lobby>")
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        self.writer.close()

    async def read(self):
        while data := await self.reader.read(65536):
            self.text += data.decode("utf-8", "replace")

    def type(self, text):
        self.writer.write(text.encode())

    async def sees(self, words, since=0, patience=DEADLINE):
        end = asyncio.get_running_loop().time() + patience
        while words not in self.text[since:]:
            assert asyncio.get_running_loop().time() < end, "not within %g s: %s in %r" % (patience, words, self.text[since:][-500:])
            await asyncio.sleep(0.005)


def shown(text):
    return "[...document.querySelectorAll('#log .bubble')].some(b => b.textContent.includes(%s))" % json.dumps(text)


def irc_line(nick, words):
    """Of somebody or, of the page itself, `–`; the relay has it."""
    return "[...document.querySelectorAll('#irc-log .line:not(.pending)')].some(line => line.querySelector('.nick').textContent === %s && line.querySelector('.text').textContent.includes(%s))" % (
        json.dumps(nick), json.dumps(words))


def wire_line(command, words):
    """One that came from the relay."""
    return "[...document.querySelectorAll('#lines .in')].some(line => line.querySelector('.v').textContent === %s && line.textContent.includes(%s))" % (
        json.dumps(command), json.dumps(words))


def own(text):
    return "[...active.entries].find(m => m.text === %s)" % json.dumps(text)


def listening(process):
    """(address, port) of each TCP listener of a process."""
    folder = "/proc/%d/" % process
    sockets = set()
    for name in os.listdir(folder + "fd"):
        found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(folder + "fd/" + name))
        if found:
            sockets.add(found[1])
    places = []
    for family, version in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for row in pathlib.Path(folder + "net/" + version).read_text().splitlines()[1:]:
            fields = row.split()
            # 0A: LISTEN. Addresses are words in the machine's order.
            if fields[3] == "0A" and fields[9] in sockets:
                address, port = fields[1].split(":")
                words = struct.unpack(">%dI" % (len(address) // 8), bytes.fromhex(address))
                places.append((socket.inet_ntop(family, struct.pack("=%dI" % len(words), *words)), int(port, 16)))
    return places


class PageTest(unittest.IsolatedAsyncioTestCase):
    maxDiff = None

    async def asyncSetUp(self):
        self.browser = await Browser().__aenter__()
        self.addAsyncCleanup(self.browser.__aexit__)

    async def run_program(self, *arguments):
        program = await Program(*arguments).__aenter__()
        self.addAsyncCleanup(program.__aexit__)
        return program

    async def demo(self):
        return await self.run_program("demo", "--listen", "irc://127.0.0.1:0")

    async def tab(self, program, name, room="lobby", nick=None, **more):
        address = "%s?name=%s&room=%s" % (program.page, name, room) + ("&nick=" + nick if nick else "")
        tab = await self.browser.tab(address, **more)
        await tab.until(IS_OPEN, "the session is open")
        if nick:
            await tab.until("irc.state === 'open' && irc.current.members.size", "IRC is there")
        return tab

    def assertQuiet(self, tab, program):
        """No complaint of the browser, and no request to another server."""
        self.assertEqual(tab.errors, [])
        relay = set()
        for address in tab.requests:
            if address.startswith("ws://127.0.0.1:"):
                relay.add(address)
            elif not address.startswith(("data:", "blob:" + program.page)):
                self.assertTrue(address.startswith(program.page), address)
        self.assertLessEqual(len({address for address in relay if str(program.port) not in address}), 1)

    async def test_the_start(self):
        program = await self.run_program("studio", "--port", "0")
        async with aiohttp.ClientSession() as http:
            async with http.get(program.page + "studio.json") as answer:
                setup = await answer.json()
            # What a client gets that is no browser says where the visitor waits.
            async with http.get(program.page) as answer:
                text = await answer.text()
        self.assertEqual([room["name"] for room in setup["rooms"]], ["lobby", "kitchen", "garden"])
        self.assertIsNone(setup["irc"])
        self.assertIn("A visitor who answers waits in: lobby\n", text)
        self.assertEqual(listening(program.process.pid), [("127.0.0.1", program.port)])
        demo = await self.demo()
        self.assertEqual({address for address, _ in listening(demo.process.pid)}, {"127.0.0.1"})
        # What the page's address sets.
        tab = await self.browser.tab(demo.page + "?name=Ada&nick=colette&room=kitchen&theme=dark")
        await tab.until(IS_OPEN + " && irc.state === 'open'")
        self.assertEqual(
            await tab.evaluate("[me.name, irc.nick, active.name, document.documentElement.dataset.theme]"),
            ["Ada", "colette", "kitchen", "dark"])

    async def test_two_windows_and_irc(self):
        program = await self.demo()
        ada = await self.tab(program, "Ada", nick="colette")
        ben = await self.tab(program, "Ben", nick="linguini")
        await ada.focus()
        await ada.type("#text", "good morning")
        await ada.key("Enter")
        await ben.until(shown("good morning"))
        await ada.until("[...document.querySelectorAll('#irc-log .text')].some(t => t.textContent === 'good morning')")
        # Ben looks at it: the ticks say so, with his name.
        await ben.focus()
        await ada.until(own("good morning") + ".readers.has('Ben')", "Ben's receipt")
        await ada.until("!!document.querySelector('.own .meta .read')")
        # From IRC into the chat, by the relay.
        await ben.type("#irc-text", "hello from IRC")
        await ben.key("Enter")
        await ada.until(shown("hello from IRC"))
        await ben.until("[...document.querySelectorAll('#irc-log .line')].some(l => l.textContent.includes('hello from IRC') && !l.matches('.pending'))")
        # Typing in the chat lights the TAGMSG: one number on both wires.
        await ada.focus()
        await ada.type("#text", "x")
        await ben.until("document.querySelector('#typing').textContent.includes('Ada')")
        await ada.until("""(() => {
            const find = (list, words) => [...document.querySelectorAll(list + ' li.paired')].filter(li => words.every(w => li.textContent.includes(w))).map(li => li.dataset.pair);
            const left = find('#json', ['chat.typing', '"active":true', 'Ada']), right = find('#lines', ['+typing=active', 'TAGMSG #lobby', 'Ada']);
            return left.some(n => right.includes(n)); })()""", "the typing pair")
        # Reaction, reply, edit and deletion, in the other window and on IRC.
        await ada.evaluate("toggleReaction(active.entries.find(m => m.text === 'hello from IRC'), '👍')")
        await ben.until("document.querySelector('#log .chips')?.textContent.includes('👍') && document.querySelector('#irc-log .react')")
        await ada.evaluate("document.querySelector('#text').value = ''; composer.reply(active.entries.find(m => m.text === 'hello from IRC'))")
        await ada.type("#text", "an answer")
        await ada.key("Enter")
        await ben.until("[...document.querySelectorAll('#log .quote')].some(q => q.textContent.includes('hello from IRC'))")
        await ben.until("document.querySelector('#irc-log .re')?.textContent.includes('hello from IRC')")
        await ada.until(own("an answer") + ".state !== 'sending'")
        await ada.key("ArrowUp")
        await ada.until("composer.editing")
        await ada.evaluate("composer.field.value = ''")
        await ada.type("#text", "a better answer")
        await ada.key("Enter")
        await ben.until(shown("a better answer") + " && !(" + shown("an answer") + ")")
        await ada.evaluate("erase(active.entries.find(m => m.text === 'a better answer'))")
        await ben.until("document.querySelector('#log .gone')")
        self.assertQuiet(ada, program)
        self.assertQuiet(ben, program)
        # Leaving is told as well.
        await ben.close()
        await ada.until("[...document.querySelectorAll('#log .event')].some(e => e.textContent === 'Ben left')")

    async def test_browser_irc_and_telnet(self):
        """Each sees the others' typing within 300 ms, and that they have read."""
        program = await self.demo()
        ada = await self.tab(program, "Ada", nick="colette")
        await ada.focus()
        loop = asyncio.get_running_loop()
        async with Terminal(program.irc_port, "bob") as bob:
            await ada.until("irc.current.members.size >= 3", "all are there")

            async def page_sees(what, began):
                await ada.until(what)
                return loop.time() - began

            # Who types: telnet, the page, IRC.
            began = loop.time()
            bob.type("h")
            delays = [await page_sees("document.querySelector('#typing').textContent.includes('bob')", began)]
            since, began = len(bob.text), loop.time()
            await ada.type("#text", "f")
            await bob.sees("Ada is typing", since, 0.3)
            since = len(bob.text)
            await ada.type("#irc-text", "i")
            await bob.sees("colette", since, 0.3)
            self.assertLess(max(delays), 0.3)
            # Who says something, and who has read it.
            since = len(bob.text)
            bob.type("ello from telnet\r")
            await ada.until(shown("hello from telnet"))
            await bob.sees("read by", since)
            await bob.sees("Ada", since)
            await ada.type("#text", "rom the page")
            await ada.key("Enter")
            await bob.sees("from the page", since)
            await ada.until(
                "[...active.entries].some(m => m.isOwn && m.text === 'from the page' && m.readers.has('bob') && m.readers.has('colette'))",
                "telnet and IRC have read it")

    async def test_commands_on_irc(self):
        """Each of them as it is typed, and what the page shows then."""
        program = await self.demo()
        ada = await self.tab(program, "Ada", room="kitchen", nick="colette")
        await ada.focus()
        async with Writer(program, "kitchen") as grace:
            await grace.say("is there soup?")
            await ada.until(irc_line("Grace", "is there soup?"))
            for typed, becomes in (
                ("/me waves", irc_line("*", "colette waves")),
                ("/reply all gone", irc_line("colette", "↪ Grace: is there soup?all gone")
                 + " && document.querySelector('#log .quote')?.textContent.includes('is there soup?')"),
                ("/react 🍲", "document.querySelector('#log .chips')?.textContent.includes('🍲')"
                 " && document.querySelector('#irc-log .react')?.textContent === '🍲'"),
                ("/redact", "document.querySelector('#log .gone') && document.querySelector('#irc-log .gone')?.textContent.includes('all gone')"),
                # That of the configuration stands.
                ("/topic fresh bread", wire_line("482", "#kitchen")),
                ("/names", irc_line("–", "Ada Grace colette")),
                ("/raw WHOIS Grace", wire_line("311", "Grace")),
                ("/msg *bridge help", irc_line("–", "**bridge* history")),
                ("/nick linguini", "document.querySelector('#irc-nick').textContent === 'linguini'"),
                ("/help", irc_line("–", "/redact")),
                ("/nonsense", irc_line("–", "Unknown command")),
            ):
                await ada.type("#irc-text", typed)
                await ada.key("Enter")
                await ada.until(becomes, typed)
        self.assertQuiet(ada, program)

    async def test_files(self):
        program = await self.demo()
        ada = await self.tab(program, "Ada", nick="colette")
        ben = await self.tab(program, "Ben")
        await ada.focus()
        await ada.evaluate("""new Promise(done => { const c = document.createElement('canvas'); c.width = 40; c.height = 30;
            c.toBlob(b => { active.upload(new File([b], 'cat.png', { type: 'image/png' })); done(); }); })""")
        await ben.until("[...document.querySelectorAll('#log img')].some(i => i.complete && i.naturalWidth === 40)", "the picture")
        await ada.until("[...document.querySelectorAll('#irc-log .text')].some(t => t.textContent.includes('[image]') && t.textContent.includes('/api/files/'))")
        await ada.evaluate("active.upload(new File(['<script>'], 'page.html', { type: 'text/html' }))")
        await ben.until("[...document.querySelectorAll('#log a.card')].some(a => a.textContent.includes('page.html') && a.hasAttribute('download'))")
        await ada.evaluate("active.upload(new File([new Uint8Array(11e6)], 'large.bin'))")
        await ada.until("document.querySelector('.meta .failed')", "the refusal")
        self.assertQuiet(ben, program)

    async def test_outage(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        database = directory.name + "/studio.db"
        first = await Program("studio", "--port", "0", "--database", database).__aenter__()
        tab = await self.tab(first, "Ada", room="kitchen")
        await tab.type("#text", "before")
        await tab.key("Enter")
        await tab.until(own("before") + ".state === 'sent'")
        await first.__aexit__()
        await tab.until("!document.querySelector('#banner').hidden && /Next try in \\d+ s/.test(document.querySelector('#banner').textContent)", "the banner")
        await tab.type("#text", "meanwhile")
        await tab.key("Enter")
        self.assertEqual(await tab.evaluate(own("meanwhile") + ".state"), "sending")
        await self.run_program("studio", "--port", str(first.port), "--database", database)
        await tab.evaluate("document.querySelector('#retry').click()")
        await tab.until(own("meanwhile") + ".state === 'sent'", "the message is sent")
        await tab.until("document.querySelector('#banner').hidden")
        self.assertEqual(await tab.evaluate("active.entries.filter(m => m.kind === 'message').map(m => m.text)"), ["before", "meanwhile"])
        # The rooms were in the database: another window sees both.
        other = await self.tab(first, "Ben", room="kitchen")
        await other.until(shown("before") + " && " + shown("meanwhile"))

    async def test_rooms_and_unread(self):
        program = await self.run_program("studio", "--port", "0")
        tab = await self.tab(program, "Ada", room="kitchen")
        async with Writer(program, "garden") as writer:
            for number in range(3):
                await writer.say("leaf %d" % number)
            await tab.until("document.querySelector('#rooms .count')?.textContent === '3' && document.title.startsWith('(3)')")
            await tab.key("ArrowDown", modifiers=1)
            await tab.until("active.name === 'garden'")
            await tab.until("document.querySelector('.rule.new') && !document.querySelector('#rooms .count')")
            # A reader in the middle stays there, and is offered the rest.
            for number in range(80):
                last = await writer.say("line %d" % number)
            await writer.confirmed(last)
            await tab.until(shown("line 79"))
            await tab.evaluate("timeline.log.scrollTop = 400")
            await tab.until("!timeline.isAtEnd")
            top = await tab.evaluate("timeline.log.scrollTop")
            await writer.say("news")
            await tab.until("document.querySelector('#pill').textContent === '1 new'")
            self.assertEqual(await tab.evaluate("timeline.log.scrollTop"), top)
            await tab.click("#pill")
            await tab.until("document.querySelector('#pill').hidden && " + shown("news"))
            # Runs by sender, and dividers of time and day.
            await writer.say("a minute", sentAt=785388100)
            await writer.say("an hour", sentAt=785392000)
            await writer.say("a day", sentAt=785492000)
            await tab.until(shown("a day"))
            await tab.evaluate("timeline.reset(); while (timeline.from) timeline.extendUp()")
            self.assertEqual(await tab.evaluate("document.querySelectorAll('.rule.day').length"), 2)
            self.assertGreater(await tab.evaluate("document.querySelectorAll('.rule.time').length"), 0)
            self.assertEqual(await tab.evaluate("document.querySelectorAll('#log .msg.first').length"), await tab.evaluate("document.querySelectorAll('#log .avatar').length"))
        # Search finds and goes there.
        await tab.key("f", modifiers=2)
        await tab.type("#query", "line 7")
        await tab.until("document.querySelectorAll('#results mark').length >= 11")
        await tab.evaluate("[...document.querySelectorAll('#results button')].at(-1).click()")
        await tab.until("document.activeElement.textContent?.includes('line 7')")
        self.assertQuiet(tab, program)

    async def test_hostile_text(self):
        program = await self.demo()
        tab = await self.tab(program, "Ada", nick="colette")
        tags = "JSON.stringify([...new Set([...document.querySelectorAll('*')].map(e => e.tagName))].sort())"
        async with Writer(program, name="Plain") as writer:
            await writer.send("chat.presence", userId="id", userName="Plain", state="joined")
            first = await writer.say("a link: https://example.com/ and a reply", replyTo="none", attachments=[{"url": "/api/files/x", "name": "x", "kind": "file"}])
            await writer.send("chat.reaction", messageId=first, emoji="👍", active=True)
            await tab.until(shown("a link"))
            before = set(json.loads(await tab.evaluate(tags)))
        for index, text in enumerate(HOSTILE):
            async with Writer(program, name=text[:200]) as writer:
                await writer.send("chat.presence", userId="h%d" % index, userName=text[:200], state="joined")
                await writer.send("chat.typing", active=True)
                identifier = await writer.say(text, replyTo=text, attachments=[{"url": text, "name": text, "kind": "image", "mimeType": text, "size": text}])
                await writer.send("chat.reaction", messageId=identifier, emoji=text, active=True)
                await writer.send("chat.receipt", ids=[identifier], state=text)
                await writer.send("chat.edit", id=identifier, text=text + " ", editedAt=1)
                for frame in ("{", "[]", '{"type":"chat.message","payload":[]}', '{"type":7,"payload":{}}', '{"type":"chat.message","payload":{"id":{},"text":7}}'):
                    await writer.socket.send_str(frame)
                last = await writer.say("end of %d" % index)
                await writer.confirmed(last)
            await tab.until(shown("end of %d" % index))
        await tab.until("[...document.querySelectorAll('#irc-log .text')].some(t => t.textContent.includes('end of %d'))" % (len(HOSTILE) - 1))
        await tab.evaluate("document.querySelector('#query').value = '<'; openSearch(); search()")
        self.assertEqual(set(json.loads(await tab.evaluate(tags))) - before - {"MARK", "SMALL", "UL"}, set())
        self.assertIsNone(await tab.evaluate("document.body.dataset.hit ?? null"))
        self.assertEqual(await tab.evaluate("[...document.querySelectorAll('a')].filter(a => !/^https?:/.test(a.href)).length"), 0)
        self.assertQuiet(tab, program)
        # Even a mistake in the script could not make markup, or send anything away.
        self.assertTrue(await tab.evaluate("(() => { try { document.createElement('p').innerHTML = '<b>'; return false; } catch { return true; } })()"))
        self.assertTrue(await tab.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)"))
        self.assertTrue(any("Content Security Policy" in error or "violates" in error for error in tab.errors), tab.errors)

    async def test_ten_thousand_messages(self):
        program = await self.run_program("studio", "--port", "0")
        async with Writer(program, "garden") as writer:
            for number in range(10_000):
                last = await writer.say("message %d, %s" % (number, "with some more words " * (number % 7)))
                # Who does not read is dropped.
                if number % 1000 == 999:
                    await writer.confirmed(last)
        tab = await self.tab(program, "Ada", room="garden")
        await tab.until(shown("message 9999"))
        await tab.evaluate("""window.longest = 0;
            new PerformanceObserver(list => { for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration); }).observe({ entryTypes: ['longtask'] });""")
        # As fast as frames come, to the very beginning and back.
        await tab.evaluate("""window.step = () => { timeline.log.scrollTop -= 700;
            window.isUp = timeline.from === 0 && !active.hasMore && timeline.log.scrollTop === 0;
            if (!isUp) requestAnimationFrame(step); }; step()""")
        # Without a graphics card there are few frames a second.
        await tab.until("window.isUp", "the beginning", 180)
        self.assertTrue(await tab.evaluate(shown("message 0,")))
        self.assertEqual(await tab.evaluate("active.entries.filter(m => m.kind === 'message').length"), 10_000)
        self.assertEqual(await tab.evaluate("active.entries.filter(m => m.kind === 'message').every((m, i) => m.text.startsWith('message ' + i + ','))"), True)
        self.assertLess(await tab.evaluate("document.querySelectorAll('#log > li').length"), 500)
        await tab.evaluate("""window.step = () => { timeline.log.scrollTop += 4000;
            if (!timeline.isAtEnd) requestAnimationFrame(step); }; step()""")
        await tab.until("timeline.isAtEnd", "the end", 180)
        self.assertTrue(await tab.evaluate(shown("message 9999")))
        longest = await tab.evaluate("longest")
        print("longest task: %d ms" % longest, file=sys.stderr)
        self.assertLess(longest, 200)
        self.assertQuiet(tab, program)

    async def test_keyboard_and_screen_reader(self):
        program = await self.demo()
        # Where nobody answers.
        tab = await self.tab(program, "Ada", room="kitchen", nick="colette")
        await tab.type("#text", "one")
        await tab.key("Enter")
        await tab.until(own("one") + ".state !== 'sending'")
        # Every control has a name.
        tree = await tab.call("Accessibility.getFullAXTree")
        roles = {"button", "textbox", "tab", "log", "dialog", "searchbox", "article", "image", "navigation", "region"}
        nameless = [node["role"]["value"] for node in tree["nodes"] if not node.get("ignored") and node.get("role", {}).get("value") in roles and not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        # F6 from the field to messages, IRC and both wires, and around; with Shift back.
        for stop in ("log", "irc-text", "json", "lines", "text"):
            await tab.key("F6")
            self.assertEqual(await tab.evaluate("document.activeElement.id"), stop)
        await tab.key("F6", modifiers=8)
        self.assertEqual(await tab.evaluate("document.activeElement.id"), "lines")
        await tab.evaluate("timeline.log.focus()")
        # A message by its arrow, and its reply.
        await tab.key("ArrowUp")
        self.assertIn("one", await tab.evaluate("document.activeElement.getAttribute('aria-label')"))
        await tab.key("+", text="+")
        await tab.until("document.querySelector('.picker') && document.activeElement.closest('.picker')")
        await tab.key("Enter")
        await tab.until("document.querySelector('.chips')")
        await tab.evaluate("timeline.log.focus()")
        await tab.key("ArrowUp")
        await tab.key("r")
        await tab.until("!document.querySelector('#context').hidden && document.activeElement.id === 'text'")
        await tab.key("Escape")
        await tab.until("document.querySelector('#context').hidden")
        self.assertQuiet(tab, program)

    async def test_contrast(self):
        """Everything can be read: in light and dark, wide and narrow, as it is, under the mouse and with the focus."""
        program = await self.demo()
        ada = await self.tab(program, "Ada", nick="colette")
        ben = await self.tab(program, "Ben", nick="linguini")
        await ada.focus()
        await ada.type("#text", "good morning, see https://example.org/soup")
        await ada.key("Enter")
        await ben.focus()
        await ada.until("document.querySelector('.own .meta .read')")
        async with Writer(program, name="Grace Hopper") as writer, Writer(program, "kitchen") as cook:
            await writer.send("chat.presence", userId="id-Grace Hopper", userName="Grace Hopper", state="joined")
            question = await writer.say("Is the relay up?")
            await writer.say("Yes, it is", replyTo=question)
            await writer.say("👍🎉")
            await cook.say("unread")
            await writer.say("a day", sentAt=785492000)
            await ada.until(shown("a day"))
            await ada.until("document.querySelector('#rooms .count')")
            await ada.evaluate("""for (const m of active.entries.filter(m => m.kind === 'message').slice(0, 3)) toggleReaction(m, '👍');
                active.upload(new File(['soup'], 'soup.txt', { type: 'text/plain' }));
                active.upload(new File([new Uint8Array(11e6)], 'large.bin'))""")
            await ada.until("document.querySelector('.meta .failed') && document.querySelector('#log .chips') && document.querySelector('#log .card')")
            await ben.type("#text", "gone")
            await ben.key("Enter")
            await ben.until(own("gone") + ".state !== 'sending'")
            await ben.evaluate("erase(" + own("gone") + ")")
            await ada.until("document.querySelector('#log .gone') && document.querySelector('#irc-log .gone')")
            await ada.focus()
            await ada.evaluate("composer.reply(active.entries.find(m => m.text === 'Is the relay up?'))")
            await ada.type("#text", "half a reply")
            await writer.send("chat.typing", active=True)
            await ben.close()
            await ada.until("[...document.querySelectorAll('#log .event')].some(e => e.textContent === 'Ben left')")
            await self.assertContrast(ada, "chat")
            await ada.evaluate("document.querySelector('#search-open').click()")
            await ada.type("#query", "relay")
            await ada.until("document.querySelector('#results mark')")
            await self.assertContrast(ada, "search")
            await ada.evaluate("document.querySelector('#search-close').click(); document.querySelector('#keys-open').click()")
            await ada.until("document.querySelector('dialog[open]')")
            await self.assertContrast(ada, "keys")
            await ada.evaluate("document.querySelector('dialog[open]').close(); document.querySelector('#log .tools button').click()")
            await ada.until("document.querySelector('.picker')")
            await self.assertContrast(ada, "picker")
            await ada.evaluate("document.activeElement.blur()")
        await program.__aexit__()
        await ada.until("!document.querySelector('#banner').hidden && irc.state !== 'open'")
        await self.assertContrast(ada, "outage")

    async def assertContrast(self, tab, what):
        too_pale = (pathlib.Path(__file__).parent / "contrast.js").read_text()
        found = {}
        for width, height in ((1440, 900), (390, 844)):
            await tab.size(width, height, 1, width < 500)
            for theme in ("light", "dark"):
                await tab.theme(theme)
                for view in ("chat", "irc", "wire") if width < 500 else ("chat",):
                    await tab.evaluate("document.querySelector('.tabs [data-tab=%s]').click()" % view)
                    for state in ("", ":hover", ":focus"):
                        for fault, contrast in (await tab.evaluate("%s(%s)" % (too_pale, json.dumps(state)))).items():
                            where = "%.2f: %s, %d pixels, %s" % (contrast, theme, width, state or "as it is")
                            found[fault] = min(found.get(fault, where), where)
        await tab.size(1440, 900)
        await tab.theme("light")
        await tab.evaluate("document.querySelector('.tabs [data-tab=chat]').click()")
        self.assertEqual([], ["%s, is %s" % pair for pair in sorted(found.items())], what)

    async def test_pictures(self):
        """Light, dark and a phone's width: nothing overflows. The pictures are for people."""
        directory = os.environ.get("STUDIO_SHOTS")
        program = await self.demo()
        tab = await self.tab(program, "Ada%20Lovelace", nick="colette")
        async with Writer(program, name="Grace Hopper") as writer:
            await writer.send("chat.presence", userId="id-Grace Hopper", userName="Grace Hopper", state="joined")
            for text in ("Is the relay up?", "I see three clients on IRC already.", "A long word, " + "x" * 200):
                await writer.say(text)
            await writer.send("chat.typing", active=True)
            await tab.until(shown("three clients"))
            for name, width, height, scale, theme in (
                ("light", 1440, 900, 1, "light"), ("dark", 1440, 900, 1, "dark"), ("tablet", 900, 1100, 1, "light"),
                ("phone", 390, 844, 2, "light"), ("phone-dark", 390, 844, 2, "dark"), ("small", 320, 568, 2, "light"),
            ):
                await tab.size(width, height, scale, width < 500)
                await tab.theme(theme)
                for view in ("chat", "irc", "wire") if width < 500 else ("chat",):
                    await tab.evaluate("document.querySelector('.tabs [data-tab=%s]').click()" % view)
                    self.assertLessEqual(await tab.evaluate("document.documentElement.scrollWidth"), width, (name, view))
                    wide = await tab.evaluate("[...document.querySelectorAll('#log *, .compose *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && e.offsetParent).length")
                    self.assertEqual(wide, 0, (name, view))
                    if directory:
                        await tab.picture("%s/%s-%s.png" % (directory, name, view))
                await tab.evaluate("document.querySelector('.tabs [data-tab=chat]').click()")


if __name__ == "__main__":
    unittest.main()
