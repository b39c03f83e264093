"""Ten thousand messages through the kinds of mirrors that mirrors_faults has not: a hook, an IRC network, another room."""

import json

from marks import slow
from mirrors import DEEP, FORMS, SECRETS, irc_numbers, mirrored, new_id, say_all, table
from mirrors_irc import Pair, joined
from mirrors_missed import LOGIN, each_once, upstream
from peer import wait_until

MANY, KILLS = 10_000, (2500, 5000, 7500)


def until_heard(client, count, word="n", patience=240):
    """Until the client was shown the last one; asking the backend each time would take long."""
    wait_until(
        lambda: count - 1 in irc_numbers(client, word)[-200:],
        lambda: "%s hears of %s %d; it has %r" % (client.nick, word, count - 1, irc_numbers(client, word)[-3:]), patience)


@slow("ten thousand messages")
@mirrored(json="json")
def ten_thousand_by_a_hook(m):
    """A hundred in a request, which is repeated until it is answered with 200; the bridge is killed in the middle of three."""
    hook = table("in", "json", path="/hooks/in", secret=SECRETS["json"])
    m.open(hook, room_extra=DEEP)
    repeated = 0
    for begin in range(0, MANY, 100):
        body = json.dumps([
            {"id": "id-%d" % number, "nick": "ada", "text": "n %d" % number} for number in range(begin, begin + 100)]).encode()
        headers = {"Authorization": "Bearer " + SECRETS["json"], "Content-Type": "application/json"}
        if begin in KILLS:
            # Taken, perhaps; the answer is not waited for.
            m.ask("POST", "/hooks/in", body, headers)
            m.kill()
            m.open(hook, room_extra=DEEP)
            repeated += 1
        wait_until(lambda: m.ask("POST", "/hooks/in", body, headers).status == 200, "the request is taken", 60)
    eve = m.irc("eve")
    answer = m.post("json", FORMS["json"].message(SECRETS["json"], new_id("json"), "ada", "n %d" % MANY), path="/hooks/in")
    assert answer.status == 200, answer
    until_heard(eve, MANY + 1)
    each_once(m, MANY + 1)
    return "%d requests repeated" % repeated


@slow("ten thousand messages each way")
@mirrored()
def ten_thousand_to_and_from_a_network(m):
    pair = Pair(m)
    pair.table = pair.mirror(sasl=LOGIN)
    m.open(pair.table, room_extra=DEEP)
    joined(m, channel="#lobby")
    ann, eve = m.irc("ann"), pair.other.irc("eve")
    for begin in range(0, MANY, 250):
        if begin in KILLS:
            m.kill()
            say_all(eve, ["n %d" % number for number in range(begin, begin + 125)], chunk=125)
            m.again(pair.table, room_extra=DEEP)
            ann = m.irc("ann")
            say_all(eve, ["n %d" % number for number in range(begin + 125, begin + 250)], chunk=125)
        else:
            say_all(eve, ["n %d" % number for number in range(begin, begin + 250)], chunk=125)
        say_all(ann, ["mine %d" % number for number in range(begin, begin + 250)], chunk=125)
        until_heard(eve, begin + 250, "mine")
    until_heard(ann, MANY)
    each_once(m, MANY)
    there = upstream(pair.other, "mine")
    assert there == sorted(there) and set(there) == set(range(MANY)), "lost or out of order: %d" % len(set(there))
    assert len(there) <= MANY + len(KILLS), "%d doubled" % (len(there) - MANY)
    return "%d of those there twice" % (len(there) - MANY)


@slow("ten thousand messages each way")
@mirrored()
def ten_thousand_between_two_rooms(m):
    across = table("across", "room", to="den")
    m.open(across, rooms=("lobby", "den"), room_extra=DEEP)
    ann, eve = m.irc("ann"), m.irc("eve", "#den")
    for begin in range(0, MANY, 250):
        if begin in KILLS:
            m.kill()
            m.open(across, rooms=("lobby", "den"), room_extra=DEEP)
            ann, eve = m.irc("ann"), m.irc("eve", "#den")
        say_all(ann, ["n %d" % number for number in range(begin, begin + 250)], chunk=125)
        say_all(eve, ["back %d" % number for number in range(begin, begin + 250)], "#den", chunk=125)
        until_heard(eve, begin + 250)
        until_heard(ann, begin + 250, "back")
    for room, word in (("lobby", "n"), ("den", "n"), ("lobby", "back"), ("den", "back")):
        got = [int(text.split()[1]) for _, text in m.upstream(room) if text.startswith(word + " ")]
        assert got == list(range(MANY)), "%s in %s: %d, %d different" % (word, room, len(got), len(set(got)))
