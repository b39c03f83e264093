"""Listeners besides plain IRC: WebSocket, TLS and STS. Code shared with proxies.py is here."""

import asyncio
import base64
import contextlib
import os
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import time

import aiohttp
import peer
from peer import IRC, MODERN, PATIENCE, wait_until
from world import scenario

# Whoever may come in need not log in here.
OPEN = '[identity]\nrequire_login = "never"\n'


class WebIRC(IRC):
    """The same client over WebSocket, by aiohttp."""

    def __init__(self, url, nick=None, caps=(), join=(), protocols=("text.ircv3.net",), **options):
        self.loop = asyncio.new_event_loop()
        self.arrived = asyncio.Event()
        self.kinds = set()
        self.close_code = None
        self.waiting = []
        self.closed = False
        self.options = options
        self.loop.run_until_complete(self._open(url, protocols))
        self.nick, self.lines, self.cursor, self.rest = nick, [], 0, b""
        if nick is None:
            return
        if caps:
            self.send("CAP LS 302")
        self.send("NICK " + nick, "USER %s 0 * :%s" % (nick, nick))
        if caps:
            self.send("CAP REQ :" + " ".join(caps), "CAP END")
        self.expect("001")
        for channel in join:
            self.join(channel)

    async def _open(self, url, protocols):
        self.session = aiohttp.ClientSession()
        try:
            self.socket = await self.session.ws_connect(url, protocols=protocols, **self.options)
        except BaseException:
            await self.session.close()
            raise
        self.protocol = self.socket.protocol
        self.reader = asyncio.ensure_future(self._read_all())

    async def _read_all(self):
        async for message in self.socket:
            if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                self.kinds.add(message.type.name)
                data = message.data.encode() if isinstance(message.data, str) else message.data
                assert b"\n" not in data and b"\r" not in data, "a line break in a message: %r" % data
                self.waiting.append(data + b"\n")
                self.arrived.set()
        self.close_code = self.socket.close_code
        self.closed = True
        self.arrived.set()

    def _read(self, seconds):
        async def wait():
            self.arrived.clear()
            if not self.waiting and not self.closed:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.arrived.wait(), max(seconds, 0.001))

        self.loop.run_until_complete(wait())
        data, self.waiting = b"".join(self.waiting), []
        return data

    def send(self, *lines):
        for line in lines:
            self.send_message(line)

    def send_message(self, message):
        send = self.socket.send_str if isinstance(message, str) else self.socket.send_bytes
        with contextlib.suppress(ConnectionError):
            self.loop.run_until_complete(send(message))

    def close(self):
        async def end():
            await self.socket.close()
            await self.session.close()
            self.reader.cancel()

        if not self.loop.is_closed():
            with contextlib.suppress(Exception):
                self.loop.run_until_complete(end())
            self.loop.close()
        self.closed = True


def start(world, *listeners, identity=OPEN, **options):
    """The ports of these listeners, which stand beside the plain one."""
    tables = "\n".join("[[listeners]]\n" + text for text in listeners)
    world.start(server_extra=identity, tables=tables, **options)
    wait_until(lambda: len(world.bridge.log_entries("listening")) > len(listeners), "all listeners")
    return [int(entry["address"].rsplit(":", 1)[-1]) for entry in world.bridge.log_entries("listening")[1:]]


def web(world, port, nick=None, path="/", join="#lobby", caps=(), **options):
    client = WebIRC("http://127.0.0.1:%d%s" % (port, path), nick, caps, [join] if join and nick else [], **options)
    world.stack.callback(client.close)
    return client


def plain(world, port, first=b"", nick=None, host="127.0.0.1"):
    """An IRC client that sends `first` before anything else."""
    link = IRC(port, host=host)
    world.stack.callback(link.close)
    link.nick = nick
    link.send_bytes(first)
    if nick:
        link.send("NICK " + nick, "USER %s 0 * :%s" % (nick, nick))
        link.expect("001")
    return link


def answer(port, request):
    """Everything that a port says to some bytes, until it closes."""
    received = b""
    # Whoever is turned away unheard sees a reset, perhaps before the connection seems to stand.
    with contextlib.suppress(ConnectionError):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
            link.sendall(request)
            while data := link.recv(65536):
                received += data
    return received


