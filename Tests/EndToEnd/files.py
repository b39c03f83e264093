"""Files over HTTP under attack: slow readers, many requests at once, incomplete requests, ranges."""

import base64
import contextlib
import json
import os
import socket
import time
import urllib.request

import bearer
from accounts import account
from backends import PASSWORD, on
from dialects import PNG
from media import PUBLIC, ask, basic, get, safe, start, tables, upload
from peer import wait_until


class Wire:
    """A connection that says what it likes, and reads when it likes."""

    def __init__(self, setting, text, buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(15)
        self.socket.connect(("127.0.0.1", setting.http))
        self.socket.sendall(text)

    def read(self):
        """Everything until the other side closes."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while True:
                part = self.socket.recv(65536)
                if not part:
                    break
                got += part
        return got

    def close(self):
        self.socket.close()


def post(*fields):
    return ("POST /media/upload HTTP/1.1\r\nHost: files.test\r\n" + "".join(f + "\r\n" for f in fields) + "\r\n").encode()


def credentials(**options):
    return "Authorization: " + basic(**options)["Authorization"]


# MARK: - Who may


@on("jwt-rooms")
def a_login_is_asked_for_before_the_body(setting):
    start(setting, 'max_upload = "64KiB"\n')
    began = time.monotonic()
    for fields, body in (
        (("Content-Length: 60000", "Expect: 100-continue"), b""),
        (("Content-Length: 60000",), b""),
        (("Content-Length: 60000",), b"some"),
        (("Transfer-Encoding: chunked",), b"5\r\nhello\r\n"),
        (("Transfer-Encoding: chunked", "Expect: 100-continue"), b""),
        ((credentials(password="wrong"), "Content-Length: 60000", "Expect: 100-continue"), b""),
    ):
        answer = Wire(setting, post(*fields) + body).read()
        assert answer.startswith(b"HTTP/1.1 401 "), (fields, answer)
        assert b'\r\nWWW-Authenticate: Basic realm="chatbridge", charset="UTF-8"\r\n' in answer, answer
        assert b"100 Continue" not in answer and b"\r\nAccess-Control-Allow-Origin: *\r\n" in answer, answer
    assert time.monotonic() - began < 8, "nobody waited for a body"
    # A right login is told to go on, and only then.
    wire = Wire(setting, post(credentials(), "Content-Length: 3", "Expect: 100-continue", "Connection: close"))
    assert wire.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.socket.sendall(b"abc")
    assert wire.read().startswith(b"HTTP/1.1 201 ")


@on("jwt-rooms")
def what_is_too_large_is_refused_before_it_has_come(setting):
    start(setting, 'max_upload = "64KiB"\n')
    for fields, body in (
        (("Content-Length: 65537",), b""),
        (("Content-Length: 65537", "Expect: 100-continue"), b""),
        (("Content-Length: 999999999999999",), b""),
        (("Transfer-Encoding: chunked",), b"10001\r\n" + b"x" * 65537),
        (("Transfer-Encoding: chunked",), b"8000\r\n%s\r\n" % (b"x" * 32768) * 3),
    ):
        answer = Wire(setting, post(credentials(), *fields) + body).read()
        assert answer.startswith(b"HTTP/1.1 413 ") or b"\r\n\r\nHTTP/1.1 413 " in answer, (fields, answer)
        # Pages of web clients are told as well.
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in answer, answer
    assert upload(setting, b"x" * 65536).status == 201


@on("jwt-rooms")
def another_sites_page_uploads_nothing(setting):
    """With what a browser remembers: a form's request has the password, and no header of its own."""
    start(setting)
    evil = "Origin: https://evil.example"
    for fields, status in (
        ((evil,), b"403"),
        ((evil, "Content-Type: text/plain"), b"403"),
        ((evil, "Content-Type: application/x-www-form-urlencoded"), b"403"),
        (("Origin: null", "Content-Type: text/plain"), b"403"),
        ((evil, "Content-Type: image/png"), b"201"),
        ((evil, "Content-Disposition: attachment"), b"201"),
        (("Origin: %s" % PUBLIC, "Content-Type: text/plain"), b"201"),
        (("Content-Type: text/plain",), b"201"),
    ):
        whole = post(credentials(), "Content-Length: 3", "Connection: close", *fields) + b"abc"
        answer = Wire(setting, whole).read()
        assert answer.startswith(b"HTTP/1.1 " + status), (fields, answer)


@on("directus")
def who_has_a_login_of_their_own_uploads_with_it(setting):
    own = 'upstream = { lobby = { type = "login", user = "chef@example.com", password = "own-pw" } }'
    setting.serve(seed=[("chef@example.com", "own-pw")])
    more = tables().replace('name = "chef"\n', 'name = "chef"\n%s\n' % own, 1) + account("cook", "secret")
    setting.start(more=more)
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    request = urllib.request.Request(
        setting.backend.origin + "/auth/login",
        json.dumps({"email": "liaison@example.com", "password": PASSWORD, "mode": "json"}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=15) as answer:
        token = json.load(answer)["data"]["access_token"]

    def read(path):
        request = urllib.request.Request(setting.backend.origin + path, headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request, timeout=15) as answer:
            return json.load(answer)["data"]

    owners = []
    for name in ("chef", "cook"):
        answer = upload(setting, base64.b64decode(PNG), credentials=basic(name))
        assert answer.status == 201, (answer.status, answer.body)
        link = answer.headers["Location"]
        assert get(setting, link).body == base64.b64decode(PNG)
        owners.append(read("/files/" + link.split("/assets/")[1].split("/")[0])["uploaded_by"])
    me = read("/users/me")["id"]
    assert owners[0] != me and owners[1] == me, (owners, me)


@on("jwt-rooms", "directus")
def an_upload_before_a_restart_is_the_file_after_it(setting):
    start(setting)
    link = upload(setting, base64.b64decode(PNG)).headers["Location"]
    setting.bridge.stop()
    start(setting)
    ann, bob = setting.irc("ann"), setting.irc("bob")
    ann.say("#lobby", link)
    bob.expect_text(link)
    frame = setting.backend.expect("the message", kind="message")
    assert link not in frame["text"], frame
    path = os.path.join(setting.directory, "state", "uploads.jsonl")
    assert os.stat(path).st_mode & 0o777 == 0o600


# MARK: - Parts


@on("directus")
def a_part_of_a_file_is_what_it_says(setting):
    start(setting)
    data = base64.b64decode(PNG)
    link = upload(setting, data).headers["Location"]
    # The backend has no such wish: the whole.
    suffix = get(setting, link, Range="bytes=-5")
    assert (suffix.status, suffix.body) in ((200, data), (206, data[-5:])), suffix.status
    several = safe(get(setting, link, Range="bytes=0-1,5-6"))
    assert several.status == 200 and several.body == data and "Content-Range" not in several.headers
    head = get(setting, link, "HEAD", Range="bytes=0-1")
    assert head.status == 200 and head.headers["Content-Length"] == str(len(data)), head.headers
    # The backend knows no conditions: a part that another file has is nothing to ask for.
    for wish in ("bytes=10-19", "bytes=999999-"):
        other = get(setting, link, Range=wish, **{"If-Range": '"as it was before"'})
        assert other.status == 200 and other.body == data, (wish, other.status)
    beyond = get(setting, link, Range="bytes=999999-")
    assert beyond.status == 416 and beyond.headers["Content-Range"] == "bytes */%d" % len(data), beyond.headers


@on("envelope")
def a_part_of_a_kept_file_is_what_it_says(setting):
    start(setting)
    ann = setting.irc("ann")
    data = base64.b64decode(PNG)
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=PNG)
    link = ann.expect("PRIVMSG", lambda line: "/media/d/lobby/" in line.params[-1]).params[-1].split()[-1]
    wait_until(lambda: get(setting, link).status == 200, "the file is kept")
    tag = get(setting, link).headers["ETag"]
    for wish, status, body, where in (
        ("bytes=10-19", 206, data[10:20], "10-19"), ("bytes=-5", 206, data[-5:], "%d-%d" % (len(data) - 5, len(data) - 1)),
        ("bytes=5-", 206, data[5:], "5-%d" % (len(data) - 1)), ("bytes=0-1,3-4", 200, data, None),
        ("bytes=9999999-", 416, None, "*"), ("lines=1-2", 200, data, None),
    ):
        part = safe(get(setting, link, Range=wish))
        assert part.status == status, (wish, part.status)
        assert body is None or part.body == body, wish
        assert part.headers["Content-Range"] == (where and "bytes %s/%d" % (where, len(data))), (wish, part.headers)
    assert get(setting, link, **{"Range": "bytes=0-1", "If-Range": tag}).status == 206
    assert get(setting, link, **{"Range": "bytes=0-1", "If-Range": '"other"'}).body == data
    unchanged = get(setting, link, **{"If-None-Match": tag})
    assert unchanged.status == 304 and unchanged.body == b""


@on("envelope")
def a_kept_file_of_many_blocks_comes_whole(setting):
    start(setting)
    ann = setting.irc("ann")
    data = os.urandom(1_000_003)
    setting.backend.do("upload", "Remy", mime="video/mp4", data_b64=base64.b64encode(data).decode())
    link = ann.expect("PRIVMSG", lambda line: "/media/d/lobby/" in line.params[-1]).params[-1].split()[-1]
    wait_until(lambda: get(setting, link, "HEAD").status == 200, "the file is kept")
    assert get(setting, link, "HEAD").headers["Content-Length"] == str(len(data))
    assert get(setting, link).body == data
    assert get(setting, link, Range="bytes=262143-262144").body == data[262143:262145]
    assert get(setting, link, Range="bytes=200000-").body == data[200000:]
    # Whoever leaves in the middle leaves the place.
    for _ in range(12):
        wire = Wire(setting, ("GET %s HTTP/1.1\r\nHost: files.test\r\n\r\n" % link[len(PUBLIC) :]).encode(), buffer=4096)
        assert wire.socket.recv(12) == b"HTTP/1.1 200"
        wire.close()
    assert get(setting, link).body == data


# MARK: - Many


@on("directus")
def one_visitor_cannot_take_every_place(setting):
    start(setting)
    data = os.urandom(9 * 1024 * 1024)
    link = upload(setting, data, name="film.mp4", mime="video/mp4").headers["Location"]
    path = link[len(PUBLIC) :]

    def request(visitor):
        return ("GET %s HTTP/1.1\r\nHost: files.test\r\nX-Forwarded-For: 192.0.2.1, %s\r\n\r\n" % (path, visitor)).encode()

    def stare(visitor):
        wire = Wire(setting, request(visitor), buffer=4096)
        assert wire.socket.recv(12) == b"HTTP/1.1 200"
        return wire

    def status(visitor):
        return ask(setting, "GET", path, headers={"X-Forwarded-For": visitor}).status

    wires = [stare("2001:db8:1:2::%x" % n) for n in range(8)]
    assert status("2001:db8:1:2::99") == 429, "all of the network's places are taken"
    other = ask(setting, "GET", path, headers={"X-Forwarded-For": "198.51.100.7"})
    assert other.status == 200 and other.body == data, "others read at full speed"
    for network in range(3, 6):
        wires += [stare("2001:db8:1:%x::%x" % (network, n)) for n in range(8)]
    # All 32 are taken by people who read nothing: whoever has done so for longest makes room.
    wait_until(lambda: status("198.51.100.7") == 200, "a place")
    assert ask(setting, "GET", "/healthz", host="localhost").status == 200
    for wire in wires:
        wire.close()
    wait_until(lambda: status("2001:db8:1:2::99") == 200, "the places of those who left")


@on("envelope")
def two_uploads_of_one_account_and_four_in_all(setting):
    start(setting, more=account("cook", "secret") + account("maid", "secret"))
    data = base64.b64decode(PNG)

    def begin(name):
        """One of which the body does not come."""
        wire = Wire(setting, post(credentials(name=name), "Content-Length: 3", "Expect: 100-continue", "Connection: close"))
        assert wire.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        return wire

    def status(name):
        return upload(setting, data, credentials=basic(name)).status

    held = [begin("chef"), begin("chef")]
    assert (status("chef"), status("cook")) == (503, 201)
    held += [begin("cook"), begin("cook")]
    refused = upload(setting, data, credentials=basic("maid"))
    assert refused.status == 503 and refused.headers["Retry-After"], refused.status
    # Whoever ends or leaves makes room.
    held[0].socket.sendall(b"abc")
    assert held[0].read().startswith(b"HTTP/1.1 201 ")
    assert status("maid") == 201
    for wire in held[1:]:
        wire.close()
    wait_until(lambda: status("cook") == 201, "the places of those who left")


@on("envelope")
def tiny_files_take_what_the_disk_says(setting):
    start(setting, 'max_bytes = "1MiB"\n')
    ann = setting.irc("ann")
    for number in range(300):
        setting.backend.do(
            "upload", "Remy", mime="image/png", data_b64=base64.b64encode(b"%d" % number).decode())
    ann.expect(
        "PRIVMSG", lambda line: "/media/d/" in line.params[-1] and "299" not in line.params[-1] and "3 B" in line.params[-1])
    folder = os.path.join(setting.directory, "state", "media")
    setting.backend.do("upload", "Remy", mime="video/mp4", data_b64=base64.b64encode(b"last").decode())
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=base64.b64encode(b"last").decode())
    links = [
        ann.expect("PRIVMSG", lambda line: "4 B" in line.params[-1]).params[-1].split()[-1] for _ in range(2)]
    wait_until(lambda: get(setting, links[1]).status == 200, "the last is kept")
    names = os.listdir(folder)
    assert len(names) <= 256, len(names)
    used = sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in names)
    assert used <= 1024 * 1024, used
    # The same contents under two types are one file.
    first, second = (get(setting, link) for link in links)
    assert first.body == second.body == b"last" and first.headers["Content-Type"] == "video/mp4"
    assert sum(name.split(".")[0] in links[0] for name in names) == 1


@on("jwt-rooms", "directus")
def a_token_of_the_backend_uploads(setting):
    bearer.serve(setting, more=tables())
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    token = bearer.token_of(setting)
    answer = upload(setting, base64.b64decode(PNG), credentials={"Authorization": "Bearer " + token})
    assert answer.status == 201, (answer.status, answer.body)
    link = answer.headers["Location"]
    col = bearer.show(setting, token)
    col.expect("903")
    col.send("CAP END")
    col.expect("001")
    col.join("#lobby")
    col.say("#lobby", link)
    frame = setting.backend.expect("the message", kind="message")
    assert link not in frame["text"], frame
    refused = upload(setting, b"x", credentials={"Authorization": "Bearer " + token[:-4] + "aaaa"})
    assert refused.status == 401, refused.status
    asked = refused.headers.get_all("WWW-Authenticate")
    assert asked == [
        'Basic realm="chatbridge", charset="UTF-8"', 'Bearer realm="chatbridge", error="invalid_token"'], asked
    assert upload(setting, b"x", credentials=basic()).status == 201, "a password does as well"
    assert token not in setting.bridge.log()
