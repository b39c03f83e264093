"""The relay or a link is stopped while the backend sends messages and dies: unavailable messages lie in a reported gap.

The start of a gap is the last moment for which there is proof: the sending time of the newest answered ping. A gap told
too long is allowed, too short is a loss. Where the backend keeps a history, everything comes.
"""

import functools
import json
import os
import struct
import time

from backends import CALM, QUICK, on, on_wires, tables
from faults import StallingProxy, Talk, clock, gap_lines, gaps, standing_still, stay, wait_gap
from fulldisk import empty_disk, fill_disk, talk_until_refused
from peer import BINARY, CLOSE, PING, PONG, TEXT, Bridge, Relay, frame, wait_until
from restarts import folder, kill, log_in_as, with_alice
from roughness import found, lost
from world import scenario

# A ping every two seconds, and no haste with a link that stands still.
PATIENT = 'ping = "2s"\npong_timeout = "30s"\n'
# Pings again and again, for scenarios about what they prove; nothing stands still for longer than the second of these.
PROVING = 'ping = "2s"\npong_timeout = "5s"\n'


# MARK: - `envelope`, word for word


class Watched(Relay):
    """A relay that remembers when it read the bridge's pings, and whether it answered them."""

    def __init__(self):
        self.pings = []
        super().__init__()

    def _frames(self, peer, data):
        for opcode, payload in peer.reader.feed(data):
            if opcode in (TEXT, BINARY):
                self._relay(peer, payload)
            elif opcode == PING:
                if peer.is_bridge:
                    self.pings.append((time.time(), not self.silent_pings))
                if not self.silent_pings:
                    self._send(peer, frame(payload, PONG))
            elif opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else None
                if peer.is_bridge:
                    self.closes.append(code)
                peer.ending = True
                self._send(peer, frame(payload[:2], CLOSE))


def watch(world):
    """Puts a relay in place that remembers pings."""
    world.relay.stop()
    world.relay = Watched()
    world.stack.callback(world.relay.stop)
    return world.relay


def through_a_proxy(world):
    proxy = StallingProxy(world.relay.port)
    world.stack.callback(proxy.close)
    world.relay.url = lambda room="{room}": "ws://127.0.0.1:%d/%s" % (proxy.port, room)
    return proxy


def die(world):
    world.relay.stop_listening()
    world.relay.drop()


def speaker(person):
    """Says it, and waits until the backend has passed it on to everybody who has a link."""
    def speak(text):
        person.say(text)
        person.expect_message(text)
    return speak


def live_again(world, talk, speak, client, text="live again"):
    """Until the link is back and carries; behind that line the client has everything that it will ever get."""
    world.relay.wait_for_bridge()
    # A link is up for the backend before it is for the bridge, and what is said then comes to it too.
    talk.say(speak, text)
    client.expect_text(text)


@scenario
def stopped_while_the_backend_speaks_and_dies(world):
    """The issue's case: "relay stopped (SIGSTOP) at 0, backend says 2 at +1, is killed at +2, is back at +4.5, says 3 and 4;
    relay goes on at +9: it shows 2, and tells a gap from +8 to +10; 3 and 4 lie in none and never come"."""
    world.start()
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    talk.say(speak, "1")
    ann.expect_text("1")
    with standing_still(world.bridge.process):
        began = time.monotonic()

        def at(moment):
            time.sleep(max(0, began + moment - time.monotonic()))

        at(1)
        talk.say(speak, "2")
        at(2)
        die(world)
        at(4.5)
        world.relay.listen()
        talk.say(speak, "3")
        talk.say(speak, "4")
        at(9)
    live_again(world, talk, speak, ann)
    missing = talk.check(ann)
    assert "3" in missing and "4" in missing, "nobody could have brought them: %r" % missing
    return "missing %r" % missing


@scenario
def a_proxy_stalls_three_rooms_for_18_s(world):
    """"The same when a proxy stalls the link for 18 s and the backend dies meanwhile (seen three times unscripted, up to 26 s
    of three rooms)": a stalled proxy releases old frames to a loop that is on time."""
    rooms = ("lobby", "kitchen", "attic")
    proxy = through_a_proxy(world)
    world.start(rooms=rooms)
    people, talks, clients = {}, {}, {}
    for room in rooms:
        people[room], talks[room] = speaker(world.person("Remy", room)), Talk()
        clients[room] = world.irc("ann-" + room, join="#" + room)
        talks[room].say(people[room], "before in " + room)
        clients[room].expect_text("before in " + room)

    def everywhere(text):
        for room in rooms:
            talks[room].say(people[room], "%s in %s" % (text, room))

    proxy.stall()
    time.sleep(3)
    everywhere("held")
    time.sleep(3)
    die(world)
    time.sleep(1)
    world.relay.listen()
    for n in range(5):
        time.sleep(2)
        everywhere("lost %d" % n)
    time.sleep(1)
    proxy.release()
    world.relay.wait_for_bridge(count=3)
    for room in rooms:
        live_again(world, talks[room], people[room], clients[room], "live again in " + room)
        missing = talks[room].check(clients[room])
        assert "lost 4 in " + room in missing, missing
    return "missing %d of each" % len(missing)


