#!/usr/bin/env python3
"""Drives the IRC clients that people use against a bridge in front of the studio, one after the other.

    CHATBRIDGE=path drive.py [CLIENT...]

Each client connects, joins #lobby, must show what was said there before it came and before the bridge was started last,
says ping-NONCE, must show the visitor's pong-NONCE, and quits; irssi and WeeChat talk to *bridge before that. From outside
it is checked that the backend saw the words under the client's nick, and that the room saw the client leave. A table on
standard output; exit 0 when all are ok. A client that is not installed is a failure. SHOW=1 prints the last screen of what
failed.
"""

import calendar
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))

from accounts import account  # noqa: E402  (the path comes first)
from peer import BINARY_PATH, IRC, Bridge, Person, wait_until  # noqa: E402

CHANNEL = "#lobby"
VISITOR = "Remy"
# An account, for who comes over TLS.
ALICE, PASSWORD = "alice", "secret-of-alice"
PYTHON = os.environ.get("PYTHON", sys.executable)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise AssertionError("%s is not installed" % tool)


class Studio:
    """`chatbridge studio` on a free port."""

    def __init__(self):
        self.process = subprocess.Popen(
            [BINARY_PATH, "studio", "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = self.process.stdout.readline().decode()
        match = re.search(r"ws://127\.0\.0\.1:(\d+)/", said)
        assert match, "the studio did not start: %r" % said
        self.port = int(match.group(1))

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Terminal:
    """A program on a terminal of its own: tmux, without anybody's configuration."""

    def __init__(self, directory, command):
        need("tmux")
        self.socket = os.path.join(directory, "tmux")
        environment = dict(os.environ, TERM="screen-256color", HOME=directory, LC_ALL="C.UTF-8", TZ="UTC")
        environment.pop("TMUX", None)
        # What ends early stays readable, and is seen as an end rather than as silence.
        subprocess.run(
            ["tmux", "-u", "-S", self.socket, "-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "50",
             "%s; echo PROGRAM-ENDED; read -r _" % command],
            env=environment, check=True,
        )

    def run(self, *words):
        return subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout.decode("utf-8", "replace")

    def type(self, text):
        self.run("send-keys", "-l", "--", text)

    def enter(self, text=""):
        if text:
            self.type(text)
        self.run("send-keys", "Enter")

    def screen(self):
        return self.run("capture-pane", "-p", "-J", "-S", "-500")

    def expect(self, text, patience=None):
        try:
            wait_until(lambda: text in self.screen(), "%r on the screen" % text, patience)
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, self.screen())) from None

    def stop(self):
        self.run("kill-server")


