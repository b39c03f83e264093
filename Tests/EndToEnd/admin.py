"""Commands at a running bridge that change it: reload and forget, by the program from outside."""

import glob
import json
import os
import socket
import subprocess
import urllib.request

import peer
from accounts import account
from peer import wait_until
from restarts import folder, kill, log_in_as
from world import scenario

HTTP = '[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["health", "metrics", "status"]\ntoken = "0123456789abcdef"'
WORD = "unspeakable"


def command(bridge, *words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHATBRIDGE")}
    return subprocess.run(
        # By the configuration, also while that has errors.
        [peer.BINARY_PATH, *words, "--config", bridge.config_path], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60, env=environment)


def done(bridge, *words):
    ran = command(bridge, *words)
    assert ran.returncode == 0, ran
    return ran.stdout


def change(bridge, *pairs):
    with open(bridge.config_path, encoding="utf-8") as file:
        text = file.read()
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after)
    with open(bridge.config_path, "w", encoding="utf-8") as file:
        file.write(text)


def fetch(bridge, path):
    entries = wait_until(lambda: bridge.log_entries("listening-http"), "HTTP is served")
    request = urllib.request.Request(
        "http://%s%s" % (entries[0]["address"], path), headers={"Authorization": "Bearer 0123456789abcdef"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def metric(bridge, name):
    return float(next(line for line in fetch(bridge, "/metrics").splitlines() if line.startswith(name + " ")).split()[1])


@scenario
def a_reload_tells_its_outcome(world):
    bridge = world.start(rooms=("lobby", "den"), tables=HTTP)
    ann, bob = world.irc("ann"), world.plain("bob", "#den")
    last = "chatbridge_config_last_reload_"
    begun = metric(bridge, last + "success_timestamp_seconds")
    assert metric(bridge, last + "successful") == 1 and begun > 0
    assert done(bridge, "reload") == "the configuration is the same\n"
    change(
        bridge, ('name = "den"', 'name = "attic"'), ('name = "lobby"\n', 'name = "lobby"\ntopic = "soup"\n'),
        ('name = "bridge.test"', 'name = "other.test"'))
    assert done(bridge, "reload").splitlines() == [
        "rooms opened: attic", "rooms closed: den", "rooms changed: lobby", "in force after a restart: server.name"]
    assert bob.expect("PART").params[0] == "#den"
    assert ann.expect("TOPIC").params == ["#lobby", "soup"]
    bridge.logged("admin-request", "info", "request", "user")

    change(bridge, ('topic = "soup"', 'topik = "soup"\nkeep = 7'))
    refused = command(bridge, "reload")
    assert refused.returncode == 78 and not refused.stdout, refused
    problems = refused.stderr.splitlines()
    assert len(problems) == 3 and all("chatbridge.toml:" in line for line in problems[:2]), problems
    assert "topik" in problems[0] and "keep" in problems[1] and "nothing was changed" in problems[2], problems
    assert "! reload: refused " in done(bridge, "status")
    assert metric(bridge, last + "successful") == 0
    trouble = [t for t in json.loads(fetch(bridge, "/status.json"))["troubles"] if t["subject"] == "reload"]
    assert len(trouble) == 1 and "topik" in trouble[0]["text"], trouble
    world.person("remy").say("as before")
    ann.expect_text("as before")

    change(bridge, ('topik = "soup"\nkeep = 7', 'topic = "stew"'))
    assert done(bridge, "reload") == "rooms changed: lobby\nin force after a restart: server.name\n"
    assert metric(bridge, last + "successful") == 1 and "refused" not in done(bridge, "status")
    assert metric(bridge, last + "success_timestamp_seconds") >= begun


@scenario
def a_last_request_needs_no_newline(world):
    bridge = world.start()
    # As `printf '{"request":"status"}' | nc -NU admin.sock` sends it.
    with socket.socket(socket.AF_UNIX) as local:
        local.settimeout(10)
        local.connect(os.path.join(bridge.directory, "state", "admin.sock"))
        local.sendall(b'{"request":"history","room":"lobby"}\n{"request":"status"}')
        local.shutdown(socket.SHUT_WR)
        answers = local.makefile("rb").read().splitlines()
    assert len(answers) == 2 and all(line.startswith(b'{"done":') for line in answers), answers


@scenario
def another_user_is_told_that_the_socket_is_not_theirs(world):
    bridge = world.start()
    # Root may open all, unless its capabilities are taken away.
    unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    state = os.path.join(bridge.directory, "state")
    os.chmod(state, 0)
    try:
        ran = subprocess.run(
            [*unprivileged, peer.BINARY_PATH, "status", "--socket", os.path.join(state, "admin.sock")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    finally:
        os.chmod(state, 0o700)
    assert ran.returncode == 77 and "may not open the admin socket" in ran.stderr, ran


def traces(bridge):
    """How often the word stands in the files of the database."""
    return sum(open(path, "rb").read().count(WORD.encode()) for path in glob.glob(bridge.directory + "/state/chatbridge.db*"))


def history(bridge):
    rows = [json.loads(line) for line in done(bridge, "history", "lobby", "--json").splitlines()]
    return [row for row in rows if row["kind"] == "message"]


def talk(world, **options):
    """A bridge with an account's words, those of an upstream user, and those of a third."""
    people = '[identity]\n%s' % account("Ada", "secret-of-ada")
    bridge = world.start(server_extra=people, **options)
    ada, zoe = log_in_as(world, "Ada@phone", "secret-of-ada", "ada", "#lobby"), world.irc("zoe")
    remy = world.person("remy")
    for number in range(3):
        ada.say("#lobby", "%s %d of ada" % (WORD, number))
        zoe.expect_text("%s %d of ada" % (WORD, number))
    remy.say("%s of remy" % WORD)
    zoe.expect_text("%s of remy" % WORD)
    zoe.say("#lobby", "a word of zoe")
    ada.expect_text("a word of zoe")
    # Its own text is quoted by nobody, and waits.
    done(bridge, "rooms", "disable", "lobby")
    ada.say("#lobby", "%s that waits" % WORD)
    ada.barrier()
    return bridge, ada, zoe, remy


def erase_both(world, bridge, ada, zoe):
    refused = command(bridge, "forget", "ada")
    assert refused.returncode == 64 and "--yes" in refused.stderr, refused
    assert command(bridge, "forget", "nobody", "--yes").returncode == 65
    told = done(bridge, "forget", "ada", "--yes")
    assert told.startswith("erased the account Ada, now ada: 3 messages"), told
    assert "1 message waits for the backend" in told and "not reached: the backend" in told, told
    ada.expect("ERROR")
    rows = history(bridge)
    assert [row.get("deleted", False) for row in rows] == [True] * 3 + [False] * 2, rows
    assert all(not row.get("text") and not row.get("nick") and not row.get("source") for row in rows[:3]), rows
    # The one that waits was accepted: it is sent, and erased then.
    done(bridge, "rooms", "enable", "lobby")
    zoe.expect_text("%s that waits" % WORD)
    rows = wait_until(lambda: (rows := history(bridge)) and len(rows) == 6 and rows, "the last message has arrived")
    assert rows[-1]["deleted"] and not rows[-1].get("text") and not rows[-1].get("nick"), rows
    told = done(bridge, "forget", "remy", "--yes")
    assert told.startswith("erased ") and "@lobby, now remy: 1 message" in told, told
    rows = history(bridge)
    assert not any(WORD in json.dumps(row) or "remy" in json.dumps(row) for row in rows), rows
    assert [row.get("text") for row in rows if row.get("text")] == ["a word of zoe"], rows
    assert len({row["msgid"] for row in rows}) == 6 and all(row["at"] for row in rows), rows


@scenario
def a_person_is_erased_from_the_database(world):
    bridge, ada, zoe, _ = talk(world, directory=folder(world))
    assert traces(bridge) > 0
    erase_both(world, bridge, ada, zoe)
    assert traces(bridge) == 0
    entry = bridge.logged("admin-request", "info", "request", "user", "room")
    assert "ada" not in json.dumps(bridge.log_entries("admin-request")).lower(), entry
    # A client sees them as it sees any deleted one, also after a crash.
    kill(world)
    bridge = world.start(directory=bridge.directory, server_extra='[identity]\n%s' % account("Ada", "secret-of-ada"))
    zoe = world.irc("zoe")
    zoe.send("CAP REQ :draft/chathistory", "CHATHISTORY LATEST #lobby * 50")
    zoe.expect_text("a word of zoe")
    assert len(history(bridge)) == 6
    assert not any(WORD in line.raw for line in zoe.lines)
    again = done(bridge, "forget", "ada", "--yes")
    assert "nothing was there" in again, again


@scenario
def a_person_is_erased_from_memory(world):
    bridge, ada, zoe, _ = talk(world, tables='[storage]\nurl = "memory:"')
    erase_both(world, bridge, ada, zoe)
