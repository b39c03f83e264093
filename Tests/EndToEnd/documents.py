"""README and docs as they are typed: each page's files, commands and conversations, in its order and in a folder of its own.

pages.py has the directives. A fixed port of a page is a free one here; in expected lines `…` stands for anything, a line of its own
for any lines. Times, message ids and host names of conversations are any.
"""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

import pages
import peer
from peer import PATIENCE, wait_until

PORTS = re.compile(r"(?<![\d.])(6667|6697|6680|6700|8080|9667|9700)(?!\d)")
# In a command's output: it is up.
UP = re.compile(r"The demo runs|IRC clients can connect|The studio relays")
VOLATILE = [
    (re.compile(r"time=[^; ]+"), "time=…"), (re.compile(r"msgid=[^; ]+"), "msgid=…"),
    (re.compile(r"(\+draft/(?:read|delivered|reply)|\+reply)=[^; ]+"), r"\1=…"), (re.compile(r"(![^@ ]+)@\S+"), r"\1@…"),
]


def pattern(line):
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def matches(expected, output):
    """Whether the lines of `output` are those expected."""
    if not expected:
        return not output
    if expected[0].strip() == "…":
        return any(matches(expected[1:], output[skip:]) for skip in range(len(output) + 1))
    return bool(output) and re.fullmatch(pattern(expected[0]), output[0].rstrip()) is not None and matches(
        expected[1:], output[1:])


def commands(text):
    """(command, lines of output) of a block; a command may go on behind a backslash."""
    found, continued = [], False
    for line in text.splitlines():
        if continued:
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError("output before a command: %r" % line)
        continued = line.endswith("\\") and (continued or line.startswith("$ "))
    return found


class Program:
    """A command that stays, and what it has printed."""

    def __init__(self, command, desk):
        self.lines = []
        self.process = subprocess.Popen(
            ["bash", "-c", "exec " + command if "=" not in command.split()[0] else "exec env " + command], cwd=desk.folder,
            env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def output(self):
        return "\n".join(self.lines)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Desk:
    """Where a page is worked through."""

    def __init__(self, page):
        self.page, self.programs, self.ports = page, {}, {}
        self.directory = tempfile.TemporaryDirectory(prefix="chatbridge-page-")
        self.folder = self.directory.name + "/page"
        programs = self.directory.name + "/bin"
        os.makedirs(self.folder)
        os.makedirs(programs)
        os.symlink(os.path.abspath(peer.BINARY_PATH), programs + "/chatbridge")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
        self.environment.update(PATH=programs + ":" + self.environment["PATH"], HOME=self.folder, NO_COLOR="1", LC_ALL="C.UTF-8")

    def here(self, text):
        """A text of the page with this machine's ports."""
        return PORTS.sub(lambda match: str(self.port(match.group())), text)

    def port(self, number):
        if number not in self.ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.ports[number] = probe.getsockname()[1]
        return self.ports[number]

    def close(self):
        for program in self.programs.values():
            program.stop()
        self.directory.cleanup()

    def file(self, block):
        path = os.path.join(self.folder, block.argument)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.here(block.text))

    def merge(self, block):
        name, _, key = block.argument.partition(" ")
        path, more = os.path.join(self.folder, name), block.text.strip().rstrip(",")
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        if key:
            value[key] += json.loads("[%s]" % more)
        else:
            value.update(json.loads("{%s}" % more))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)

    def run(self, block):
        options = dict(word.split("=", 1) for word in block.argument.split())
        typed = commands(self.here(block.text))
        for number, (command, expected) in enumerate(typed, 1):
            status = int(options.get("exit", 0)) if number == len(typed) else 0
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=self.environment, text=True,
                input=options.get("stdin", "") + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE * 4)
            assert done.returncode == status, "%s: %s: exit %d:\n%s" % (block, command, done.returncode, done.stdout)
            output = done.stdout.splitlines()
            assert not expected or matches(expected, output), "%s: %s printed\n%s" % (block, command, done.stdout)

    def start(self, block):
        (command, expected), = commands(self.here(block.text))
        name, _, more = block.argument.partition(" ")
        program = self.programs[name] = Program(" ".join([command, self.here(more)]), self)
        wait_until(
            lambda: UP.search(program.output()) or program.process.poll() is not None,
            lambda: "%s: %s is up: %s" % (block, command, program.output()), PATIENCE * 2)
        assert program.process.poll() is None, "%s: %s ended: %s" % (block, command, program.output())
        for line in expected:
            if line.strip() != "…":
                wait_until(
                    lambda: re.search("(?m)^" + pattern(line), program.output()),
                    lambda: "%s: %r in %s" % (block, line, program.output()))

    def stop(self, block):
        self.programs.pop(block.argument).stop()

    def irc(self, block):
        port, *words = block.argument.split()
        secure = "tls" in words
        nick, *caps = [word for word in words if word != "tls"]
        with socket.create_connection(("127.0.0.1", self.port(port)), timeout=PATIENCE) as link:
            if secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                link = context.wrap_socket(link)
            Conversation(block, link).play(self.here(block.text).splitlines(), nick, caps)


class Conversation:
    def __init__(self, block, link):
        self.block, self.link, self.input = block, link, link.makefile("r", encoding="utf-8", newline="\r\n")
        self.seen = []

    def send(self, *lines):
        self.link.sendall("".join(line + "\r\n" for line in lines).encode())

    def expect(self, line):
        for old, new in VOLATILE:
            line = old.sub(new, line)
        wanted = pattern(line)
        for got in self.input:
            got = got.rstrip("\r\n")
            self.seen.append(got)
            if got.startswith("PING"):
                self.send("PONG" + got[4:])
            for old, new in VOLATILE:
                got = old.sub(new, got)
            if re.fullmatch(wanted, got):
                return
        raise AssertionError("%s: the connection ended before %r:\n%s" % (self.block, line, "\n".join(self.seen[-20:])))

    def play(self, lines, nick, caps):
        first = [line[2:] for line in lines if line.startswith("> PASS")]
        self.send(*first, *(["CAP REQ :" + " ".join(caps)] if caps else []), "NICK " + nick, "USER %s 0 * :%s" % (nick, nick),
                  *(["CAP END"] if caps else []))
        try:
            self.expect("… 001 …")
            for line in lines:
                if line.startswith("< "):
                    self.expect(line[2:])
                elif not line.startswith("> PASS"):
                    self.send(line[2:])
            self.send("QUIT")
        except TimeoutError:
            raise AssertionError("%s: waited in vain:\n%s" % (self.block, "\n".join(self.seen[-20:]))) from None


def scenario_of(page):
    """The scenario of a page, where it has something to run."""
    steps = [block for block in pages.blocks(page) if block.kind in ("file", "merge", "run", "start", "stop", "irc")]
    if all(block.kind == "file" for block in steps):
        return None

    def work():
        desk = Desk(page)
        try:
            for block in steps:
                getattr(desk, block.kind)(block)
        finally:
            desk.close()
        return "%d steps" % len(steps)

    work.is_scenario = True
    return work


for _page in pages.all_pages():
    _work = scenario_of(_page)
    if _work:
        globals()["page_" + re.sub(r"\W", "_", _page[:-3].removeprefix("docs/"))] = _work
