"""Requests as the tools send them to a hook: headers and body of a message, an edit, a deletion or a reaction there.

Each form is a class with the same methods; those that the tool has no form for are absent. `secret` is what the tool proves its
requests with, `id` the message's own there.
"""

import base64
import hashlib
import hmac
import json
import time
import urllib.parse


def text_of(value):
    return json.dumps(value, ensure_ascii=False).encode()


def now_seconds(at):
    return int(time.time() if at is None else at)


def iso(at=None):
    at = time.time() if at is None else at
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".%03dZ" % (at % 1 * 1000)


class Slack:
    """Events API requests, signed with the app's signing secret, and slash commands.

    A message event names its author by id alone; a slash command has the name too. Messages of incoming webhooks come back
    with the subtype `bot_message` and the name of the app.

    Source: https://docs.slack.dev/apis/events-api/, https://docs.slack.dev/reference/events/message,
    https://docs.slack.dev/authentication/verifying-requests-from-slack,
    https://docs.slack.dev/interactivity/implementing-slash-commands
    """

    SIGNED = True

    @staticmethod
    def signed(secret, body, kind="application/json", at=None, retry=None):
        stamp = str(now_seconds(at))
        digest = hmac.new(secret.encode(), b"v0:%s:%s" % (stamp.encode(), body), hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": kind, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=" + digest}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        return headers, body

    @classmethod
    def event(cls, secret, event, id, at=None, retry=None):
        return cls.signed(secret, text_of({
            "token": "unused", "team_id": "T0001", "api_app_id": "A0001", "event": event, "type": "event_callback",
            "event_id": "Ev" + hashlib.sha1(id.encode()).hexdigest()[:9].upper(), "event_time": now_seconds(None),
            "authorizations": [{"team_id": "T0001", "user_id": "U0BOT", "is_bot": True}]}), at=at, retry=retry)

    @classmethod
    def message(cls, secret, id, user, text, at=None, bot=False, reply_to=None, retry=None):
        event = {
            "type": "message", "channel": "C0001", "channel_type": "channel", "user": user, "text": text, "ts": id,
            "event_ts": id}
        if bot:
            del event["user"]
            event |= {"subtype": "bot_message", "bot_id": "B0001", "username": user}
        if reply_to:
            event["thread_ts"] = reply_to
        return cls.event(secret, event, "m" + id, at, retry)

    @classmethod
    def edit(cls, secret, id, user, text, at=None):
        inner = {"type": "message", "user": user, "text": text, "ts": id, "edited": {"user": user, "ts": id + "9"}}
        return cls.event(secret, {
            "type": "message", "subtype": "message_changed", "hidden": True, "channel": "C0001", "ts": id + "9",
            "message": inner, "previous_message": {**inner, "text": "before"}, "event_ts": id + "9"}, "e" + id + text, at)

    @classmethod
    def delete(cls, secret, id, user, at=None):
        return cls.event(secret, {
            "type": "message", "subtype": "message_deleted", "hidden": True, "channel": "C0001", "ts": id + "8",
            "deleted_ts": id, "previous_message": {"type": "message", "user": user, "text": "before", "ts": id},
            "event_ts": id + "8"}, "d" + id, at)

    @classmethod
    def reaction(cls, secret, id, user, emoji, operation="add", at=None):
        return cls.event(secret, {
            "type": "reaction_added" if operation == "add" else "reaction_removed", "user": user, "reaction": emoji,
            "item": {"type": "message", "channel": "C0001", "ts": id}, "item_user": "U0002", "event_ts": id + "7"},
            operation + id + emoji, at)

    @classmethod
    def verification(cls, secret, challenge):
        return cls.signed(secret, text_of({"token": "unused", "challenge": challenge, "type": "url_verification"}))

    @classmethod
    def slash(cls, secret, user, text, at=None):
        body = urllib.parse.urlencode({
            "token": "unused", "team_id": "T0001", "team_domain": "team", "channel_id": "C0001", "channel_name": "general",
            "user_id": "U024BE7LH", "user_name": user, "command": "/irc", "text": text, "api_app_id": "A0001",
            "trigger_id": "13345224609.738474920.%d" % time.monotonic_ns(),
            "response_url": "https://hooks.slack.com/commands/1234/5678"}).encode()
        return cls.signed(secret, body, "application/x-www-form-urlencoded", at)