def upgrade(port, path="/", host=None, **fields):
    lines = {
        "Host": host or "127.0.0.1:%d" % port, "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": "13",
    }
    lines.update({name.replace("_", "-"): value for name, value in fields.items()})
    head = "".join("%s: %s\r\n" % item for item in lines.items() if item[1] is not None)
    return ("GET %s HTTP/1.1\r\n%s\r\n" % (path, head)).encode()


def status(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(request)
        return link.recv(65536).split(b" ")[1].decode()


def addresses(world, event="client-connected"):
    return [entry.get("address") for entry in world.bridge.log_entries(event)]


# MARK: - IRC over WebSocket


@scenario
def a_browser_client_talks_both_ways(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0/irc"')
    remy = world.person("Remy")
    ann = world.irc("ann")
    web_client = web(world, port, "linguini", path="/irc", caps=MODERN)
    assert web_client.protocol == "text.ircv3.net"
    web_client.say("#lobby", "hello from a page – ü")
    remy.expect_message("hello from a page – ü")
    ann.expect_text("hello from a page – ü")
    web_client.expect_text("hello from a page – ü")
    remy.say("hello page")
    web_client.expect_text("hello page")
    ann.expect_text("hello page")
    web_client.send("@+typing=active TAGMSG #lobby")
    remy.expect("typing", lambda f: f.get("event") == "typing")
    assert web_client.kinds == {"TEXT"}
    web_client.barrier()


@scenario
def a_folder_is_served_beside_the_websocket(world):
    """A browser client on the port of its WebSocket: what is in the folder, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        outside = os.path.join(folder, "outside")
        root = os.path.join(folder, "page")
        os.makedirs(os.path.join(root, "dist", ".git"))
        for name, content in (
            ("outside", b"5ecret"), ("page/index.html", b"<!doctype html>"), ("page/dist/app.js", b"let a = 1"),
            ("page/dist/.git/config", b"5ecret"), ("page/.env", b"5ecret"), ("page/empty", b""),
        ):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        (port,) = start(world, 'bind = "ws://127.0.0.1:0/irc"\nweb_root = "%s"' % root)

        def ask(path, method="GET", host="127.0.0.1", **headers):
            lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + host]
            lines += ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
            return answer(port, ("\r\n".join(lines) + "\r\n\r\n").encode())

        page = ask("/")
        assert b" 200 OK" in page and page.endswith(b"\r\n\r\n<!doctype html>") and b"text/html" in page, page
        assert ask("/index.html").endswith(b"<!doctype html>")
        script = ask("/dist/app.js?v=2")
        assert script.endswith(b"let a = 1") and b"text/javascript" in script and b"nosniff" in script, script
        tag = script.split(b"ETag: ")[1].split(b"\r\n")[0].decode()
        assert b" 304 " in ask("/dist/app.js", If_None_Match=tag)
        assert not ask("/", method="HEAD").endswith(b">"), "HEAD has no body"
        assert b"Content-Length: 0" in ask("/empty")
        for path in ("/../outside", "/%2e%2e/outside", "/dist/../../outside", "/.env", "/dist/.git/config", "/dist", "//etc/passwd",
                     "/dist/", "/other", outside):
            said = ask(path)
            assert b"5ecret" not in said and b" 200 " not in said, (path, said)
        assert b" 421 " in ask("/irc", host="evil.example") and b" 200 " not in ask("/", host="evil.example")
        assert b" 200 " not in ask("/", method="POST")
        web_client = web(world, port, "linguini", path="/irc", caps=MODERN)
        web_client.say("#lobby", "from a page")
        web_client.expect_text("from a page")


@scenario
def subprotocols_decide_the_kind_of_message(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    for offered, agreed, kind in (
        (("binary.ircv3.net",), "binary.ircv3.net", "BINARY"),
        (("text.ircv3.net",), "text.ircv3.net", "TEXT"),
        (("binary.ircv3.net", "text.ircv3.net"), "binary.ircv3.net", "BINARY"),
        (("x.example", "text.ircv3.net", "binary.ircv3.net"), "text.ircv3.net", "TEXT"),
    ):
        client = web(world, port, "c%d" % time.monotonic_ns(), protocols=offered)
        assert client.protocol == agreed, (offered, client.protocol)
        assert client.kinds == {kind}, (offered, client.kinds)
    # Without one, the client's first message decides; nothing is agreed on.
    quiet = web(world, port, "quiet", protocols=())
    assert quiet.protocol is None and quiet.kinds == {"TEXT"}, (quiet.protocol, quiet.kinds)
    old = web(world, port, protocols=())
    old.nick = "old"
    old.send_message(b"NICK old")
    old.send_message(b"USER old 0 * :old")
    old.expect("001")
    assert old.kinds == {"BINARY"}, old.kinds


@scenario
def messages_are_lines(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    client = web(world, port, "linguini", caps=("standard-replies",))
    # A break at the end is forgiven, one within is a line that is refused.
    client.send_message("PRIVMSG #lobby :with a break\r\n")
    wait_until(lambda: world.relay.messages_from_bridge(), "the message goes upstream")
    for bad in ("PRIVMSG #lobby :one\nQUIT :two", "PRIVMSG #lobby :one\r\nQUIT :two", "PRIVMSG #lobby :a\0b"):
        client.send_message(bad)
        assert client.expect("FAIL").params[1] == "INVALID_LINE"
    client.send_message("")
    client.send_message("\r\n")
    client.send_message("PRIVMSG #lobby :" + "x" * 600)
    client.expect("417")
    client.say("#lobby", "still here")
    wait_until(
        lambda: [f["body"] for f in world.relay.messages_from_bridge()] == ["with a break", "still here"],
        "only what was a line goes upstream")
    client.send_message("x" * 20000)
    client.wait_closed()
    assert client.close_code == 1009, client.close_code


@scenario
def text_that_is_no_utf8_ends_the_websocket(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(upgrade(port, Sec_WebSocket_Protocol="text.ircv3.net"))
        received = link.recv(65536)
        assert received.startswith(b"HTTP/1.1 101 "), received
        link.sendall(peer.frame(b"PRIVMSG #lobby :\xff", peer.TEXT, masked=True))
        while data := link.recv(65536):
            received += data
        assert struct.pack(">H", 1007) in received.split(b"\r\n\r\n", 1)[1], received
    # In binary messages the line alone is refused.
    client = web(world, port, "linguini", protocols=("binary.ircv3.net",), caps=("standard-replies",))
    client.send_message(b"PRIVMSG #lobby :\xff")
    assert client.expect("FAIL").params[1] == "INVALID_UTF8"


@scenario
def compressed_and_fragmented_messages_are_lines_too(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    remy = world.person("Remy")
    client = web(world, port, "linguini", compress=15)
    assert client.socket.compress, "permessage-deflate was not agreed on"
    client.say("#lobby", "squeezed " + "a" * 300)
    remy.expect_message("squeezed " + "a" * 300)
    remy.say("and back " + "b" * 350)
    client.expect_text("and back " + "b" * 350)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(upgrade(port))
        link.recv(65536)

        def piece(payload, opcode, final):
            whole = bytearray(peer.frame(payload, opcode, masked=True))
            if not final:
                whole[0] &= 0x7F
            return bytes(whole)

        link.sendall(piece(b"NICK fr", peer.TEXT, False) + peer.frame(b"", peer.PING, masked=True))
        link.sendall(piece(b"ag", 0, True))
        link.sendall(peer.frame(b"USER f 0 * :f", peer.TEXT, masked=True))
        received = b""
        while b" 001 frag " not in received:
            data = link.recv(65536)
            assert data, received
            received += data


@scenario
def every_end_of_a_websocket_is_known(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    ann = world.irc("ann")
    leaving = web(world, port, "leaving")
    leaving.close()
    ann.expect("QUIT", lambda line: line.source.startswith("leaving!"))
    quitting = web(world, port, "quitting")
    quitting.send("QUIT :bye")
    quitting.expect("ERROR")
    quitting.wait_closed()
    assert quitting.close_code == 1000, quitting.close_code
    # Without a Close, as when a laptop is shut.
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(upgrade(port))
        for line in (b"NICK gone", b"USER g 0 * :g", b"JOIN #lobby"):
            link.sendall(peer.frame(line, peer.TEXT, masked=True))
        ann.expect("JOIN", lambda line: line.source.startswith("gone!"))
    ann.expect("QUIT", lambda line: line.source.startswith("gone!"))
    # A frame that is not masked breaks the protocol.
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(upgrade(port) + peer.frame(b"NICK x", peer.TEXT, masked=False))
        received = b""
        while data := link.recv(65536):
            received += data
        assert struct.pack(">H", 1002) in received, received
    staying = web(world, port, "staying")
    world.bridge.terminate()
    staying.wait_closed()
    assert staying.close_code == 1012, staying.close_code
    # Clients in browsers take ERROR for a word to stay away.
    staying.drain()
    assert not [line for line in staying.lines if line.command == "ERROR"], staying.lines
    world.bridge = None


@scenario
def pages_of_strangers_are_turned_away(world):
    ports = start(
        world, 'bind = "ws://127.0.0.1:0/irc"',
        'bind = "ws://127.0.0.1:0"\norigins = ["https://chat.example.com", "http://*.example.org:8080", "null"]\n'
        'hosts = ["irc.example.com"]',
        'bind = "ws://127.0.0.1:0"\norigins = ["*"]')
    own, listed, anybody = ports
    for port, wanted, request in (
        (own, "101", upgrade(own, "/irc")),
        (own, "101", upgrade(own, "/irc?room=lobby")),
        (own, "101", upgrade(own, "/irc", host="localhost:%d" % own, Origin="http://localhost:8000")),
        (own, "101", upgrade(own, "/irc", host="bridge.test", Origin="https://bridge.test")),
        (own, "101", upgrade(own, "/irc", host="[::1]:1", Origin="http://[::1]")),
        (own, "403", upgrade(own, "/irc", Origin="https://evil.example")),
        (own, "403", upgrade(own, "/irc", Origin="null")),
        (own, "403", upgrade(own, "/irc", Origin="")),
        (own, "403", upgrade(own, "/irc", Origin="http://127.0.0.1.evil.example")),
        # DNS rebinding: the stranger's name leads here, and the page is "of the same host".
        (own, "421", upgrade(own, "/irc", host="evil.example", Origin="http://evil.example")),
        (own, "421", upgrade(own, "/irc", host="127.0.0.1.evil.example")),
        (own, "404", upgrade(own, "/")),
        (own, "404", upgrade(own, "/irc/")),
        (own, "404", b"GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (own, "426", b"GET /irc HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (own, "426", upgrade(own, "/irc", Sec_WebSocket_Version="8")),
        (own, "400", upgrade(own, "/irc", Sec_WebSocket_Key="short")),
        (own, "400", b"GET / HTTP/1.1\nHost: 127.0.0.1\r\n\r\n"),
        (listed, "101", upgrade(listed, host="irc.example.com", Origin="https://chat.example.com")),
        (listed, "101", upgrade(listed, Origin="http://a.b.example.org:8080")),
        (listed, "101", upgrade(listed, Origin="null")),
        (listed, "403", upgrade(listed, Origin="http://chat.example.com")),
        (listed, "403", upgrade(listed, Origin="https://chat.example.com:8443")),
        (listed, "403", upgrade(listed, Origin="http://example.org:8080")),
        (listed, "403", upgrade(listed, Origin="http://127.0.0.1:%d" % listed)),
        (listed, "421", upgrade(listed, host="other.example.com", Origin="https://chat.example.com")),
        (anybody, "101", upgrade(anybody, host="any.example", Origin="https://any.example")),
    ):
        found = status(port, request)
        assert found == wanted, (found, wanted, request)
    # Who speaks IRC, or TLS, here is told in a way that it understands.
    assert answer(own, b"NICK ann\r\nUSER a 0 * :a\r\n").startswith(b"ERROR :This port is for IRC over WebSocket")
    assert answer(own, b"CAP LS 302\r\nNICK ann\r\n").startswith(b"ERROR :")
    assert answer(own, b"\x16\x03\x01\x02\x00\x01").startswith(b"\x15\x03\x01")
    assert world.bridge.log_entries("client-turned-away")


@scenario
def a_slow_or_silent_request_ends(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    received = answer(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert received.startswith(b"HTTP/1.1 408 "), received


@scenario
def a_flood_over_websocket_is_held_back_without_loss(world):
    """More than the bridge takes at once: it reads no further until it has dealt with it, and everything arrives in order."""
    limits = 'messages_per_second = 2000\nmessages_burst = 10\nupstream_messages_per_second = "off"\nrecvq = "16KiB"'
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"', limits=limits)
    client = web(world, port, "linguini", compress=15)
    count = 1500
    for number in range(count):
        client.send_message("PRIVMSG #lobby :%d %s" % (number, "z" * 100))
    wait_until(
        lambda: len(world.relay.messages_from_bridge()) == count, "every message arrives", patience=60)
    bodies = [int(f["body"].split()[0]) for f in world.relay.messages_from_bridge()]
    assert bodies == list(range(count))
    client.barrier()


@scenario
def a_message_that_unpacks_to_much_is_refused(world):
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"')
    before = world.bridge.rss_kib()[1]
    client = web(world, port, "bomb", compress=15, join=None)
    client.send_message("a" * 50_000_000)
    client.wait_closed()
    assert client.close_code == 1009, client.close_code
    grown = world.bridge.rss_kib()[1] - before
    assert grown < 8 * 1024, "%d KiB" % grown


@scenario
def idle_clients_over_websocket_are_cheap(world):
    """Kibibytes of resident memory for each of a thousand, in a room, beside as many over TCP."""
    limits = peer.OPEN_LIMITS + "\nmax_clients = 5000"
    (port,) = start(world, 'bind = "ws://127.0.0.1:0"', limits=limits)
    count = 1000
    links = []

    def raw(number, over_web):
        link = socket.create_connection(("127.0.0.1", port if over_web else world.bridge.port), timeout=PATIENCE)
        links.append(link)
        lines = [b"NICK %s%d" % (b"w" if over_web else b"t", number), b"USER u 0 * :u"]
        if over_web:
            link.sendall(upgrade(port, Sec_WebSocket_Protocol="text.ircv3.net"))
            link.sendall(b"".join(peer.frame(line, peer.TEXT, masked=True) for line in lines))
        else:
            link.sendall(b"".join(line + b"\r\n" for line in lines))
        received = b""
        while b" 422 " not in received:
            received += link.recv(65536)

    costs = []
    try:
        for over_web in (False, True):
            before = world.bridge.rss_kib()[0]
            for number in range(count):
                raw(number, over_web)
            costs.append((world.bridge.rss_kib()[0] - before) / count)
    finally:
        for link in links:
            link.close()
    assert costs[1] < 4, "%.2f KiB over WebSocket, %.2f over TCP" % (costs[1], costs[0])
    return "%.2f KiB over WebSocket, %.2f over TCP" % (costs[1], costs[0])


# MARK: - TLS and what leads to it


def certificate(world, *names, out=None):
    directory = out or world.stack.enter_context(tempfile.TemporaryDirectory())
    arguments = [argument for name in names for argument in ("--name", name)]
    subprocess.run(
        [peer.BINARY_PATH, "cert", "self-signed", "--out", directory, *arguments], check=True, capture_output=True,
        timeout=60)
    return os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")


class Secured:
    """In front of a link's class: over TLS; `first` goes before the handshake."""

    def __init__(self, port, cert, name, first=b"", **options):
        super().__init__(port, **options)
        self.sock.sendall(first)
        context = ssl.create_default_context(cafile=cert)
        context.check_hostname = name is not None
        self.sock = context.wrap_socket(self.sock, server_hostname=name)

    def _read(self, seconds):
        if self.closed or not (self.sock.pending() or select.select([self.sock], [], [], max(seconds, 0))[0]):
            return b""
        self.sock.settimeout(0)
        try:
            data = self.sock.recv(1 << 16)
        except ssl.SSLWantReadError:
            # A session ticket, or a part of a record.
            return b""
        except OSError:
            data = b""
        self.closed = not data
        return data


class SecureIRC(Secured, IRC):
    """The same client over TLS."""


def offered(link):
    link.send("CAP LS 302")
    words = []
    while True:
        line = link.expect("CAP")
        words += line.params[-1].split()
        if line.params[2] != "*":
            return words


def sts(words):
    return [word for word in words if word.startswith("sts")]


@scenario
def plain_listeners_lead_to_tls_and_tls_says_for_how_long(world):
    cert, key = certificate(world, "localhost", "irc.example.com")
    secure = 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key)
    tls_port, named_port, plain_port, moved_port = start(
        world, secure + 'sts = "30d"', secure + 'sts = "1h"\nhosts = ["irc.example.com"]',
        'bind = "irc+insecure://0.0.0.0:0"', 'bind = "ws://127.0.0.1:0"')
    link = plain(world, plain_port)
    assert sts(offered(link)) == ["sts=port=%d" % tls_port]
    # It is said, never asked for; and to a client that knows no values it says nothing.
    link.send("CAP REQ :sts")
    assert link.expect("CAP").params[1:] == ["NAK", "sts"]
    link.send("CAP LIST")
    assert "sts" not in link.expect("CAP").params[-1]
    old = plain(world, plain_port)
    old.send("CAP LS")
    assert "sts" not in old.expect("CAP").params[-1]
    # On this machine alone nobody listens in, and over WebSocket the page has its own way.
    assert sts(offered(plain(world, world.bridge.port))) == []
    assert sts(offered(web(world, moved_port))) == []
    for port, name, wanted in (
        (tls_port, "localhost", ["sts=duration=2592000"]), (tls_port, None, []),
        (named_port, "irc.example.com", ["sts=duration=3600"]), (named_port, "localhost", []),
    ):
        link = SecureIRC(port, cert, name)
        world.stack.callback(link.close)
        assert sts(offered(link)) == wanted, (port, name)


@scenario
def the_oldest_tls_that_is_taken(world):
    cert, key = certificate(world, "localhost")
    secure = 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key)
    by_default, strict = start(world, secure, secure + 'min_tls = "1.3"')
    context = ssl.create_default_context(cafile=cert)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def version(port):
        with socket.create_connection(("127.0.0.1", port), peer.PATIENCE) as link:
            with context.wrap_socket(link, server_hostname="localhost") as secured:
                return secured.version()

    assert version(by_default) == "TLSv1.2"
    try:
        raise AssertionError("%s was taken" % version(strict))
    except ssl.SSLError as error:
        assert "VERSION" in error.reason, error


