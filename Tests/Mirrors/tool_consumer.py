"""The consumer of the relay's plain JSON form, shaped so that matterbridge's API could stand in its place."""

import hmac
import re
import time

import tool_rendering
from tool_base import Answer, Tool
from tool_outgoing import PlainJSON

KINDS = ("message", "action", "edit", "delete", "reaction", "topic", "notice")


class JSONTool(Tool):
    """A consumer of the relay's plain JSON form, which checks the signature and takes each `Idempotency-Key` once.

    What it was told last is at `GET /api/messages` in the form of matterbridge's API, so that matterbridge could stand here.

    Source: https://github.com/42wim/matterbridge/wiki/API
    """

    path = "/mirror"
    MOST = 1024 * 1024

    def __init__(self, name):
        super().__init__(name)
        self.keys = {}
        # How often a request came again, and messages in another one.
        self.repeated = 0
        self.ids, self.known = set(), 0

    async def take(self, request):
        if request.path == "/api/messages" and request.method == "GET":
            return Answer(200, [self.matterbridge(m) for m in self.messages])
        if request.path != self.path:
            return self.gone()
        if request.method != "POST":
            return Answer(405, {"error": "POST"})
        if len(request.body) > self.MOST:
            return Answer(413, {"error": "too large"})
        stamp = request.headers.get("chatbridge-timestamp", "")
        proof = request.headers.get("chatbridge-signature", "")
        if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:
            return Answer(401, {"error": "timestamp"})
        if not hmac.compare_digest(proof, PlainJSON.signature(self.secret, stamp, request.body)):
            return Answer(401, {"error": "signature"})
        key = request.headers.get("idempotency-key")
        if not key:
            return Answer(400, {"error": "Idempotency-Key"})
        try:
            assert request.kind == "application/json"
            messages = request.payload()["messages"]
            assert messages and all(self.is_whole(message) for message in messages)
        except (ValueError, KeyError, TypeError, AssertionError):
            return Answer(400, {"error": "not the form"})
        if key in self.keys:
            if self.keys[key] != [message["id"] for message in messages]:
                return Answer(422, {"error": "another request had this Idempotency-Key"})
            self.repeated += 1
            return Answer(200, {"repeated": True})
        self.keys[key] = [message["id"] for message in messages]
        for message in messages:
            if (message["room"], message["id"]) in self.ids:
                self.known += 1
                continue
            self.ids.add((message["room"], message["id"]))
            self.apply(message)
        return Answer(200, {"taken": len(messages)})

    @staticmethod
    def is_whole(message):
        kind = message["kind"]
        assert kind in KINDS and isinstance(message["id"], str) and message["id"] and message["room"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", message["at"])
        assert all(isinstance(place, str) for place in message["origin"]) and message["origin"]
        if kind in ("message", "action", "notice", "topic", "edit"):
            assert isinstance(message["text"], str)
        if kind in ("edit", "delete", "reaction"):
            assert message["target"]["id"]
        if kind == "reaction":
            assert message["emoji"] and message["operation"] in ("add", "remove")
        return True

    def apply(self, message):
        kind, target = message["kind"], (message.get("target") or {}).get("id")
        record = self.found(target) if target else None
        if kind == "edit" and record:
            self.change(record, message["text"], {**tool_rendering.new(), "text": message["text"]})
        elif kind == "delete" and record:
            record["deleted"] = True
        elif kind == "reaction" and record:
            record["reactions"].append([message["nick"], message["emoji"], message["operation"]])
        else:
            self.show(
                message.get("text", ""), {**tool_rendering.new(), "text": message.get("text", "")}, id=message["id"],
                name=message.get("nick", ""), avatar=message.get("avatar"), thread=(message.get("reply_to") or {}).get("id"),
                whole=message)

    @staticmethod
    def matterbridge(record):
        """A message of matterbridge's API; an action is an event of its own there."""
        action = record["whole"]["kind"] == "action"
        return {
            "text": record["text"], "channel": "api", "username": record["name"], "userid": record["whole"].get("account") or "",
            "avatar": record["avatar"] or "", "account": "api.local", "event": "user_action" if action else "",
            "protocol": "api", "gateway": record["whole"]["room"], "parent_id": record["thread"] or "",
            "timestamp": record["whole"]["at"], "id": record["id"], "Extra": None}

    def too_many(self, seconds):
        answer = super().too_many(seconds)
        answer.body = {"error": "too many requests"}
        return answer

    def failure(self, status):
        return Answer(status, {"error": "failure"})

    def gone(self):
        return Answer(404, {"error": "no such hook"})