class Mattermost:
    """Outgoing webhooks: a form or JSON, with the hook's token.

    Source: https://developers.mattermost.com/integrate/webhooks/outgoing/
    """

    SIGNED = False

    @staticmethod
    def message(secret, id, user, text, at=None, bot=False, reply_to=None, as_json=False):
        fields = {
            "channel_id": "hawos4dqtby53pd64o4a4cmeoo", "channel_name": "town-square", "team_domain": "someteam",
            "team_id": "kwoknj9nwpypzgzy78wkw516qe", "post_id": id, "text": text, "timestamp": now_seconds(at) * 1000,
            "token": secret, "trigger_word": "", "user_id": "rnina9994bde8mua79zqcg5hmo", "user_name": user, "file_ids": ""}
        if as_json:
            return {"Content-Type": "application/json"}, text_of(fields)
        return {"Content-Type": "application/x-www-form-urlencoded"}, urllib.parse.urlencode(fields).encode()


class RocketChat:
    """Outgoing webhooks: JSON, with the integration's token; `bot` is false, or names the integration that wrote it.

    Source: https://docs.rocket.chat/docs/integrations; the fields as in
    https://github.com/H999/document-rocket-chat-webhook-json
    """

    SIGNED = False

    @staticmethod
    def message(secret, id, user, text, at=None, bot=False, reply_to=None, edited=False):
        fields = {
            "token": secret, "bot": {"i": "EhvWTxXbDnoMJNCqq"} if bot else False, "channel_id": "ZpMw6XxSuZdpupcDa",
            "channel_name": "general", "message_id": id, "timestamp": iso(at), "user_id": "zk8ei6fZYTxnNdbWg",
            "user_name": user, "text": text, "siteUrl": "http://localhost:3000"}
        if reply_to:
            fields["tmid"] = reply_to
        if edited:
            fields["isEdited"] = True
        return {"Content-Type": "application/json"}, text_of(fields)

    @classmethod
    def edit(cls, secret, id, user, text, at=None):
        return cls.message(secret, id, user, text, at, edited=True)


class Discord:
    """Gateway events as a forwarder posts them, with a bearer token.

    Source: https://docs.discord.com/developers/events/gateway-events#message-create, `#message-update`, `#message-delete`,
    `#message-reaction-add`; https://docs.discord.com/developers/resources/message
    """

    SIGNED = False

    @staticmethod
    def event(secret, name, data):
        return {"Content-Type": "application/json", "Authorization": "Bearer " + secret}, text_of(
            {"op": 0, "s": 1, "t": name, "d": data})

    @staticmethod
    def author(user, bot=False):
        number = int(hashlib.sha1(user.encode()).hexdigest()[:12], 16)
        return {"id": str(number), "username": user, "global_name": user, "discriminator": "0", "bot": bot}

    @classmethod
    def message(cls, secret, id, user, text, at=None, bot=False, reply_to=None):
        data = {
            "id": id, "channel_id": "290926798999357250", "guild_id": "290926798626357999", "author": cls.author(user, bot),
            "content": text, "timestamp": iso(at), "edited_timestamp": None, "tts": False, "mention_everyone": False,
            "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": False, "type": 0}
        if bot:
            data["webhook_id"] = "223704706495545344"
        if reply_to:
            data |= {"type": 19, "message_reference": {"message_id": reply_to, "channel_id": "290926798999357250"}}
        return cls.event(secret, "MESSAGE_CREATE", data)

    @classmethod
    def edit(cls, secret, id, user, text, at=None):
        return cls.event(secret, "MESSAGE_UPDATE", {
            "id": id, "channel_id": "290926798999357250", "guild_id": "290926798626357999", "author": cls.author(user),
            "content": text, "edited_timestamp": iso(at), "type": 0})

    @classmethod
    def delete(cls, secret, id, user, at=None):
        return cls.event(secret, "MESSAGE_DELETE", {
            "id": id, "channel_id": "290926798999357250", "guild_id": "290926798626357999"})

    @classmethod
    def reaction(cls, secret, id, user, emoji, operation="add", at=None):
        author = cls.author(user)
        return cls.event(secret, "MESSAGE_REACTION_ADD" if operation == "add" else "MESSAGE_REACTION_REMOVE", {
            "user_id": author["id"], "channel_id": "290926798999357250", "message_id": id,
            "guild_id": "290926798626357999", "member": {"user": author}, "emoji": {"id": None, "name": emoji}})


