"""Trusted proxies: PROXY headers, WEBIRC, web servers in front; and input that is not IRC, or no configuration."""

import base64
import contextlib
import os
import socket
import struct
import subprocess
import tempfile

import peer
from listeners import OPEN, SecureIRC, addresses, answer, certificate, plain, start, status, upgrade
from peer import PATIENCE, wait_until
from world import scenario

# MARK: - Behind proxies

PROXIED = 'proxy_protocol = "v1v2"\ntrusted_proxies = ["127.0.0.0/8"]\n'


def v2(source, command=0x21, family=0x11, tail=b""):
    if family == 0x11:
        body = socket.inet_aton(source) + socket.inet_aton("192.0.2.1") + struct.pack(">HH", 49153, 6667)
    else:
        body = socket.inet_pton(socket.AF_INET6, source) * 2 + struct.pack(">HH", 49153, 6667)
    body += tail
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack(">BBH", command, family, len(body)) + body


@scenario
def the_proxy_says_who_the_client_is(world):
    cert, key = certificate(world, "localhost")
    port, tls_port, web_port = start(
        world, 'bind = "irc://127.0.0.1:0"\n' + PROXIED,
        'bind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key) + PROXIED,
        'bind = "ws://127.0.0.1:0"\n' + PROXIED)
    plain(world, port, b"PROXY TCP4 203.0.113.7 192.0.2.1 49153 6667\r\n", "one")
    plain(world, port, v2("203.0.113.8", tail=b"\x04\0\x01\0"), "two")
    plain(world, port, v2("2001:db8::7", family=0x21), "three")
    plain(world, port, v2("203.0.113.9", command=0x20), "four")
    plain(world, port, b"PROXY UNKNOWN\r\n", "five")
    link = SecureIRC(tls_port, cert, "localhost", first=b"PROXY TCP4 203.0.113.10 192.0.2.1 1 2\r\n")
    world.stack.callback(link.close)
    link.send("NICK six", "USER s 0 * :s")
    link.expect("001")
    with socket.create_connection(("127.0.0.1", web_port), timeout=PATIENCE) as seven:
        seven.sendall(b"PROXY TCP4 203.0.113.11 192.0.2.1 1 2\r\n" + upgrade(web_port))
        assert seven.recv(65536).startswith(b"HTTP/1.1 101 ")
        found = wait_until(lambda: addresses(world) if len(addresses(world)) == 7 else None, "all are known")
    assert found == [
        "203.0.113.7", "203.0.113.8", "2001:db8::7", "127.0.0.1", "127.0.0.1", "203.0.113.10", "203.0.113.11"], found


@scenario
def no_header_no_entry(world):
    port, strict, bare = start(
        world, 'bind = "irc://127.0.0.1:0"\n' + PROXIED,
        'bind = "irc://127.0.0.1:0"\nproxy_protocol = "v1v2"\ntrusted_proxies = ["10.0.0.0/8"]',
        'bind = "irc://127.0.0.1:0"')
    assert answer(port, b"NICK ann\r\nUSER a 0 * :a\r\n") == b""
    assert answer(port, b"PROXY TCP4 nobody nowhere 1 2\r\n") == b""
    assert answer(strict, b"") == b""
    def said():
        return " ".join(entry["msg"] for entry in world.bridge.log_entries("client-proxy-refused"))

    for why in ("no PROXY header", "malformed", "not among trusted_proxies"):
        wait_until(lambda: why in said(), lambda: "%r is said: %s" % (why, said()))
    # And where nobody was told of a proxy, its header is not taken for IRC.
    for header in (b"PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n", v2("203.0.113.7")):
        assert answer(bare, header + b"NICK ann\r\n") == b""
    assert addresses(world, "foreign-protocol") == ["127.0.0.1"] * 2


@scenario
def limits_count_the_client_and_not_its_proxy(world):
    limits = peer.OPEN_LIMITS + '\nmax_clients_per_ip = 2\naccepts_per_second_per_ip = "off"'
    (port,) = start(world, 'bind = "irc://127.0.0.1:0"\n' + PROXIED, limits=limits)

    def come(address, nick):
        return plain(world, port, b"PROXY TCP%d %s %s 1 2\r\n" % (
            6 if b":" in address else 4, address, b"::1" if b":" in address else b"192.0.2.1"), nick)

    for number in range(4):
        come(b"203.0.113.%d" % number, "a%d" % number)
    come(b"203.0.113.1", "again")
    refused = come(b"203.0.113.1", None)
    assert "too many connections from your address" in refused.expect("ERROR").params[-1]
    # A /64 is one customer.
    come(b"2001:db8:1:2::1", "six")
    come(b"2001:db8:1:2:ffff::2", "seven")
    refused = come(b"2001:db8:1:2:a:b:c:d", None)
    assert "too many connections from your address" in refused.expect("ERROR").params[-1]
    come(b"2001:db8:1:3::1", "eight")
    # Whom the proxy does not name counts for nobody.
    for number in range(4):
        plain(world, port, b"PROXY UNKNOWN\r\n", "u%d" % number)


