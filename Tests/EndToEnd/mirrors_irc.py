"""Rooms in channels of an IRC network: Debian's ngircd and InspIRCd, and the relay itself as the network."""

import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import peer
from accounts import hashed
from admin import change, done
from listeners import certificate
from marks import LeftOut
from mirrors import Mirrored, irc_numbers, mirrored, say_all, table
from operating import command_output
from peer import IRC, wait_until


# MARK: - Networks


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


NGIRCD = """
[Global]
Name = net.test
Info = test
Listen = 127.0.0.1
Ports = %(port)d
ServerUID = %(uid)d
ServerGID = %(gid)d
%(password)s
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
MorePrivacy = no
OperCanUseMode = yes
"""

INSPIRCD = """
<server name="net.test" description="test" network="TestNet" id="1AA">
<admin name="a" nick="a" email="a@net.test">
<bind address="127.0.0.1" port="%(port)d" type="clients">
<connect name="main" allow="*" timeout="60" pingfreq="60" localmax="100" globalmax="100" threshold="1000"
 commandrate="100000" fakelag="no" maxchans="20" resolvehostnames="no" useident="no" softsendq="1M" hardsendq="1M" recvq="64K"
 %(password)s>
<performance quietbursts="yes" nouserdns="yes">
<options prefixquit="" defaultmodes="not">
<pid file="%(directory)s/inspircd.pid">
<log method="file" level="default" type="* -USERINPUT -USEROUTPUT" target="%(directory)s/inspircd.log">
<files motd="%(directory)s/motd" rules="%(directory)s/motd">
<path configdir="%(directory)s" datadir="%(directory)s" logdir="%(directory)s" runtimedir="%(directory)s">
<module name="cap"><module name="ircv3"><module name="ircv3_echomessage"><module name="ircv3_ctctags">
<module name="ircv3_msgid"><module name="ircv3_labeledresponse"><module name="ircv3_batch">
<module name="ircv3_servertime"><module name="monitor">
"""


def program(kind):
    return shutil.which(kind) or shutil.which(kind, path="/usr/sbin")