class Teams:
    """Outgoing webhooks: an activity, signed with the webhook's key. The text begins with the mention that triggered it.

    Source: https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook,
    https://learn.microsoft.com/en-us/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference#activity-object
    """

    SIGNED = True

    @staticmethod
    def signed(secret, body):
        digest = hmac.new(base64.b64decode(secret), body, hashlib.sha256).digest()
        return {
            "Content-Type": "application/json; charset=utf-8",
            "Authorization": "HMAC " + base64.b64encode(digest).decode()}, body

    @classmethod
    def message(cls, secret, id, user, text, at=None, bot=False, reply_to=None):
        activity = {
            "type": "message", "id": id, "timestamp": iso(at), "localTimestamp": iso(at),
            "serviceUrl": "https://smba.trafficmanager.net/emea/", "channelId": "msteams",
            "from": {"id": "29:1" + user, "name": user, "aadObjectId": "6b7c3d2e-0000-4000-8000-000000000001"},
            "conversation": {"isGroup": True, "conversationType": "channel", "id": "19:abc@thread.tacv2;messageid=" + id},
            "recipient": None, "textFormat": "plain", "attachmentLayout": None, "membersAdded": [], "topicName": None,
            "locale": "en-GB", "text": "<at>chatbridge</at> %s\n" % _html(text), "attachments": [{
                "contentType": "text/html", "content": "<div><span>chatbridge</span>&nbsp;%s</div>" % _html(text)}],
            "entities": [{"type": "clientInfo", "locale": "en-GB", "country": "GB", "platform": "Web"}],
            "channelData": {"teamsChannelId": "19:abc@thread.tacv2", "teamsTeamId": "19:abc@thread.tacv2"}}
        if reply_to:
            activity["replyToId"] = reply_to
        return cls.signed(secret, text_of(activity))


def _html(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class PlainJSON:
    """The relay's own documented form, signed or with a bearer token."""

    SIGNED = True

    @staticmethod
    def signature(secret, stamp, body):
        return "v1=" + hmac.new(secret.encode(), b"v1:%s:%s" % (stamp.encode(), body), hashlib.sha256).hexdigest()

    @classmethod
    def signed(cls, secret, body, at=None):
        stamp = str(now_seconds(at))
        return {
            "Content-Type": "application/json", "Chatbridge-Timestamp": stamp,
            "Chatbridge-Signature": cls.signature(secret, stamp, body)}, body

    @classmethod
    def bare(cls, secret, id, user, kind, at=None, **members):
        return cls.signed(secret, text_of(
            {"id": id, "kind": kind, "room": "lobby", "nick": user, "at": iso(), **members}), at)

    @classmethod
    def message(cls, secret, id, user, text, at=None, bot=False, reply_to=None, **members):
        if reply_to:
            members["reply_to"] = {"id": reply_to}
        if bot:
            members["bot"] = True
        return cls.bare(secret, id, user, "message", at, text=text, **members)

    @classmethod
    def edit(cls, secret, id, user, text, at=None):
        return cls.bare(secret, id + "-edit", user, "edit", at, text=text, target={"id": id})

    @classmethod
    def delete(cls, secret, id, user, at=None):
        return cls.bare(secret, id + "-delete", user, "delete", at, target={"id": id})

    @classmethod
    def reaction(cls, secret, id, user, emoji, operation="add", at=None):
        return cls.bare(
            secret, "%s-%s-%s" % (id, operation, emoji), user, "reaction", at, target={"id": id}, emoji=emoji,
            operation=operation)

    @classmethod
    def many(cls, secret, messages, as_array=False):
        return cls.signed(secret, text_of(messages if as_array else {"messages": messages}))

    @classmethod
    def bearer(cls, secret, id, user, text):
        _, body = cls.message(secret, id, user, text)
        return {"Content-Type": "application/json", "Authorization": "Bearer " + secret}, body


FORMS = {
    "slack": Slack, "mattermost": Mattermost, "rocketchat": RocketChat, "discord": Discord, "teams": Teams, "json": PlainJSON,
}
