#!/usr/bin/env python3
"""Tests of the stand-ins: what each tool takes and refuses, how it shows text, and each fault.

    $(scripts/test-environment) Tests/Mirrors/test_tools.py
"""

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)
import tool_rendering  # noqa: E402
from tool_outgoing import FORMS, PlainJSON, iso  # noqa: E402
from tool_base import Request  # noqa: E402
from tool_services import TOOLS  # noqa: E402

JSON = {"content-type": "application/json"}


def ask(tool, body, method="POST", path=None, headers=JSON, query=None):
    """The tool's answer to one request, without sockets."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    parts = urllib.parse.urlsplit(path or tool.url_suffix())
    query = dict(urllib.parse.parse_qsl(parts.query)) if query is None else query
    return asyncio.run(tool.take(Request(method, parts.path, query, dict(headers), body)))


def card(*texts):
    return {"type": "message", "attachments": [{
        "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": {
            "type": "AdaptiveCard", "version": "1.4", "body": [{"type": "TextBlock", "text": text} for text in texts]}}]}


def plain(*messages):
    return {"messages": [
        {"id": "m%d" % n, "kind": "message", "room": "lobby", "nick": "ann", "at": iso(), "origin": ["a1b2c3"], **message}
        for n, message in enumerate(messages)]}


def signed(tool, body, key="k1", at=None):
    headers, body = PlainJSON.signed(tool.secret, json.dumps(body).encode(), at)
    return {**{name.lower(): value for name, value in headers.items()}, "idempotency-key": key}, body


# Each: the tool, the body, the status, and a word of the answer.
REFUSED = [
    ("slack", b"{", 400, "invalid_payload"), ("slack", {}, 400, "no_text"), ("slack", {"text": 7}, 400, "invalid_payload"),
    ("slack", {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}]}, 400, "invalid_blocks"),
    ("mattermost", b"{", 400, "parse.app_error"), ("mattermost", {}, 400, "text.app_error"),
    ("rocketchat", b"{", 400, "Invalid JSON"), ("rocketchat", {"text": "x" * 5001}, 400, "size-exceeded"),
    ("rocketchat", {"text": "x", "channel": "#other"}, 400, "overriding"), ("rocketchat", {"alias": "ann"}, 400, "unknown"),
    ("discord", b"{", 400, "50109"), ("discord", {}, 400, "50006"), ("discord", {"content": " "}, 400, "50006"),
    ("discord", {"content": "x" * 2001}, 400, "BASE_TYPE_MAX_LENGTH"),
    ("discord", {"content": "x", "username": "y" * 81}, 400, "BASE_TYPE_BAD_LENGTH"),
    ("discord", {"content": "x", "username": "Discordian"}, 400, "USERNAME_INVALID_CONTAINS"),
    ("discord", {"content": "x", "username": "clyde2"}, 400, "USERNAME_INVALID_CONTAINS"),
    ("discord", {"content": "x", "avatar_url": "no address"}, 400, "URL_TYPE_INVALID_URL"),
    ("teams", b"{", 400, "SchemaMismatch"), ("teams", {"text": "x"}, 400, "SchemaMismatch"),
    ("teams", card("x" * 29000), 413, "TooLarge"), ("teams", card(), 400, "SchemaMismatch"),
]
TAKEN = [
    ("slack", {"text": "x"}, 200), ("mattermost", {"text": "x"}, 200), ("rocketchat", {"text": "x" * 5000}, 200),
    ("discord", {"content": "x" * 2000, "username": "ann"}, 204), ("teams", card("ann", "x"), 202),
]


class Taking(unittest.TestCase):
    def test_refused(self):
        for kind, body, status, word in REFUSED:
            with self.subTest(kind=kind, body=str(body)[:60]):
                tool = TOOLS[kind](kind)
                answer = ask(tool, body)
                self.assertEqual(answer.status, status)
                self.assertIn(word, answer.encoded().decode())
                self.assertEqual(tool.messages, [])

    def test_taken(self):
        for kind, body, status in TAKEN:
            with self.subTest(kind=kind):
                tool = TOOLS[kind](kind)
                self.assertEqual(ask(tool, body).status, status)
                self.assertEqual(len(tool.messages), 1)

    def test_unknown_hooks_and_gone_ones(self):
        for kind, status, gone in [
            ("slack", 404, 410), ("mattermost", 400, 400), ("rocketchat", 404, 404), ("discord", 404, 404),
            ("teams", 404, 404), ("json", 404, 404),
        ]:
            with self.subTest(kind=kind):
                tool = TOOLS[kind](kind)
                self.assertEqual(ask(tool, {"text": "x"}, path="/elsewhere").status, status)
                self.assertEqual(tool.gone().status, gone)

    def test_other_content_types(self):
        for kind in ("slack", "mattermost", "rocketchat", "discord", "teams"):
            with self.subTest(kind=kind):
                tool = TOOLS[kind](kind)
                answer = ask(tool, {"text": "x", "content": "x"}, headers={"content-type": "text/plain"})
                self.assertEqual(answer.status, 400)
        form = urllib.parse.urlencode({"payload": json.dumps({"text": "x"})}).encode()
        for kind in ("slack", "mattermost", "rocketchat"):
            tool = TOOLS[kind](kind)
            self.assertEqual(ask(tool, form, headers={"content-type": "application/x-www-form-urlencoded"}).status, 200)

    def test_slack_ignores_names_but_of_legacy_hooks(self):
        tool = TOOLS["slack"]("slack")
        ask(tool, {"text": "x", "username": "ann"})
        tool.settings["legacy"] = True
        ask(tool, {"text": "x" * 40001, "username": "ann"})
        self.assertEqual([m["name"] for m in tool.messages], ["chatbridge app", "ann"])
        self.assertEqual([m["cut"] for m in tool.messages], [False, True])

    def test_mattermost_splits(self):
        tool = TOOLS["mattermost"]("mattermost")
        ask(tool, {"text": "x" * 16383 + "y", "username": "ann"})
        self.assertEqual([len(m["raw"]) for m in tool.messages], [16383, 1])

    def test_discord_messages(self):
        tool = TOOLS["discord"]("discord")
        answer = ask(tool, {"content": "one", "username": "ann"}, query={"wait": "true"})
        self.assertEqual((answer.status, answer.body["content"]), (200, "one"))
        self.assertIn("X-RateLimit-Remaining", answer.headers)
        place = "%s/messages/%s" % (tool.path, answer.body["id"])
        self.assertEqual(ask(tool, {"content": "two"}, "PATCH", place).body["content"], "two")
        self.assertEqual((tool.messages[0]["text"], tool.messages[0]["edits"]), ("two", ["one"]))
        self.assertEqual(ask(tool, {"content": "x" * 2001}, "PATCH", place).status, 400)
        self.assertEqual(ask(tool, b"", "DELETE", place).status, 204)
        self.assertEqual(ask(tool, b"", "DELETE", place).body["code"], 10008)
        self.assertTrue(tool.messages[0]["deleted"])
        self.assertEqual(ask(tool, {"content": "x"}, query={"thread_id": "9"}).body["code"], 10003)
        tool.settings["threads"] = ["9"]
        self.assertEqual(ask(tool, {"content": "x"}, query={"thread_id": "9"}).status, 204)
        self.assertEqual(tool.messages[-1]["thread"], "9")

    def test_teams_needs_its_signed_address(self):
        tool = TOOLS["teams"]("teams")
        self.assertEqual(ask(tool, card("x"), path=tool.path).status, 401)

    def test_json(self):
        tool = TOOLS["json"]("json")
        headers, body = signed(tool, plain({"text": "one"}, {"text": "two"}))
        self.assertEqual(ask(tool, body, headers=headers).body, {"taken": 2})
        self.assertEqual(ask(tool, body, headers=headers).body, {"repeated": True})
        self.assertEqual([m["text"] for m in tool.messages], ["one", "two"])
        headers, body = signed(tool, plain({"text": "other"}), "k1")
        self.assertEqual(ask(tool, body, headers=headers).status, 422)
        for change in (
            {"chatbridge-signature": "v1=" + "0" * 64}, {"chatbridge-timestamp": str(int(time.time()) - 301)},
            {"chatbridge-timestamp": "soon"}, {"idempotency-key": ""},
        ):
            headers, body = signed(tool, plain({"text": "three"}), "k3")
            answer = ask(tool, body, headers={**headers, **change})
            self.assertIn(answer.status, (400, 401), change)
        for wrong in (
            {"origin": []}, {"at": "2026-01-02T03:04:05Z"}, {"kind": "shout"}, {"kind": "edit", "text": "x"},
            {"kind": "reaction", "target": {"id": "m0"}, "emoji": "x", "operation": "toggle"}, {"text": None},
        ):
            headers, body = signed(tool, plain({"text": "x", **wrong}), "k4")
            self.assertEqual(ask(tool, body, headers=headers).status, 400, wrong)
        self.assertEqual(len(tool.messages), 2)

    def test_json_changes(self):
        tool = TOOLS["json"]("json")
        changes = plain(
            {"text": "one"}, {"id": "e", "kind": "edit", "text": "two", "target": {"id": "m0"}},
            {"id": "r", "kind": "reaction", "target": {"id": "m0"}, "emoji": "👍", "operation": "add"},
            {"id": "a", "kind": "action", "text": "waves"})
        headers, body = signed(tool, changes)
        ask(tool, body, headers=headers)
        first, action = tool.messages
        self.assertEqual((first["text"], first["edits"], first["reactions"]), ("two", ["one"], [["ann", "👍", "add"]]))
        there = ask(tool, b"", "GET", "/api/messages").body
        self.assertEqual(
            [(m["text"], m["event"], m["gateway"]) for m in there], [("two", "", "lobby"), ("waves", "user_action", "lobby")])
        headers, body = signed(tool, plain({"id": "d", "kind": "delete", "target": {"id": "m0"}}), "k2")
        ask(tool, body, headers=headers)
        self.assertTrue(first["deleted"])

    def test_limits_of_requests(self):
        for kind, header in [
            ("slack", "Retry-After"), ("mattermost", "X-RateLimit-Reset"), ("rocketchat", "X-RateLimit-Reset"),
            ("discord", "X-RateLimit-Reset-After"), ("teams", "Retry-After"), ("json", "Retry-After"),
        ]:
            tool = TOOLS[kind](kind)
            tool.settings["limit"] = [2, 10]
            waits = [tool.wait_of(now) for now in (0, 1, 2, 9.5, 10.5, 11.5, 12)]
            self.assertEqual(waits, [0, 0, 8, 0.5, 0, 0, 8.5])
            answer = tool.too_many(8)
            self.assertEqual(answer.status, 429)
            self.assertIn(header, answer.headers)
        self.assertEqual(TOOLS["discord"]("d").too_many(0.25).body["retry_after"], 0.25)
        self.assertNotIn("Retry-After", TOOLS["rocketchat"]("r").too_many(1).headers)


EVERYBODY = re.compile(r"(?<![\w@])@(channel|all|here|ada)(?![\w-])")


class Rendering(unittest.TestCase):
    def test_markdown(self):
        for raw, text, more in [
            ("plain", "plain", {}), ("**bold** and *it*", "bold and it", {"bold": ["bold"]}),
            ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4", {}),
            (r"\*not\* \_it\_ \`x\`", "*not* _it_ `x`", {}), ("`**x**` y", "**x** y", {"code": ["**x**"]}),
            ("``a`b``", "a`b", {"code": ["a`b"]}), ("```\nx\n```", "\nx\n", {"code": ["\nx\n"]}), ("a ` b", "a ` b", {}),
            ("[bank](https://evil.example/)", "bank", {"links": [["bank", "https://evil.example/"]]}),
            (r"\[bank\](https://evil.example/)", "[bank](https://evil.example/)", {}),
            ("<https://a.example/>", "https://a.example/", {"links": [["https://a.example/"] * 2]}),
            ("@channel @ada @bob a@all.example", "@channel @ada @bob a@all.example", {"mentions": ["channel", "ada"]}),
            ("@\u200bchannel", "@\u200bchannel", {}), (r"\@here", r"\@here", {"mentions": ["here"]}),
            ("`@here` **@here**", "@here @here", {"mentions": ["here"], "bold": ["@here"], "code": ["@here"]}),
            ("~~no~~", "no", {}), ("end\\", "end\\", {}),
        ]:
            with self.subTest(raw=raw):
                self.assertEqual(tool_rendering.markdown(raw, EVERYBODY), {**tool_rendering.new(), "text": text, **more})

    def test_mrkdwn(self):
        for raw, text, more in [
            ("a &lt;b&gt; &amp;amp;", "a <b> &amp;", {}), ("<!channel> <@U1|ann>", "@channel ann", {"mentions": ["channel", "U1"]}),
            ("&lt;!channel&gt;", "<!channel>", {}), ("@channel", "@channel", {}),
            ("<https://evil.example|bank>", "bank", {"links": [["bank", "https://evil.example"]]}),
            ("*b* _i_ ~s~", "b i s", {"bold": ["b"]}), ("`&lt;x&gt;`", "<x>", {"code": ["&lt;x&gt;"]}),
            ("<!subteam^S1|@ops>", "@ops", {"mentions": ["subteam"]}), ("2*3*4 a_b_c", "2*3*4 a_b_c", {}),
            ("**x** __init__.py", "**x** __init__.py", {}),
        ]:
            with self.subTest(raw=raw):
                self.assertEqual(tool_rendering.mrkdwn(raw), {**tool_rendering.new(), "text": text, **more})

    def test_discord_mentions(self):
        raw = "@everyone <@7> <@&9>"
        for allowed, mentions in [
            (None, ["everyone", "7", "9"]), ({"parse": []}, []), ({"parse": ["roles"]}, ["9"]),
            ({"parse": [], "users": ["7"]}, ["7"]), ({}, []),
        ]:
            tool = TOOLS["discord"]("discord")
            ask(tool, {"content": raw, **({} if allowed is None else {"allowed_mentions": allowed})})
            self.assertEqual((tool.messages[0]["mentions"], tool.messages[0]["text"]), (mentions, raw))


class Sending(unittest.TestCase):
    def test_signatures_as_documented(self):
        # https://docs.slack.dev/authentication/verifying-requests-from-slack has this secret, body and result.
        body = (
            b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
            b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2F"
            b"hooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id="
            b"398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c")
        headers, _ = FORMS["slack"].signed("8f742231b10e8888abcd99yyyzzz85a5", body, at=1531420618)
        self.assertEqual(
            headers["X-Slack-Signature"], "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")

    def test_every_form_has_its_text_and_name(self):
        for kind, form in FORMS.items():
            _, body = form.message("c2VjcmV0", "1700000000.000100", "ada", "hällo & <b>")
            text = urllib.parse.unquote_plus(body.decode())
            self.assertIn("ada", text, kind)
            self.assertIn("hällo", text, kind)


class OverSockets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tools = ["slack", "mattermost", "rocketchat", "discord", "teams", "json", "pipe", "other=json"]
        cls.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "tools.py"), "--exit-on-eof", "--lifetime", "60"]
            + [word for tool in tools for word in ("--tool", tool)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.ready = json.loads(cls.process.stdout.readline())

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait(10)
        cls.process.stdout.close()

    def tearDown(self):
        for name in self.ready["tools"]:
            self.control("clear", tool=name)
            self.control("set", tool=name, limit=None, echo=None)

    def control(self, op, **arguments):
        request = urllib.request.Request(
            "%s/%s" % (self.ready["control"], op), json.dumps(arguments).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def post(self, name, body, headers=JSON):
        """(status, headers, body); an exception where the connection failed."""
        url = urllib.parse.urlsplit(self.ready["tools"][name]["url"])
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", url.path + ("?" + url.query if url.query else ""), data, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def texts(self, name):
        return [m["text"] for m in self.control("messages", tool=name)["messages"]]

    def last(self, name):
        return self.control("messages", tool=name)["messages"][-1]

    def test_each_tool_answers(self):
        for name, body, status in [
            ("slack", {"text": "hi"}, 200), ("mattermost", {"text": "hi"}, 200), ("rocketchat", {"text": "hi"}, 200),
            ("discord", {"content": "hi"}, 204), ("teams", card("hi"), 202),
        ]:
            self.assertEqual(self.post(name, body)[0], status)
            self.assertEqual(self.last(name)["text"], "hi")
            self.assertTrue(self.last(name)["answered"])

    def test_status_faults_stack(self):
        self.control("fault", tool="slack", kind="status", status=429, retry_after=7, count=2)
        self.control("fault", tool="slack", kind="status", status=503, count=1)
        self.control("fault", tool="slack", kind="gone", count=1)
        before = len(self.texts("slack"))
        answers = [self.post("slack", {"text": "later"}) for _ in range(5)]
        self.assertEqual([a[0] for a in answers], [429, 429, 503, 410, 200])
        self.assertEqual(answers[0][1]["Retry-After"], "7")
        self.assertEqual(len(self.texts("slack")), before + 1)

    def test_resets_with_the_message_taken_or_not(self):
        for kind, taken in (("reset", False), ("reset", True), ("cut", True)):
            with self.subTest(kind=kind, taken=taken):
                self.control("fault", tool="slack", kind=kind, count=1, **({"taken": taken} if kind == "reset" else {}))
                text = "%s %s" % (kind, taken)
                with self.assertRaises((ConnectionError, http.client.HTTPException)):
                    self.post("slack", {"text": text})
                found = [m for m in self.control("messages", tool="slack")["messages"] if m["text"] == text]
                self.assertEqual([m["answered"] for m in found], [False] if taken else [])

    def test_a_reset_spoils_a_refusal_too(self):
        self.control("fault", tool="slack", kind="status", status=500, count=1)
        self.control("fault", tool="slack", kind="cut", count=1)
        with self.assertRaises((ConnectionError, http.client.HTTPException)):
            self.post("slack", {"text": "neither"})
        self.assertNotIn("neither", self.texts("slack"))
        self.assertEqual(self.control("requests", tool="slack")["requests"][-1]["fault"], ["status", "cut"])

    def test_wrong_lengths(self):
        self.control("fault", tool="slack", kind="length", off=50, count=1)
        with self.assertRaises(http.client.IncompleteRead):
            self.post("slack", {"text": "long"})
        self.control("fault", tool="slack", kind="length", off=-1, count=1)
        self.assertEqual(self.post("slack", {"text": "short"})[2], b"o")
        self.assertFalse(self.last("slack")["answered"])

    def test_slow_and_hanging(self):
        self.control("fault", tool="teams", kind="slow", seconds=0.3, count=1)
        began = time.monotonic()
        self.post("teams", card("slow"))
        self.assertGreaterEqual(time.monotonic() - began, 0.3)
        self.control("fault", tool="teams", kind="hang", taken=True, count=1)
        results = []

        def hang():
            try:
                results.append(self.post("teams", card("hung")))
            except (ConnectionError, http.client.HTTPException) as error:
                results.append(error)

        waiting = threading.Thread(target=hang)
        waiting.start()
        end = time.monotonic() + 5
        while "hung" not in self.texts("teams") and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(results, [])
        self.control("clear", tool="teams")
        waiting.join(5)
        self.assertIsInstance(results[0], (ConnectionError, http.client.HTTPException))

    def test_refused_connections(self):
        self.control("refuse", tool="slack")
        with self.assertRaises(ConnectionRefusedError):
            self.post("slack", {"text": "nobody"})
        self.assertEqual(self.post("mattermost", {"text": "others work"})[0], 200)
        self.control("accept", tool="slack")
        self.assertEqual(self.post("slack", {"text": "back"})[0], 200)

    def test_the_limit_is_counted(self):
        self.control("set", tool="discord", limit=[2, 60])
        statuses = [self.post("discord", {"content": "x"})[0] for _ in range(3)]
        self.assertEqual(statuses, [204, 204, 429])

    def test_an_echo_arrives_in_the_outgoing_form(self):
        target = self.ready["tools"]["other"]
        self.control("set", tool="discord", echo={"url": target["url"], "secret": target["secret"], "type": "json"})
        self.post("discord", {"content": "echoed"})
        end = time.monotonic() + 5
        while not self.control("state", tool="discord")["echoes"] and time.monotonic() < end:
            time.sleep(0.01)
        # It lacks what the consumer needs of a relay, and came.
        self.assertEqual(self.control("state", tool="discord")["echoes"], [400])

    def test_a_pipe_passes_on(self):
        target = self.ready["tools"]["other"]
        _, body = PlainJSON.signed(target["secret"], json.dumps(plain({"text": "through"})).encode())
        headers, body = PlainJSON.signed(target["secret"], body)
        headers["Idempotency-Key"] = "pipe-1"
        self.assertEqual(self.post("pipe", body, headers)[0], 503)
        self.control("set", tool="pipe", target=target["url"])
        self.assertEqual(self.post("pipe", body, headers)[0], 200)
        self.assertEqual(self.texts("other")[-1], "through")

    def test_wrong_orders_are_refused(self):
        for op, arguments in (
            ("fault", {"tool": "slack", "kind": "earthquake"}), ("fault", {"tool": "slack", "kind": "slow"}),
            ("set", {"tool": "slack", "colour": "red"}), ("dance", {}), ("messages", {"tool": "nobody"}),
        ):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.control(op, **arguments)
            refused.exception.close()


if __name__ == "__main__":
    unittest.main()
