"""Guesses at passwords: from one address, from many, for one account and beside its own successes; and users who must not
be locked out.
"""

import base64
import time

import accounts_sasl
from accounts import account, client, start as start_plain
from listeners import plain
from listeners import start as start_listeners
from marks import alone, slow
from peer import OPEN_LIMITS, wait_until
from proxies import PROXIED
from service import ask as ask_service
from world import scenario

# The second refusal of an address waits for 1 s, the third for 2 s; without a delay it takes a few milliseconds.
WAITED = 0.9
PEOPLE = "[identity]\n" + account("victim", "right", "admin = true") + account("mallory", "own")
LIMITS = OPEN_LIMITS + '\naccepts_per_second_per_ip = "off"\nmax_clients_per_ip = 1000'


class Gate:
    """A listener behind a proxy that says of each client whatever address it should have."""

    def __init__(self, world, people=PEOPLE):
        self.world = world
        (self.port,) = start_listeners(
            world, 'bind = "irc://127.0.0.1:0"\n' + PROXIED, identity=people, limits=LIMITS)

    def come(self, address):
        family, to = (6, "::1") if ":" in address else (4, "192.0.2.1")
        link = plain(self.world, self.port, b"PROXY TCP%d %s %s 1 2\r\n" % (family, address.encode(), to.encode()))
        link.nick = "g"
        link.send("CAP LS 302", "NICK g%d" % len(self.world.bridge.log()), "USER u 0 * :u", "CAP REQ sasl")
        link.expect("CAP", lambda line: line.params[1] == "ACK")
        return link

    def ask(self, address, name, password):
        """A login that is on its way."""
        link = self.come(address)
        link.send("AUTHENTICATE PLAIN")
        link.expect("AUTHENTICATE")
        link.send("AUTHENTICATE " + base64.b64encode(("\0%s\0%s" % (name, password)).encode()).decode())
        link.began = time.monotonic()
        return link

    def take(self, address, name, password, patience=None):
        """(whether it was let in, after how many seconds)."""
        link = self.ask(address, name, password)
        answer = wait_until(
            lambda: link.drain() or next((line for line in link.lines if line.command in ("903", "904")), None),
            lambda: "%s at %s is answered; %r" % (name, address, link.lines[-3:]), patience)
        took = time.monotonic() - link.began
        link.close()
        return answer.command == "903", took


def is_let_in(gate, address, name, password, at_once=True, patience=None):
    came, took = gate.take(address, name, password, patience)
    assert came, "%s was refused with the right password" % name
    if at_once:
        assert took < WAITED, "%s waited for %.1f s" % (name, took)
    return took


def is_refused(gate, address, name, password="wrong"):
    came, took = gate.take(address, name, password)
    assert not came
    return took


@scenario
def a_success_of_ones_own_forgives_no_guesses_for_others(world):
    """"a wrong guess for a victim and a right one for oneself in turn are never slowed": now they are."""
    gate = Gate(world)
    waits = []
    for _ in range(3):
        waits.append(is_refused(gate, "203.0.113.7", "victim"))
        is_let_in(gate, "203.0.113.7", "mallory", "own", at_once=False)
    assert waits[2] > WAITED and waits[2] > 3 * waits[0], ["%.2f" % wait for wait in waits]
    return "%.2f s, %.2f s, %.2f s" % tuple(waits)


@scenario
def every_way_in_counts_the_same_guesses(world):
    """OPER, PASS, `*bridge login` and SCRAM, in turn with successes of one's own by each of them."""
    start_plain(world, account("victim", "right", "admin = true"), account("mallory", "own"))
    ways = []

    def guess(way):
        began = time.monotonic()
        if way == "oper":
            mallory.send("OPER victim wrong")
            mallory.expect("464")
        elif way == "service":
            mallory.say("*bridge", "login victim wrong")
            mallory.expect("PRIVMSG", lambda line: "wrong" in line.params[-1] and line.source.startswith("*bridge!"))
        elif way == "pass":
            link = client(world)
            link.send("PASS victim:wrong", "NICK p%d" % len(ways), "USER u 0 * :u")
            link.expect("464")
        else:
            link = client(world)
            accounts_sasl.scram(link, "victim", "wrong", "s%d" % len(ways))
            link.expect("904")
        ways.append((way, time.monotonic() - began))

    mallory = world.plain("mal")
    for way in ("oper", "service", "scram", "pass"):
        mallory.say("*bridge", "login mallory own")
        mallory.expect("900")
        guess(way)
        ask_service(mallory, "logout")
        if len(ways) >= 2 and ways[-1][1] > WAITED:
            break
    assert ways[-1][1] > WAITED, ways
    return ", ".join("%s %.2f s" % way for way in ways)


@scenario
def one_account_is_not_guessed_from_many_addresses(world):
    """Each address tries once: the guesses for one account are slowed all the same, those for as many accounts are not."""
    people = "[identity]\n" + "".join(account("user%d" % number, "right") for number in range(24))
    gate = Gate(world, people)
    for number in range(24):
        gate.take("198.51.100.%d" % number, "user%d" % number, "wrong")
    waiting = []
    for number in range(60):
        waiting.append(gate.ask("203.0.%d.1" % number, "user0", "wrong"))
        # The next one is sent when this was refused, or has been waiting for a while.
        end = time.monotonic() + WAITED
        while time.monotonic() < end and not any(line.command == "904" for line in waiting[-1].lines):
            waiting[-1].pump(0.02)
        if not any(line.command == "904" for line in waiting[-1].lines):
            return "the guess from address number %d waited" % (number + 1)
    raise AssertionError("60 guesses for one account, each from another address, were answered at once")


