"""The relay's configuration: what is in force, changes of it that a reload takes up, and files that it must refuse.

A state is plain data, so that the record of a run has it whole; README.md says what it means.
"""

import copy
import json
import os
import subprocess

import shapes_app
from plan import ACCOUNTS, CLIENTS, EVERY_ROOM, PASSING, PASSING_ACCOUNTS, ROOMS
from wires import PASSWORD as UPSTREAM_PASSWORD

HERE = os.path.dirname(os.path.abspath(__file__))
PASSWORDS = tuple("soak-5b1d-%d" % number for number in range(3))
CERTIFICATES = 3
# Shapes whose description is learned, each as a dialect of its name.
LEARNED = sorted({room.kind for room in EVERY_ROOM.values() if room.wire.name in ("home", "shapes")})
# Limits of which another value changes nothing for anybody here.
LIMITS = {
    "max_clients": (1000, 1500, 2000), "registration_timeout": ('"1m"', '"2m"'), "ping_timeout": ('"5s"', '"6s"'),
    "sendq": ('"1MiB"', '"2MiB"'), "history_limit": (500, 400), "template_rooms": (100, 50),
}
# Rooms whose link takes a header of the handshake, as a proxy in front of a backend may want one.
HEADED = tuple(name for name, room in EVERY_ROOM.items() if room.wire.name in ("typed", "envelope", "plainjson"))
# Of each kind of change, how often it comes.
CHANGES = {
    "room": 5, "topic": 3, "password": 2, "admin": 1, "rooms": 2, "account": 1, "limit": 2, "certificate": 1, "link": 1}
# How many changes lie in one reload, at most; and how often the file is broken.
MOST_CHANGES, BROKEN_SHARE = 3, 0.25


def first_state():
    names = sorted({client.account for client in CLIENTS.values()} - {None})
    return {
        "open": sorted(PASSING), "topics": {},
        "accounts": {name: {"password": 0, "admin": False, "rooms": ["*"]} for name in names},
        "limits": {}, "headers": {}, "certificate": 0,
    }


def last_state(state):
    """With all rooms and accounts, so that what waited for them can come."""
    whole, first = copy.deepcopy(state), first_state()
    whole["open"] = first["open"]
    for name, account in first["accounts"].items():
        whole["accounts"].setdefault(name, account)["rooms"] = ["*"]
    return whole


def changed(state, number, source):
    """(another state, [what differs]); `number` is what nobody has had before."""
    state, told = copy.deepcopy(state), []
    wanted = {source.choices(list(CHANGES), list(CHANGES.values()))[0] for _ in range(source.randint(1, MOST_CHANGES))}
    for kind in sorted(wanted):
        told.append("%s %s" % (kind, _CHANGE[kind](state, number, source)))
    return state, told


def _room(state, number, source):
    name = source.choice(sorted(PASSING))
    if name in state["open"]:
        state["open"].remove(name)
        return "-" + name
    state["open"] = sorted([*state["open"], name])
    return "+" + name


def _topic(state, number, source):
    name = source.choice(sorted(EVERY_ROOM))
    state["topics"][name] = "topic %d of %s" % (number, name)
    return name


def _of_any_account(change):
    def apply(state, number, source):
        name = source.choice(sorted(state["accounts"]))
        change(state["accounts"][name], source)
        return name
    return apply


def _password(account, source):
    account["password"] = (account["password"] + source.randrange(1, len(PASSWORDS))) % len(PASSWORDS)


def _admin(account, source):
    account["admin"] = not account["admin"]


def _rooms(account, source):
    # Of those that stay always, each.
    passing = sorted(source.sample(sorted(PASSING), source.randint(1, len(PASSING) - 1)))
    account["rooms"] = ["*"] if account["rooms"] != ["*"] else [*sorted(ROOMS), *passing]


def _account(state, number, source):
    name = source.choice(PASSING_ACCOUNTS)
    if state["accounts"].pop(name, None):
        return "-" + name
    state["accounts"][name] = first_state()["accounts"][name]
    return "+" + name


def _limit(state, number, source):
    name = source.choice(sorted(LIMITS))
    values = LIMITS[name]
    state["limits"][name] = source.choice([value for value in values if value != state["limits"].get(name, values[0])])
    return name


def _certificate(state, number, source):
    state["certificate"] = (state["certificate"] + 1) % CERTIFICATES
    return str(state["certificate"])


