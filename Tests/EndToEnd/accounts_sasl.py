"""Log-in with SCRAM-SHA-256 and client certificates, and registration of accounts, over sockets."""

import base64
import hashlib
import hmac
import os
import select
import shutil
import ssl
import subprocess
import tempfile

import accounts
import peer
from peer import IRC
from world import scenario


# --- SCRAM, as a client has it


class Scram:
    """The client's side of RFC 5802 with SHA-256, written from the RFC and not from the bridge."""

    def __init__(self, name, password, header="n,,"):
        self.password, self.header = password.encode(), header
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.bare = "n=%s,r=%s" % (name.replace("=", "=3D").replace(",", "=2C"), self.nonce)
        self.first = (header + self.bare).encode()

    def proof(self, challenge):
        challenge = challenge.decode()
        fields = dict(part.split("=", 1) for part in challenge.split(","))
        assert fields["r"].startswith(self.nonce) and len(fields["r"]) > len(self.nonce), challenge
        salted = hashlib.pbkdf2_hmac("sha256", self.password, base64.b64decode(fields["s"]), int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = "c=%s,r=%s" % (base64.b64encode(self.header.encode()).decode(), fields["r"])
        message = ",".join([self.bare, challenge, final]).encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
        self.expected = b"v=" + base64.b64encode(server)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
        return ("%s,p=%s" % (final, proof)).encode()


def respond(link, message):
    text = base64.b64encode(message).decode()
    for at in range(0, len(text), 400):
        link.send("AUTHENTICATE " + text[at : at + 400])
    if len(text) % 400 == 0:
        link.send("AUTHENTICATE +")


def challenge(link):
    text = ""
    while True:
        chunk = link.expect("AUTHENTICATE").params[0]
        text += "" if chunk == "+" else chunk
        if len(chunk) < 400:
            return base64.b64decode(text)


def begin(link, mechanism, nick="u"):
    link.nick = nick
    link.send("CAP LS 302", "NICK " + nick, "USER u 0 * :u", "CAP REQ sasl")
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    link.send("AUTHENTICATE " + mechanism)


def scram(link, name, password, nick="u", header="n,,"):
    """Goes as far as the answer to the proof."""
    begin(link, "SCRAM-SHA-256", nick)
    assert challenge(link) == b""
    side = Scram(name, password, header)
    respond(link, side.first)
    respond(link, side.proof(challenge(link)))
    return side


@scenario
def scram_logs_in_without_an_expensive_check(world):
    # So many that a check of the password takes a while; the client has that work now.
    accounts.start(world, accounts.account("alice", "secret", iterations=600_000))
    before = world.bridge.cpu_seconds()
    for number in range(3):
        link = accounts.client(world)
        side = scram(link, "alice", "secret", "a%d" % number, header=("n,,", "y,,", "n,a=alice,")[number])
        assert challenge(link) == side.expected, "the bridge does not know the password either"
        link.send("AUTHENTICATE +")
        link.expect("900", lambda line: line.params[2] == "alice")
        link.expect("903")
        link.send("CAP END")
        link.expect("001")
    took = world.bridge.cpu_seconds() - before
    assert took < 0.15, "three logins took the bridge %.2f s" % took
    assert "secret" not in world.bridge.log()
    return "%.0f ms of the bridge's time for three" % (took * 1000)


@scenario
def scram_refuses_wrong_passwords_and_unknown_names_alike(world):
    accounts.start(world, accounts.account("alice", "secret"))
    salts = []
    for name in ("alice", "nobody", "nobody"):
        link = accounts.client(world)
        begin(link, "SCRAM-SHA-256")
        challenge(link)
        side = Scram(name, "wrong")
        respond(link, side.first)
        heard = challenge(link)
        salts.append(heard.split(b",")[1:])
        respond(link, side.proof(heard))
        link.expect("904", lambda line: line.params[-1] == "SASL authentication failed")
        good = accounts.client(world)
        side = scram(good, "alice", "secret")
        challenge(good)
        good.send("AUTHENTICATE +")
        good.expect("903")
    assert salts[1] == salts[2], salts
    assert [len(part) for part in salts[0]] == [len(part) for part in salts[1]], salts


# --- Certificates


class SecureIRC(IRC):
    """A client over TLS, with a certificate of its own or none."""

    def __init__(self, port, certificate=None):
        super().__init__(port)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(*certificate)
        self.sock.settimeout(peer.PATIENCE)
        self.sock = context.wrap_socket(self.sock)

    def _read(self, seconds):
        if not self.sock.pending() and not select.select([self.sock], [], [], seconds)[0]:
            return b""
        self.sock.settimeout(peer.PATIENCE)
        try:
            data = self.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.closed = True
        return data


def make_certificate(folder, name):
    """(certificate, key, fingerprint as openssl writes it); signed by nobody but itself."""
    cert, key = (os.path.join(folder, name + end) for end in (".pem", ".key"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=" + name, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
    shown = subprocess.run(
        ["openssl", "x509", "-in", cert, "-noout", "-fingerprint", "-sha256"], check=True, capture_output=True,
        text=True, timeout=60)
    return cert, key, shown.stdout.strip().split("=", 1)[1]


def start_secure(world, folder, *tables):
    """A bridge with a listener with TLS beside the plain one, whose port is returned."""
    cert, key, _ = make_certificate(folder, "server")
    listener = '[[listeners]]\nbind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key)
    world.start(tables=listener + "\n".join(tables))
    entries = peer.wait_until(
        lambda: len(world.bridge.log_entries("listening")) > 1 and world.bridge.log_entries("listening"),
        lambda: "both listeners are open")
    return int(entries[1]["address"].rsplit(":")[-1])


def folder_of(world):
    folder = tempfile.mkdtemp(prefix="chatbridge-certificates-")
    world.stack.callback(shutil.rmtree, folder, True)
    return folder


def secure(world, port, certificate=None):
    link = SecureIRC(port, certificate)
    world.stack.callback(link.close)
    return link


@scenario
def a_certificate_logs_in_whoever_has_its_key(world):
    folder = folder_of(world)
    cert, key, fingerprint = make_certificate(folder, "alice")
    stranger = make_certificate(folder, "stranger")[:2]
    port = start_secure(world, folder, accounts.account("alice", "secret", 'certfp = ["%s"]' % fingerprint))
    digits = fingerprint.replace(":", "").lower()
    # Twice: the second time the client takes up the TLS session of the first, where it can.
    for number, response in enumerate(("+", base64.b64encode(b"alice").decode())):
        link = secure(world, port, (cert, key))
        link.nick = "a%d" % number
        link.send("CAP LS 302")
        link.expect("CAP", lambda line: "sasl=PLAIN,SCRAM-SHA-256,EXTERNAL" in line.params[-1].split())
        begin(link, "EXTERNAL", link.nick)
        link.expect("AUTHENTICATE")
        link.send("AUTHENTICATE " + response)
        link.expect("900", lambda line: line.params[2] == "alice")
        link.expect("903")
        link.send("CAP END")
        link.expect("001")
        nick = "a0"
        link.send("WHOIS " + nick)
        link.expect("671")
        link.expect("276", lambda line: line.params[-1].endswith(digits))
        link.expect("318")
    # Others see that it is secure, and not the certificate.
    ann = world.irc("ann")
    ann.send("WHOIS a0")
    ann.expect("671")
    ann.expect("318")
    assert not any(line.command == "276" for line in ann.lines)
    # Another certificate, and none.
    for certificate, offered in ((stranger, True), (None, False)):
        link = secure(world, port, certificate)
        link.send("CAP LS 302")
        link.expect("CAP", lambda line: line.params[2] != "*")
        listed = " ".join(line.params[-1] for line in link.lines)
        assert ("EXTERNAL" in listed) == offered, listed
        begin(link, "EXTERNAL")
        if offered:
            link.expect("AUTHENTICATE")
            link.send("AUTHENTICATE +")
        link.expect("904")


@scenario
def nobody_is_asked_for_a_certificate_that_no_account_has(world):
    folder = folder_of(world)
    certificate = make_certificate(folder, "alice")[:2]
    port = start_secure(world, folder, accounts.account("alice", "secret"))
    link = secure(world, port, certificate)
    link.send("CAP LS 302")
    link.expect("CAP", lambda line: "sasl=PLAIN,SCRAM-SHA-256" in line.params[-1].split())


# --- Accounts that people make

OPEN = '[identity]\nregistration = "on"\n'


def register(link, line):
    link.send("CAP REQ :draft/account-registration standard-replies sasl")
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    link.send(line)


@scenario
def an_account_that_was_made_outlasts_a_kill(world):
    folder = folder_of(world)
    world.start(directory=folder, tables=OPEN)
    link = accounts.client(world)
    link.nick = "linguini"
    link.send("CAP LS 302", "NICK linguini", "USER l 0 * :l")
    link.expect(
        "CAP", lambda line: "draft/account-registration=before-connect,custom-account-name" in line.params[-1].split())
    register(link, "REGISTER * * correct-horse")
    link.expect("REGISTER", lambda line: line.params[:2] == ["SUCCESS", "linguini"])
    link.expect("900")
    # Kept before it was told.
    world.bridge.process.kill()
    world.bridge.process.wait()
    world.start(directory=folder, tables=OPEN)
    link = accounts.client(world)
    side = scram(link, "linguini", "correct-horse", "chef")
    assert challenge(link) == side.expected
    link.send("AUTHENTICATE +")
    link.expect("903")
    again = accounts.client(world)
    again.send("NICK linguini")
    register(again, "REGISTER linguini * another-horse")
    again.expect("FAIL", lambda line: line.params[:3] == ["REGISTER", "ACCOUNT_EXISTS", "linguini"])
    other = world.irc("remy")
    # The second letter is Cyrillic.
    other.send("NICK lіnguini")
    other.expect("433")
    with open(os.path.join(folder, "state", "chatbridge.db"), "rb") as file:
        assert b"correct-horse" not in file.read()
    assert "correct-horse" not in world.bridge.log()


@scenario
def making_an_account_does_not_stop_the_relay(world):
    world.start(tables=OPEN)
    bob, remy = world.irc("bob"), world.person("Remy")
    links = []
    for number in range(8):
        link = accounts.client(world)
        link.send("NICK cook%d" % number)
        register(link, "REGISTER * * correct-horse")
        links.append(link)
    remy.say("meanwhile")
    bob.expect_text("meanwhile", patience=2)
    for link in links:
        link.expect("REGISTER", lambda line: line.params[0] == "SUCCESS")


@scenario
def without_a_store_nobody_makes_an_account(world):
    world.start(tables=OPEN + '[storage]\nurl = "memory:"\n')
    link = accounts.client(world)
    link.send("CAP LS 302")
    link.expect("CAP", lambda line: line.params[1] == "LS" and line.params[2] != "*")
    offered = " ".join(line.params[-1] for line in link.lines).split()
    assert not any(name.startswith(("sasl", "draft/account-registration")) for name in offered), offered
    assert world.bridge.log_entries("registration-without-store")