class Network:
    """A server of a network on a free port, which comes back there."""

    def __init__(self, kind, password=None):
        self.program = program(kind)
        self.kind, self.port, self.directory = kind, free_port(), tempfile.mkdtemp(prefix="network-")
        os.chmod(self.directory, 0o777)
        form, said = (NGIRCD, "Password = %s") if kind == "ngircd" else (INSPIRCD, 'password="%s"')
        values = {
            "port": self.port, "directory": self.directory, "uid": os.getuid() or 65534, "gid": os.getgid() or 65534,
            "password": said % password if password else ""}
        self.path = os.path.join(self.directory, kind + ".conf")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(form % values)
        with open(os.path.join(self.directory, "motd"), "w", encoding="utf-8") as file:
            file.write("welcome\n")
        self.process = None
        self.start()

    def start(self):
        command = [self.program, "-n", "-f", self.path]
        if self.kind == "inspircd":
            command = [self.program, "--nofork", "--config", self.path] + (["--runasroot"] if os.getuid() == 0 else [])
        with open(os.path.join(self.directory, "output"), "ab") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        wait_until(self.is_open, lambda: "%s listens; it said:\n%s" % (self.kind, self.output()))

    def is_open(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def output(self):
        with open(os.path.join(self.directory, "output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.directory, True)

    def irc(self, nick, channel="#net", caps=()):
        client = IRC(self.port, nick, caps=caps, join=[channel] if channel else [])
        return client


def on_networks(*kinds):
    """A scenario that runs once for each of these servers: it gets a Mirrored and the network."""

    def mark(function):
        function.wires = kinds or ("ngircd", "inspircd")

        def run_on(function, kind):
            if program(kind) is None:
                raise LeftOut("this machine has no %s (apt-get install %s)" % (kind, kind))
            with Mirrored() as m:
                network = Network(kind)
                m.stack.callback(network.stop)
                result = function(m, network)
                if m.bridge:
                    m.bridge.check_alive()
                return result

        function.run_on = run_on
        return function

    return mark


def mirror(network, name="net", **keys):
    port = network if isinstance(network, int) else network.port
    return table(name, "irc", **{
        "rooms": None, "url": "irc://127.0.0.1:%d" % port, "map": {"lobby": "#net"}, "messages_per_second": "off", **keys})


def joined(m, count=1, channel="#net"):
    """Until a mirror has joined so many times in all."""
    wait_until(
        lambda: len([e for e in m.bridge.log_entries("mirror-joined") if e["channel"] == channel]) >= count,
        lambda: "the mirror joins; it said:\n%s" % m.bridge.log()[-3000:], 30)


def expect_text(client, text, patience=None):
    """Somebody says this there, behind a speaker's name or not."""
    return client.expect(
        "PRIVMSG", lambda line: "\u200b" not in text and plain(line.params[-1]).endswith(text), patience)


def plain(text):
    """Without what has no width."""
    return "".join(c for c in text if c not in "\u200b\u2063" and not "\ufe00" <= c <= "\ufe0f")


# MARK: - Both ways


@on_networks()
def messages_cross_both_ways(m, network):
    m.open(mirror(network))
    joined(m)
    ann, bob = m.irc("ann"), network.irc("bob")
    ann.say("#lobby", "to the network")
    line = expect_text(bob, "to the network")
    assert plain(line.params[-1]) == "<ann> to the network", line
    assert line.source.startswith("chatbrid"), line
    bob.send("PRIVMSG #net :to the room")
    line = expect_text(ann, "to the room")
    assert line.source.startswith("bob/net!"), line
    m.backend.say("Remy", "from upstream")
    assert plain(expect_text(bob, "from upstream").params[-1]) == "<Remy> from upstream"
    bob.send("PRIVMSG #net :\x01ACTION waves\x01")
    expect_text(ann, "\x01ACTION waves\x01")
    ann.send("PRIVMSG #lobby :\x01ACTION nods\x01")
    expect_text(bob, "nods\x01")
    wait_until(lambda: ("bob/net", "to the room") in m.upstream(), lambda: "the backend has it: %r" % m.upstream())
    m.bridge.logged("mirror-connected", "info", "mirror", "network")
    m.bridge.logged("mirror-joined", "info", "mirror", "channel")


@on_networks()
def order_and_no_echo(m, network):
    """What the mirror says there comes back to it, and is not said again here."""
    m.open(mirror(network))
    joined(m)
    ann, eve, bob = m.irc("ann"), m.irc("eve"), network.irc("bob")
    say_all(ann, ["n %d" % number for number in range(100)])
    bob.send(*("PRIVMSG #net :back %d" % number for number in range(100)))
    expect_text(bob, "n 99", 60)
    expect_text(eve, "back 99", 60)
    say_all(ann, ["end 0"])
    expect_text(bob, "end 0")
    assert irc_numbers(bob, "n") == list(range(100)), irc_numbers(bob, "n")
    for client in (ann, eve):
        assert irc_numbers(client, "back") == list(range(100)), irc_numbers(client, "back")
        assert sorted(set(irc_numbers(client, "n"))) == irc_numbers(client, "n"), "an echo crossed"
    assert [text for _, text in m.upstream() if text.startswith("n ")] == ["n %d" % number for number in range(100)]


@on_networks()
def one_way(m, network):
    m.open(mirror(network, direction="out"), mirror(network, "back", direction="in", nick="other", map={"lobby": "#in"}))
    joined(m)
    joined(m, channel="#in")
    ann, bob, eve = m.irc("ann"), network.irc("bob"), network.irc("eve", "#in")
    bob.send("PRIVMSG #net :unheard")
    bob.barrier()
    eve.send("PRIVMSG #in :heard")
    assert expect_text(ann, "heard").source.startswith("eve/back!")
    ann.say("#lobby", "out")
    expect_text(bob, "out")
    bob.send("PRIVMSG #net :still unheard")
    bob.barrier()
    eve.send("PRIVMSG #in :end")
    expect_text(ann, "end")
    assert not [text for text in ann.texts() if "unheard" in text], ann.texts()
    assert not [text for text in eve.texts() if "out" in text], eve.texts()


# MARK: - Faults


def account_for(got, count, doubles):
    """Each of 0 … count-1 is there in order; at most so many twice, whose confirmation was lost."""
    missing = sorted(set(range(count)) - set(got))
    assert not missing, "%d of %d are lost, the first is %d" % (len(missing), count, missing[0])
    assert got == sorted(got), got
    extra = len(got) - len(set(got))
    assert extra <= doubles, "%d doubled: %r" % (extra, got)


@on_networks()
def the_network_is_killed(m, network):
    m.open(mirror(network))
    joined(m)
    ann, bob = m.irc("ann"), network.irc("bob")
    say_all(ann, ["n %d" % number for number in range(50)])
    expect_text(bob, "n 10")
    network.kill()
    bob.drain()
    bob.wait_closed()
    say_all(ann, ["n %d" % number for number in range(50, 60)])
    m.bridge.logged("mirror-disconnected", "warn", "mirror", "network")
    network.start()
    again = network.irc("bob")
    joined(m, 2)
    expect_text(again, "n 59", 60)
    account_for(irc_numbers(bob, "n") + irc_numbers(again, "n"), 60, doubles=1)
    again.send("PRIVMSG #net :and back")
    expect_text(ann, "and back")


@on_networks()
def the_bridge_is_killed(m, network):
    m.open(mirror(network))
    joined(m)
    ann, bob = m.irc("ann"), network.irc("bob")
    say_all(ann, ["n %d" % number for number in range(50)])
    expect_text(bob, "n 10")
    m.kill()
    m.again(mirror(network))
    ann = m.irc("ann")
    say_all(ann, ["n 50"])
    expect_text(bob, "n 50", 60)
    # As many as were confirmed and not stored yet.
    account_for(irc_numbers(bob, "n"), 51, doubles=10)


@on_networks()
def kicked_and_back(m, network):
    bob = network.irc("bob")
    m.open(mirror(network, nick="relay"))
    joined(m)
    ann = m.irc("ann")
    say_all(ann, ["n 0"])
    expect_text(bob, "n 0")
    bob.send("KICK #net relay :out")
    m.bridge.logged("mirror-channel-lost", "warn", "mirror", "channel", "reason")
    assert not m.bridge.log_entries("mirror-not-joined"), "said twice"
    say_all(ann, ["n 1", "n 2"])
    joined(m, 2)
    expect_text(bob, "n 2")
    assert irc_numbers(bob, "n") == [0, 1, 2], bob.texts()
    assert len([line for line in bob.lines if line.command == "JOIN" and line.source.startswith("relay!")]) == 2


@on_networks()
def a_closed_channel_holds_up_its_room_alone(m, network):
    bob = network.irc("bob", "#den")
    bob.send("MODE #den +i")
    bob.barrier()
    bob.join("#net")
    m.open(mirror(network, nick="relay", map={"lobby": "#net", "den": "#den"}), rooms=("lobby", "den"))
    joined(m)
    m.bridge.logged("mirror-not-joined", "warn", "mirror", "channel")
    status = wait_until(lambda: [s for s in json.loads(m.ask("GET", "/status.json").body)["mirrors"] if s["state"] == "away"], "the status says so")
    assert "#den" in status[0]["reason"] and "invited" in status[0]["reason"], status
    ann, eve = m.irc("ann"), m.irc("eve", "#den")
    eve.say("#den", "let me in")
    ann.say("#lobby", "n 0")
    expect_text(bob, "n 0")
    bob.barrier()
    assert not [text for text in bob.texts() if "let me in" in text], bob.texts()
    bob.send("INVITE relay #den")
    joined(m, channel="#den")
    assert expect_text(bob, "let me in").params[0] == "#den"


@on_networks()
def the_nick_is_in_use(m, network):
    other, bob = network.irc("relay", None), network.irc("bob")
    m.open(mirror(network, nick="relay"))
    joined(m)
    ann = m.irc("ann")
    ann.say("#lobby", "first")
    assert expect_text(bob, "first").source.startswith("relay_!")
    if network.kind == "inspircd":  # The other asks every minute.
        other.send("QUIT")
        bob.expect("NICK", lambda line: line.params[-1] == "relay")
        ann.say("#lobby", "second")
        assert expect_text(bob, "second").source.startswith("relay!")


# MARK: - Changes


@on_networks()
def a_reload_and_the_end(m, network):
    """A changed mirror leaves and comes again, under the same nick; one that is gone leaves, and so does a bridge that stops."""
    bob = network.irc("bob")
    bob.join("#more")
    m.open(mirror(network, nick="relay"))
    joined(m)
    ann = m.irc("ann")
    change(m.bridge, ('map = { lobby = "#net" }', 'map = { lobby = "#more" }'))
    assert "net" in done(m.bridge, "reload")
    bob.expect("QUIT", lambda line: line.source.startswith("relay!"))
    joined(m, channel="#more")
    ann.say("#lobby", "elsewhere")
    line = expect_text(bob, "elsewhere")
    assert line.params[0] == "#more" and line.source.startswith("relay!"), line
    gone = mirror(network, nick="relay", map={"lobby": "#more"})
    change(m.bridge, (gone, ""))
    done(m.bridge, "reload")
    bob.expect("QUIT", lambda line: line.source.startswith("relay!"))
    with open(m.bridge.config_path, "a", encoding="utf-8") as file:
        file.write(gone)
    done(m.bridge, "reload")
    joined(m, 2, channel="#more")
    assert m.bridge.terminate() == 0
    bob.expect("QUIT", lambda line: line.source.startswith("relay!"))
    m.bridge = None


# MARK: - Settings


@on_networks("ngircd")
def the_form_of_messages(m, network):
    m.open(mirror(network, format="[{nick}] {text}"))
    joined(m)
    printed = command_output(m, "mirrors", "test", "net")
    assert "#net" in printed and "chatbridge" in printed and "PRIVMSG #net :[a\u200blice] " in printed, printed
    ann, bob = m.irc("ann"), network.irc("bob")
    ann.say("#lobby", "hello")
    assert plain(expect_text(bob, "hello").params[-1]) == "[ann] hello"


@on_networks("inspircd")
def a_pace_that_is_kept(m, network):
    """Behind the first five lines, of which some are those that join; by default these would take 25 s at least."""
    m.open(mirror(network, messages_per_second=15.0))
    joined(m)
    ann, bob = m.irc("ann"), network.irc("bob")
    began = time.monotonic()
    say_all(ann, ["n %d" % number for number in range(30)])
    expect_text(bob, "n 29", 30)
    assert 1.5 < time.monotonic() - began < 20, time.monotonic() - began
    assert irc_numbers(bob, "n") == list(range(30)), bob.texts()


@on_networks()
def a_channel_with_a_key(m, network):
    """One mirror has it, another has a wrong one, and a third none; the configuration shows none of them."""
    bob = network.irc("bob")
    bob.send("MODE #net +k 0pen")
    bob.barrier()
    os.environ["NET_KEY"] = "0pen"
    try:
        m.open(
            mirror(network, nick="one", channel_keys={"lobby": "${NET_KEY}"}),
            mirror(network, "wrong", nick="two", channel_keys={"lobby": "5hut"}), mirror(network, "none", nick="three"))
        joined(m)
        shown = command_output(m, "check", "--print")
    finally:
        del os.environ["NET_KEY"]
    wait_until(
        lambda: sorted(e["mirror"] for e in m.bridge.log_entries("mirror-not-joined")) == ["none", "wrong"],
        lambda: "two are refused: %r" % m.bridge.log_entries("mirror-not-joined"))
    m.irc("ann").say("#lobby", "with a key")
    expect_text(bob, "with a key")
    for text in (m.bridge.log(), shown):
        assert "0pen" not in text and "5hut" not in text, text


@on_networks("ngircd")
def a_server_password(m, _):
    """As text, from a file, and from a credential; without it nothing crosses."""
    network = Network("ngircd", password="0pen")
    m.stack.callback(network.stop)
    with open(os.path.join(m.directory, "pass"), "w", encoding="utf-8") as file:
        file.write("0pen\n")
    os.environ["CREDENTIALS_DIRECTORY"] = m.directory
    try:
        m.open(
            mirror(network, "text", nick="one", server_password="0pen"),
            mirror(network, "file", nick="two", server_password_file=m.directory + "/pass"),
            mirror(network, "credential", nick="three", server_password_credential="pass"),
            mirror(network, "none", nick="four"))
    finally:
        del os.environ["CREDENTIALS_DIRECTORY"]
    joined(m, 3)
    wait_until(
        lambda: [e for e in m.bridge.log_entries("mirror-disconnected") if e["mirror"] == "none"], "it is refused")
    assert "0pen" not in m.bridge.log()


# MARK: - The relay as the network


NETWORK = """
[[listeners]]
bind = "ircs://127.0.0.1:0"
cert = "%(cert)s"
key = "%(key)s"
client_ca = "%(client)s"

[identity]
require_login = "never"

[[accounts]]
name = "mirror"
password = "%(password)s"
relaymsg = true

[[accounts]]
name = "certain"
password = "%(password)s"
certfp = ["%(print)s"]
"""


class Pair:
    """Two bridges: the second is a network for the first, over plain text and over TLS."""

    def __init__(self, m):
        self.m, self.other = m, Mirrored()
        m.stack.callback(self.other.stack.close)
        self.cert, self.key = certificate(m, "localhost")
        self.client_cert, self.client_key = certificate(m, "mirror")
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(read(self.client_cert))).hexdigest()
        self.other.open(more=NETWORK % {
            "cert": self.cert, "key": self.key, "client": self.client_cert, "print": fingerprint,
            "password": hashed("5esame")})
        ports = [e["address"].rsplit(":", 1)[-1] for e in self.other.bridge.log_entries("listening")]
        self.port, self.secure_port = (int(port) for port in ports[:2])

    def mirror(self, name="net", **keys):
        return mirror(self.port, name, **{"map": {"lobby": "#lobby"}, **keys})

    def secure(self, name, **keys):
        return self.mirror(name, **{"nick": name, "url": "ircs://localhost:%d" % self.secure_port, **keys})


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@mirrored()
def a_relay_as_the_network(m):
    """With RELAYMSG speakers have nicks of their own; tags say where a message was, so that none comes back."""
    pair = Pair(m)
    with open(os.path.join(m.directory, "pass"), "w", encoding="utf-8") as file:
        file.write("5esame\n")
    os.environ["CREDENTIALS_DIRECTORY"] = m.directory
    try:
        m.open(
            pair.mirror(sasl={"user": "mirror", "password": "5esame"}),
            pair.mirror(
                "file", nick="file", direction="in", relaymsg=False,
                sasl={"mechanism": "scram-sha-256", "user": "mirror", "password_file": m.directory + "/pass"}),
            pair.mirror(
                "more", nick="more", direction="in",
                sasl={"mechanism": "plain", "user": "mirror", "password_credential": "pass"}))
    finally:
        del os.environ["CREDENTIALS_DIRECTORY"]
    joined(m, 3, channel="#lobby")
    assert [e.get("account") for e in pair.other.bridge.log_entries("client-registered")] == ["mirror"] * 3
    ann, eve = m.irc("ann"), pair.other.irc("eve")
    ann.say("#lobby", "n 0")
    line = eve.expect_text("n 0")
    assert line.source.startswith("ann/chat!") and line.tags.get("+chatbridge/origin"), line
    assert line.tags.get("+chatbridge/first"), line
    eve.say("#lobby", "back 0")
    ann.expect("PRIVMSG", lambda line: line.params[-1] == "back 0" and "/" in line.source.split("!")[0])
    say_all(ann, ["n %d" % number for number in range(1, 20)])
    eve.expect_text("n 19")
    say_all(eve, ["end 0"])
    expect_text(ann, "end 0")
    assert irc_numbers(ann, "n") == [number for number in range(20)], irc_numbers(ann, "n")
    assert irc_numbers(eve, "n") == list(range(20)), irc_numbers(eve, "n")
    assert [text for _, text in pair.other.upstream() if text.startswith("n ")] == ["n %d" % n for n in range(20)]
    assert [text for _, text in m.upstream() if text.startswith("n ")] == ["n %d" % n for n in range(20)]


@mirrored()
def the_oldest_tls_of_a_network(m):
    """A server that knows no newer version than 1.2 gets a line of IRC from the one that takes it, and none of the other."""
    cert, key = certificate(m, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    found = {}
    servers = {}
    for name in ("any", "strict"):
        servers[name] = m.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def serve(name):
        link, _ = servers[name].accept()
        try:
            with context.wrap_socket(link, server_side=True) as secured:
                found[name] = secured.recv(1024)
        except ssl.SSLError as error:
            found[name] = error.reason

    for name in servers:
        threading.Thread(target=serve, args=(name,), daemon=True).start()

    def table_of(name, **tls):
        return mirror(
            servers[name].getsockname()[1], name, url="ircs://localhost:%d" % servers[name].getsockname()[1],
            tls={"ca": cert, **tls})

    m.open(table_of("any"), table_of("strict", min_version="1.3"))
    wait_until(lambda: len(found) == 2, lambda: "both were asked: %r" % found)
    assert b"\r\n" in found["any"] and "PROTOCOL" in found["strict"], found


@mirrored()
def typing_crosses_both_ways(m):
    pair = Pair(m)
    m.open(pair.mirror(nick="relay"))
    joined(m, channel="#lobby")
    ann, eve = m.irc("ann"), pair.other.irc("eve")
    for state in ("active", "done"):
        ann.send("@+typing=%s TAGMSG #lobby" % state)
        line = eve.expect("TAGMSG", lambda line: line.tags.get("+typing") == state)
        assert line.source.startswith("relay!") and line.params[0] == "#lobby", line
    eve.send("@+typing=active TAGMSG #lobby")
    ann.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active" and line.source.startswith("eve/net!"))
    m.backend.do("typing", "Remy")
    eve.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active" and line.source.startswith("relay!"))
    # Neither comes back as its own echo.
    for client in (ann, eve):
        client.barrier()
    assert {line.source.split("!")[0] for line in ann.lines if line.command == "TAGMSG"} <= {"ann", "Remy", "eve/net"}
    assert {line.source.split("!")[0] for line in eve.lines if line.command == "TAGMSG"} <= {"eve", "relay"}


@mirrored()
def two_relays_that_speak_in_each_others_channel(m):
    """Each in one direction: messages cross once, and typing does not come back."""
    pair = Pair(m)
    m.open(pair.mirror(nick="relay", direction="out"))
    with open(pair.other.bridge.config_path, "a", encoding="utf-8") as file:
        file.write(mirror(m.bridge.port, "back", map={"lobby": "#lobby"}, nick="back", direction="out"))
    done(pair.other.bridge, "reload")
    joined(m, channel="#lobby")
    joined(pair.other, channel="#lobby")
    ann, eve = m.irc("ann"), pair.other.irc("eve")
    ann.send("@+typing=active TAGMSG #lobby")
    eve.expect("TAGMSG", lambda line: line.tags.get("+typing") == "active" and line.source.startswith("relay!"))
    say_all(ann, ["a %d" % number for number in range(20)])
    say_all(eve, ["e %d" % number for number in range(20)])
    for client, word in ((ann, "e"), (eve, "a")):
        wait_until(lambda: 19 in irc_numbers(client, word), "%s has all" % client.nick)
    # What went round would be in front of these.
    say_all(ann, ["end 0"])
    say_all(eve, ["end 1"])
    for client, number in ((ann, 1), (eve, 0)):
        wait_until(lambda: number in irc_numbers(client, "end"), "%s has the end" % client.nick)
        for word in ("a", "e"):
            assert irc_numbers(client, word) == list(range(20)), (client.nick, word, irc_numbers(client, word))
    assert {line.source.split("!")[0] for line in ann.lines if line.command == "TAGMSG"} == {"ann"}


@mirrored()
def over_tls(m):
    pair = Pair(m)
    pin = subprocess.run(
        [peer.BINARY_PATH, "cert", "fingerprint", pair.cert], check=True, capture_output=True, text=True).stdout
    pin = next(word for word in pin.split() if len(word) == 44 and word.endswith("="))
    m.open(
        pair.secure("anchored", tls={"ca": pair.cert}),
        pair.secure("named", url="ircs://127.0.0.1:%d" % pair.secure_port, tls={
            "ca": pair.cert, "server_name": "localhost"}),
        pair.secure("pinned", tls={"pin_sha256": [pin], "min_version": "1.3"}),
        pair.secure("careless", tls={"insecure": True}),
        pair.secure("wary"),
        pair.secure("proven", direction="in", sasl={"mechanism": "external"}, tls={
            "ca": pair.cert, "client_cert": pair.client_cert, "client_key": pair.client_key}))
    joined(m, 5, channel="#lobby")
    entry = wait_until(lambda: m.bridge.log_entries("mirror-disconnected"), "the certificate of a stranger is refused")
    assert [e["mirror"] for e in entry] == ["wary"] and "certificate" in entry[0]["msg"], entry
    whois = pair.other.irc("eve")
    whois.send("WHOIS proven")
    assert whois.expect("330").params[2] == "certain"


# MARK: - Bridges in one channel


@on_networks()
def two_bridges_in_one_channel(m, network):
    """Each tells its room what the other's says there, and neither what it said itself."""
    other = Mirrored()
    m.stack.callback(other.stack.close)
    m.open(mirror(network, nick="one"))
    other.open(mirror(network, nick="two"))
    joined(m)
    joined(other)
    ann, bob, eve = m.irc("ann"), network.irc("bob"), other.irc("eve")
    say_all(ann, ["a %d" % number for number in range(20)])
    say_all(eve, ["e %d" % number for number in range(20)])
    for client in (ann, bob, eve):
        wait_until(lambda: 19 in irc_numbers(client, "e"), lambda: "%s has all: %r" % (client.nick, client.texts()), 30)
    # What a loop would make would be in front of this.
    for speaker, channel in ((ann, "#lobby"), (eve, "#lobby"), (bob, "#net")):
        speaker.say(channel, "end of %s" % speaker.nick)
    for client in (ann, eve):
        expect_text(client, "end of bob", 30)
    bob.barrier()
    for client in (ann, bob, eve):
        for word in ("a", "e"):
            wait_until(lambda: irc_numbers(client, word) == list(range(20)), lambda: "%s has each once: %r" % (
                client.nick, client.texts()))
