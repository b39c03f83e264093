"""Requests to the hooks that no tool would send: forged, replayed, too large, too many, in the wrong place."""

import http.client
import json
import re
import select
import socket
import time

from fulldisk import empty_disk, fill_disk
from marks import slow
from mirrors import FORMS, SECRETS, SERVED, TOOLS, new_id, on_tools
from mirrors_in import name_in
from peer import PATIENCE, wait_until

STAMPED = ("slack", "json")
REFUSED = (401, 403)


def quiet(m, tool, *texts):
    """Nothing of these was said anywhere, and the hook works."""
    ann = m.irc("witness")
    m.tool_says(tool, name_in(tool), "still here")
    ann.expect_text("still here")
    m.backend.expect("the message", kind="message", text="still here")
    said = [text for _, text in m.upstream()]
    assert not [text for text in texts if any(text in one for one in said)], said
    m.bridge.check_alive()


@on_tools(*TOOLS)
def a_wrong_secret(m, tool):
    """Each is refused; the log says so in few lines, and never has the secret."""
    m.open(m.mirror(tool))
    wrong = "d3Jvbmcgc2VjcmV0IG9mIHRoZSB0b29s" if tool == "teams" else SECRETS[tool][:-1] + "X"
    for number in range(20):
        answer = m.post(tool, FORMS[tool].message(wrong, new_id(tool), "ada", "forged %d" % number))
        assert answer.status in REFUSED + (429,) and SECRETS[tool].encode() not in answer.body, answer
    quiet(m, tool, "forged")
    logged = m.logged_of()
    assert 1 <= len(logged) <= 20, logged
    assert SECRETS[tool] not in m.bridge.log() and wrong not in m.bridge.log()


@on_tools(*TOOLS)
def no_proof_at_all(m, tool):
    m.open(m.mirror(tool))
    headers, body = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "forged")
    bare = {"Content-Type": headers["Content-Type"]}
    if tool in ("mattermost", "rocketchat"):
        # The proof is within the body.
        body = body.replace(SECRETS[tool].encode(), b"")
    assert m.ask("POST", "/hooks/" + tool, body, bare).status in REFUSED
    for proof in ("", "Bearer ", "Bearer", "HMAC ", "HMAC !!!", "Basic Og==", "bearer\t" + "x" * 5000):
        answer = m.ask("POST", "/hooks/" + tool, body, {**bare, "Authorization": proof})
        assert answer.status in REFUSED + (400, 431), (proof, answer)
    quiet(m, tool, "forged")


@on_tools("slack", "teams", "json")
def a_proof_of_another_body(m, tool):
    m.open(m.mirror(tool))
    headers, _ = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "good")
    _, body = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "forged")
    assert m.post(tool, (headers, body)).status in REFUSED
    name = {"slack": "X-Slack-Signature", "teams": "Authorization", "json": "Chatbridge-Signature"}[tool]
    headers, body = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "forged too")
    for changed in (
        headers[name][:-2], headers[name] + "00", headers[name].split("=")[0], headers[name].replace("v1=", "v9=").replace(
            "v0=", "v9=").replace("HMAC", "HMAD"), "é" * 8,
    ):
        answer = m.post(tool, ({**headers, name: changed.encode("utf-8").decode("latin-1")}, body))
        assert answer.status in REFUSED + (400,), (changed, answer)
    quiet(m, tool, "forged")


@on_tools(*STAMPED)
def a_stale_time_and_one_of_the_future(m, tool):
    m.open(m.mirror(tool))
    for off in (-301 - 5, 301 + 5, -86400, 10**10):
        sent = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "stale", at=time.time() + off)
        assert m.post(tool, sent).status in REFUSED, off
    headers, body = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "stale")
    name = "X-Slack-Request-Timestamp" if tool == "slack" else "Chatbridge-Timestamp"
    for stamp in ("", "soon", "-1", "9" * 400, "1e9", "0x10", headers[name] + ".0"):
        answer = m.post(tool, ({**headers, name: stamp}, body))
        assert answer.status in REFUSED + (400,), (stamp, answer)
    ann = m.irc("ann")
    for off in (-240, 240):
        answer = m.post(tool, FORMS[tool].message(SECRETS[tool], new_id(tool), name_in(tool), "in time", at=time.time() + off))
        assert answer.status == 200, (off, answer)
        ann.expect_text("in time")
    quiet(m, tool, "stale")


