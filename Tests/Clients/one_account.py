#!/usr/bin/env python3
"""Clients of one account: two at once, some that are away for a while, and some that are left alone for a while.

    CHATBRIDGE=path one_account.py [SCENE...]

WeeChat and irssi log in with SASL, each under a name of its own (`alice@weechat`); a client that knows `draft/chathistory`
and read markers is there in Python. A client is away in three ways: it quits, it is killed, or it freezes and is killed later,
while its connection still stands. What it missed must be on its screen once and in order when it is back, and nothing that it
had shown before; so too where the client stays and the bridge is started again. A table on standard output; exit 0 when nothing failed. A client that is not installed is skipped, with a
word. SHOW=1 prints the last screen of what failed.
"""

import base64
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

from drive import CHANNEL, Terminal, weechat_version  # noqa: E402  (the path comes first)
from peer import BINARY_PATH, IRC, wait_until  # noqa: E402
from world import World  # noqa: E402

ACCOUNT, PASSWORD = "alice", "secret"
MISSED = 8


class Skipped(Exception):
    """The client is not here."""


@functools.lru_cache
def hashed(password):
    return subprocess.run(
        [BINARY_PATH, "hash-password", "--iterations=4096"], input=password + "\n", capture_output=True, text=True,
        check=True, timeout=60,
    ).stdout.strip()


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skipped("%s is not installed" % tool)


class Stage:
    """A relay, a bridge with accounts and a store, bob and carol on IRC and Remy on the backend."""

    def __init__(self, world):
        self.world = world
        self.begin()

    def begin(self, **place):
        world = self.world
        accounts = ['[[accounts]]\nname = "%s"\npassword = "%s"' % (name, hashed(PASSWORD)) for name in (ACCOUNT, "carol")]
        world.start(limits="", server_extra="[identity]\n" + "\n".join(accounts), **place)
        self.bob = world.irc("bob", caps=("server-time", "extended-join"))
        self.carol = IRC(world.bridge.port)
        world.stack.callback(self.carol.close)
        self.carol.send("PASS carol:" + PASSWORD, "NICK carol", "USER carol 0 * :Carol")
        self.carol.expect("001")
        self.carol.join(CHANNEL)
        self.remy = world.person("Remy")

    def restart(self):
        """As an operator does it. bob, carol and Remy come back as others."""
        bridge = self.world.bridge
        bridge.terminate()
        self.remy.close()
        self.begin(directory=bridge.directory, port=bridge.port)

    def everybody_was_asked(self, text):
        """The bridge has asked the clients in the room whether they got this. It asks all of them at once, carol too."""
        self.carol.expect_text(text)
        self.carol.expect("PING", lambda line: line.params[-1].startswith("cb-"))

    def everybody_was_asked_about(self, text, clients):
        """These clients show it, and have answered for it. Who was asked just before, for another reason, is asked with the
        next round."""
        for words in (text, "after-" + text):
            self.remy.say(words)
            for client in clients:
                client.shows(words)
            self.everybody_was_asked(words)

    def present(self):
        """Whether the account is in the room, as bob sees it."""
        self.bob.barrier()
        seen = [line.command for line in self.bob.lines
                if line.command in ("JOIN", "QUIT") and line.source.startswith(ACCOUNT + "!")]
        return bool(seen) and seen[-1] == "JOIN"

    def quits(self):
        return len([line for line in self.bob.lines if line.command == "QUIT" and line.source.startswith(ACCOUNT + "!")])


class Screen:
    """A client on a terminal, with the account. `name` is what the account calls the client."""

    tools = ()

    def __init__(self, stage, directory, names_itself=True):
        need("tmux", *self.tools)
        self.stage = stage
        self.directory = directory
        self.login = "%s@%s" % (ACCOUNT, self.name) if names_itself else ACCOUNT
        # What stands for the name of a client that gives none.
        self.ident = self.name if names_itself else ACCOUNT
        self.terminal = None

    def start(self):
        self.terminal = Terminal(self.directory, "exec " + self.command())
        # Another client's answer could be meant by any word that the room shows; this one only by its own.
        wait_until(lambda: self.is_open(), lambda: "%s is in the room\n%s" % (self.name, self.text()))

    def text(self):
        return self.terminal.screen() if self.terminal else ""

    def shows(self, text):
        wait_until(lambda: text in self.text(), lambda: "%r on the screen of %s\n%s" % (text, self.name, self.text()))

    def count(self, text):
        return self.text().count(text)

    def say(self, text):
        self.terminal.enter(text)

    def quit(self):
        self.terminal.enter("/quit")
        wait_until(lambda: not self.process(), "%s ends" % self.name)
        self.terminal.stop()

    def kill(self):
        """As when the power fails, but for the kernel, which closes the connection."""
        os.kill(self.process(), signal.SIGKILL)
        wait_until(lambda: not self.process(), "%s ends" % self.name)
        self.terminal.stop()

    def freeze(self):
        """As when a laptop is shut: the connection stands, and nobody reads."""
        os.kill(self.process(), signal.SIGSTOP)

    def process(self):
        said = self.terminal.run("list-panes", "-F", "#{pane_pid}").strip()
        return int(said) if said and os.path.exists("/proc/%s" % said) else None

    def stop(self):
        if self.terminal:
            self.terminal.stop()