@scenario
def who_comes_through_a_proxy_is_not_of_this_machine(world):
    (port,) = start(
        world, 'bind = "irc://127.0.0.1:0"\n' + PROXIED, identity='[identity]\npassword = "secret"\n')
    link = plain(world, port, b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n")
    link.send("NICK ann", "USER a 0 * :a")
    link.expect("464")


@scenario
def a_web_server_says_for_whom_it_asks(world):
    trusting, wary = start(
        world, 'bind = "ws://127.0.0.1:0"\ntrusted_proxies = ["127.0.0.1", "198.51.100.0/24"]',
        'bind = "ws://127.0.0.1:0"')
    cases = (
        (trusting, "203.0.113.7", "203.0.113.7"),
        (trusting, "10.1.1.1, 203.0.113.8, 198.51.100.3", "203.0.113.8"),
        (trusting, "2001:db8::9", "2001:db8::9"),
        (trusting, "203.0.113.9:4711", "203.0.113.9"),
        (trusting, "unknown", "127.0.0.1"),
        (trusting, None, "127.0.0.1"),
        (wary, "203.0.113.7", "127.0.0.1"),
    )
    for port, header, _ in cases:
        assert status(port, upgrade(port, X_Forwarded_For=header)) == "101"
    wanted = [address for _, _, address in cases]
    wait_until(lambda: addresses(world) == wanted, lambda: "%r, not %r" % (wanted, addresses(world)))


# MARK: - Gateways


def gateway(password, *ranges):
    return '[[identity.webirc]]\npassword = "%s"\nfrom = [%s]\n' % (
        password, ", ".join('"%s"' % one for one in ranges))


def hashed(password):
    made = subprocess.run(
        [peer.BINARY_PATH, "hash-password", "--iterations=4096"], input=password + "\n", capture_output=True, text=True,
        timeout=60, check=True)
    return made.stdout.strip()


@scenario
def a_gateway_says_for_whom_it_connects(world):
    limits = peer.OPEN_LIMITS + '\nmax_clients_per_ip = 2\naccepts_per_second_per_ip = "off"'
    start(
        world, limits=limits,
        identity=OPEN + gateway(hashed("hunter2"), "127.0.0.1") + gateway("other-secret", "127.0.0.0/8", "10.0.0.0/8"))
    port = world.bridge.port
    for number, (password, address, tail) in enumerate((
        ("hunter2", "203.0.113.7", ""), ("hunter2", "203.0.113.7", " :secure remote-port=21726"),
        ("other-secret", "203.0.113.8", " secure"), ("hunter2", "0::1", ""), ("hunter2", "2001:db8::7", ""),
    )):
        first = "WEBIRC %s Kiwi host.example %s%s\r\n" % (password, address, tail)
        plain(world, port, first.encode(), "c%d" % number)
    announced = [entry["address"] for entry in world.bridge.log_entries("client-gateway")]
    assert announced == ["203.0.113.7", "203.0.113.7", "203.0.113.8", "::1", "2001:db8::7"], announced
    third = plain(world, port, b"WEBIRC hunter2 Kiwi h 203.0.113.7\r\nNICK late\r\nUSER l 0 * :l\r\n")
    assert "too many connections from your address" in third.expect("ERROR").params[-1]
    for first, why in (
        (b"WEBIRC wrong Kiwi h 203.0.113.9\r\n", "Password incorrect"),
        (b"WEBIRC hunter2 Kiwi h nowhere\r\n", "address that is none"),
        (b"NICK ann\r\nWEBIRC hunter2 Kiwi h 203.0.113.9\r\n", "before everything else"),
        (b"CAP LS 302\r\nWEBIRC hunter2 Kiwi h 203.0.113.9\r\n", "before everything else"),
        (b"WEBIRC hunter2 Kiwi h 203.0.113.9\r\nWEBIRC hunter2 Kiwi h 203.0.113.10\r\n", ""),
    ):
        link = plain(world, port, first)
        if why:
            assert why in link.expect("ERROR").params[-1], first
            link.wait_closed()
    assert "hunter2" not in world.bridge.log() and "other-secret" not in world.bridge.log()


@scenario
def what_a_gateway_sends_ahead_waits_for_its_password(world):
    """A gateway does not wait for an answer: SASL and all that follows comes at once."""
    from accounts import account

    start(
        world, identity="[identity]\n%s%s" % (gateway(hashed("hunter2"), "127.0.0.1"), account("alice", "secret")))
    response = base64.b64encode(b"\0alice\0secret").decode()
    link = plain(
        world, world.bridge.port,
        ("WEBIRC hunter2 Kiwi h 203.0.113.7\r\nCAP LS 302\r\nNICK alice\r\nUSER a 0 * :a\r\nCAP REQ :sasl\r\n"
         "AUTHENTICATE PLAIN\r\nAUTHENTICATE %s\r\n" % response).encode())
    link.expect("903")
    link.send("CAP END")
    link.expect("001")
    # Through a gateway nobody is local.
    stranger = plain(
        world, world.bridge.port, b"WEBIRC hunter2 Kiwi h 203.0.113.8\r\nNICK eve\r\nUSER e 0 * :e\r\n")
    stranger.expect("464")


@scenario
def nobody_is_a_gateway_uninvited(world):
    start(world)
    link = plain(world, world.bridge.port, b"WEBIRC hunter2 Kiwi h 203.0.113.7\r\n")
    assert "may not use WEBIRC" in link.expect("ERROR").params[-1]
    ann = world.irc("ann")
    ann.send("WEBIRC hunter2 Kiwi h 203.0.113.7")
    ann.expect("462")
    assert "hunter2" not in world.bridge.log()


# MARK: - Who speaks what


@scenario
def what_is_not_irc_is_known_by_its_first_bytes(world):
    start(world)
    port = world.bridge.port
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 64
    cases = (
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 400 "),
        ("HTTP", b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\nNICK a\r\nUSER a 0 * :a", b"HTTP/1.1 400 "),
        ("TLS", hello, b"\x15\x03\x01"),
        ("SMTP", b"EHLO mail.example\r\n", b"ERROR "),
        ("PROXY", b"PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n", b""),
    )
    for name, first, wanted in cases:
        received = answer(port, first)
        assert received.startswith(wanted) and len(received) >= len(wanted), (name, received)
    # However the bytes are cut.
    for name, first, _ in cases:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            before = len(world.bridge.log_entries("foreign-protocol"))
            for byte in first[:8]:
                link.sendall(bytes([byte]))
                link.getpeername()
            with contextlib.suppress(OSError):
                link.sendall(first[8:])
            wait_until(
                lambda: len(world.bridge.log_entries("foreign-protocol")) > before, "%s in pieces is known" % name)
    reasons = [entry["reason"] for entry in world.bridge.log_entries("foreign-protocol")]
    for name, _, _ in cases:
        assert sum(reason.startswith(name) or name in reason for reason in reasons) >= 2, (name, reasons)


@scenario
def mistakes_in_the_configuration_are_found_with_their_place(world):
    text = """[[listeners]]
bind = "ws://0.0.0.0:6680/irc"
orgins = ["self"]

[[listeners]]
bind = "ws://127.0.0.1:6681"
origins = ["chat.example.com", "https://a.example/x"]
trusted_proxies = ["10.0.0.1/8", "unix"]

[[listeners]]
bind = "irc://127.0.0.1:6682"
proxy_protocol = "v3"

[[listeners]]
bind = "irc://127.0.0.1:6683"
sts = "30d"

[identity]
webirc = [{ password = "x" }, { from = ["nowhere"], password = "y" }]

[[rooms]]
name = "lobby"
url = "ws://127.0.0.1:1/x"
"""
    directory = world.stack.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(directory, "bad.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(
        [peer.BINARY_PATH, "check", "--config", path], capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 78, (done.returncode, said)
    for part in (
        'bad.toml:3:1: unknown key "orgins" (did you mean "origins"?)', "bad.toml:2:8: ", "ws+insecure://0.0.0.0:6680",
        'bad.toml:7:12: "chat.example.com" is not an origin', "bad.toml:7:32: ", 'bad.toml:8:20: "10.0.0.1/8" is not',
        "bad.toml:12:18: ", "v1v2", "bad.toml:16:7: sts is said by", "bad.toml:19:11: this gateway may connect from",
        'bad.toml:19:41: "nowhere" is not',
    ):
        assert part in said, "%s\nis not in\n%s" % (part, said)
