"""The receiving side of the tools: what each does with a request to its hook, as its documentation says."""

import json
import re
import secrets
import time
import urllib.parse

import tool_rendering
from tool_base import Answer, Tool
from tool_consumer import JSONTool
from tool_outgoing import iso


class SlackTool(Tool):
    """An app's incoming webhook. The name and the picture are those of the app: `username` and `icon_url` count only for
    hooks of before 2018, which `legacy` makes this one. Text beyond 40,000 characters is cut off.

    Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks,
    https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks,
    https://docs.slack.dev/apis/web-api/rate-limits,
    https://docs.slack.dev/changelog/2018-04-truncating-really-long-messages
    """

    path = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
    LIMIT = 40000
    BLOCK_LIMIT = 3000

    def __init__(self, name):
        super().__init__(name)
        self.settings["legacy"] = False

    async def take(self, request):
        if request.path != self.path:
            return Answer(404, "no_service")
        if request.method != "POST":
            return Answer(400, "invalid_payload")
        if request.kind not in ("application/json", "application/x-www-form-urlencoded"):
            return Answer(400, "invalid_payload")
        try:
            payload = request.payload()
        except (ValueError, KeyError):
            return Answer(400, "invalid_payload")
        text, blocks = payload.get("text") or "", payload.get("blocks") or []
        if not isinstance(text, str) or not isinstance(blocks, list):
            return Answer(400, "invalid_payload")
        if not text and not blocks and not payload.get("attachments"):
            return Answer(400, "no_text")
        parts = []
        for block in blocks[:51]:
            inner = block.get("text") if isinstance(block, dict) else None
            if len(blocks) > 50 or not isinstance(block, dict) or "type" not in block:
                return Answer(400, "invalid_blocks")
            if block["type"] == "section":
                if not isinstance(inner, dict) or not 0 < len(inner.get("text", "")) <= self.BLOCK_LIMIT:
                    return Answer(400, "invalid_blocks")
                parts.append(inner["text"])
            elif block["type"] == "context":
                parts += [e.get("text", "") for e in block.get("elements", []) if isinstance(e, dict)]
        raw = "\n".join(parts) if parts else text
        rendered = tool_rendering.mrkdwn(raw[: self.LIMIT])
        if payload.get("link_names"):
            rendered["mentions"] += self.mention().findall(rendered["text"])
        legacy = self.settings["legacy"]
        self.show(
            raw, rendered, id="%d.%06d" % (time.time(), len(self.messages)),
            name=(payload.get("username") if legacy else None) or "chatbridge app",
            avatar=payload.get("icon_url") if legacy else None, cut=len(raw) > self.LIMIT)
        return Answer(200, "ok")

    def too_many(self, seconds):
        answer = super().too_many(seconds)
        answer.body = "rate_limited"
        return answer

    def failure(self, status):
        return Answer(status, "rollup_error")

    def gone(self):
        return Answer(410, "channel_is_archived")


class MattermostTool(Tool):
    """An incoming webhook of a server that lets integrations override names and pictures. Text beyond 16383 characters
    becomes several posts. A hook that was deleted is answered with 400, not 404.

    Source: https://developers.mattermost.com/integrate/webhooks/incoming/,
    https://docs.mattermost.com/administration-guide/configure/rate-limiting-configuration-settings.html,
    https://api.mattermost.com/#tag/errors
    """

    path = "/hooks/xxx-generatedkey-xxx"
    LIMIT = 16383

    def error(self, id, message, status=400):
        return Answer(status, {
            "id": id, "message": message, "detailed_error": "", "request_id": secrets.token_hex(13), "status_code": status})

    async def take(self, request):
        if request.path != self.path:
            return self.gone()
        if request.method != "POST":
            return self.error("api.context.404.app_error", "Sorry, we could not find the page.", 404)
        try:
            if request.kind == "application/json":
                payload = request.payload()
            else:
                payload = json.loads(urllib.parse.parse_qs(request.body.decode(), strict_parsing=True)["payload"][0])
            text = payload.get("text") or ""
            assert isinstance(text, str)
        except (ValueError, KeyError, AttributeError, AssertionError):
            return self.error("web.incoming_webhook.parse.app_error", "Unable to parse incoming data.")
        if not text and not payload.get("attachments"):
            return self.error("web.incoming_webhook.text.app_error", "No text specified.")
        # Slack's special sequences count here too.
        text = re.sub(r"<!(channel|here|all)>", r"@\1", text)
        text = re.sub(r"<(https?://[^|<>\s]+)\|([^<>]*)>", r"[\2](\1)", text)
        for begin in range(0, len(text) or 1, self.LIMIT):
            raw = text[begin : begin + self.LIMIT]
            self.show(
                raw, tool_rendering.markdown(raw, self.mention()), id=secrets.token_hex(13),
                name=payload.get("username") or "webhook", avatar=payload.get("icon_url"), props=payload.get("props"))
        return Answer(200, "ok")

    def too_many(self, seconds):
        wait = str(max(1, round(seconds + 0.499)))
        return Answer(429, "limit exceeded\n", {
            "Retry-After": wait, "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": wait})

    def failure(self, status):
        return self.error("app.post.save.app_error", "Unable to save the Post.", status)

    def gone(self):
        return self.error("web.incoming_webhook.invalid.app_error", "Invalid webhook.")