class WeeChat(Screen):
    name = "weechat"
    tools = ("weechat",)

    def command(self):
        tls = "tls" if weechat_version() >= 4 else "ssl"
        commands = [
            "/set irc.server_default.%s off" % tls, "/set irc.look.server_buffer independent",
            # What is typed so fast that it comes in one piece is no paste to be confirmed.
            "/set weechat.look.paste_max_lines -1",
            # A line for each message, and no history of WeeChat's own on the screen.
            "/set irc.server_default.autoreconnect_delay 1", "/set weechat.look.prefix_same_nick ''", "/set logger.look.backlog 0", "/set weechat.bar.nicklist.hidden on",
            "/server add bridge 127.0.0.1/%d -no%s -nicks=%s -username=%s -sasl_mechanism=plain -sasl_username=%s"
            " -sasl_password=%s -autojoin=%s"
            % (self.stage.world.bridge.port, tls, ACCOUNT, self.ident, self.login, PASSWORD, CHANNEL),
            "/connect bridge",
        ]
        return "weechat -d %s/w %s" % (self.directory, " ".join('-r "%s"' % command for command in commands))

    def is_open(self):
        self.terminal.enter("/buffer " + CHANNEL)
        time.sleep(0.2)
        return "Channel %s:" % CHANNEL in self.text()


class Irssi(Screen):
    name = "irssi"
    tools = ("irssi",)

    def command(self):
        home = os.path.join(self.directory, "irssi")
        os.makedirs(home, exist_ok=True)
        pathlib.Path(home, "config").write_text(
            """
servers = ( { address = "127.0.0.1"; chatnet = "bridge"; port = "%d"; autoconnect = "yes"; use_tls = "no"; } );
chatnets = { bridge = { type = "IRC"; nick = "%s"; sasl_mechanism = "PLAIN"; sasl_username = "%s"; sasl_password = "%s"; }; };
channels = ( { name = "%s"; chatnet = "bridge"; autojoin = "yes"; } );
settings = {
  core = {
    real_name = "Irssi"; user_name = "%s"; nick = "%s"; settings_autosave = "no"; server_reconnect_time = "10s";
  };
  "irc/core" = { cmd_queue_speed = "10msec"; };
};
"""
            % (self.stage.world.bridge.port, ACCOUNT, self.login, PASSWORD, CHANNEL, self.ident, ACCOUNT),
            encoding="utf-8",
        )
        return "irssi --home=%s" % home

    def is_open(self):
        self.terminal.enter("/window goto 2")
        time.sleep(0.2)
        return "[Users %s]" % CHANNEL in self.text()


class Python:
    """A client that keeps what it has shown and asks for what came after, as gamja, goguma and senpai do."""

    name = "python"
    caps = "sasl batch message-tags server-time echo-message draft/chathistory draft/read-marker"

    def __init__(self, stage, _):
        self.stage = stage
        self.link = None
        self.last = None

    def start(self):
        self.link = link = IRC(self.stage.world.bridge.port)
        link.nick = ACCOUNT
        link.send("CAP LS 302", "NICK " + ACCOUNT, "USER %s 0 * :A" % ACCOUNT, "CAP REQ :" + self.caps, "AUTHENTICATE PLAIN")
        link.expect("AUTHENTICATE")
        secret = "\0%s@python\0%s" % (ACCOUNT, PASSWORD)
        link.send("AUTHENTICATE " + base64.b64encode(secret.encode()).decode(), "CAP END")
        link.expect("001")
        link.join(CHANNEL)
        if self.last:
            link.send("CHATHISTORY AFTER %s timestamp=%s 100" % (CHANNEL, self.last))
            link.expect("BATCH", lambda line: line.params[0].startswith("-"))

    def text(self):
        self.link.drain()
        return "\n".join(line.params[-1] for line in self.link.lines if line.command == "PRIVMSG")

    def shows(self, text):
        wait_until(lambda: text in self.text(), lambda: "%r in the client\n%s" % (text, self.text()))
        self.last = [line.tags["time"] for line in self.link.lines if line.command == "PRIVMSG"][-1]

    def count(self, text):
        return self.text().count(text)

    def say(self, text):
        self.link.say(CHANNEL, text)

    def quit(self):
        self.link.send("QUIT :bye")
        self.link.wait_closed()

    def kill(self):
        self.link.close()

    def freeze(self):
        """Nothing is read until somebody wants to see something, and nobody does."""

    def stop(self):
        if self.link:
            self.link.close()