@on_tools(*TOOLS)
def a_replayed_post(m, tool):
    """The same again is answered with 200, as to a tool that missed the answer, and said once; also by the next process."""
    m.open(m.mirror(tool))
    ann, id = m.irc("ann"), new_id(tool)
    sent = FORMS[tool].message(SECRETS[tool], id, name_in(tool), "once")
    for _ in range(5):
        assert m.post(tool, sent).status == 200
    # With a signature of now, as a tool's own retry has it.
    assert m.post(tool, FORMS[tool].message(
        SECRETS[tool], id, name_in(tool), "once", at=time.time() + 2)).status == 200
    m.tool_says(tool, name_in(tool), "end")
    ann.expect_text("end")
    assert ann.texts() == ["once", "end"], ann.texts()
    m.kill()
    m.open(m.mirror(tool))
    ann = m.irc("bob")
    assert m.post(tool, sent).status == 200
    m.tool_says(tool, name_in(tool), "end of it")
    m.backend.expect("the message", kind="message", text="end of it")
    assert [text for _, text in m.upstream()] == ["once", "end", "end of it"], m.upstream()


@on_tools("slack")
def retries_of_the_tool(m, tool):
    m.open(m.mirror(tool))
    ann, id = m.irc("ann"), new_id(tool)
    for retry in (None, 1, 2, 3):
        assert m.post(tool, FORMS[tool].message(SECRETS[tool], id, name_in(tool), "once", retry=retry)).status == 200
    m.tool_says(tool, name_in(tool), "end")
    ann.expect_text("end")
    assert ann.texts() == ["once", "end"], ann.texts()


@on_tools("json")
def one_id_twice_in_one_body(m, tool):
    m.open(m.mirror(tool))
    ann, id = m.irc("ann"), new_id(tool)
    one = json.loads(FORMS[tool].message("x", id, "ada", "once")[1])
    assert m.post(tool, FORMS[tool].many(SECRETS[tool], [one, one, {**one, "text": "twice"}])).status in (200, 400)
    m.tool_says(tool, "ada", "end")
    ann.expect_text("end")
    assert ann.texts().count("once") <= 1 and "twice" not in ann.texts(), ann.texts()


# MARK: - Size and rate


@on_tools(*TOOLS)
def a_mebibyte(m, tool):
    m.open(m.mirror(tool))
    answer = m.post(tool, FORMS[tool].message(SECRETS[tool], new_id(tool), name_in(tool), "x" * (1 << 20)))
    assert answer.status in (400, 413), answer
    quiet(m, tool, "xxxx")


@on_tools("json")
def endless_bodies(m, tool):
    """Refused as soon as the length is known, or has been exceeded, and not when the end has come."""
    m.open(m.mirror(tool))
    before = m.bridge.rss_kib()[0]
    for length in (b"Content-Length: 99999999999", b"Content-Length: 99999999999999999999999", b"Transfer-Encoding: chunked"):
        with socket.create_connection(("127.0.0.1", m.http_port()), PATIENCE) as sock:
            sock.sendall(b"POST /hooks/json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n" % length)
            got = b""
            try:
                for _ in range(40):
                    sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            except OSError:
                pass
            try:
                got = sock.recv(4096)
            except OSError:
                pass
            assert not got or got.split(b" ")[1] in (b"400", b"413", b"401"), got
    quiet(m, tool)
    grown = m.bridge.rss_kib()[0] - before
    assert grown < 32 * 1024, "%d KiB" % grown


