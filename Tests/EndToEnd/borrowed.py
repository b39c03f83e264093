"""Resources of the bridge that must not be usable by others: its files, its credentials, its address."""

import base64
import contextlib
import http.client
import os
import re
import select
import socket
import ssl
import threading
import time

import accounts_sasl
import scripted
from backends import on
from bearer import show
from dialects import PNG
from media import PUBLIC, ask, basic, get, start, tables, upload
from peer import Relay, wait_until
from world import scenario

PNG_BYTES = base64.b64decode(PNG)


def links(text):
    return re.findall(r"\S*/media/\S*", text)


# MARK: - The address of whoever asks


def wrong_upload(setting, said=None):
    """(status, seconds) of a refused upload with these X-Forwarded-For."""
    connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=45)
    began = time.monotonic()
    try:
        connection.request("POST", "/media/upload", b"x", {
            "Host": "files.test", "Content-Disposition": "attachment", **({"X-Forwarded-For": said} if said else {}),
            **basic(password="wrong")})
        return connection.getresponse().status, time.monotonic() - began
    finally:
        connection.close()


def guessed_from(setting):
    return [entry["address"] for entry in setting.bridge.log_entries("wrong-password")]


@on("envelope")
def a_header_names_no_visitor_where_no_proxy_is_named(setting):
    """By default `X-Forwarded-For` counts from nobody, loopback and private networks included: guesses are slowed."""
    setting.start(more=tables(http=""))
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    waits = [wrong_upload(setting, said)[1] for said in ("198.51.100.1", "203.0.113.2, 10.0.0.1", "2001:db8::3")]
    assert guessed_from(setting) == ["behind 127.0.0.1"] * 3, guessed_from(setting)
    assert waits[2] > 0.9, "the third guess, each under another header, was answered after %.2f s" % waits[2]
    for _ in range(3):
        assert ask(setting, "GET", "/healthz", host="localhost", headers={"X-Forwarded-For": "198.51.100.9"}).status == 200


@on("envelope")
def only_the_last_word_of_a_named_proxy_counts(setting):
    """What the visitor wrote in front of it is the visitor's own claim."""
    setting.start(more=tables(http='trusted_proxies = ["127.0.0.1", "198.51.100.0/24"]'))
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    for said in ("203.0.113.7", "10.9.9.9, 203.0.113.8", "192.0.2.1, 203.0.113.9, 198.51.100.3"):
        assert wrong_upload(setting, said)[0] == 401
    assert guessed_from(setting) == ["203.0.113.7", "203.0.113.8", "203.0.113.9"], guessed_from(setting)


# MARK: - Files


def say_file(setting, address, text):
    """Somebody on the backend says that a file lies at this address."""
    if setting.wire.name == "typed":
        return setting.backend.do("say", "Mallory", text=text, attachments=[
            {"url": address, "name": "f.png", "mimeType": "image/png", "size": 5, "kind": "image"}])
    return setting.backend.do(
        "say", "Mallory", text=text, things=[{"href": address, "label": "f.png", "bytes": 5, "ct": "image/png"}])


@on("typed", "custom")
def addresses_of_the_bridges_own_are_not_made_by_frames(setting):
    """Links of kept files end; nobody on the backend gets a fresh one by naming the file in a frame, now, from history or after
    a restart."""
    start(setting)
    ann = setting.irc("ann", more=("draft/chathistory",))
    link = upload(setting, PNG_BYTES).headers["Location"]
    name = re.search(r"/media/d/lobby/[^/]+/([^/]+)/", link).group(1)
    assert get(setting, link).status == 200
    forms = ["media:" + name, "media://" + name, "MEDIA:" + name, "media:d/lobby/" + name, "media:lobby/" + name, link,
             "media:%s" % name.replace(".", "%2E")]

    def shown(client):
        return [text for text in client.texts("Mallory") if links(text)]

    def is_nothing_fresh(texts, when):
        for text in texts:
            for found in links(text):
                assert found == link or not found.startswith(PUBLIC), "%s: a fresh link for %r" % (when, text)

    for number, form in enumerate(forms):
        say_file(setting, form, "look %d" % number)
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    is_nothing_fresh(shown(ann), "live")
    ann.send("CHATHISTORY LATEST #lobby * 50")
    ann.barrier()
    is_nothing_fresh(shown(ann), "in a page")
    ann.say("#lobby", "kept")
    ann.expect_text("kept")
    ann.barrier()
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    start(setting)
    bob = setting.irc("bob", more=("draft/chathistory",))
    bob.send("CHATHISTORY LATEST #lobby * 50")
    bob.barrier()
    is_nothing_fresh(shown(bob), "after a restart")


