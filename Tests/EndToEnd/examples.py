"""The configurations in config/examples, and the example configuration: each is started with its placeholders filled in."""

import os
import subprocess
import tempfile
import urllib.request

import peer
from accounts import hashed
from listeners import SecureIRC, certificate, plain, web
from peer import Bridge, wait_until
from world import scenario

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "config")


class ExampleBridge(Bridge):
    """`chatbridge run` with a file of the repository; `filled` has its placeholders and what stands for them."""

    def __init__(self, name, filled, variables=()):
        self.owns_directory = True
        self.directory = tempfile.mkdtemp(prefix="chatbridge-")
        self.config_path = os.path.join(self.directory, "chatbridge.toml")
        self.log_path, self.log_begin = os.path.join(self.directory, "log"), 0
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        for placeholder, value in filled.items():
            assert placeholder in text, "%s is not in %s" % (placeholder, name)
            text = text.replace(placeholder, value)
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(text)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
        environment.update(variables)
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [peer.BINARY_PATH, "run", "--config", self.config_path, "--state-dir", self.directory + "/state"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            self.port = int(wait_until(self._address, lambda: "it listens: " + self.log()[-2000:]).rsplit(":")[-1])
        except AssertionError:
            self.process.kill()
            raise

    def ports(self, count):
        """Those of the IRC listeners, then those of HTTP."""
        def bound():
            entries = self.log_entries("listening") + self.log_entries("listening-http")
            return entries if len(entries) == count else None

        entries = wait_until(bound, lambda: "%d listeners: %s" % (count, self.log()[-2000:]))
        return [int(entry["address"].rsplit(":", 1)[-1]) for entry in entries]


def begin(world, name, filled, linked=1, **options):
    world.bridge = ExampleBridge(name, filled, **options)
    world.stack.callback(world.bridge.stop)
    world.relay.wait_for_bridge(count=linked)
    return world.bridge


def files(world, **contents):
    """Paths of files with these contents."""
    directory = world.stack.enter_context(tempfile.TemporaryDirectory())
    paths = {}
    for name, text in contents.items():
        paths[name] = os.path.join(directory, name)
        with open(paths[name], "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return paths


def logged_in(world, link, account, channel):
    link.nick = account
    link.send("PASS %s:secret" % account, "NICK " + account, "USER u 0 * :u")
    link.expect("001")
    link.join(channel)
    world.stack.callback(link.close)
    return link


def crosses(world, link, room="lobby"):
    """A message in each direction."""
    remy = world.person("Remy", room=room)
    remy.say("hello from the backend")
    link.expect_text("hello from the backend")
    link.say("#" + room, "hello from IRC")
    wait_until(lambda: any(frame.get("body") == "hello from IRC" for _, frame in world.relay.from_bridge), "it arrives")


@scenario
def the_example_configuration(world):
    begin(world, "chatbridge.toml", {
        "ws://127.0.0.1:8080/chat": world.relay.url("lobby"), "irc://127.0.0.1:6667\"  ": "irc://127.0.0.1:0\"  "})
    link = plain(world, world.bridge.port, nick="ann")
    link.join("#lobby")
    crosses(world, link)


@scenario
def team_server(world):
    cert, key = certificate(world, "irc.example.com")
    paths = files(world, alice=hashed("secret"), bob=hashed("secret"), token="t0ken")
    bridge = begin(world, "examples/team-server.toml", {
        "wss://chat.example.com/ws/{room}": world.relay.url(), "/etc/chatbridge/backend-token": paths["token"],
        "0.0.0.0:6697": "127.0.0.1:0", "127.0.0.1:6667": "127.0.0.1:0",
        "/etc/chatbridge/tls/fullchain.pem": cert, "/etc/chatbridge/tls/privkey.pem": key,
        "/etc/chatbridge/alice.hash": paths["alice"], "/etc/chatbridge/bob.hash": paths["bob"]}, linked=2)
    secure, local = bridge.ports(2)
    crosses(world, logged_in(world, SecureIRC(secure, cert, "irc.example.com"), "alice", "#general"), "general")
    bob = plain(world, local)
    bob.send("PASS bob:secret", "NICK bob", "USER u 0 * :u")
    bob.expect("001")
    bob.send("JOIN #operations")
    bob.expect("403")
    stranger = plain(world, local)
    stranger.send("NICK eve", "USER u 0 * :u")
    stranger.wait_closed()


@scenario
def sidecar(world):
    bridge = begin(world, "examples/sidecar.toml", {
        "ws://127.0.0.1:8080/chat": world.relay.url("lobby"), "127.0.0.1:6667": "127.0.0.1:0",
        "0.0.0.0:9667": "127.0.0.1:0"})
    irc, http = bridge.ports(2)
    link = plain(world, irc, nick="ann")
    link.join("#lobby")
    crosses(world, link)
    for path in ["healthz", "readyz"]:
        with urllib.request.urlopen("http://127.0.0.1:%d/%s" % (http, path), timeout=peer.PATIENCE) as answer:
            assert answer.status == 200


@scenario
def personal(world):
    home = world.stack.enter_context(tempfile.TemporaryDirectory())
    os.makedirs(home + "/.config/chatbridge")
    for name, text in {"me.hash": hashed("secret"), "token": "t0ken"}.items():
        with open(home + "/.config/chatbridge/" + name, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    bridge = begin(world, "examples/personal.toml", {
        "wss://chat.example.com/ws/{room}": world.relay.url(), "127.0.0.1:6667": "127.0.0.1:0"},
        variables={"HOME": home})
    link = logged_in(world, plain(world, bridge.port), "me", "#general")
    crosses(world, link, "general")
    link.join("#random")
    crosses(world, link, "random")


@scenario
def behind_a_proxy(world):
    paths = files(world, password=hashed("secret"))
    bridge = begin(world, "examples/behind-a-proxy.toml", {
        "ws://127.0.0.1:8080/chat": world.relay.url("lobby"), "127.0.0.1:6667": "127.0.0.1:0",
        "127.0.0.1:6680": "127.0.0.1:0", "127.0.0.1:9667": "127.0.0.1:0",
        "/etc/chatbridge/server-password": paths["password"]})
    irc, site, _ = bridge.ports(3)
    link = plain(world, irc, b"PROXY TCP4 203.0.113.7 192.0.2.1 49153 6667\r\n")
    world.stack.callback(link.close)
    link.nick = "ann"
    link.send("PASS secret", "NICK ann", "USER u 0 * :u")
    link.expect("001")
    link.join("#lobby")
    crosses(world, link)
    browser = web(
        world, site, path="/irc",
        headers={"Host": "chat.example.com", "Origin": "https://chat.example.com", "X-Forwarded-For": "203.0.113.8"})
    browser.send("PASS secret", "NICK bea", "USER u 0 * :u")
    browser.expect("001")