# MARK: - Scenes


def two_clients(stage, directory):
    """What one says the other shows as said by oneself; markers are common; one goes and nobody sees it."""
    weechat, irssi = WeeChat(stage, directory + "/a"), Irssi(stage, directory + "/b")
    marker, other = Python(stage, None), Python(stage, None)
    everybody = [weechat, irssi, marker, other]
    try:
        for client in everybody:
            client.start()
        wait_until(stage.present, "bob sees the account")
        joins = [line for line in stage.bob.lines if line.command == "JOIN" and line.source.startswith(ACCOUNT + "!")]
        assert len(joins) == 1, joins
        for speaker, listener in ((weechat, irssi), (irssi, weechat)):
            words = "words-from-" + speaker.name
            speaker.say(words)
            frame = stage.remy.expect_message(words)
            assert frame["sender_name"] == ACCOUNT, frame
            for client in everybody:
                client.shows(words)
            stage.bob.expect_text(words)
            # As often as it was said: WeeChat has it back as an echo, irssi has its own line and no echo.
            for client in everybody:
                assert client.count(words) == 1, "%s shows %r %d times\n%s" % (
                    client.name, words, client.count(words), client.text())
            assert re.search(r"%s[>|\s]+%s" % (ACCOUNT, words), listener.text()), listener.text()
            # Neither shows who read it; whoever asks hears it, on each of them.
            stage.remy.read(frame["message_id"])
            other.link.expect("TAGMSG", lambda line: "+draft/read" in line.tags)
            for client in (weechat, irssi):
                client.say("/query *bridge")
                client.say("seen %s" % CHANNEL)
                client.shows("Read by Remy")
                client.say("/close" if client is weechat else "/window close")
                client.shows(words)
        message = stage.remy.say("please read this")
        for client in everybody:
            client.shows("please read this")
        marker.link.send("MARKREAD %s timestamp=%s" % (CHANNEL, marker.last))
        other.link.expect("MARKREAD", lambda line: line.params == [CHANNEL, "timestamp=" + marker.last])
        stage.remy.expect("the receipt", lambda f: f.get("event") == "readReceipt" and f["message_id"] == message)
        irssi.quit()
        marker.quit()
        other.quit()
        stage.remy.say("one is left")
        weechat.shows("one is left")
        stage.bob.barrier()
        assert stage.quits() == 0, "bob saw one of several clients go"
        weechat.quit()
        stage.bob.expect("QUIT", lambda line: line.source.startswith(ACCOUNT + "!"))
    finally:
        for client in everybody:
            client.stop()


def one_name(stage, directory):
    """Two programs with one name: each shows what the other says, and misses nothing, alone or when the bridge is started again."""
    weechat = WeeChat(stage, directory + "/a", names_itself=False)
    irssi = Irssi(stage, directory + "/b", names_itself=False)
    clients = [weechat, irssi]

    def shown_once(client, words):
        client.shows(words)
        assert client.count(words) == 1, "%s shows %r %d times\n%s" % (
            client.name, words, client.count(words), client.text())

    try:
        for client in clients:
            client.start()
        for speaker in clients:
            words = "words-from-" + speaker.name
            speaker.say(words)
            stage.remy.expect_message(words)
            for client in clients:
                shown_once(client, words)
        for client, other in ((weechat, irssi), (irssi, weechat)):
            stage.everybody_was_asked_about("shown-before-%s-goes." % client.name, clients)
            client.kill()
            missed = ["missed-by-%s-%d." % (client.name, number) for number in range(MISSED)]
            for words in missed:
                stage.remy.say(words)
                other.shows(words)
            client.start()
            client.shows(missed[-1])
            assert re.findall(r"missed-by-%s-\d+\." % client.name, client.text()) == missed, client.text()
            assert not re.search(r"\bshown-before-%s" % client.name, client.text().replace("after-shown", "")), client.text()
        stage.everybody_was_asked_about("shown-before-the-restart", clients)
        stage.restart()
        stage.remy.say("missed-by-both")
        wait_until(stage.present, "somebody comes back", 40)
        stage.remy.say("shown-after")
        for client in clients:
            wait_until(lambda: "shown-after" in client.text(), lambda: "%s is back\n%s" % (client.name, client.text()), 40)
            for words in (" shown-before-the-restart", "missed-by-both", "shown-after"):
                shown_once(client, words)
    finally:
        for client in clients:
            client.stop()