@on("directus")
def files_of_rows_are_those_that_came_with_the_room(setting):
    """A row that names a file by its id alone, or one that the bridge has not got with a row of this room, opens none: the
    bridge's account may read more files than the row's author."""
    start(setting)
    ann = setting.irc("ann")
    secret = setting.backend.do(
        "upload", "Remy", filename="secret.png", mime="image/png", data_b64=PNG, text="for the attic", room="attic")["file"]
    row = {"id": 9001, "text": "look here", "room": "lobby", "date_created": "2026-11-23T06:00:00Z",
           "user_created": {"id": "11111111-2222-4333-8444-555555555555", "first_name": "Mallory", "last_name": None}}
    whole = {"id": secret, "filename_download": "secret.png", "type": "image/png", "filesize": "5"}
    subscription = setting.backend.state()["subscriptions"][0]["uid"]
    for number, (file, room) in enumerate(((secret, "lobby"), (whole, "attic"), (whole, None))):
        data = {**row, "id": 9001 + number, "text": "look here %d" % number, "file": file, "room": room}
        if room is None:
            del data["room"]
        setting.backend.control("raw", json={"type": "subscription", "event": "create", "uid": subscription, "data": [data]})
    setting.backend.say("Remy", "end")
    ann.expect_text("end")
    shown = [line.raw for line in ann.lines if links(line.raw) and "FILEHOST" not in line.raw]
    assert not shown, shown
    # As it should be, and as it is.
    setting.backend.do("upload", "Remy", filename="cat.png", mime="image/png", data_b64=PNG, text="cat")
    line = ann.expect("PRIVMSG", lambda line: links(line.params[-1]))
    assert get(setting, links(line.params[-1])[0]).body == PNG_BYTES


@on("envelope", "jwt-rooms")
def a_page_of_another_site_uploads_nothing(setting):
    """A browser that remembers name and password sends them with a simple POST of any page: that is refused before it acts. What
    a form cannot send, or the page's own site, goes on."""
    start(setting)

    def post(headers, body=b"from a form"):
        return ask(setting, "POST", "/media/upload", body, {**basic(), **headers})

    def files():
        folder = os.path.join(setting.directory, "state", "media")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    before = files()
    for origin in ("https://evil.example", "null", "http://files.test.evil.example", "http://localhost"):
        for kind in ("text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", None):
            answer = post({"Origin": origin, **({"Content-Type": kind} if kind else {})})
            assert answer.status in (400, 403, 415), "%r from %s: %d" % (kind, origin, answer.status)
            assert not answer.headers["Location"]
    assert files() == before and not setting.backend.requests("upload")
    # Neither do guesses of such a page count against whoever visits it.
    for _ in range(3):
        answer = ask(setting, "POST", "/media/upload", b"x", {
            **basic(password="wrong"), "Origin": "https://evil.example", "Content-Type": "text/plain"})
        assert answer.status in (400, 403, 415), answer.status
    assert not setting.bridge.log_entries("wrong-password")
    disposition = {"Content-Disposition": 'attachment; filename="a.txt"'}
    for headers in (disposition, {**disposition, "Origin": "https://gamja.example"}, {"Origin": PUBLIC, **disposition}):
        answer = post({"Content-Type": "text/plain", **headers})
        assert answer.status == 201, (headers, answer.status, answer.body)


# MARK: - Credentials