@scenario
def the_port_of_tls_elsewhere(world):
    """Clients reach the port of TLS under another number."""
    cert, key = certificate(world, "localhost")
    _, port = start(
        world, 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\nsts = "30d"\nsts_port = 6697' % (cert, key),
        'bind = "irc+insecure://0.0.0.0:0"')
    assert sts(offered(plain(world, port))) == ["sts=port=6697"]


@scenario
def whose_certificates_are_taken(world):
    cert, key = certificate(world, "localhost")
    known, unknown = certificate(world, "ann"), certificate(world, "eve")
    secure = 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key)
    by_default, strict = start(world, secure, secure + 'client_ca = "%s"' % known[0])

    def answer(port, shown):
        context = ssl.create_default_context(cafile=cert)
        if shown:
            context.load_cert_chain(*shown)
        with socket.create_connection(("127.0.0.1", port), peer.PATIENCE) as link:
            with context.wrap_socket(link, server_hostname="localhost") as secured:
                secured.sendall(b"CAP LS 302\r\n")
                return secured.recv(1024)

    for port, shown in ((by_default, unknown), (strict, known), (strict, None)):
        assert b"CAP * LS" in answer(port, shown), (port, shown)
    try:
        raise AssertionError("taken: %r" % answer(strict, unknown))
    except ssl.SSLError as error:
        assert "ALERT" in error.reason, error


