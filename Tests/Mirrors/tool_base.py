"""A tool as its hook sees it: a whole request in, a whole answer out, and records of what it shows.

`Tool.take` gets a whole request and returns a whole answer; sockets and faults are elsewhere (tools.py). A tool records what
it shows in `messages`, oldest first. A record has `id`, `name`, `avatar`, `raw` (as it was sent), the members of
tool_rendering (`text`, `mentions`, …), `edits` (earlier raw texts), `deleted`, `reactions`, `thread`, `answered` (whether the
sender was told), and `request` (the number of the request that brought it).
"""

import collections
import json
import re
import secrets
import time
import urllib.parse
from dataclasses import dataclass, field


# Marks that take no room: a relay may put them behind an @ to defuse it, or hide an origin in them.
INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]")


def visible(text):
    """The text without marks that take no room."""
    return INVISIBLE.sub("", text)


def seen(rendered):
    """As a person sees it."""
    return {**rendered, "text": visible(rendered["text"])}


@dataclass
class Request:
    method: str
    path: str
    query: dict
    # By lower-case names.
    headers: dict
    body: bytes

    @property
    def kind(self):
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    def payload(self):
        """The JSON object of the body, or of a form's `payload`; raises ValueError."""
        text = self.body.decode("utf-8")
        if self.kind == "application/x-www-form-urlencoded":
            text = urllib.parse.parse_qs(text, strict_parsing=True)["payload"][0]
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("no object")
        return value


@dataclass
class Answer:
    status: int
    # JSON unless it is text.
    body: object = ""
    headers: dict = field(default_factory=dict)

    def encoded(self):
        if isinstance(self.body, str):
            return self.body.encode()
        return json.dumps(self.body).encode()

    @property
    def kind(self):
        return "text/plain; charset=utf-8" if isinstance(self.body, str) else "application/json"


class Tool:
    """`limit` is [requests, seconds], or None; `mention_users` are people whose @name notifies them."""

    path = "/"

    def __init__(self, name):
        self.name = name
        self.secret = secrets.token_hex(16)
        self.messages = []
        self.settings = {"limit": None, "echo": None, "mention_users": ["ada"]}
        self.recent = collections.deque()

    def url_suffix(self):
        return self.path

    # -- Overridden for each tool

    async def take(self, request):
        raise NotImplementedError

    def too_many(self, seconds):
        return Answer(429, "too many requests", {"Retry-After": str(max(1, round(seconds + 0.499)))})

    def failure(self, status):
        return Answer(status, "failure")

    def gone(self):
        return Answer(404, "not found")

    # -- For all

    def show(self, raw, rendered, **members):
        record = {
            "id": None, "name": "", "avatar": None, "raw": raw, **seen(rendered), "edits": [], "deleted": False, "reactions": [],
            "thread": None, "answered": False, "at": time.time(), **members}
        self.messages.append(record)
        return record

    def change(self, record, raw, rendered):
        record["edits"].append(record["raw"])
        record.update(raw=raw, **seen(rendered))

    def found(self, id):
        return next((m for m in self.messages if m["id"] == id and not m["deleted"]), None)

    def wait_of(self, now):
        """Seconds until a request is permitted, 0 now; a permitted one counts."""
        if not self.settings["limit"]:
            return 0
        count, seconds = self.settings["limit"]
        while self.recent and self.recent[0] <= now - seconds:
            self.recent.popleft()
        if len(self.recent) >= count:
            return self.recent[0] + seconds - now
        self.recent.append(now)
        return 0

    def mention(self):
        """@words that notify."""
        users = "".join("|" + re.escape(user) for user in self.settings["mention_users"])
        return re.compile(r"(?<![\w@])@(channel|all|here%s)(?![\w-])" % users, re.IGNORECASE)