def away(kind, leave):
    def scene(stage, directory):
        client = kind(stage, directory)
        try:
            client.start()
            stage.remy.say("shown-before")
            client.shows("shown-before")
            stage.everybody_was_asked("shown-before")
            # Said behind the answer, so that the bridge has both.
            client.say("mine-before")
            stage.remy.expect_message("mine-before")
            client.shows("mine-before")
            getattr(client, leave)()
            if leave != "freeze":
                stage.bob.expect("QUIT", lambda line: line.source.startswith(ACCOUNT + "!"))
            for number in range(MISSED):
                (stage.remy.say if number % 2 else lambda text: stage.bob.say(CHANNEL, text))("missed-%d." % number)
                stage.bob.expect_text("missed-%d." % number) if number % 2 else stage.remy.expect_message(
                    "missed-%d." % number)
            if leave == "freeze":
                client.kill()
            client.start()
            client.shows("missed-%d." % (MISSED - 1))
            stage.remy.say("shown-after")
            client.shows("shown-after")
            text = client.text()
            shown = re.findall(r"missed-\d+\.", text)
            assert shown == ["missed-%d." % number for number in range(MISSED)], "%r\n%s" % (shown, text)
            assert text.index("missed-%d." % (MISSED - 1)) < text.index("shown-after"), text
            assert "shown-before" not in text, "what the client was shown before is shown again\n%s" % text
            client.quit()
        finally:
            client.stop()

    scene.__doc__ = "%s is away (%s) and misses nothing." % (kind.name, leave)
    return scene


def restarted(kind):
    def scene(stage, directory):
        client = kind(stage, directory)
        try:
            client.start()
            stage.remy.say("shown-before")
            client.shows("shown-before")
            stage.everybody_was_asked("shown-before")
            client.say("mine-before")
            stage.remy.expect_message("mine-before")
            client.shows("mine-before")
            stage.restart()
            for number in range(MISSED):
                stage.remy.say("missed-%d." % number)
            wait_until(stage.present, "%s comes back by itself" % client.name, 40)
            stage.remy.say("shown-after")
            client.shows("shown-after")
            text = client.text()
            shown = re.findall(r"missed-\d+\.", text)
            assert shown == ["missed-%d." % number for number in range(MISSED)], "%r\n%s" % (shown, text)
            for words in ("shown-before", "mine-before", "shown-after"):
                assert text.count(words) == 1, "%r is shown %d times\n%s" % (words, text.count(words), text)
            client.quit()
        finally:
            client.stop()

    scene.__doc__ = "%s stays while the bridge is started again." % kind.name
    return scene


SCENES = {"two-clients": two_clients, "one-name": one_name}
for kind in (WeeChat, Irssi):
    SCENES[kind.name + "-restart"] = restarted(kind)
for kind in (WeeChat, Irssi, Python):
    for leave in ("quit", "kill", "freeze"):
        SCENES["%s-%s" % (kind.name, leave)] = away(kind, leave)


def main():
    if not BINARY_PATH:
        sys.exit("CHATBRIDGE must name the program to test")
    chosen = sys.argv[1:] or list(SCENES)
    unknown = [name for name in chosen if name not in SCENES]
    if unknown:
        sys.exit("unknown scene %s; there are %s" % (", ".join(unknown), ", ".join(SCENES)))
    failed = skipped = 0
    print("%-18s %-7s %7s  %s" % ("scene", "result", "seconds", "detail"), flush=True)
    for name in chosen:
        started = time.monotonic()
        directory = tempfile.mkdtemp(prefix="chatbridge-account-")
        result, detail = "ok", ""
        try:
            for part in ("a", "b"):
                os.mkdir(os.path.join(directory, part))
            with World() as world:
                SCENES[name](Stage(world), directory)
                world.bridge.check_alive()
        except Skipped as why:
            skipped += 1
            result, detail = "skipped", str(why)
        except Exception as error:  # each scene is judged alone
            failed += 1
            result, detail = "FAIL", str(error) or type(error).__name__
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        first, _, more = detail.partition("\n")
        print("%-18s %-7s %7.2f  %s" % (name, result, time.monotonic() - started, first), flush=True)
        if more and os.environ.get("SHOW"):
            print(more.strip())
    print("%d of %d scenes ok%s" % (
        len(chosen) - failed - skipped, len(chosen), ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