class Guarded(scripted.JWTRooms):
    """The wire of `jwt-rooms` over TLS that asks for a client's certificate, and remembers what came with each call."""

    def __init__(self, folder):
        super().__init__()
        self.seen, self.calling = [], threading.local()
        self.cert, self.key, _ = accounts_sasl.make_certificate(folder, "backend")
        self.client_cert, self.client_key, _ = accounts_sasl.make_certificate(folder, "bridge")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.cert, self.key)
        self.context.load_verify_locations(self.client_cert)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.context.num_tickets = 0

    def _serve(self, sock):
        with contextlib.suppress(OSError):
            sock = self.context.wrap_socket(sock, server_side=True)
            self.calling.by_certificate = sock.getpeercert(binary_form=True) is not None
            super()._serve(sock)

    def http(self, method, path, query, headers, body):
        self.seen.append((path, dict(headers), self.calling.by_certificate))
        return super().http(method, path, query, headers, body)

    def configuration(self, directory, room_extra):
        return (
            '[backends.main]\ndialect = "jwt-rooms"\nurl = "wss://127.0.0.1:%d/ws/chat/{room}"\n'
            'user = "liaison"\npassword = "%s"\n'
            'headers = { X-Bridge-Key = "key-of-the-bridge-77", Cookie = "session=bridge-session-77" }\n'
            'tls = { insecure = true, client_cert = "%s", client_key = "%s" }\n\n'
            '[[rooms]]\nname = "lobby"\nbackend = "main"\nupstream_room = "General"\n%s'
            % (self.port, scripted.PASSWORDS["liaison"], self.client_cert, self.client_key, room_extra))


@scenario
def a_clients_token_is_shown_alone(world):
    """The question whose a token is must not be answered for the bridge: no header, cookie or certificate goes with it."""
    folder = accounts_sasl.folder_of(world)
    with scripted.Stage(Guarded(folder)) as stage:
        stage.start(more='[identity]\nbearer = "main"\nrequire_login = "always"\n')
        token = stage.backend.issue("alice")["access_token"]
        link = show(stage, token, "alice")
        link.expect("900", lambda line: line.params[2] == "alice@main")
        asked = [seen for seen in stage.backend.seen if seen[1].get("authorization") == "Bearer " + token]
        assert len(asked) == 1 and asked[0][0] == "/api/auth/me", asked
        _, headers, by_certificate = asked[0]
        assert not by_certificate, "the bridge's certificate was shown with a client's token"
        extra = {name: value for name, value in headers.items() if "bridge-77" in value or "bridge-session" in value}
        assert not extra and "cookie" not in headers and "x-bridge-key" not in headers, extra
        stage.bridge.check_alive()


@scenario
def a_redirect_to_another_port_is_not_followed(world):
    """Another port of the host is another server: the token stays where it was meant to go."""
    other = Relay()
    world.stack.callback(other.stop)
    for status, scheme in ((301, "ws:"), (302, "http:"), (303, ""), (307, "ws:"), (308, "http:")):
        world.relay.answer_next((
            "HTTP/1.1 %d Moved\r\nLocation: %s//127.0.0.1:%d/lobby\r\nContent-Length: 0\r\n\r\n"
            % (status, scheme, other.port)).encode())
    world.start(room_extra='auth = { type = "bearer", token = "tok-of-the-bridge-31337" }\n', linked=False)
    # All five were answered, and then the right one.
    wait_until(lambda: len(world.relay.handshakes) >= 6 or other.handshakes, "the bridge tries again")
    assert not other.handshakes, "the other port was asked"
    world.relay.wait_for_bridge()
    world.relay.answer_next((
        "HTTP/1.1 307 Moved\r\nLocation: ws://127.0.0.1:%d/elsewhere\r\nContent-Length: 0\r\n\r\n" % world.relay.port).encode())
    world.relay.drop()
    world.relay.wait_for_bridge("elsewhere")


@scenario
def a_redirect_to_a_port_that_listens_silently(world):
    """Not even a connection is opened."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        world.relay.answer_next((
            "HTTP/1.1 302 Found\r\nLocation: //127.0.0.1:%d/lobby\r\nContent-Length: 0\r\n\r\n"
            % trap.getsockname()[1]).encode())
        world.start(linked=False)
        wait_until(
            lambda: len(world.relay.handshakes) >= 2 or select.select([trap], [], [], 0)[0], "the bridge tries again")
        assert not select.select([trap], [], [], 0)[0], "the bridge connected to the port that it was sent to"