class RocketChatTool(Tool):
    """An incoming webhook of an integration that may impersonate (`alias`, `avatar`). A message has at most 5000 characters
    (`Message_MaxAllowedSize`). The limit of requests has headers of its own and no Retry-After.

    Source: https://docs.rocket.chat/docs/integrations,
    https://developer.rocket.chat/apidocs/post-message, https://developer.rocket.chat/apidocs/rate-limiter
    """

    path = "/hooks/6454cf0e2a6ec2f02f7a0a8b/Zpq4mBfZhTBpA3yKX"
    LIMIT = 5000

    async def take(self, request):
        if request.path != self.path:
            return self.gone()
        try:
            payload = request.payload()
        except (ValueError, KeyError):
            return Answer(400, {"success": False, "error": "Invalid JSON"})
        if request.kind not in ("application/json", "application/x-www-form-urlencoded"):
            return Answer(400, {"success": False, "error": "Invalid JSON"})
        text = payload.get("text") or payload.get("msg") or ""
        if not payload:
            return Answer(200, {"success": True})
        if payload.get("channel") or payload.get("roomId"):
            return Answer(400, {
                "success": False, "error": "overriding destination channel is disabled for this integration"})
        if not isinstance(text, str) or not text and not payload.get("attachments"):
            return Answer(400, {"success": False, "error": "unknown-error"})
        if len(text) > self.LIMIT:
            return Answer(400, {"success": False, "error": "error-message-size-exceeded"})
        self.show(
            text, tool_rendering.markdown(text, self.mention(), rocket_chat=True), id=secrets.token_hex(9),
            name=payload.get("username") or payload.get("alias") or "rocket.cat", avatar=payload.get("avatar"),
            thread=payload.get("tmid"), attachments=payload.get("attachments"))
        return Answer(200, {"success": True})

    def too_many(self, seconds):
        return Answer(429, {
            "success": False, "error": "Error, too many requests. Please slow down. You must wait %d seconds before trying "
            "this endpoint again. [error-too-many-requests]" % max(1, round(seconds + 0.499))},
            {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0",
             "X-RateLimit-Reset": str(round((time.time() + seconds) * 1000))})

    def failure(self, status):
        return Answer(status, {"success": False, "error": "Internal server error"})

    def gone(self):
        return Answer(404, {"success": False, "error": "Invalid integration id or token provided."})