@scenario
def a_gap_begins_where_the_newest_answered_ping_was_sent(world):
    """"The start of a gap is the last moment for which there is proof: the *sending* time of the newest answered ping."
    Frames that were read behind it prove nothing on a wire whose times are the senders'."""
    relay = watch(world)
    world.start(room_extra=PROVING)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    wait_until(lambda: len(relay.pings) >= 2, "two pings are answered")
    stay(0.3, ann)
    relay.silent_pings = True
    for n in range(6):
        stay(0.2, ann)
        talk.say(speaker(remy), "behind the ping %d" % n)
        ann.expect_text("behind the ping %d" % n)
    answered = [at for at, is_answered in relay.pings if is_answered]
    relay.drop()
    ((since, until),) = wait_gap(ann)
    assert since <= answered[-1], "the gap begins at %s, the newest answered ping came at %s" % (
        clock(since), clock(answered[-1]))
    assert since > answered[-2] - 0.5, "the gap begins at %s, and the ping at %s was answered" % (
        clock(since), clock(answered[-1]))
    assert until >= since, (since, until)


@scenario
def a_pong_that_was_long_on_its_way_proves_its_pings_moment(world):
    """The pong is held by a proxy and read late, right before the end of the link: it proves when the ping was sent, not when
    the pong was read."""
    relay, proxy = watch(world), None
    proxy = through_a_proxy(world)
    world.start(room_extra=PROVING)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    wait_until(lambda: len(relay.pings) >= 1, "a ping is answered")
    stay(0.3, ann)
    proxy.stall(up=False, down=True)
    before = len(relay.pings)
    wait_until(lambda: len(relay.pings) > before, "a ping whose answer is held")
    answered = relay.pings[-1][0]
    time.sleep(0.3)
    talk.say(speak, "held")
    die(world)
    world.relay.listen()
    for n in range(3):
        talk.say(speak, "lost %d" % n)
        time.sleep(1)
    proxy.release()
    live_again(world, talk, speak, ann)
    talk.check(ann)
    assert gaps(ann)[0][0] <= answered, "begins at %s, the newest answered ping came at %s" % (
        clock(gaps(ann)[0][0]), clock(answered))


@scenario
def a_pong_that_waited_for_a_relay_that_stood_still(world):
    """The same where the relay itself stood still behind its ping."""
    relay = watch(world)
    world.start(room_extra=PROVING)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    wait_until(lambda: len(relay.pings) >= 1, "a ping")
    before = len(relay.pings)
    wait_until(lambda: len(relay.pings) > before, "another")
    with standing_still(world.bridge.process):
        time.sleep(0.5)
        talk.say(speak, "taken in by the kernel")
        die(world)
        world.relay.listen()
        for n in range(4):
            talk.say(speak, "lost %d" % n)
            time.sleep(0.8)
    live_again(world, talk, speak, ann)
    talk.check(ann)


@scenario
def a_sender_whose_clock_leads_proves_nothing(world):
    """The times of `envelope` are the senders': one that lies four minutes ahead, or says that it is from now, moves no gap."""
    proxy = through_a_proxy(world)
    world.start(room_extra=PATIENT)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()

    def ahead(text):
        remy.say(text, sent_at=time.time() + 240)
        remy.expect_message(text)

    talk.say(ahead, "from the future")
    ann.expect_text("from the future")
    proxy.stall()
    time.sleep(1)
    talk.say(ahead, "held")
    time.sleep(0.5)
    die(world)
    world.relay.listen()
    for n in range(4):
        talk.say(ahead, "lost %d" % n)
        time.sleep(0.8)
    proxy.release()
    live_again(world, talk, ahead, ann)
    talk.check(ann)


@scenario
def two_deaths_within_one_standstill(world):
    """The backend dies twice while the relay stands still, and once more as soon as it is linked again, before any ping."""
    world.start(room_extra=PATIENT)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    talk.say(speak, "before")
    ann.expect_text("before")
    for turn in range(2):
        with standing_still(world.bridge.process):
            for death in range(2):
                time.sleep(0.7)
                talk.say(speak, "said %d.%d" % (turn, death))
                die(world)
                time.sleep(0.7)
                world.relay.listen()
                talk.say(speak, "lost %d.%d" % (turn, death))
            time.sleep(1)
        world.relay.wait_for_bridge()
    live_again(world, talk, speak, ann)
    return "missing %r" % talk.check(ann)


