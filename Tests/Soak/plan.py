"""Who is where in the soak, and how its messages are numbered: what all of its processes agree on."""

import collections
import re

# A way of speaking to a backend, and what follows from it.
#   ids       who gives a message its id: "client" or "server"
#   history   whether the backend tells what was said before
Wire = collections.namedtuple("Wire", "name ids history")
WIRES = {
    wire.name: wire
    for wire in (
        Wire("typed", ids="client", history=True),
        Wire("envelope", ids="client", history=False),
        Wire("swiftchat", ids="server", history=False),
    )
}

# Two rooms on each wire; a room's channel is its name behind "#".
ROOMS = {
    "reef": WIRES["typed"], "kelp": WIRES["typed"],
    "loft": WIRES["envelope"], "quad": WIRES["envelope"],
    "dock": WIRES["swiftchat"], "pier": WIRES["swiftchat"],
}

# A person upstream is in one room alone, so that nobody's nick depends on who came first.
def people(room):
    return ["Ann-" + room, "Ben-" + room]


# An IRC client: the account and the client's name in it, and the capabilities that it asks for.
Client = collections.namedtuple("Client", "name caps")
MODERN = (
    "sasl", "server-time", "message-tags", "batch", "echo-message", "labeled-response", "account-tag",
    "standard-replies",
)
CLIENTS = {
    client.name: client
    for client in (
        Client("alice@one", MODERN),
        # Nothing that modern clients have, of the same account: no echo, no times, no tags.
        Client("alice@two", ("sasl",)),
        Client("bob@desk", MODERN),
        Client("carol@phone", ("sasl", "server-time", "message-tags", "account-tag")),
    )
}


def account_of(client):
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


# What follows the number: enough kinds of text to be cut, folded or escaped wrongly somewhere.
_TAILS = (
    "", " and so on", " ütf-8 → 🐙 ok", " \"quoted\" \\ back / slash", " two  blanks", " :colon first",
    " " + "long " * 40 + "end", " ampersand & <tag> %41 {brace}",
)


def compose(key, random):
    return key_text(key) + random.choice(_TAILS)