def _link(state, number, source):
    name = source.choice(HEADED)
    state["headers"][name] = number
    return name


_CHANGE = {
    "room": _room, "topic": _topic, "password": _of_any_account(_password), "admin": _of_any_account(_admin),
    "rooms": _of_any_account(_rooms), "account": _account, "limit": _limit, "certificate": _certificate, "link": _link}


def broken(text, source):
    """(what is wrong, a file that must be refused)"""
    return source.choice((
        ("unknown key", text.replace('name = "reef"', 'name = "reef"\ntopik = "x"')),
        ("unknown table", text + '\n[weather]\nwind = "west"\n'),
        ("no TOML", text.replace("[limits]", "[limits")),
        ("cut off", text[:text.index('name = "kelp"') + len('name = "ke')]),
        ("empty", ""),
        ("wrong type", text.replace("[limits]", '[limits]\nrecvq = "much"')),
        ("out of range", text.replace("[limits]", "[limits]\nrecvq = 1")),
        ("same room twice", text + '\n[[rooms]]\nname = "reef"\nbackend = "typed"\n'),
        ("no such backend", text.replace('backend = "typed"', 'backend = "typd"', 1)),
        ("no such room of an account", text + '\n[[accounts]]\nname = "zoe"\npassword = "x"\nrooms = ["reaf"]\n'),
        ("no dialect", text.replace('dialect = "envelope"', 'dialect = "envelop"')),
        ("secret file missing", text.replace("upstream.secret", "upstream.secrets", 1)),
        ("two accounts", text + '\n[[accounts]]\nname = "alice"\npassword = "x"\n'),
    ))