@on_tools("json")
def a_body_that_stops_half_way(m, tool):
    """Neither it nor many of them keep others from the hook."""
    m.open(m.mirror(tool))
    halves = []
    try:
        for _ in range(20):
            sock = socket.create_connection(("127.0.0.1", m.http_port()), PATIENCE)
            sock.sendall(b"POST /hooks/json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
            halves.append(sock)
        quiet(m, tool)
    finally:
        for sock in halves:
            sock.close()


def flood(m, tool, secret, count=4000):
    """The status of each of so many posts, sent without waiting for answers; and the Retry-After of the first 429.

    After the end of a connection those without an answer go again: they are the same posts.
    """
    made = []
    for number in range(count):
        headers, body = FORMS[tool].message(secret, new_id(tool), name_in(tool), "flood %d." % number)
        head = "POST /hooks/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % (tool, len(body))
        made.append((head + "".join("%s: %s\r\n" % pair for pair in headers.items()) + "\r\n").encode() + body)
    statuses, wait, failures = [], None, 0
    while len(statuses) < count and failures < 100:
        before = len(statuses)
        with socket.create_connection(("127.0.0.1", m.http_port()), PATIENCE) as sock:
            sock.setblocking(False)
            rest, got = memoryview(b"".join(made[before:])), b""
            end = time.monotonic() + PATIENCE
            while len(statuses) < count and time.monotonic() < end:
                readable, writable, _ = select.select([sock], [sock] if rest else [], [], 0.5)
                try:
                    if writable:
                        rest = rest[sock.send(rest[: 1 << 16]) :]
                    data = sock.recv(1 << 16) if readable else None
                except OSError:
                    break
                if data == b"":
                    break
                got += data or b""
                heads = got.split(b"HTTP/1.1 ")
                # The last one may be incomplete.
                for head in heads[1:-1] if b"\r\n\r\n" not in heads[-1] else heads[1:]:
                    statuses.append(int(head[:3]))
                    end = time.monotonic() + PATIENCE
                    found = re.search(rb"(?i)retry-after: *(\d+)", head)
                    if statuses[-1] == 429 and wait is None:
                        assert found, head
                        wait = int(found.group(1))
                got = b"" if b"\r\n\r\n" in heads[-1] else b"HTTP/1.1 " + heads[-1] if len(heads) > 1 else heads[-1]
        failures = failures + 1 if len(statuses) == before else 0
    return statuses, wait


@slow("as many posts as it takes")
@on_tools(*TOOLS)
def too_many(m, tool):
    """429 says when to come again. What was answered with 200 is said, in order, and nothing else is."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    statuses, wait = flood(m, tool, SECRETS[tool])
    assert set(statuses) == {200, 429}, set(statuses)
    assert 1 <= wait <= 60, wait
    again = time.monotonic() + wait + 1

    def late():
        ann.drain()
        return time.monotonic() > again

    wait_until(late, "the time has passed", wait + 5)
    m.tool_says(tool, name_in(tool), "after the flood")
    ann.expect_text("after the flood", patience=120)
    said = [int(text[6:-1]) for text in ann.texts(name_in(tool) + "/team") if text.startswith("flood")]
    taken = [number for number, status in enumerate(statuses) if status == 200]
    assert said == taken, "%d said, %d taken" % (len(said), len(taken))
    return "%d of %d taken, the first 429 was number %d" % (len(taken), len(statuses), statuses.index(429))


@slow("as many posts as it takes")
@on_tools("json", "slack")
def too_many_forged_ones_cost_the_tool_nothing(m, tool):
    """Whoever has no secret cannot use up the limit of the one that has it; and the log stays short."""
    m.open(m.mirror(tool))
    statuses, _ = flood(m, tool, "wrong", 2000)
    assert statuses and set(statuses) <= {401, 403, 429}, set(statuses)
    quiet(m, tool, "flood")
    assert len(m.logged_of()) <= 100, len(m.logged_of())


# MARK: - Other requests


@on_tools("json")
def other_methods_and_paths(m, tool):
    m.open(m.mirror(tool))
    sent = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "misplaced")
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = m.ask(method, "/hooks/json", sent[1] if method not in ("GET", "HEAD") else None, sent[0])
        assert answer.status in (404, 405, 501), (method, answer)
        if answer.status == 405:
            assert answer.headers["Allow"] == "POST", answer.headers
    for path in ("/hooks", "/hooks/", "/hooks/jso", "/hooks/json/", "/hooks/json/x", "/hooks/../hooks/json", "//hooks/json",
                 "/HOOKS/json", "/", "/healthz", "/metrics", "/status", "/hooks/json%00"):
        answer = m.post(tool, sent, path=path)
        assert answer.status in (400, 401, 404, 405, 501), (path, answer)
    # A query says nothing.
    sent = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "with a query")
    assert m.post(tool, sent, "/hooks/json?a=b").status in (200, 404)
    quiet(m, tool, "misplaced")


@on_tools("json")
def no_hooks_where_they_are_not_served(m, tool):
    m.open(m.mirror(tool), http=SERVED + SERVED.replace(', "hooks"', ""))
    entries = m.bridge.log_entries("listening-http")
    ports = [int(entry["address"].rsplit(":", 1)[-1]) for entry in entries]
    statuses = []
    for port in ports:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        headers, body = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "here?")
        connection.request("POST", "/hooks/json", body, headers)
        statuses.append(connection.getresponse().status)
        connection.close()
    assert sorted(statuses) == [200, 404], statuses


def hostile_bodies(tool):
    """(what it is, body): none of them is a message."""
    yield "nothing", b""
    yield "no JSON", b"{"
    yield "no UTF-8", b'{"text":"\xff\xfe"}'
    yield "no object", b'"text"'
    yield "null", b"null"
    yield "a number", b"1e999"
    yield "depth", b"[" * 100000
    yield "depth of objects", b'{"a":' * 50000
    yield "closed depth", b"[" * 50000 + b"]" * 50000
    yield "a long number", b'{"text":' + b"9" * 100000 + b"}"
    yield "a long escape", b'{"text":"' + b"\\u0000" * 10000 + b'"}'
    yield "half a surrogate", b'{"text":"\\ud800","id":"x","kind":"message","nick":"ada","room":"lobby"}'
    yield "a byte order mark", b"\xef\xbb\xbf{}"
    yield "wrong types", json.dumps({
        "text": [], "user_name": {}, "id": 7, "kind": None, "event": "x", "type": [], "d": 5, "from": "x", "messages": {"a": 1},
        "token": SECRETS.get(tool)}).encode()
    yield "empty objects", json.dumps({
        "messages": [{}] * 1000, "event": {}, "type": "event_callback", "d": {}, "t": "MESSAGE_CREATE", "from": {},
        "token": SECRETS.get(tool)}).encode()
    yield "long keys", json.dumps({"k" * 100000: 1}).encode()
    yield "many keys", json.dumps({str(n): n for n in range(20000)}).encode()


@on_tools(*TOOLS)
def hostile_bodies_with_a_proof(m, tool):
    """The secret may have leaked, or the tool may have a defect: each is answered, none is said, and the relay goes on."""
    m.open(m.mirror(tool))
    form = FORMS[tool]
    for what, body in hostile_bodies(tool):
        if form.SIGNED:
            sent = form.signed(SECRETS[tool], body)
        else:
            sent = ({"Content-Type": "application/json", "Authorization": "Bearer " + SECRETS[tool]}, body)
        answer = m.post(tool, sent)
        assert answer.status in (200, 400, 401, 403, 413, 422), (what, answer)
    for kind in ("text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x", ""):
        headers, body = form.message(SECRETS[tool], new_id(tool), "ada", "of another type")
        answer = m.post(tool, ({**headers, "Content-Type": kind}, body))
        assert answer.status in (200, 400, 401, 403, 415), (kind, answer)
    quiet(m, tool)


@on_tools("json")
def a_full_disk_is_answered_with_503(m, tool):
    """What cannot be stored is not taken: the tool has to send it again, and does."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    m.tool_says(tool, "ada", "n 0")
    ann.expect_text("n 0")
    fill_disk(m.bridge.process.pid)
    number, refused = 0, None
    while refused is None:
        number += 1
        assert number < 2000, "2000 messages were taken on a disk that is full"
        sent = FORMS[tool].message(SECRETS[tool], new_id(tool), "ada", "n %d %s" % (number, "x" * 300))
        answer = m.post(tool, sent)
        if answer.status != 200:
            refused = answer
    assert refused.status == 503, refused
    empty_disk(m.bridge.process.pid)
    wait_until(lambda: m.post(tool, sent).status == 200, "it is taken when there is space", 60)
    m.tool_says(tool, "ada", "n %d" % (number + 1))
    m.backend.expect("the last", kind="message", text="n %d" % (number + 1), patience=30)
    got = [int(text.split()[1]) for _, text in m.upstream()]
    assert got == list(range(number + 2)), got