@scenario
def nobody_is_locked_out_by_strangers(world):
    """Whoever logged in from an address before is let in there at once, however many guess for the account elsewhere."""
    gate = Gate(world)
    is_let_in(gate, "192.0.2.50", "victim", "right")
    is_let_in(gate, "2001:db8:7:7::1", "victim", "right")
    guesses = [gate.ask("203.0.%d.1" % number, "victim", "wrong") for number in range(40)]
    wait_until(
        lambda: sum(any(line.command == "904" for line in link.drain() or link.lines) for link in guesses) >= 2,
        "some are refused")
    is_let_in(gate, "192.0.2.50", "victim", "right")
    # A /64 is one customer.
    is_let_in(gate, "2001:db8:7:7:ffff::2", "victim", "right")
    # Nor does anybody else wait for what is aimed at one account.
    is_let_in(gate, "192.0.2.60", "mallory", "own")


@scenario
@slow("waits out what a stranger's guesses may cost the account's own person, at a new address")
def from_a_new_address_it_is_late_at_most(world):
    """"those of the account only delay, bounded"."""
    gate = Gate(world)
    guesses = [gate.ask("203.0.%d.1" % number, "victim", "wrong") for number in range(60)]
    wait_until(
        lambda: sum(any(line.command == "904" for line in link.drain() or link.lines) for link in guesses) >= 2,
        "some are refused")
    took = is_let_in(gate, "192.0.2.51", "victim", "right", at_once=False, patience=40)
    assert took < 35, took
    # It is known from now on.
    is_let_in(gate, "192.0.2.51", "victim", "right")
    return "%.1f s" % took


@scenario
def guesses_from_an_address_that_is_known_are_slowed_as_any(world):
    """That the account logged in there before forgives nobody at that address the guesses."""
    gate = Gate(world)
    is_let_in(gate, "192.0.2.50", "victim", "right")
    waits = [is_refused(gate, "192.0.2.50", "victim") for _ in range(3)]
    assert waits[2] > WAITED, ["%.2f" % wait for wait in waits]
    # The right one forgives them.
    is_let_in(gate, "192.0.2.50", "victim", "right", at_once=False)
    assert is_refused(gate, "192.0.2.50", "victim") < waits[2] - 0.5


@scenario
def a_success_forgives_the_accounts_own_failures_alone(world):
    """Of guesses for two accounts from one address, the right password of one leaves those for the other."""
    gate = Gate(world)
    for _ in range(2):
        is_refused(gate, "2001:db8:1:2::1", "victim")
    is_refused(gate, "2001:db8:1:2::2", "mallory")
    is_let_in(gate, "2001:db8:1:2:3::4", "mallory", "own", at_once=False)
    wait = is_refused(gate, "2001:db8:1:2:5::6", "victim")
    assert wait > WAITED, "after a success for another account a guess took %.2f s" % wait


@scenario
def unknown_names_ask_for_as_many_rounds_as_real_ones(world):
    """The decoy of SCRAM: which names exist is not to be read off the iterations."""

    def rounds(world, name):
        link = client(world)
        accounts_sasl.begin(link, "SCRAM-SHA-256")
        accounts_sasl.challenge(link)
        accounts_sasl.respond(link, accounts_sasl.Scram(name, "x").first)
        heard = dict(part.split("=", 1) for part in accounts_sasl.challenge(link).decode().split(","))
        link.close()
        return int(heard["i"])

    start_plain(world, account("alice", "secret", iterations=5000), account("bob", "secret", iterations=7000))
    assert (rounds(world, "alice"), rounds(world, "bob")) == (5000, 7000)
    unknown = ["nobody%d" % number for number in range(24)]
    first = [rounds(world, name) for name in unknown]
    assert set(first) <= {5000, 7000}, "the real ones have 5000 and 7000, unknown names %r" % sorted(set(first))
    assert set(first) == {5000, 7000}, "one count for every unknown name tells who has the other: %r" % set(first)
    assert [rounds(world, name) for name in unknown] == first, "an unknown name changes"


@scenario
@alone("compares how long refusals take")
def refusals_of_unknown_names_are_slowed_the_same(world):
    """What an account's failures add is no sign that the account exists."""
    gate = Gate(world)
    waited = {}
    for place, name in enumerate(("victim", "nobody")):
        waited[name] = None
        for number in range(60):
            link = gate.ask("203.%d.%d.1" % (place, number), name, "wrong")
            end = time.monotonic() + WAITED
            while time.monotonic() < end and not any(line.command == "904" for line in link.lines):
                link.pump(0.02)
            if not any(line.command == "904" for line in link.lines):
                waited[name] = number
                break
    assert waited["victim"] is not None and waited["victim"] == waited["nobody"], waited
