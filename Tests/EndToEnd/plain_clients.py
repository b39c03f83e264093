"""The plain mode with the programs that people have: Debian's `telnet` and `nc`, each in a terminal of its own."""

import os
import re
import shutil
import subprocess
import time

from accounts import account
from marks import slow
from peer import wait_until
from plain_screen import ASKS_NAME, ASKS_PASSWORD, ASKS_ROOM, sit, watch_room, watcher
from world import scenario

PACKAGES = {"tmux": "tmux", "telnet": "telnet", "nc": "netcat-openbsd"}


class Terminal:
    """A program in tmux, without anybody's configuration."""

    def __init__(self, world, command, width=80, height=24, term="screen-256color"):
        for tool in ("tmux", command.split()[0]):
            assert shutil.which(tool), "%s is not installed (package %s)" % (tool, PACKAGES.get(tool, tool))
        self.directory = world.bridge.directory
        self.socket = os.path.join(self.directory, "tmux%d" % time.monotonic_ns())
        environment = dict(os.environ, TERM=term, HOME=self.directory, LC_ALL="C.UTF-8")
        environment.pop("TMUX", None)
        subprocess.run(
            ["tmux", "-u", "-S", self.socket, "-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height),
             "env TERM=%s %s; echo PROGRAM-ENDED; read -r _" % (term, command)],
            env=environment, check=True)
        world.stack.callback(self.stop)
        # A window as wide as the session: its status line would take a row.
        self.run("set", "-g", "status", "off")
        self.run("set", "-g", "window-size", "manual")
        self.run("resize-window", "-x", str(width), "-y", str(height))

    def run(self, *words):
        return subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout.decode("utf-8", "replace")

    def type(self, text):
        self.run("send-keys", "-l", "--", text)

    def key(self, *names):
        """As tmux calls them: Enter, BSpace, Up, Tab, C-c."""
        self.run("send-keys", *names)

    def line(self, text):
        self.type(text)
        self.key("Enter")

    def text(self):
        return self.run("capture-pane", "-p", "-J", "-S", "-500")

    def rows(self):
        return [line.rstrip() for line in self.run("capture-pane", "-p").split("\n")]

    def cursor(self):
        x, y = self.run("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
        return int(x), int(y)

    def input_row(self):
        return self.rows()[self.cursor()[1]]

    def see(self, pattern, patience=None):
        return wait_until(
            lambda: re.search(pattern, self.text(), re.M), lambda: "/%s/ on the screen:\n%s" % (pattern, self.text()), patience)

    def see_typed(self, text):
        wait_until(
            lambda: self.input_row().endswith(text),
            lambda: "%r on the line being typed:\n%s" % (text, "\n".join(self.rows())))

    def stop(self):
        self.run("kill-server")


def telnet(world, **options):
    return Terminal(world, "telnet 127.0.0.1 %d" % world.bridge.port, **options)


def come_in(world, terminal, nick, room="#lobby", password=None):
    watch = watch_room(world, room)
    terminal.see(ASKS_NAME, 20)
    terminal.line(nick)
    if password:
        terminal.see(ASKS_PASSWORD)
        terminal.line(password)
    terminal.see(ASKS_ROOM)
    terminal.line(room)
    watch.expect("JOIN", lambda line: line.source.startswith(nick + "!"))


@scenario
def telnet_talks(world):
    """Waits, is asked, comes in, sees messages, typing and ticks, and says goodbye."""
    world.start()
    remy = world.person("Remy")
    terminal = telnet(world)
    come_in(world, terminal, "ann")
    remy.say("bonjour 🍲 汤")
    terminal.see(r"^\d\d:\d\d <Remy> bonjour 🍲 汤$")
    terminal.type("hello, Re")
    remy.expect("typing", lambda f: f["event"] == "typing" and f["sender_name"] == "ann")
    terminal.see_typed("hello, Re")
    remy.type()
    terminal.see("Remy is typing")
    terminal.see_typed("hello, Re")
    terminal.line("my ünd 汤")
    frame = remy.expect_message("hello, Remy ünd 汤")
    terminal.see(r"^\d\d:\d\d <ann> hello, Remy ünd 汤$")
    assert len(re.findall("ünd 汤", terminal.text())) == 1, terminal.text()
    remy.read(frame["message_id"])
    terminal.see("✓✓ read by Remy")
    terminal.line("/quit")
    terminal.see("PROGRAM-ENDED")
    terminal.see(r"(?i)bye|farewell|see you")
    watcher(world).expect("QUIT", lambda line: line.source.startswith("ann!"))


@scenario
def telnet_keeps_the_line_among_messages(world):
    world.start()
    remy, terminal = world.person("Remy"), telnet(world)
    come_in(world, terminal, "ann")
    terminal.type("half a li")
    terminal.see_typed("half a li")
    for number in range(40):
        remy.say("interrupting %d" % number)
    terminal.see(r"^\d\d:\d\d <Remy> interrupting 39$")
    terminal.see_typed("half a li")
    assert terminal.rows().count(terminal.input_row()) == 1
    terminal.line("ne")
    remy.expect_message("half a line")
    seen = re.findall(r"<Remy> interrupting (\d+)$", terminal.text(), re.M)
    assert seen == [str(number) for number in range(40)], terminal.text()


@scenario
def telnet_edits_with_its_keys(world):
    world.start()
    remy, terminal = world.person("Remy"), telnet(world)
    come_in(world, terminal, "ann")
    terminal.type("sou🍲")
    terminal.see_typed("sou🍲")
    terminal.key("BSpace")
    terminal.type("p")
    terminal.see_typed("soup")
    terminal.key("Enter")
    remy.expect_message("soup")
    terminal.key("Up")
    terminal.see_typed("soup")
    terminal.key("Left", "Left", "Home")
    terminal.type("hot ")
    terminal.key("End")
    terminal.type("!")
    terminal.see_typed("hot soup!")
    terminal.key("Enter")
    remy.expect_message("hot soup!")
    remy.say("here")
    terminal.see("<Remy> here")
    terminal.type("Re")
    terminal.key("Tab")
    wait_until(lambda: re.search(r"Remy[:,]?$", terminal.input_row()), lambda: "Remy completed:\n" + terminal.text())


@scenario
def telnet_interrupts_with_ctrl_c(world):
    world.start()
    remy, terminal, bob = world.person("Remy"), telnet(world), sit(world, "bob")
    come_in(world, terminal, "ann")
    terminal.type("never said")
    terminal.see_typed("never said")
    terminal.key("C-c")
    wait_until(
        lambda: not terminal.input_row().endswith("never said") or "PROGRAM-ENDED" in terminal.text(),
        lambda: "an empty line, or the end:\n" + terminal.text())
    remy.say("still here")
    bob.see_message("Remy", "still here")
    if "PROGRAM-ENDED" not in terminal.text():
        terminal.line("said")
        bob.see_message("ann", "said")
    assert "never said" not in [f["body"] for f in world.relay.messages_from_bridge()]


@scenario
def telnet_wraps_at_its_window_and_follows_it(world):
    world.start()
    remy, terminal = world.person("Remy"), telnet(world, width=50, height=30)
    come_in(world, terminal, "ann")
    words = ["wort%d" % number for number in range(40)]
    remy.say(" ".join(words) + " end0")
    terminal.see(r"end0$")
    shown = [row for row in terminal.rows() if "wort" in row]
    assert max(map(len, shown)) <= 50 and " ".join(shown).split()[2:] == words + ["end0"], shown
    terminal.type("half")
    terminal.see_typed("half")
    terminal.run("resize-window", "-x", "100", "-y", "30")
    wait_until(lambda: terminal.run("display-message", "-p", "#{pane_width}").strip() == "100", "the new size")
    # The size comes as its own news, behind what is under way.
    longest = 0
    for number in range(20):
        remy.say(" ".join(words) + " more%d" % number)
        terminal.see(r"more%d$" % number)
        longest = max(len(row) for row in terminal.rows())
        if longest > 60:
            break
    assert longest > 60, "still wrapped at 50:\n" + terminal.text()
    terminal.see_typed("half")


@scenario
def telnet_shows_no_password(world):
    world.start(server_extra="[identity]\n\n" + account("ann", "secret-of-ann"))
    remy, terminal = world.person("Remy"), telnet(world)
    come_in(world, terminal, "ann", password="secret-of-ann")
    assert "secret" not in terminal.text(), terminal.text()
    terminal.type("seen")
    terminal.see_typed("seen")
    terminal.key("Enter")
    remy.expect_message("seen")


@scenario
def telnet_in_its_line_mode_talks(world):
    """`mode line` behind the escape character."""
    world.start()
    remy, terminal = world.person("Remy"), telnet(world)
    come_in(world, terminal, "ann")
    terminal.key("C-]")
    terminal.see("telnet>")
    terminal.line("mode line")
    remy.say("are you there?")
    terminal.see(r"<Remy> are you there\?")
    terminal.type("yes, hé")
    terminal.key("BSpace")
    terminal.line("e 汤")
    remy.expect_message("yes, he 汤")


@scenario
def telnet_of_a_dumb_terminal_gets_no_colours(world):
    world.start()
    remy, terminal = world.person("Remy"), telnet(world, term="dumb")
    come_in(world, terminal, "ann")
    remy.say("grey")
    terminal.see(r"^\d\d:\d\d <Remy> grey$")
    assert "\x1b[" not in terminal.run("capture-pane", "-p", "-e"), terminal.run("capture-pane", "-p", "-e")


@scenario
def telnet_gets_a_paste_whole(world):
    world.start()
    remy, terminal = world.person("Remy"), telnet(world)
    come_in(world, terminal, "ann")
    texts = ["line %d: ünd so weiter" % number for number in range(50)]
    terminal.run("set-buffer", "\n".join(texts) + "\n")
    terminal.run("paste-buffer")
    wait_until(lambda: "\n".join(remy.bodies("ann")).count("weiter") >= 50, lambda: "all 50; %r" % remy.bodies("ann")[-3:])
    assert "\n".join(remy.bodies("ann")).split("\n") == texts


@scenario
def telnet_by_hand_is_irc_all_the_same(world):
    """As people have done it: NICK and USER typed, also after the question."""
    world.start()
    terminal = telnet(world)
    terminal.see("Escape character")
    terminal.line("NICK ann")
    terminal.line("USER ann 0 * :x")
    terminal.see(" 001 ann ")
    late = telnet(world)
    late.see(ASKS_NAME, 20)
    late.line("NICK bob")
    late.line("USER bob 0 * :x")
    late.see(" 001 bob ")


@scenario
def nc_talks(world):
    world.start()
    remy = world.person("Remy")
    terminal = Terminal(world, "nc 127.0.0.1 %d" % world.bridge.port)
    come_in(world, terminal, "ann")
    remy.say("bonjour 🍲 汤")
    terminal.see(r"^\d\d:\d\d <Remy> bonjour 🍲 汤$")
    terminal.type("hello, hé")
    terminal.key("BSpace")
    terminal.type("e")
    remy.say("meanwhile")
    terminal.see(r"\d\d:\d\d <Remy> meanwhile$")
    terminal.key("Enter")
    remy.expect_message("hello, he")
    for command, pattern in (("/who", r"\bRemy\b"), ("/rooms", "lobby"), ("/help", "/search")):
        terminal.line(command)
        terminal.see(pattern)
    terminal.line("/quit")
    terminal.see(r"(?i)bye|farewell|see you")
    watcher(world).expect("QUIT", lambda line: line.source.startswith("ann!"))


@scenario
def nc_shows_no_rubbish(world):
    """What it cannot understand, such as telnet's questions, is not on its screen."""
    world.start()
    remy = world.person("Remy")
    terminal = Terminal(world, "nc 127.0.0.1 %d" % world.bridge.port)
    come_in(world, terminal, "ann")
    remy.say("hello")
    terminal.see(r"^\d\d:\d\d <Remy> hello$")
    rubbish = [char for char in terminal.text() if char == "\ufffd" or "\x80" <= char < "\xa0"]
    assert not rubbish, terminal.text()


@scenario
def nc_that_is_interrupted_quits_alone(world):
    world.start()
    remy, bob = world.person("Remy"), sit(world, "bob")
    terminal = Terminal(world, "nc 127.0.0.1 %d" % world.bridge.port)
    come_in(world, terminal, "ann")
    terminal.key("C-c")
    watcher(world).expect("QUIT", lambda line: line.source.startswith("ann!"))
    remy.say("still here")
    bob.see_message("Remy", "still here")


@scenario
@slow("three terminals, and a backend that is away for a while")
def telnet_and_nc_live_through_an_outage(world):
    world.start()
    remy = world.person("Remy")
    terminals = [telnet(world), telnet(world), Terminal(world, "nc 127.0.0.1 %d" % world.bridge.port)]
    for number, terminal in enumerate(terminals):
        come_in(world, terminal, "ann%d" % number)
    world.relay.stop_listening()
    world.relay.drop()
    for number, terminal in enumerate(terminals):
        terminal.see(r"(?i)lost|away|down|gone")
        terminal.line("meanwhile %d" % number)
    world.relay.listen()
    world.relay.wait_for_bridge()
    wait_until(lambda: len(world.relay.messages_from_bridge()) >= 3, "the three messages")
    remy.say("after")
    for terminal in terminals:
        terminal.see(r"^\d\d:\d\d <Remy> after$")
    assert sorted(f["body"] for f in world.relay.messages_from_bridge()) == ["meanwhile 0", "meanwhile 1", "meanwhile 2"]