@scenario
def a_link_that_dies_before_its_first_ping_was_answered(world):
    """A young link has no ping behind it: what proves it whole is its opening, and no frame that was read late."""
    proxy = through_a_proxy(world)
    world.start()
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    for turn in range(2):
        proxy.stall()
        talk.say(speak, "held %d" % turn)
        time.sleep(0.5)
        die(world)
        world.relay.listen()
        for n in range(3):
            talk.say(speak, "lost %d.%d" % (turn, n))
            time.sleep(0.7)
        proxy.release()
        live_again(world, talk, speak, ann, "live again %d" % turn)
    return "missing %r" % talk.check(ann)


@scenario
def killed_while_it_stands_still(world):
    """SIGSTOP, then `kill -9`: the next relay tells the gap from where the link was last known to be whole."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    remy, talk = world.person("Remy"), Talk()
    speak = speaker(remy)
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    talk.say(speak, "before")
    alice.expect_text("before")
    stay(5, alice)
    with standing_still(world.bridge.process):
        talk.say(speak, "in the kernel")
        time.sleep(1)
        die(world)
        world.relay.listen()
        talk.say(speak, "lost 0")
        time.sleep(1.5)
        talk.say(speak, "lost 1")
        kill(world)
    talk.say(speak, "lost 2")
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    again = log_in_as(world, "alice", "secret", "alice", "#lobby")
    live_again(world, talk, speak, again)
    # What she had before counts as hers.
    again.lines = alice.lines + again.lines
    seen = set()
    again.lines = [
        line for line in again.lines
        if "msgid" not in line.tags or not (line.tags["msgid"] in seen or seen.add(line.tags["msgid"]))]
    return "missing %r" % talk.check(again)


@scenario
def killed_right_behind_a_standstill(world):
    """It goes on, reads the old frames, and is killed before or while it is linked again."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    remy, talk = world.person("Remy"), Talk()
    speak = speaker(remy)
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    talk.say(speak, "before")
    alice.expect_text("before")
    with standing_still(world.bridge.process):
        time.sleep(1)
        talk.say(speak, "read late")
        die(world)
        world.relay.listen()
        world.relay.hold_handshakes()
        talk.say(speak, "lost 0")
        time.sleep(2.5)
    alice.expect_text("read late")
    alice.barrier()
    talk.say(speak, "lost 1")
    kill(world)
    world.relay.release_handshakes()
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    again = log_in_as(world, "alice", "secret", "alice", "#lobby")
    live_again(world, talk, speak, again)
    have = {line.tags.get("msgid") for line in again.lines}
    again.lines = [line for line in alice.lines if line.tags.get("msgid") not in have] + again.lines
    return "missing %r" % talk.check(again)