class Drive:
    """One client's run: where to connect, what to say, and who watches. `restart` starts the bridge anew on its port, and gives
    that for TLS."""

    def __init__(self, name, port, restart, studio_port, number):
        self.name = name
        self.port = port
        self.nick = "t%d%s" % (number, re.sub("[^a-z]", "", name)[:6])
        nonce = "%d-%d" % (time.monotonic_ns() % 1_000_000_000, number)
        self.ping, self.pong = "ping-" + nonce, "pong-" + nonce
        self.directory = tempfile.mkdtemp(prefix="chatbridge-client-")
        self.terminal = None
        self.process = None
        self.observer = None
        self.watcher = Person(studio_port, "lobby", "Watcher")
        # Who said what before the client comes, in this order: its last lines on entering, and from the store, since the
        # bridge was started after it.
        speaker = "speaker%d" % number
        self.before = [("Watcher", "upstream-" + nonce), (speaker, "irc-" + nonce)]
        with contextlib.closing(IRC(port, speaker, join=[CHANNEL])) as irc:
            self.watcher.say(self.before[0][1])
            irc.expect_text(self.before[0][1])
            irc.say(CHANNEL, self.before[1][1])
            self.watcher.expect_message(self.before[1][1])
        self.before_at = time.time()
        self.tls_port = restart()
        self.observer = IRC(port, "observer%d" % number, join=[CHANNEL])

    def start_terminal(self, command):
        self.terminal = Terminal(self.directory, command)
        return self.terminal

    def start_process(self, *command, **options):
        # In a group of its own, so that its end takes all its children along.
        self.process = subprocess.Popen(
            command, start_new_session=True, cwd=self.directory,
            env=dict(os.environ, HOME=self.directory, LC_ALL="C.UTF-8"), **options,
        )
        return self.process

    def file_has(self, path, text, patience=None):
        wait_until(lambda: text in read(path), "%r in %s" % (text, os.path.basename(str(path))), patience)

    def expect_last_lines(self, view, takes_times):
        """`view` gives what the client shows of the room. What was said before is there once, in order, under its authors'
        nicks, and with the time in front unless the client takes `server-time` (`takes_times`)."""

        def rows():
            return [row for row in view().splitlines() if any(text in row for _, text in self.before)]

        wait_until(lambda: len(rows()) >= len(self.before), lambda: "the last lines; the room:\n" + view())
        found = rows()
        assert len(found) == len(self.before), "more than the last lines:\n" + "\n".join(found)
        for row, (author, text) in zip(found, self.before):
            assert author in row.partition(text)[0], "not %s's %s: %s" % (author, text, row)
            time_in_front = re.search(r"\[\d\d:\d\d\] " + re.escape(text), row)
            assert bool(time_in_front) != takes_times, "the time in front of it, or not: " + row

    def talk(self, view, say, takes_times=False):
        """The last lines before a word is said; then ping and pong, and nothing came a second time meanwhile."""
        self.expect_last_lines(view, takes_times)
        say(self.ping)
        wait_until(lambda: self.pong in view(), lambda: "%r in the room:\n%s" % (self.pong, view()))
        self.expect_last_lines(view, takes_times)

    def check_from_outside(self):
        frame = self.watcher.expect_message(self.ping)
        assert frame["sender_name"] == self.nick, frame
        self.observer.expect(
            "QUIT", lambda line: line.source.startswith(self.nick + "!")
        )

    def stop(self):
        if self.terminal:
            self.terminal.stop()
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.watcher.close()
        if self.observer:
            self.observer.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def read(path):
    """A file's text; none where there is no file yet."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# MARK: - The clients


def talk_to_the_bridge(screen):
    """In a window of its own, as with any person."""
    screen.enter("/query *bridge")
    screen.enter("history %s 1" % CHANNEL)
    screen.expect("For what was said before that: history %s 1 before" % CHANNEL)


# Between what was said before irssi comes and what it shows on entering: more than clocks and their seconds differ.
IRSSI_LATE = 3


def irssi(drive, shows_server_time=False):
    need("irssi")
    wait_until(lambda: time.time() > drive.before_at + IRSSI_LATE, "what was said before is not new")
    home = os.path.join(drive.directory, "irssi")
    os.mkdir(home)
    pathlib.Path(home, "config").write_text(
        """