class DiscordTool(Tool):
    """Execute, edit and delete by webhook. `?wait=true` answers with the message, else with 204. Without `allowed_mentions`
    everything notifies. `threads` are those of the hook's channel.

    Source: https://docs.discord.com/developers/resources/webhook#execute-webhook, `#edit-webhook-message`,
    `#delete-webhook-message`; https://docs.discord.com/developers/topics/rate-limits,
    https://docs.discord.com/developers/topics/opcodes-and-status-codes,
    https://docs.discord.com/developers/resources/message#allowed-mentions-object
    """

    path = "/api/webhooks/223704706495545344/3d89bb7572e0fb30d8128367b3b1b44fecd1726de135cbe28a41f8b2f777c372ba2939e72279b"
    LIMIT = 2000

    def __init__(self, name):
        super().__init__(name)
        self.settings["threads"] = []

    @staticmethod
    def error(status, code, message):
        return Answer(status, {"message": message, "code": code})

    @staticmethod
    def invalid(name, code, message):
        return Answer(400, {
            "message": "Invalid Form Body", "code": 50035, "errors": {name: {"_errors": [{"code": code, "message": message}]}}})

    async def take(self, request):
        answer = await self.taken(request)
        count, seconds = self.settings["limit"] or (5, 2)
        left = max(0, count - len(self.recent)) if self.settings["limit"] else count - 1
        answer.headers |= {
            "X-RateLimit-Limit": str(count), "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": "%.3f" % (time.time() + seconds), "X-RateLimit-Reset-After": "%.3f" % seconds,
            "X-RateLimit-Bucket": "abcd1234"}
        return answer

    async def taken(self, request):
        if not request.path.startswith(self.path):
            return self.gone()
        thread = request.query.get("thread_id")
        if thread and thread not in self.settings["threads"]:
            return self.error(404, 10003, "Unknown Channel")
        rest = request.path[len(self.path) :]
        if not rest and request.method == "POST":
            return self.execute(request, thread)
        message = re.fullmatch(r"/messages/(\d+)", rest)
        if not message or request.method not in ("PATCH", "DELETE", "GET"):
            return Answer(405, {"message": "405: Method Not Allowed", "code": 0})
        record = self.found(message.group(1))
        if not record or record["thread"] != thread:
            return self.error(404, 10008, "Unknown Message")
        if request.method == "DELETE":
            record["deleted"] = True
            return Answer(204)
        if request.method == "PATCH":
            refused, content, rendered, _ = self.read(request, editing=True)
            if refused:
                return refused
            self.change(record, content, rendered)
        return Answer(200, self.object(record))

    def read(self, request, editing=False):
        """(refusal, content, rendered, payload)."""
        if request.kind != "application/json":
            return self.error(400, 50006, "Cannot send an empty message"), None, None, None
        try:
            payload = request.payload()
        except ValueError:
            return self.error(400, 50109, "The request body contains invalid JSON."), None, None, None
        content = payload.get("content") or ""
        if not isinstance(content, str):
            return self.invalid("content", "BASE_TYPE_BAD_STRING", "Could not interpret as string."), None, None, None
        if not content.strip() and not payload.get("embeds") and not editing:
            return self.error(400, 50006, "Cannot send an empty message"), None, None, None
        if len(content) > self.LIMIT:
            return self.invalid(
                "content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."), None, None, None
        allowed = payload.get("allowed_mentions")
        kinds = ["everyone", "users", "roles"] if allowed is None else allowed.get("parse", [])
        rendered = tool_rendering.markdown(content, self.mentions(kinds, (allowed or {}).get("users", [])))
        return None, content, rendered, payload

    @staticmethod
    def mentions(kinds, users):
        forms = []
        if "everyone" in kinds:
            forms.append("@(everyone|here)")
        forms.append(r"<@!?(%s)>" % (r"\d+" if "users" in kinds else "|".join(map(re.escape, users)) or "(?!)"))
        if "roles" in kinds:
            forms.append(r"<@&(\d+)>")
        return re.compile("|".join(forms))

    def execute(self, request, thread):
        refused, content, rendered, payload = self.read(request)
        if refused:
            return refused
        name = payload.get("username")
        if name is not None:
            if not isinstance(name, str) or not 1 <= len(name) <= 80:
                return self.invalid("username", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")
            for word in ("clyde", "discord"):
                if word in name.lower():
                    return self.invalid(
                        "username", "USERNAME_INVALID_CONTAINS", 'Username cannot contain "%s"' % word)
            if name.lower() in ("everyone", "here"):
                return self.invalid("username", "USERNAME_INVALID_RESERVED", "Username is reserved")
        avatar = payload.get("avatar_url")
        if avatar and not re.match(r"https?://\S+$", avatar):
            return self.invalid("avatar_url", "URL_TYPE_INVALID_URL", "Not a well formed URL.")
        record = self.show(
            content, rendered, id=str((round(time.time() * 1000) - 1420070400000 << 22) + len(self.messages)),
            name=name or "Captain Hook", avatar=avatar, thread=thread)
        return Answer(200, self.object(record)) if request.query.get("wait") == "true" else Answer(204)

    def object(self, record):
        return {
            "id": record["id"], "type": 0, "content": record["raw"], "channel_id": record["thread"] or "290926798999357250",
            "author": {"bot": True, "id": "223704706495545344", "username": record["name"], "avatar": None},
            "attachments": [], "embeds": [], "mentions": [], "mention_roles": [], "pinned": False,
            "mention_everyone": bool({"everyone", "here"} & set(record["mentions"])), "tts": False,
            "timestamp": iso(record["at"]), "edited_timestamp": iso() if record["edits"] else None, "flags": 0,
            "components": [], "webhook_id": "223704706495545344"}

    def too_many(self, seconds):
        return Answer(429, {"message": "You are being rate limited.", "retry_after": seconds, "global": False}, {
            "Retry-After": str(max(1, round(seconds + 0.499))), "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "%.3f" % (time.time() + seconds), "X-RateLimit-Reset-After": "%.3f" % seconds,
            "X-RateLimit-Bucket": "abcd1234", "X-RateLimit-Scope": "user"})

    def failure(self, status):
        return Answer(status, {"message": "%d: Internal Server Error" % status, "code": 0})

    def gone(self):
        return self.error(404, 10015, "Unknown Webhook")


class TeamsTool(Tool):
    """A workflow that is triggered by a webhook and posts the first Adaptive Card; the address is signed (`sig`). It is
    answered with 202 and without a body. A message has at most 28 KB; more than four requests in a second are too many.

    Source: https://learn.microsoft.com/en-us/connectors/teams/#microsoft-teams-webhook,
    https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook,
    https://learn.microsoft.com/en-us/azure/connectors/connectors-native-reqres,
    https://learn.microsoft.com/en-us/microsoftteams/platform/task-modules-and-cards/cards/cards-format
    """

    path = "/workflows/6d1e9c6e0b8d4a0f9a3a6b4f3c2d1e0f/triggers/manual/paths/invoke"
    LIMIT = 28 * 1024

    def url_suffix(self):
        return self.path + "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=c2lnbmF0dXJl-of_the.hook"

    @staticmethod
    def error(status, code, message):
        return Answer(status, {"error": {"code": code, "message": message}})

    async def take(self, request):
        if request.path != self.path:
            return self.gone()
        if request.query.get("sig") != "c2lnbmF0dXJl-of_the.hook" or request.query.get("sp") != "/triggers/manual/run":
            return self.error(401, "DirectApiAuthorizationRequired", "The request must be authenticated.")
        if request.method != "POST":
            return self.error(404, "InvalidHttpMethod", "The HTTP method is not supported.")
        if len(request.body) > self.LIMIT:
            return self.error(413, "RequestEntityTooLarge", "Request Entity too large")
        try:
            payload = request.payload()
            assert request.kind == "application/json"
            attachment = payload["attachments"][0]
            card = attachment["content"]
            assert payload["type"] == "message" and card["type"] == "AdaptiveCard"
            assert card["version"] in ("1.2", "1.3", "1.4", "1.5")
            assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
            blocks = [text for item in card["body"] for text in self.texts(item)]
            assert blocks
        except (ValueError, KeyError, IndexError, TypeError, AssertionError):
            return self.error(400, "TriggerInputSchemaMismatch", "The input body for trigger 'manual' does not match its schema")
        entities = [e for e in card.get("msteams", {}).get("entities", []) if e.get("type") == "mention"]
        mention = re.compile("|".join(re.escape(e["text"]) for e in entities) and "(%s)" % "|".join(
            re.escape(e["text"]) for e in entities) or "(?!)")
        # The name stands in a block of its own before the text.
        raw = "\n".join(blocks)
        rendered = tool_rendering.markdown(raw, mention)
        self.show(raw, rendered, id=secrets.token_hex(8), name=blocks[0] if len(blocks) > 1 else "", blocks=[
            tool_rendering.markdown(block, mention)["text"] for block in blocks])
        return Answer(202)

    def texts(self, item):
        if item["type"] == "TextBlock":
            yield item["text"]
        elif item["type"] == "RichTextBlock":
            yield "".join(run if isinstance(run, str) else run["text"] for run in item["inlines"])
        for inner in item.get("items", []) + [i for c in item.get("columns", []) for i in c.get("items", [])]:
            yield from self.texts(inner)

    def failure(self, status):
        return self.error(status, "InternalServerError", "Encountered internal server error.")

    def gone(self):
        return self.error(404, "WorkflowNotFound", "The workflow could not be found.")


TOOLS = {
    "slack": SlackTool, "mattermost": MattermostTool, "rocketchat": RocketChatTool, "discord": DiscordTool,
    "teams": TeamsTool, "json": JSONTool,
}
