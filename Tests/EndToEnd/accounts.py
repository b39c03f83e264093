"""Log-in: SASL PLAIN and PASS, over sockets, with hashes made by `chatbridge hash-password`."""

import base64
import functools
import os
import pty
import subprocess
import termios
import time

import peer
from marks import alone
from peer import IRC
from world import scenario


@functools.lru_cache
def hashed(password, iterations=4096):
    made = subprocess.run(
        [peer.BINARY_PATH, "hash-password", "--iterations=%d" % iterations], input=password + "\n",
        capture_output=True, text=True, timeout=60)
    assert made.returncode == 0 and made.stdout.startswith("$scram-sha-256$%d$" % iterations), made
    return made.stdout.strip()


def account(name, password, extra="", iterations=4096):
    return '[[accounts]]\nname = "%s"\npassword = "%s"\n%s\n' % (name, hashed(password, iterations), extra)


@alone("it looks at a terminal")
@scenario
def an_interrupted_password_leaves_the_terminal_as_it_was(world):
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    asked = subprocess.Popen(
        [peer.BINARY_PATH, "hash-password"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    world.stack.callback(lambda: [asked.kill(), os.close(ours), os.close(theirs)])
    assert os.read(asked.stderr.fileno(), 100) == b"Password: "
    assert not termios.tcgetattr(theirs)[3] & termios.ECHO
    os.write(ours, b"half a passw\x03")
    assert asked.wait(timeout=10) == 130 and b"interrupted" in asked.stderr.read() and not asked.stdout.read()
    assert termios.tcgetattr(theirs) == before


def start(world, *accounts, identity=""):
    # `server_extra` stands behind [server], and other tables may follow it.
    return world.start(server_extra="[identity]\n%s\n%s" % (identity, "\n".join(accounts)))


def client(world):
    link = IRC(world.bridge.port)
    world.stack.callback(link.close)
    return link


def respond(link, name, password):
    message = base64.b64encode(b"\0%s\0%s" % (name.encode(), password.encode())).decode()
    for at in range(0, len(message), 400):
        link.send("AUTHENTICATE " + message[at : at + 400])
    if len(message) % 400 == 0:
        link.send("AUTHENTICATE +")


def log_in(world, name, password, nick=None, caps="sasl"):
    link = client(world)
    link.nick = nick or name
    link.send("CAP LS 302", "NICK " + link.nick, "USER u 0 * :u", "CAP REQ :" + caps)
    link.expect("CAP", lambda line: line.params[1] == "LS" and "sasl=PLAIN,SCRAM-SHA-256" in line.params[-1].split())
    link.expect("CAP", lambda line: line.params[1] == "ACK")
    link.send("AUTHENTICATE PLAIN")
    link.expect("AUTHENTICATE", lambda line: line.params == ["+"])
    respond(link, name, password)
    return link


@scenario
def sasl_plain_logs_in_and_is_one_person_upstream(world):
    start(world, account("alice", "secret"))
    remy = world.person("Remy")
    ids = []
    for nick in ("alice", "al"):
        link = log_in(world, "alice", "secret", nick)
        link.expect("900", lambda line: line.params[2] == "alice")
        link.expect("903")
        link.send("CAP END")
        link.expect("001", lambda line: line.params[0] == nick)
        link.join("#lobby")
        link.say("#lobby", "as " + nick)
        ids.append(remy.expect_message("as " + nick)["sender_id"])
        link.send("QUIT")
        link.expect("ERROR")
    assert ids[0] == ids[1], ids
    log = world.bridge.log()
    assert "secret" not in log and "scram" not in log


@scenario
def a_long_password_comes_in_pieces(world):
    password = "x" * 255
    start(world, account("alice", password))
    log_in(world, "alice", password).expect("903")
    log_in(world, "alice", password + "x").expect("904")


@scenario
@alone("compares how long two refusals take")
def wrong_passwords_and_unknown_names_take_equally_long(world):
    start(world, account("alice", "secret", iterations=400_000))
    slow = []
    for name in ("alice", "nobody"):
        link = log_in(world, name, "wrong")
        began = time.monotonic()
        link.expect("904")
        slow.append(time.monotonic() - began)
        # Starts the count of failures anew, so that neither waits for the other.
        log_in(world, "alice", "secret").expect("903")
    assert all(seconds > 0.02 for seconds in slow), slow
    assert max(slow) < 4 * min(slow) + 0.2, slow
    return "%.0f ms and %.0f ms" % (slow[0] * 1000, slow[1] * 1000)


@scenario
@alone("measures how long others wait under load")
def checking_passwords_does_not_stop_the_relay(world):
    start(world, account("alice", "secret", iterations=600_000))
    bob, remy = world.irc("bob"), world.person("Remy")
    links = [log_in(world, "alice", "secret", "a%d" % number) for number in range(6)]
    worst, count, started = 0.0, 0, time.monotonic()
    while not all(any(line.command == "903" for line in link.lines) for link in links):
        began = time.monotonic()
        remy.say("meanwhile %d" % count)
        bob.expect_text("meanwhile %d" % count)
        worst = max(worst, time.monotonic() - began)
        count += 1
        for link in links:
            link.pump()
        assert time.monotonic() - started < 120, "six logins take longer than two minutes"
    assert worst < 1.5, "a message took %.2f s while passwords were checked" % worst
    return "%d messages meanwhile, the slowest took %.0f ms" % (count, worst * 1000)


@scenario
def too_many_logins_at_once_are_told_so(world):
    start(world, account("alice", "secret", iterations=2_000_000))
    links = []
    for number in range(80):
        link = client(world)
        link.nick = "a%d" % number
        link.send("CAP REQ sasl", "AUTHENTICATE PLAIN")
        respond(link, "alice", "secret")
        links.append(link)
    refused = 0
    for link in links[70:]:
        link.expect("904", lambda line: "try again" in line.params[-1])
        refused += 1
    world.bridge.check_alive()
    return "%d refused at once" % refused


@scenario
def a_server_password_may_be_hashed(world):
    start(world, identity='password = "%s"' % hashed("sesame"))
    link = client(world)
    link.send("PASS sesame", "NICK ann", "USER a 0 * :a")
    link.expect("001")
    link = client(world)
    link.send("PASS sesam", "NICK ann2", "USER a 0 * :a")
    link.expect("464")
    link.expect("ERROR")


@scenario
def everybody_must_log_in_where_the_operator_says_so(world):
    start(world, account("alice", "secret"), identity='require_login = "always"')
    link = client(world)
    link.send("CAP LS 302", "CAP REQ standard-replies", "NICK eve", "USER e 0 * :e", "CAP END")
    link.expect("464")
    link.expect("FAIL", lambda line: line.params[:2] == ["*", "ACCOUNT_REQUIRED"])
    link.expect("ERROR")
    link = client(world)
    link.send("PASS alice:secret", "NICK alice", "USER a 0 * :a")
    link.expect("001", lambda line: line.params[0] == "alice")


@scenario
def two_clients_of_one_account_are_one_person(world):
    start(world, account("alice", "secret"))
    bob = world.irc("bob")
    desk, phone = (log_in(world, "alice", "secret", nick, "sasl echo-message") for nick in ("alice", "phone"))
    for link in (desk, phone):
        link.expect("903")
        link.send("CAP END")
        link.expect("001", lambda line: line.params[0] == "alice")
    desk.join("#lobby")
    phone.expect("JOIN", lambda line: line.params[0] == "#lobby")
    phone.expect("366")
    phone.say("#lobby", "from the phone")
    for link in (desk, phone, bob):
        link.expect_text("from the phone")
    desk.send("QUIT")
    desk.expect("ERROR")
    bob.say("#lobby", "still there?")
    phone.expect_text("still there?")
    bob.barrier()
    assert not any(line.command == "QUIT" for line in bob.lines), "the person left with one of two clients"
    assert sum(line.command == "JOIN" and line.source.startswith("alice!") for line in bob.lines) == 1