servers = ( { address = "127.0.0.1"; chatnet = "bridge"; port = "%d"; autoconnect = "yes"; use_tls = "no"; } );
chatnets = { bridge = { type = "IRC"; nick = "%s"; }; };
channels = ( { name = "%s"; chatnet = "bridge"; autojoin = "yes"; } );
settings = { core = { real_name = "Irssi"; user_name = "irssi"; nick = "%s"; settings_autosave = "no"; }; };
"""
        % (drive.port, drive.nick, CHANNEL, drive.nick),
        encoding="utf-8",
    )
    # Commands of its first moment.
    pathlib.Path(home, "startup").write_text(
        "set timestamp_format %H:%M:%S\n" + ("set show_server_time on\n" if shows_server_time else ""), encoding="utf-8")
    screen = drive.start_terminal("irssi --home=%s" % home)
    wait_until(lambda: drive.observer.drain() or joined(drive), "irssi joins")
    screen.enter("/window goto 2")
    screen.expect("[%s]" % CHANNEL)
    # irssi 1.4 asks for `server-time`, and shows when a line came to it all the same, unless it is told otherwise.
    drive.talk(screen.screen, screen.enter, takes_times=True)
    for late in times_beside(screen, drive):
        assert (abs(late) < 2) if shows_server_time else (late > IRSSI_LATE - 1), "shown %.1f s after it was said" % late
    talk_to_the_bridge(screen)
    screen.enter("/quit")


def irssi_of_alice(drive):
    need("irssi")
    drive.nick = ALICE
    screen = drive.start_terminal("irssi --home=%s/irssi" % drive.directory)
    screen.expect("[(status)]")
    return screen


def join_and_talk(drive, screen):
    screen.enter("/join " + CHANNEL)
    wait_until(lambda: drive.observer.drain() or joined(drive), "irssi joins")
    screen.expect("[%s]" % CHANNEL)
    drive.talk(screen.screen, screen.enter, takes_times=True)
    screen.enter("/quit")


def irssi_tls(drive):
    """As README has it: with an account, to a server whose certificate is its own."""
    screen = irssi_of_alice(drive)
    where = "127.0.0.1 %d %s:%s %s" % (drive.tls_port, ALICE, PASSWORD, ALICE)
    # irssi 1.4 looks at the certificate only if it is told to.
    screen.enter("/connect -tls -tls_verify " + where)
    screen.expect("Could not verify TLS servers certificate")
    screen.expect("Connection lost")
    assert "Welcome" not in screen.screen(), "it was trusted:\n" + screen.screen()
    screen.enter("/connect -tls -notls_verify " + where)
    screen.expect("Welcome")
    join_and_talk(drive, screen)


def irssi_network(drive):
    """As docs/IRC.md has it: written once, irssi comes back by itself the next time."""
    screen = irssi_of_alice(drive)
    lines = [
        "/network add -nick me -sasl_username me@phone -sasl_password PASSWORD -sasl_mechanism PLAIN chat",
        "/server add -auto -network chat 127.0.0.1 6667",
        "/set server_reconnect_time 10s", "/set show_server_time on", "/set cmd_queue_speed 10msec", "/save",
    ]
    page = pathlib.Path(__file__, "../../../docs/IRC.md").resolve().read_text(encoding="utf-8")
    assert "\n```\n%s\n```\n" % "\n".join(lines) in page, "docs/IRC.md has other lines"
    for line in lines:
        line = line.replace("-nick me", "-nick " + ALICE).replace("me@phone", ALICE + "@phone")
        screen.enter(line.replace("PASSWORD", PASSWORD).replace("6667", str(drive.port)))
    screen.expect("Saved configuration to file")
    screen.enter("/quit")
    drive.terminal.stop()
    # A tmux of its own: the one before may still be on its way out.
    again = os.path.join(drive.directory, "again")
    os.mkdir(again)
    screen = drive.terminal = Terminal(again, "irssi --home=%s/irssi" % drive.directory)
    screen.expect("Welcome")
    join_and_talk(drive, screen)


def times_beside(screen, drive):
    """How long after the lines of before were said irssi shows them, in seconds."""
    day = time.strftime("%Y-%m-%d ", time.gmtime(drive.before_at))
    rows = [row[:8] for row in screen.screen().splitlines() if any(text in row for _, text in drive.before)]
    return [calendar.timegm(time.strptime(day + row, "%Y-%m-%d %H:%M:%S")) - drive.before_at for row in rows]


def weechat(drive):
    """In a terminal, with typing in both directions."""
    need("weechat")
    setup = [
        "/set irc.look.typing_status_self on", "/set irc.look.typing_status_nicks on",
        "/set typing.look.enabled_self on", "/set typing.look.enabled_nicks on",
        "/set irc.look.server_buffer independent", "/set irc.look.buffer_switch_join on",
        # What is typed so fast that it comes in one piece is no paste to be confirmed.
        "/set weechat.look.paste_max_lines -1",
    ]
    screen = drive.start_terminal("weechat -d %s/w %s" % (drive.directory, weechat_options(drive, setup)))
    wait_until(lambda: drive.observer.drain() or joined(drive), "weechat joins")
    screen.enter("/buffer " + CHANNEL)
    screen.expect(CHANNEL)
    drive.expect_last_lines(screen.screen, takes_times=True)
    # Letter by letter, as a person: WeeChat tells that its user types once there are enough letters.
    sentence = "I am typing"
    for letter in sentence:
        screen.type(letter)
    drive.watcher.expect(
        "WeeChat's own typing", lambda f: f.get("event") == "typing" and f.get("sender_name") == drive.nick
    )
    screen.enter()
    drive.watcher.expect_message(sentence)
    # The visitor answers this one after eight seconds of typing, which the status bar must show.
    screen.expect("Typing: " + VISITOR)
    drive.talk(screen.screen, screen.enter, takes_times=True)
    talk_to_the_bridge(screen)
    screen.enter("/quit")


def weechat_options(drive, setup):
    tls = "tls" if weechat_version() >= 4 else "ssl"
    commands = ["/set irc.server_default.%s off" % tls] + setup
    commands += [
        "/server add bridge 127.0.0.1/%d -no%s -nicks=%s -username=%s -autojoin=%s"
        % (drive.port, tls, drive.nick, drive.nick, CHANNEL),
        "/connect bridge",
    ]
    return " ".join("-r '%s'" % command for command in commands)


def weechat_version():
    said = subprocess.run(["weechat", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return int(said.split(".")[0])


def weechat_headless(drive):
    """Driven through its fifo, read back through its log."""
    need("weechat-headless")
    fifo, logs = drive.directory + "/fifo", drive.directory + "/logs"
    setup = [
        "/set fifo.file.path " + fifo, "/set logger.file.path " + logs, "/set logger.file.flush_delay 0",
        "/set logger.file.mask $plugin.$name.weechatlog",
    ]
    drive.start_process(
        "sh", "-c", "exec weechat-headless -d %s/w %s" % (drive.directory, weechat_options(drive, setup)),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
    )
    wait_until(lambda: drive.observer.drain() or joined(drive), "weechat-headless joins")
    log = "%s/irc.bridge.%s.weechatlog" % (logs, CHANNEL)
    drive.file_has(log, drive.nick)

    def say(text):
        pathlib.Path(fifo).write_text("irc.bridge.%s *%s\n" % (CHANNEL, text), encoding="utf-8")

    drive.talk(lambda: read(log), say, takes_times=True)
    pathlib.Path(fifo).write_text("core.weechat */quit\n", encoding="utf-8")


def ii(drive):
    need("ii")
    drive.start_process(
        "ii", "-s", "127.0.0.1", "-p", str(drive.port), "-n", drive.nick, "-f", "Ii", "-i", drive.directory,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
    )
    server = drive.directory + "/127.0.0.1"
    drive.file_has(server + "/out", drive.nick)
    pathlib.Path(server, "in").write_text("/j %s\n" % CHANNEL, encoding="utf-8")
    room = "%s/%s" % (server, CHANNEL)
    drive.file_has(room + "/out", drive.nick)
    drive.talk(
        lambda: read(room + "/out"), lambda text: pathlib.Path(room, "in").write_text(text + "\n", encoding="utf-8"))
    pathlib.Path(server, "in").write_text("/q bye\n", encoding="utf-8")


def telnet(drive):
    """A person with telnet who types IRC by hand."""
    need("telnet")
    screen = drive.start_terminal("telnet 127.0.0.1 %d" % drive.port)
    screen.expect("Escape character")
    screen.enter("NICK " + drive.nick)
    screen.enter("USER %s 0 * :Telnet" % drive.nick)
    screen.expect(" 001 %s " % drive.nick)
    screen.enter("JOIN " + CHANNEL)
    screen.expect(" 366 %s %s " % (drive.nick, CHANNEL))
    drive.talk(screen.screen, lambda text: screen.enter("PRIVMSG %s :%s" % (CHANNEL, text)))
    screen.enter("QUIT :bye")


def nc(drive):
    need("nc")
    out = drive.directory + "/out"
    with open(out, "wb") as file:
        process = drive.start_process("nc", "127.0.0.1", str(drive.port), stdin=subprocess.PIPE, stdout=file)

    def say(line):
        process.stdin.write((line + "\n").encode())
        process.stdin.flush()

    say("NICK " + drive.nick)
    say("USER %s 0 * :Netcat" % drive.nick)
    drive.file_has(out, " 001 %s " % drive.nick)
    say("JOIN " + CHANNEL)
    drive.file_has(out, " 366 %s %s " % (drive.nick, CHANNEL))
    drive.talk(lambda: read(out), lambda text: say("PRIVMSG %s :%s" % (CHANNEL, text)))
    say("QUIT :bye")


PYTHON_IRC = """
import sys
import irc.client
port, nick, channel, ping, pong = int(sys.argv[1]), *sys.argv[2:6]
reactor = irc.client.Reactor()
connection = reactor.server().connect("127.0.0.1", port, nick)
connection.add_global_handler("welcome", lambda c, e: c.join(channel))
connection.add_global_handler("endofnames", lambda c, e: c.privmsg(channel, ping))
def said(c, e):
    print("<%s> %s" % (e.source.nick, e.arguments[0]), flush=True)
    if pong in e.arguments[0]:
        c.quit("bye")
