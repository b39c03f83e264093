"""Who is where in the soak, and how its messages are numbered: what all of its processes agree on."""

import collections
import os
import random
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
        Wire("home", "server", True, "single", True),
        Wire("shapes", "server", False, "single", True),
    )
}

PREFIXED = "<{nick}> {text}"
# {wire or room: the account that speaks for all}. Rooms of two logins have two, so that no nick is that of both.
ACCOUNTS = {
    "jwt-rooms": "ferry", "attic": "Barge", "vault": "Punt", "home": "Skiff",
    "weir": "Raft", "ford": "Canoe", "brook": "Kayak", "tarn": "Dory",
}
# {wire: the topic that its rooms have upstream}. The configuration's replaces it.
TOPICS = {"home": "all things"}
# Plain, TLS, WebSocket, and HTTP for hooks.
LISTENER_COUNT = 4
# How many clients there are in all, where it is to be a crowd.
SIZE = int(os.environ.get("SOAK_CLIENTS", "0"))


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


# Two rooms on most wires.
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
        # By descriptions that `chatbridge learn` proposed; `kind` is the shape.
        _room("den", "home", 1, "home"),
        _room("weir", "shapes", 1, "echo"), _room("ford", "shapes", 2, "plain"),
        _room("brook", "shapes", 3, "socketio"), _room("tarn", "shapes", 4, "phoenix"),
    )
}

# Rooms that a reload of the configuration closes and opens again. Their backends have them all the time.
PASSING = {
    room.name: room
    for room in (
        _room("cove", "typed", 3), _room("nook", "envelope", 3), _room("moor", "swiftchat", 3),
        _room("shed", "plainjson", 3, "acks"), _room("glen", "jwt-rooms", 3, "lax"), _room("croft", "custom", 3, "echo"),
        _room("hut", "home", 2, "home"),
    )
}
EVERY_ROOM = ROOMS | PASSING

# Rooms of mirrors, where the others are not; see mirroring.py. The last one is a room of another relay.
MIRRORED = {
    room.name: room
    for room in (_room(name, "typed", number) for number, name in enumerate(
        ("wharf", "haven", "canal", "isle", "cape", "strait"), 4))
}

# Sockets of the relay that mirrors keep: of the other relay's room there is the client of its network.
MIRROR_SOCKETS = {"mirrors": len(MIRRORED) - 1, "network": 1, "tools": 2}


def rooms_of(wire):
    return [room for room in EVERY_ROOM.values() if room.wire.name == wire]


# An IRC client: the account (None: a guest), the capabilities that it asks for, whether it fetches what it missed, its
# rooms, and how it comes: "irc", "ircs" over TLS, "web" over a WebSocket; or a person in plain mode, by telnet in "character"
# or in "line" mode, or by "nc". `talk` is by how much longer its pauses are.
Client = collections.namedtuple("Client", "name caps account asks rooms via talk")
MODERN = (
    "sasl", "server-time", "message-tags", "batch", "echo-message", "labeled-response", "account-tag",
    "standard-replies",
)


def _client(name, caps, is_guest=False, asks=False, rooms=tuple(EVERY_ROOM), via="irc", talk=1):
    return Client(name, caps, None if is_guest else name.partition("@")[0], asks, rooms, via, talk)


CLIENTS = {
    client.name: client
    for client in (
        _client("alice@one", MODERN),
        # Nothing that modern clients have, of the same account: no echo, no times, no tags.
        _client("alice@two", ("sasl",)),
        _client("bob@desk", MODERN, via="ircs"),
        _client("carol@phone", ("sasl", "server-time", "message-tags", "account-tag")),
        # A browser's page.
        _client("dora@web", MODERN + ("draft/chathistory",), asks=True, via="web"),
        _client("eve@guest", MODERN[1:], is_guest=True),
        # Its account comes and goes.
        _client("gus@tent", MODERN[:3] + MODERN[4:], rooms=tuple(PASSING)),
        # People in plain mode: the first room is in front of them. Only by keys are their own messages shown to them.
        _client("hal@keys", ("echo-message",), rooms=("reef", "loft"), via="character", talk=2),
        _client("ivy@lines", (), rooms=("kelp", "dock"), via="line", talk=2),
        _client("joe@pipe", (), is_guest=True, rooms=("reef", "mill"), via="nc", talk=2),
    )
}
PEOPLE = {name: client for name, client in CLIENTS.items() if client.via in ("character", "line", "nc")}
PASSING_ACCOUNTS = ("gus",)
# {process: its clients}
PROCESSES = {name: [name] for name in CLIENTS}

# Of the crowd: clients of an account and of a process, rooms of each, and one account in so many is none but a guest.
# They say little, so that what is said grows with the rooms and not with the clients.
_DEVICES, _TOGETHER, _ROOMS_EACH, _GUESTS, _PAUSES = 4, 20, 2, 20, 100

# No two names of these look alike.
_LETTERS = "abdefghkpstxyz"


def _crowd(size):
    number = 0
    while len(CLIENTS) < size:
        letters = "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in (2, 1, 0))
        rooms = tuple(random.Random(number).sample(sorted(EVERY_ROOM), _ROOMS_EACH))
        is_guest = number % _GUESTS == _GUESTS - 1
        for device in "abcd"[:1 if is_guest else _DEVICES]:
            if len(CLIENTS) < size:
                name = "c%s@%s" % (letters, device)
                CLIENTS[name] = _client(
                    name, MODERN[1:3] + MODERN[4:] if is_guest else ("sasl",) + MODERN[1:3] + MODERN[6:7], is_guest,
                    rooms=rooms, talk=_PAUSES)
                PROCESSES.setdefault("crowd-%d" % (len(CLIENTS) // _TOGETHER), []).append(name)
        number += 1


_crowd(SIZE)


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


def _rooms_described(rooms):
    return {
        room.name: {
            "wire": room.wire.name, "account": room.account, "spoken": room.spoken, "people": room.people,
        } for room in rooms.values()
    }


def described():
    """The part of plan.json that is the same in every run of this size; README.md says what it means."""
    return {
        "wires": {
            wire.name: {
                "ids": wire.ids, "history": wire.history, "identity": wire.identity, "confirms": wire.confirms,
                "second": wire.second, "logins": wire.logins, "token": wire.token, "closes": wire.closes,
            } for wire in WIRES.values()
        },
        "listeners": LISTENER_COUNT,
        "sockets": MIRROR_SOCKETS,
        "rooms": _rooms_described(ROOMS),
        "passing": _rooms_described(PASSING),
        "clients": {
            client.name: {
                "nick": nick_of(client.name), "account": client.account, "caps": list(client.caps), "asks": client.asks,
                "rooms": list(client.rooms), "via": client.via,
            } for client in CLIENTS.values()
        },
    }