class Configuration:
    """The file, and what it needs beside it."""

    def __init__(self, binary, directory, max_age, ports, more=""):
        self.binary, self.directory, self.max_age, self.ports, self.more = binary, directory, max_age, ports, more
        self.hashes = [
            subprocess.run(
                [binary, "hash-password", "--iterations=4096"], input=password + "\n", capture_output=True, text=True,
                check=True).stdout.strip() for password in PASSWORDS]
        self.write("upstream.secret", UPSTREAM_PASSWORD + "\n")
        for name in LEARNED:
            self.learn(name)
        self.certificates = []
        for number in range(CERTIFICATES):
            folder = self.path("certificate.%d" % number)
            os.mkdir(folder)
            subprocess.run(
                [binary, "cert", "self-signed", "--name", "relay.soak", "--out", folder], check=True,
                stdout=subprocess.DEVNULL)
            with open(os.path.join(folder, "cert.pem"), encoding="ascii") as cert:
                with open(os.path.join(folder, "key.pem"), encoding="ascii") as key:
                    self.certificates.append((cert.read(), key.read()))

    def learn(self, name):
        """The description as it is proposed for a recording of the shape's app, corrected as a person would."""
        folder = self.path("learned." + name)
        os.mkdir(folder)
        shape = shapes_app.Shape(name)
        try:
            shapes_app.learn(self.binary, folder, shapes_app.record(shape))
        finally:
            shape.stop()
        shapes_app.correct(os.path.join(folder, "mine.json"), shapes_app.CORRECTIONS.get(name, {}))

    def number_of(self, certificate):
        """Which one that is; None: none of them."""
        return next((
            number for number, (known, _) in enumerate(self.certificates) if known.split() == certificate.split()), None)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def write(self, name, text):
        """Whole, or not at all."""
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name + ".new"), 0o600)
        os.rename(self.path(name + ".new"), self.path(name))

    def install(self, state, before=None):
        """For the relay's next look. Whoever logs in may find that the one before is still in force."""
        passwords = {}
        for one in (state, before or state):
            for name, account in one["accounts"].items():
                password = PASSWORDS[account["password"]]
                if password not in passwords.setdefault(name, []):
                    passwords[name].append(password)
        self.write("passwords", json.dumps(passwords))
        if before is None or before["certificate"] != state["certificate"]:
            cert, key = self.certificates[state["certificate"]]
            self.write("key.pem", key)
            self.write("cert.pem", cert)
        self.write("chatbridge.toml", self.text(state))

    def text(self, state):
        limits = {name: values[0] for name, values in LIMITS.items()} | state["limits"]
        text = [
            '[server]\nname = "relay.soak"\nstate_dir = "%s"' % self.path("state"),
            '[[listeners]]\nbind = "irc://127.0.0.1:0"',
            '[[listeners]]\nbind = "ircs://127.0.0.1:0"\ncert = "%s"\nkey = "%s"' % (
                self.path("cert.pem"), self.path("key.pem")),
            '[[listeners]]\nbind = "ws://127.0.0.1:0/irc"',
            '[room_defaults]\nbackoff = { min = "200ms", max = "1s", jitter = 0.25 }\nping = "3s"\n'
            # What the checkers count, a guest gets once it is in the room.
            'history_on_join = 0\n'
            'pong_timeout = "3s"\nconnect_timeout = "3s"\nhandshake_timeout = "3s"\nqueue = { max_age = "%ds" }'
            % self.max_age,
            '[limits]\nmessages_per_second = "off"\nupstream_messages_per_second = "off"\n'
            'upstream_connects_per_second = "off"\nping_interval = "5s"\n'
            + "\n".join("%s = %s" % limit for limit in sorted(limits.items())),
            '[log]\nformat = "json"\nlevel = "info"',
            '[storage]\nurl = "sqlite:chatbridge.db"',
            '[admin]\nsocket = "%s"' % self.path("admin.sock"),
            '[dialects.acked]\nfile = "%s"' % os.path.join(HERE, "ack.json"),
            '[dialects.echoed]\nfile = "%s"' % os.path.join(HERE, "echo.json"),
            *('[dialects.learned-%s]\nfile = "%s"' % (name, self.path("learned." + name, "mine.json")) for name in LEARNED),
            *self._backends(), *self._rooms(state), self.more,
        ]
        for name, account in sorted(state["accounts"].items()):
            text.append('[[accounts]]\nname = "%s"\npassword = "%s"\nadmin = %s\nrooms = %s' % (
                name, self.hashes[account["password"]], str(account["admin"]).lower(),
                json.dumps([room for room in account["rooms"] if room not in PASSING or room in state["open"]])))
        return "\n\n".join(text) + "\n"

    def _backends(self):
        def backend(name, wire, dialect, path, *more):
            keys = ['dialect = "%s"' % dialect, 'url = "ws://127.0.0.1:%d/%s"' % (self.ports[wire], path), *more]
            return "[backends.%s]\n%s" % (name, "\n".join(keys))

        def login(user):
            return 'user = "%s"\npassword_file = "%s"' % (user, self.path("upstream.secret"))

        for wire in ("typed", "envelope", "swiftchat"):
            yield backend(wire, wire, wire, "{room}")
        yield backend(
            "plainjson", "plainjson", "plainjson", "{room}",
            'options = { history_url = "/messages/{room}?since={since}&limit={limit}" }')
        yield backend("jwt-rooms", "jwt-rooms", "jwt-rooms", "ws/chat/{room}", login(ACCOUNTS["jwt-rooms"]))
        yield backend(
            "directus-columns", "directus", "directus", "websocket", login(ACCOUNTS["attic"]),
            "options = { send_sender_name = true, send_client_id = true }")
        yield backend(
            "directus-plain", "directus", "directus", "websocket", login(ACCOUNTS["vault"]),
            'options = { fields = { sender_name = "", client_id = "" } }')
        yield backend("custom-ack", "custom", "acked", "{room}", login("relay"))
        yield backend("custom-echo", "custom", "echoed", "{room}", login("relay"))
        for name in LEARNED:
            if name == "home":
                yield backend(
                    "home-home", "home", "learned-home", "{room}",
                    'auth = { type = "message", token_file = "%s" }' % self.path("learned.home", "token"))
            else:
                yield backend("shapes-" + name, "shapes", "learned-" + name, "{room}")

    def _rooms(self, state):
        for room in EVERY_ROOM.values():
            if room.name in PASSING and room.name not in state["open"]:
                continue
            kind = "-" + room.kind if room.wire.name in ("directus", "custom", "home", "shapes") else ""
            text = '[[rooms]]\nname = "%s"\nbackend = "%s%s"' % (room.name, room.wire.name, kind)
            if room.kind == "phoenix":
                text += '\nupstream_room = "room:%s"' % room.name
            if room.name in state["topics"]:
                text += '\ntopic = "%s"' % state["topics"][room.name]
            if room.name in state["headers"]:
                text += '\nheaders = { X-Soak = "%d" }' % state["headers"][room.name]
            yield text
