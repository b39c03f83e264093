"""Who is where in the soak, and how its messages are numbered: what all of its processes agree on."""

import collections
import re

# A way of speaking to a backend, and what follows from it.
#   ids        who gives a message its id: "client" or "server"
#   history    whether the backend tells what was said before
#   identity   "puppet": IRC users have names of their own upstream; "single": the account speaks for all
#   confirms   whether the backend answers a message
#   second     to how many milliseconds times are rounded down
#   logins     how many logins the relay has there: it gets tokens for each over HTTP, which end
#   token      how long a token lasts, in seconds
#   closes     whether the backend closes a link when its token ends; the relay then makes a new one, and asks over HTTP
#              for what was said meanwhile
Wire = collections.namedtuple(
    "Wire", "name ids history identity confirms second logins token closes", defaults=(1, 0, None, False))
WIRES = {
    wire.name: wire
    for wire in (
        Wire("typed", "client", True, "puppet", True),
        Wire("envelope", "client", False, "puppet", True),
        Wire("swiftchat", "server", False, "puppet", True),
        Wire("plainjson", "client", True, "puppet", False, second=1000),
        Wire("jwt-rooms", "server", True, "single", False, second=1000, logins=1, token=90, closes=True),
        Wire("directus", "server", True, "single", True, logins=2, token=25),
        Wire("custom", "server", True, "puppet", True, logins=2, token=60),
    )
}

PREFIXED = "<{nick}> {text}"
# {wire or room: the account that speaks for all}. Rooms of two logins have two, so that no nick is that of both.
ACCOUNTS = {"jwt-rooms": "ferry", "attic": "Barge", "vault": "Punt"}


class Room(collections.namedtuple("Room", "name wire account spoken people number kind")):
    """A room's channel is its name behind "#". `kind` is how this one differs from the other one of its wire."""

    def said_by(self, nick, text):
        """What the backend has of what an IRC user said."""
        return self.spoken.replace("{nick}", nick).replace("{text}", text)


def _room(name, wire, number, kind="", spoken=None):
    wire = WIRES[wire]
    account = ACCOUNTS.get(wire.name) or ACCOUNTS.get(name)
    # A person is in one room alone, so that nobody's nick depends on who came first.
    people = {author: author for author in ("Ann-" + name, "Ben-" + name)}
    if account:
        # The account on another device, a phone.
        people["Own-" + name] = account
    return Room(name, wire, account, spoken or (PREFIXED if account else "{text}"), people, number, kind)


# Two rooms on each wire.
ROOMS = {
    room.name: room
    for room in (
        _room("reef", "typed", 1), _room("kelp", "typed", 2),
        _room("loft", "envelope", 1), _room("quad", "envelope", 2),
        _room("dock", "swiftchat", 1), _room("pier", "swiftchat", 2),
        # One server acknowledges each message, one says nothing at all.
        _room("barn", "plainjson", 1, "acks"), _room("silo", "plainjson", 2, "mute"),
        # One hangs up when a token ends, one lets the socket be.
        _room("nave", "jwt-rooms", 1, "strict"), _room("apse", "jwt-rooms", 2, "lax"),
        # One collection has columns for the nick and for the relay's own id.
        _room("attic", "directus", 1, "columns", spoken="{text}"), _room("vault", "directus", 2, "plain"),
        # An answer with the server's id and our reference, history by a call; and an echo under our id, history by a frame.
        _room("yard", "custom", 1, "ack"), _room("mill", "custom", 2, "echo"),
    )
}


def rooms_of(wire):
    return [room for room in ROOMS.values() if room.wire.name == wire]


# An IRC client: the account (None: a guest), the capabilities that it asks for, and whether it fetches what it missed.
Client = collections.namedtuple("Client", "name caps account asks")
MODERN = (
    "sasl", "server-time", "message-tags", "batch", "echo-message", "labeled-response", "account-tag",
    "standard-replies",
)


def _client(name, caps, is_guest=False, asks=False):
    return Client(name, caps, None if is_guest else name.partition("@")[0], asks)


CLIENTS = {
    client.name: client
    for client in (
        _client("alice@one", MODERN),
        # Nothing that modern clients have, of the same account: no echo, no times, no tags.
        _client("alice@two", ("sasl",)),
        _client("bob@desk", MODERN),
        _client("carol@phone", ("sasl", "server-time", "message-tags", "account-tag")),
        _client("dora@web", MODERN + ("draft/chathistory",), asks=True),
        _client("eve@guest", MODERN[1:], is_guest=True),
    )
}


def nick_of(client):
    """What the client is called on IRC, and upstream where people have names: the account's name, for those with one."""
    return client.partition("@")[0]


# MARK: - Numbers

# `author:room:number` begins every message. An author is a client, or a person upstream.
Key = collections.namedtuple("Key", "author room number")
_KEY = re.compile(r"([A-Za-z]+[-@][a-z]+):([a-z]+):(\d+)(?!\d)")


def key_text(key):
    return "%s:%s:%d" % key


def read_key(text):
    """The key at the beginning of `text`; None: it is no message of the soak."""
    match = _KEY.match(text)
    return Key(match[1], match[2], int(match[3])) if match else None


def find_keys(text):
    """Every key that stands anywhere in `text`."""
    return [Key(author, room, int(number)) for author, room, number in _KEY.findall(text)]


def is_from_irc(key):
    return "@" in key.author


# What follows the number: enough kinds of text to be cut, folded or escaped wrongly somewhere.
_TAILS = (
    "", " and so on", " ütf-8 → 🐙 ok", " \"quoted\" \\ back / slash", " two  blanks", " :colon first",
    " " + "long " * 40 + "end", " ampersand & <tag> %41 {brace}",
)


def compose(key, random):
    return key_text(key) + random.choice(_TAILS)


# MARK: - As a file


def described():
    """The part of plan.json that is the same in every run; README.md says what it means."""
    return {
        "wires": {
            wire.name: {
                "ids": wire.ids, "history": wire.history, "identity": wire.identity, "confirms": wire.confirms,
                "second": wire.second, "logins": wire.logins, "token": wire.token, "closes": wire.closes,
            } for wire in WIRES.values()
        },
        "rooms": {
            room.name: {
                "wire": room.wire.name, "account": room.account, "spoken": room.spoken, "people": room.people,
            } for room in ROOMS.values()
        },
        "clients": {
            client.name: {
                "nick": nick_of(client.name), "account": client.account, "caps": list(client.caps), "asks": client.asks,
            } for client in CLIENTS.values()
        },
    }