@scenario
def a_standstill_on_a_full_disk(world):
    """Nothing can be kept while the relay stands still and the backend dies: the gap is told all the same, live and, when there
    is room, to whoever was away."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    alice = log_in_as(world, "alice", "secret", "alice", "#lobby")
    talk.say(speak, "before")
    alice.expect_text("before")
    ann.expect_text("before")
    alice.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    alice.barrier()
    had = list(alice.lines)
    alice.close()
    fill_disk(world.bridge.process.pid)
    talk_until_refused(world, ann)
    with standing_still(world.bridge.process):
        time.sleep(1)
        talk.say(speak, "read late")
        die(world)
        world.relay.listen()
        talk.say(speak, "lost 0")
        time.sleep(2)
    live_again(world, talk, speak, ann)
    talk.check(ann)
    empty_disk(world.bridge.process.pid)
    again = log_in_as(world, "alice", "secret", "alice", "#lobby")
    talk.say(speak, "with room")
    again.expect_text("with room", patience=30)
    again.lines = [line for line in had if line.params[-1:] == ["before"]] + again.lines
    return "missing %r" % talk.check(again)


@scenario
def who_was_away_is_told_the_same_gap(world):
    """A client of an account comes back after a standstill: the gap stands in its place, as long as for those who were there,
    also after a restart, and in a page."""
    directory = folder(world)
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    ann, remy, talk = world.irc("ann"), world.person("Remy"), Talk()
    speak = speaker(remy)
    log_in_as(world, "alice@phone", "secret", "alice", "#lobby").close()
    with standing_still(world.bridge.process):
        time.sleep(1.5)
        talk.say(speak, "read late")
        die(world)
        world.relay.listen()
        talk.say(speak, "lost")
        time.sleep(2.5)
    live_again(world, talk, speak, ann)
    talk.check(ann)
    told = [(line.tags["msgid"], line.tags["chatbridge/gap"]) for line in gap_lines(ann)]
    ann.barrier()
    kill(world)
    world.start(directory=directory, tables=with_alice(), room_extra=PATIENT)
    alice = log_in_as(world, "alice@phone", "secret", "alice", "#lobby")
    live_again(world, talk, speak, alice, "after the restart")
    talk.check(alice)
    again = [(line.tags["msgid"], line.tags["chatbridge/gap"]) for line in gap_lines(alice)]
    assert again[: len(told)] == told, "told %r, then %r" % (told, again)
    order = [line.params[-1] for line in alice.lines if line.params[-1] == "read late" or "chatbridge/gap" in line.tags]
    assert order[0] == "read late" and len(order) > 1, order


# MARK: - Every wire


def start(setting, proxied=False, keeps_history=True, room_extra=CALM):
    """A bridge on the wire, through a proxy that can stall, and with or without the history of a described backend."""
    proxy = None
    setting.serve()
    if proxied:
        proxy = StallingProxy(setting.backend.port)
        setting.stack.callback(proxy.close)
        setting.backend.port, setting.backend.origin = proxy.port, "http://127.0.0.1:%d" % proxy.port
    text = tables(setting.wire, setting.backend, room_extra, "", setting.directory)
    path = os.path.join(setting.directory, "parlour.json")
    if os.path.exists(path) and not keeps_history:
        with open(path, encoding="utf-8") as file:
            definition = json.load(file)
        del definition["history"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(definition, file)
    setting.bridge = Bridge({}, tables=text, directory=setting.directory)
    setting.stack.callback(setting.bridge.stop)
    setting.wait_up()
    return proxy


def remy_of(setting):
    return functools.partial(setting.backend.say, "Remy")


def all_or_told(setting, talk, client, keeps_history):
    """The link is back: whatever was said has come, or lies in a gap where the wire has no history."""
    speak = remy_of(setting)
    setting.wait_up(2, patience=30)
    if not setting.backend.connections():
        setting.wait_up(3, patience=30)
    talk.say(speak, "live again")
    client.expect_text("live again", patience=30)
    if keeps_history:
        wait_until(
            lambda: set(talk.texts()) <= set(client.texts("Remy")),
            lambda: "everything came; missing: %r" % [t for t in talk.texts() if t not in client.texts("Remy")])
    missing = talk.check(client, may_miss=not keeps_history)
    return "missing %r" % missing if missing else ""


def standstill(setting, keeps_history):
    start(setting, keeps_history=keeps_history)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    talk.say(speak, "before")
    ann.expect_text("before")
    with standing_still(setting.bridge.process):
        time.sleep(1)
        for n in range(3):
            talk.say(speak, "read late %d" % n)
        time.sleep(0.5)
        lost(setting, abort=True)
        for n in range(3):
            talk.say(speak, "lost %d" % n)
            time.sleep(0.4)
        found(setting)
        talk.say(speak, "lost at last")
        time.sleep(2.5)
    return all_or_told(setting, talk, ann, keeps_history)


def stalled(setting, keeps_history):
    proxy = start(setting, proxied=True, keeps_history=keeps_history, room_extra=CALM + PATIENT)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    talk.say(speak, "before")
    ann.expect_text("before")
    proxy.stall()
    time.sleep(1)
    for n in range(3):
        talk.say(speak, "read late %d" % n)
    time.sleep(0.5)
    lost(setting, abort=True)
    for n in range(4):
        talk.say(speak, "lost %d" % n)
        time.sleep(0.8)
    found(setting)
    talk.say(speak, "lost at last")
    time.sleep(1.5)
    proxy.release()
    return all_or_told(setting, talk, ann, keeps_history)


@on_wires()
def the_relay_stands_still(setting):
    """"on wires with history everything must come; on wires without, everything missing lies inside a told gap"."""
    return standstill(setting, bool(setting.wire.history))


@on("custom")
def the_relay_stands_still_without_a_history(setting):
    return standstill(setting, False)


@on_wires()
def a_link_is_stalled(setting):
    return stalled(setting, bool(setting.wire.history))


@on("custom")
def a_link_is_stalled_without_a_history(setting):
    return stalled(setting, False)


@on_wires(lambda wire: wire.history)
def killed_behind_a_standstill_on_wires_with_history(setting):
    """"The same for history horizons": what the next relay asks for begins where the link was last whole."""
    start(setting)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    talk.say(speak, "before")
    ann.expect_text("before")
    with standing_still(setting.bridge.process):
        time.sleep(1)
        talk.say(speak, "read late")
        lost(setting, abort=True)
        for n in range(3):
            talk.say(speak, "lost %d" % n)
            time.sleep(0.7)
    ann.expect_text("read late")
    ann.barrier()
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    talk.say(speak, "lost at last")
    found(setting)
    text = tables(setting.wire, setting.backend, CALM, "", setting.directory)
    setting.bridge = Bridge({}, tables=text, directory=setting.directory)
    setting.stack.callback(setting.bridge.stop)
    setting.wait_up()
    bob = setting.irc("bob", more=["draft/chathistory"])
    talk.say(speak, "live again")
    bob.expect_text("live again")

    def page():
        bob.lines, bob.cursor = [], 0
        bob.send("CHATHISTORY LATEST #lobby * 100")
        bob.barrier()
        return bob.texts("Remy")

    wait_until(lambda: page() == talk.texts(), lambda: "the page has everything: %r" % page())


@on_wires()
def a_standstill_that_nothing_dies_of(setting):
    """Shorter than any time-out: the relay goes on where it stood, and nothing is missing."""
    start(setting)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    talk.say(speak, "before")
    ann.expect_text("before")
    with standing_still(setting.bridge.process):
        for n in range(5):
            talk.say(speak, "read late %d" % n)
            time.sleep(0.5)
    talk.say(speak, "behind it")
    ann.expect_text("behind it")
    talk.check(ann, may_miss=False)


@on_wires()
def a_standstill_that_outlasts_the_pong(setting):
    """The relay stands still for longer than a pong may take. It may hold the link for dead when it goes on; what it had not read
    then lies in the gap."""
    start(setting, room_extra=QUICK)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    for turn in range(2):
        talk.say(speak, "before %d" % turn)
        ann.expect_text("before %d" % turn)
        stay(1, ann)
        with standing_still(setting.bridge.process):
            for n in range(5):
                talk.say(speak, "meanwhile %d.%d" % (turn, n))
                time.sleep(0.6)
        # Up to the moment at which the link would have been given up.
        for n in range(8):
            stay(0.3, ann)
            talk.say(speak, "behind it %d.%d" % (turn, n))
    return settled(setting, talk, ann, bool(setting.wire.history))


@on_wires()
def a_link_that_is_given_up(setting):
    """The proxy holds it until the relay has another; what was on its way there never comes, and lies in the gap."""
    proxy = start(setting, proxied=True, room_extra=QUICK)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    talk.say(speak, "before")
    ann.expect_text("before")
    for turn in range(2):
        stay(1, ann)
        talk.say(speak, "right before %d" % turn)
        ann.expect_text("right before %d" % turn)
        proxy.stall()
        ups = setting.ups()
        for n in range(100):
            if setting.ups() > ups:
                break
            talk.say(speak, "held %d.%d" % (turn, n))
            stay(0.15, ann)
        assert setting.ups() > ups, "the link was not given up"
        proxy.release()
    return settled(setting, talk, ann, bool(setting.wire.history))


def settled(setting, talk, client, keeps_history):
    """Talks on until a line comes through, which shows that the link is whole; then everything has come, or was told."""
    speak = remy_of(setting)

    def comes_through():
        talk.say(speak, "is it whole %d" % len(talk.said))
        stay(0.3, client)
        return talk.texts()[-1] in client.texts("Remy")

    wait_until(comes_through, "a line comes through", 30)
    if keeps_history:
        wait_until(
            lambda: set(talk.texts()) <= set(client.texts("Remy")),
            lambda: "everything came; missing: %r" % [t for t in talk.texts() if t not in client.texts("Remy")])
    missing = talk.check(client, may_miss=not keeps_history)
    return "missing %d of %d" % (len(missing), len(talk.said))


@on_wires(lambda wire: wire.history)
def a_standstill_in_a_room_where_nothing_was_said(setting):
    """"The same for history horizons": no message is known from which to ask, and the last that was read, late, were frames
    without a time."""
    start(setting)
    ann, talk = setting.irc("ann"), Talk()
    speak = remy_of(setting)
    with standing_still(setting.bridge.process):
        time.sleep(1)
        if setting.wire.typing_in:
            setting.backend.do("typing", "Remy")
        time.sleep(0.5)
        lost(setting, abort=True)
        for n in range(3):
            talk.say(speak, "lost %d" % n)
            time.sleep(0.4)
        found(setting)
        time.sleep(2.5)
    return all_or_told(setting, talk, ann, True)
