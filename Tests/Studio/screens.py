"""Pictures of what is no page of the studio: the screen of `telnet`, and the page /status of a bridge."""

import asyncio
import html
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid

from test_page import BINARY, DEADLINE, Program, Writer

COLUMNS, ROWS = 84, 22
SCREEN = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>A terminal in a room, by telnet</title>
<style>rect{fill:#f6f8fa}text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#24292f;white-space:pre}
@media(prefers-color-scheme:dark){rect{fill:#161b22}text{fill:#e6edf3}}</style>
<rect width="100%%" height="100%%" rx="8"/>
%s
</svg>
"""


class Terminal:
    """A program in a terminal of tmux."""

    def __init__(self, *command):
        self.name = "screens-" + uuid.uuid4().hex[:8]
        self.tmux("new-session", "-d", "-s", self.name, "-x", str(COLUMNS), "-y", str(ROWS), *command)

    def tmux(self, *arguments):
        return subprocess.run(
            ["tmux", "-u", "-L", self.name, "-f", "/dev/null", *arguments], check=True, text=True, stdout=subprocess.PIPE,
            env=dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", TZ="UTC")).stdout

    def type(self, text):
        self.tmux("send-keys", "-t", self.name, "-l", text)

    def enter(self):
        self.tmux("send-keys", "-t", self.name, "Enter")

    def lines(self):
        return self.tmux("capture-pane", "-p", "-t", self.name).splitlines()

    async def until(self, pattern):
        end = time.monotonic() + DEADLINE
        while not re.search(pattern, "\n".join(self.lines())):
            assert time.monotonic() < end, "%s is not on the screen:\n%s" % (pattern, "\n".join(self.lines()))
            await asyncio.sleep(0.05)

    def close(self):
        self.tmux("kill-server")


def drawn(lines):
    while lines and not lines[-1].strip():
        lines.pop()
    parts = ['<text x="16" y="%d">%s</text>' % (28 + 19 * row, html.escape(line.rstrip())) for row, line in enumerate(lines)]
    return SCREEN % (16 * 2 + int(8.45 * COLUMNS), 30 + 19 * len(lines), "\n".join(parts))


async def telnet(directory):
    async with Program("demo", "--listen", "irc://127.0.0.1:0") as program:
        terminal = Terminal("telnet", "127.0.0.1", str(program.irc_port))
        try:
            await terminal.until("Your name:")
            terminal.type("ann")
            terminal.enter()
            await terminal.until("Which room")
            terminal.enter()
            await terminal.until("Welcome to lobby")
            async with Writer(program, name="Grace Hopper") as grace:
                await grace.send("chat.presence", userId="id-Grace Hopper", userName="Grace Hopper", state="joined")
                await grace.say("The soup is ready", sentAt=time.time() - 978307200)
                await terminal.until("soup is ready")
                terminal.type("on my way")
                terminal.enter()
                await terminal.until("<ann> on my way")
                await grace.send("chat.typing", active=True)
                terminal.type("is there bre")
                await terminal.until("is typing")
                text = drawn(terminal.lines())
        finally:
            terminal.close()
    (directory / "telnet.svg").write_text(text, encoding="utf-8")


CONFIGURATION = """
[server]
name = "irc.example.com"
state_dir = "state"
[[listeners]]
bind = "irc://127.0.0.1:0"
[[http]]
bind = "http://127.0.0.1:0"
serve = ["health", "metrics", "status"]
[log]
format = "json"
[[rooms]]
name = "lobby"
url = "ws://127.0.0.1:%(port)d/lobby"
[[rooms]]
name = "kitchen"
url = "ws://127.0.0.1:%(port)d/kitchen"
[[rooms]]
name = "attic"
url = "ws://127.0.0.1:1/attic"
"""


async def status(directory, browser):
    async with Program("studio", "--port", "0") as studio:
        with tempfile.TemporaryDirectory(prefix="screens-") as folder:
            with open(folder + "/chatbridge.toml", "w", encoding="utf-8") as file:
                file.write(CONFIGURATION % {"port": studio.port})
            bridge = await asyncio.create_subprocess_exec(
                os.path.abspath(BINARY), "run", cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
            try:
                said, found = "", None
                while not found:
                    line = await asyncio.wait_for(bridge.stderr.readline(), DEADLINE)
                    assert line, "the bridge ended: " + said
                    said += line.decode()
                    found = re.search(r'"event":"listening-http".*?"address":"([^"]+)"', said)
                port = int(re.search(r'"event":"listening".*?"address":"[^"]+:(\d+)"', said)[1])
                _, client = await asyncio.open_connection("127.0.0.1", port)
                client.write(b"NICK colette\r\nUSER colette 0 * :Colette\r\nJOIN #lobby,#kitchen\r\n")
                tab = await browser.tab("http://%s/status" % found[1], width=1100, height=760)
                async with Writer(studio, name="Grace Hopper") as grace:
                    for words in ("hello from the kitchen", "the soup is ready"):
                        await grace.say(words, sentAt=time.time() - 978307200)
                client.write(b"PRIVMSG #lobby :on my way\r\n")
                await tab.until("document.body.innerText.includes('colette')")
                await asyncio.sleep(4)
                for theme in ("light", "dark"):
                    await tab.theme(theme)
                    await asyncio.sleep(0.3)
                    await tab.picture(directory / ("status-%s.png" % theme))
                client.close()
            finally:
                bridge.send_signal(signal.SIGTERM)
                await asyncio.wait_for(bridge.wait(), DEADLINE)