connection.add_global_handler("pubmsg", said)
connection.add_global_handler("disconnect", lambda c, e: sys.exit(0))
reactor.process_forever()
"""


def python_irc(drive):
    """Python's `irc` module."""
    found = subprocess.run([PYTHON, "-c", "import irc.client"], stderr=subprocess.DEVNULL, check=False)
    if found.returncode:
        raise AssertionError("%s has no module irc" % PYTHON)
    out = drive.directory + "/out"
    with open(out, "wb") as file:
        process = drive.start_process(
            PYTHON, "-c", PYTHON_IRC, str(drive.port), drive.nick, CHANNEL, drive.ping, drive.pong,
            stdin=subprocess.DEVNULL, stdout=file,
        )
    # It quits only once it has seen the pong.
    wait_until(lambda: process.poll() is not None, "the pong")
    assert process.returncode == 0, "it ended with %d" % process.returncode
    drive.expect_last_lines(lambda: read(out), takes_times=False)


def joined(drive):
    return any(
        line.command == "JOIN" and line.source.startswith(drive.nick + "!") for line in drive.observer.lines
    )


CLIENTS = {
    "irssi": irssi,
    "irssi-server-time": functools.partial(irssi, shows_server_time=True),
    "irssi-tls": irssi_tls,
    "irssi-network": irssi_network,
    "weechat": weechat,
    "weechat-headless": weechat_headless,
    "ii": ii,
    "telnet": telnet,
    "nc": nc,
    "python-irc": python_irc,
}