@scenario
def a_replaced_certificate_is_noticed(world):
    """Without a signal, "within ten seconds, and … in force for new connections": two looks that agree, five seconds apart."""
    pair, renewed = certificate(world, "localhost"), certificate(world, "localhost")
    (port,) = start(world, 'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"' % pair)
    ann = SecureIRC(port, pair[0], "localhost")
    world.stack.callback(ann.close)
    offered(ann)
    with open(renewed[0], encoding="ascii") as file:
        wanted = ssl.PEM_cert_to_DER_cert(file.read())
    assert ann.sock.getpeercert(True) != wanted
    for new, old in zip(renewed, pair):
        os.replace(new, old)
    wait_until(lambda: world.bridge.log_entries("accept-certificate-renewed"), "the new pair is noticed")
    bob = SecureIRC(port, pair[0], "localhost")
    world.stack.callback(bob.close)
    assert bob.sock.getpeercert(True) == wanted, "the old certificate for a new connection"
    offered(ann)


@scenario
def websocket_over_tls(world):
    cert, key = certificate(world, "localhost")
    (port,) = start(world, 'bind = "wss://127.0.0.1:0/irc"\ncert = "%s"\nkey = "%s"' % (cert, key))
    remy = world.person("Remy")
    client = WebIRC(
        "https://localhost:%d/irc" % port, "linguini", join=["#lobby"], ssl=ssl.create_default_context(cafile=cert))
    world.stack.callback(client.close)
    client.say("#lobby", "sealed")
    remy.expect_message("sealed")
    remy.say("and back")
    client.expect_text("and back")
    assert answer(port, b"GET /irc HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 400 ")
