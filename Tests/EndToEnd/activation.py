"""Socket activation, by systemd's own tool: the sockets are there before the bridge, and outlive it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.request

from marks import LeftOut
from peer import BINARY_PATH, IRC, wait_until
from world import scenario

ACTIVATE = shutil.which("systemd-socket-activate")


def free_port(family=socket.AF_INET, host="127.0.0.1"):
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class Activated:
    """A bridge behind `systemd-socket-activate`: it starts with the first connection to one of `sockets`, pairs of a name and
    an address."""

    def __init__(self, world, text, sockets, options=()):
        self.directory = tempfile.mkdtemp(prefix="chatbridge-")
        world.stack.callback(shutil.rmtree, self.directory, True)
        path = os.path.join(self.directory, "chatbridge.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                '[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n[[rooms]]\nname = "lobby"\nurl = "%s"\n%s\n'
                '[log]\nformat = "json"\n' % (self.directory, world.relay.url("lobby"), text))
        command = [ACTIVATE, "--fdname=" + ":".join(name for name, _ in sockets), *options]
        for _, address in sockets:
            command += ["--listen", address]
        self.log_path = os.path.join(self.directory, "log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*command, BINARY_PATH, "run", "--config", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")})
        world.stack.callback(self.stop)
        wait_until(lambda: "Listening on" in self.log(), lambda: "the tool listens: " + self.log())

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()


@scenario
def tcp_unix_websocket_and_http_are_handed_over(world):
    if not ACTIVATE:
        raise LeftOut("no systemd-socket-activate")
    irc, web, probes = free_port(), free_port(), free_port()
    path = os.path.join(tempfile.mkdtemp(prefix="chatbridge-"), "irc.sock")
    world.stack.callback(shutil.rmtree, os.path.dirname(path), True)
    text = "".join('[[listeners]]\nbind = "%s"\n' % bind for bind in ("irc+fd://irc", "ws+fd://web/irc"))
    text += '[[http]]\nbind = "http+fd://probes"\n'
    bridge = Activated(
        world, text,
        (("irc", "127.0.0.1:%d" % irc), ("irc", path), ("web", "127.0.0.1:%d" % web), ("probes", "127.0.0.1:%d" % probes)))
    ann = IRC(irc, "ann", join=["#lobby"])
    world.stack.callback(ann.close)
    with urllib.request.urlopen("http://127.0.0.1:%d/healthz" % probes, timeout=5) as answer:
        assert answer.read() == b"ok\n"
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(path)
        local.sendall(b"NICK bob\r\nUSER u 0 * :u\r\n")
        assert b" 001 bob " in received(local, b" 001 bob ")
    with socket.create_connection(("127.0.0.1", web)) as browser:
        browser.sendall(
            b"GET /irc HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        assert received(browser, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    log = bridge.log()
    for address in ("127.0.0.1:%d" % irc, "unix:" + path, "127.0.0.1:%d" % web):
        assert '"event":"listening"' in log and address in log, log
    bridge.process.send_signal(signal.SIGTERM)
    ann.expect("ERROR")
    assert bridge.process.wait(10) == 0
    # The file is the service manager's, and stays for the next start.
    assert os.path.exists(path)
    return None


def received(link, mark):
    link.settimeout(10)
    data = b""
    while mark not in data:
        piece = link.recv(4096)
        assert piece, data
        data += piece
    return data


@scenario
def connections_between_stop_and_start_wait(world):
    """A service manager holds the sockets while the bridge is away."""
    if not ACTIVATE:
        raise LeftOut("no systemd-socket-activate")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        for turn in range(2):
            waiting = IRC(port)
            world.stack.callback(waiting.close)
            with start_with(world, held.fileno(), "irc") as process:
                waiting.send("NICK n%d" % turn, "USER u 0 * :u")
                waiting.expect("001")
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0
        # Nobody accepts, and nobody is refused.
        socket.create_connection(("127.0.0.1", port)).close()
    return None


@contextlib.contextmanager
def start_with(world, descriptor, name):
    """A bridge that is handed a descriptor as the first of systemd's, by a shell that becomes it."""
    with tempfile.TemporaryDirectory(prefix="chatbridge-") as directory:
        path = os.path.join(directory, "chatbridge.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                '[server]\nname = "bridge.test"\nstate_dir = "%s/state"\n[[listeners]]\nbind = "irc+fd://irc"\n[[rooms]]\n'
                'name = "lobby"\nurl = "%s"\n[log]\nformat = "json"\n' % (directory, world.relay.url("lobby")))
        script = 'export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=%s; exec "$@" 3<&0 0</dev/null' % name
        with open(os.path.join(directory, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["sh", "-c", script, "sh", BINARY_PATH, "run", "--config", path], stdin=descriptor, stdout=log, stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")})
            process.log = lambda: open(log.name, encoding="utf-8").read()
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()


@scenario
def names_and_kinds_that_do_not_fit_end_the_start(world):
    plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    public = socket.create_server(("0.0.0.0", 0))
    cases = (
        (public, "web", 'the service manager handed over no socket "irc", but "web"'),
        (plain, "irc", 'the socket "irc" (descriptor 3) does not listen'),
        (datagram, "irc", 'the socket "irc" (descriptor 3) is no stream socket'),
        (public, "irc", 'plain text beyond loopback must say so: write "irc+insecure+fd://irc"'),
    )
    for link, name, words in cases:
        with start_with(world, link.fileno(), name) as process:
            assert process.wait(10) == 78, process.log()
            assert any(words in json.loads(line)["msg"] for line in process.log().splitlines()), process.log()
    for link in (plain, datagram, public):
        link.close()


@scenario
def a_socket_that_no_listener_names_is_said(world):
    world.start(wrapper=("sh", "-c", 'export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=spare; exec "$@" 3<&0', "sh"))
    assert world.bridge.logged("socket-unused", "warn", "names")["names"] == "spare"