def main():
    if not BINARY_PATH:
        sys.exit("CHATBRIDGE must name the program to test")
    chosen = sys.argv[1:] or list(CLIENTS)
    unknown = [name for name in chosen if name not in CLIENTS]
    if unknown:
        sys.exit("unknown client %s; there are %s" % (", ".join(unknown), ", ".join(CLIENTS)))
    failed = 0
    studio, bridge = Studio(), None
    directory = tempfile.mkdtemp(prefix="chatbridge-clients-")
    subprocess.run([BINARY_PATH, "cert", "self-signed", "--out", directory], check=True, stdout=subprocess.DEVNULL)
    tables = '[room_defaults]\n[[listeners]]\nbind = "ircs://127.0.0.1:0"\ncert = "%s/cert.pem"\nkey = "%s/key.pem"\n%s' % (
        directory, directory, account(ALICE, PASSWORD))

    def start(port=0):
        nonlocal bridge
        # The limits, the store and what is shown on entering are the program's own: real clients must get on with them.
        bridge = Bridge(
            {"lobby": "ws://127.0.0.1:%d/{room}" % studio.port}, limits="", tables=tables, directory=directory,
            port=port,
        )
        wait_until(lambda: bridge.log_entries("upstream-up"), "the bridge links to the studio")
        return int(bridge.log_entries("listening")[1]["address"].rsplit(":", 1)[-1])

    def restart():
        status = bridge.terminate()
        assert status == 0, "the bridge ended with %d" % status
        return start(bridge.port)

    try:
        start()
        print("%-18s %-6s %7s  %s" % ("client", "result", "seconds", "detail"), flush=True)
        for number, name in enumerate(chosen, 1):
            started = time.monotonic()
            drive, detail = None, ""
            try:
                drive = Drive(name, bridge.port, restart, studio.port, number)
                CLIENTS[name](drive)
                drive.check_from_outside()
                bridge.check_alive()
            except Exception as error:  # each client is judged alone
                failed += 1
                detail = str(error) or type(error).__name__
            finally:
                if drive:
                    drive.stop()
            first, _, more = detail.partition("\n")
            print(
                "%-18s %-6s %7.2f  %s" % (name, "FAIL" if detail else "ok", time.monotonic() - started, first),
                flush=True,
            )
            if more and os.environ.get("SHOW"):
                print(more.strip())
    finally:
        if bridge:
            bridge.stop()
        studio.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print("%d of %d clients ok" % (len(chosen) - failed, len(chosen)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
