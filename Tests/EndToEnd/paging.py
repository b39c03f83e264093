"""A history of more than one page: all missed messages come, once and in order, or the missing ones are reported.

"History is one page: 230 missed, the backend's page 100, 130 never reach IRC. Page until the known message or the limit;
`{?before_id}` leaves the parameter out where nothing is known (`before=` was answered 400); whole-URL templates may say page
size."
"""

import json
import re
import time
import urllib.parse

from backends import on, on_wires
from dialects import wait_line
from faults import stay
from history import ask, differences, texts
from peer import Relay, new_id, wait_until
from restarts import folder, kill
from retracting import kept
from roughness import found, lost
from world import scenario

MISSED = 230


# MARK: - A backend with a log behind HTTP


class Archive(Relay):
    """The relay, with a log of all that was said: `GET /log/ROOM?limit=…&before=…&after=…`, at most `page` rows, whatever is
    asked for. What it cannot make sense of it answers with 400."""

    def __init__(self):
        self.log = []
        self.asked = []
        self.page = 100
        self.order = "newest-first"
        self.takes_empty = False
        # Statuses with which the next calls are answered, None for what is right; and a function for each call.
        self.answers = []
        self.on_call = None
        super().__init__()

    def keep(self, room, row):
        """The backend has it; nobody who is linked hears of it."""
        with self.lock:
            # Moments to page by, in whole milliseconds, for no float to round.
            self.log.append((room, {**row, "sent_ms": round(row["sent_at"] * 1000)}))

    def _relay(self, sender, payload):
        try:
            row = json.loads(payload)
        except ValueError:
            row = {}
        if row.get("event") == "message" and not (sender.is_bridge and self.swallow):
            self.keep(sender.room, row)
        super()._relay(sender, payload)

    def _answer(self, peer):
        head = peer.head.split(b"\r\n", 1)[0].decode()
        path = head.split(" ")[1]
        if not path.startswith("/log/"):
            return super()._answer(peer)
        peer.ending = True
        status, body = self._log(urllib.parse.urlsplit(path))
        self.asked.append((path, status))
        data = json.dumps(body).encode()
        self._send(peer, b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (
            status, len(data)) + data)

    def _log(self, url):
        if self.on_call:
            self.on_call(len(self.asked))
        if self.answers:
            status = self.answers.pop(0)
            if status is not None:
                return status, {"why": "injected"}
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=not self.takes_empty))
        rows = [row for room, row in self.log if room == url.path.split("/")[2]]
        if any(value == "" for value in query.values()):
            return 400, {"why": "an empty parameter"}
        try:
            limit = min(self.page, int(query.get("limit", self.page)))
            for name, value in query.items():
                if name == "before":
                    at = next(n for n, row in enumerate(rows) if row["message_id"] == value)
                    rows = rows[:at]
                elif name == "after":
                    at = next(n for n, row in enumerate(rows) if row["message_id"] == value)
                    return 200, {"items": self._ordered(rows[at + 1 : at + 1 + limit])}
                elif name == "until_ms":
                    rows = [row for row in rows if row["sent_ms"] <= float(value)]
                elif name == "since_ms":
                    rows = [row for row in rows if row["sent_ms"] >= float(value)]
                    return 200, {"items": self._ordered(rows[:limit])}
        except (StopIteration, ValueError):
            return 400, {"why": "no such place"}
        return 200, {"items": self._ordered(rows[-limit:] if limit else [])}

    def _ordered(self, rows):
        return rows if self.order == "oldest-first" else rows[::-1]

    def calls(self):
        with self.lock:
            return list(self.asked)


def description(template, order="newest-first", **more):
    """The frames of `envelope`, described, and a history behind this address."""
    message = {
        "id": "/message_id", "sender.id": "/sender_id", "sender.name": "/sender_name", "text": "/body",
        "at": [{"ptr": "/sent_ms", "as": "time:unix_ms"}, {"ptr": "/sent_at", "as": "time:unix"}]}
    return json.dumps({
        "identity": "puppet", "echo": "by-id",
        "history": {"get": template, "items": "/items", "order": order, "fields": message, **more},
        "decode": [
            {"when": {"/event": "message"}, "event": "message", "fields": message},
            {"event": "ignore"}],
        "encode": {"message": {
            "event": "message", "message_id": "{{id}}", "sender_id": "{{sender.id}}", "sender_name": "{{sender.name}}",
            "body": "{{text}}", "sent_at": "{{at|unix}}"}}})


def archive(world, query, order="newest-first", whole=True, directory=None, exclusive=False, **options):
    """A bridge on such a backend. `query` is what stands behind the `?`."""
    if not isinstance(world.relay, Archive):
        world.relay.stop()
        world.relay = Archive()
        world.stack.callback(world.relay.stop)
    world.relay.order = order
    directory = directory or folder(world)
    template = "%s/log/{room}?%s" % ("http://127.0.0.1:%d" % world.relay.port if whole else "", query)
    with open(directory + "/mine.json", "w", encoding="utf-8") as file:
        file.write(description(template, order, **({"exclusive": True} if exclusive else {})))
    world.start(
        directory=directory, tables='[dialects.mine]\nfile = "mine.json"\n', room_extra='dialect = "mine"\n', **options)
    return directory


def row(text, at=None, name="Remy", sender="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11"):
    return {
        "event": "message", "message_id": new_id(), "sender_id": sender, "sender_name": name, "body": text,
        "sent_at": time.time() if at is None else at}


def missed(world, count=MISSED, moment=lambda n: n, start=None):
    """What is said while the bridge has no link, so many messages, each `moment` milliseconds after the loss (or `start`)."""
    said = ["missed %04d" % n for n in range(count)]
    start = world.lost_at if start is None else start
    # None of them is from the future.
    time.sleep(max(0, start + moment(count - 1) / 1000 + 0.01 - time.time()))
    for n, text in enumerate(said):
        world.relay.keep("lobby", row(text, (round(start * 1000) + moment(n)) / 1000))
    return said


def lose(world, client):
    world.relay.hold_handshakes()
    world.relay.drop()
    client.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    world.relay.asked.clear()
    world.lost_at = time.time() + 0.01


def come_back(world, client, said, remy, wanted=None, but=0):
    """The link is back: all of it has come once and in order, before anything newer, save for the oldest `but` ones."""
    world.relay.release_handshakes()
    world.relay.wait_for_bridge()
    wait_until(lambda: world.relay.calls(), "the history is asked for")
    remy.say("live again")
    client.expect_text("live again", patience=40)
    client.barrier()
    got = [text for text in client.texts() if text.startswith("missed")]
    wanted = said if wanted is None else wanted
    assert got == wanted[max(0, len(wanted) - len(got)) :] and len(got) >= len(wanted) - but, "%d of %d came: %s" % (
        len(got), len(wanted), differences(wanted, got)[:300])
    order = client.texts()
    assert not said or order.index("live again") > order.index(wanted[-1]), "live before what was missed"


def nothing_is_missing(client):
    told = [text for text in client.texts(command="NOTICE") if "missing" in text or "left out" in text]
    assert not told, told


def was_missed(world, query, moment=lambda n: n, count=MISSED, prepare=None, is_told=True, **options):
    archive(world, query, **options)
    ann = world.irc("ann", caps=("message-tags", "server-time", "echo-message", "batch", "labeled-response"))
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    for n in range(3):
        remy.say("before %d" % n)
        ann.expect_text("before %d" % n)
    lose(world, ann)
    said = missed(world, count, moment)
    if prepare:
        prepare(world.relay)
    come_back(world, ann, said, remy)
    if is_told:
        nothing_is_missing(ann)
    assert ann.texts()[:3] == ["before %d" % n for n in range(3)], ann.texts()[:5]
    return ann


# MARK: - Until the known message


@scenario
def pages_back_by_id(world):
    """230 missed, the page 100; the parameter is left out where nothing is known, so that no call is answered 400."""
    was_missed(world, "limit={limit}&before={?before_id}")
    calls = world.relay.calls()
    refused = [path for path, status in calls if status != 200]
    assert not refused, "answered 400: %r" % refused
    assert "before=" not in calls[0][0], "nothing is known to go back from: %s" % calls[0][0]
    assert 3 <= len(calls) <= 6, "%d calls for three pages: %r" % (len(calls), [path for path, _ in calls])
    return "%d calls" % len(calls)


@scenario
def pages_back_by_id_oldest_first(world):
    """The same of a backend that writes each page down oldest first."""
    was_missed(world, "limit={limit}&before={?before_id}", order="oldest-first")


@scenario
def pages_back_by_a_path_below_http_base(world):
    """`get` as a path and not a whole URL."""
    was_missed(world, "limit={limit}&before={?before_id}", whole=False)


@scenario
def the_template_says_the_page(world):
    """"whole-URL templates may say page size": the number stands in the address, in place of `{limit}`."""
    def small(relay):
        relay.page = 500

    was_missed(world, "limit=100&before={?before_id}", prepare=small)
    assert all("limit=100" in path for path, _ in world.relay.calls()), world.relay.calls()[:2]


@scenario
def pages_of_a_backend_that_bounds_them_by_itself(world):
    """No size in the address at all, and a page of 40."""
    def small(relay):
        relay.page = 40

    was_missed(world, "before={?before_id}", prepare=small)
    assert len(world.relay.calls()) <= 10, len(world.relay.calls())


@scenario
def pages_back_by_time(world):
    """`{?before_ms}`: no page ends the asking because it begins in the millisecond in which the one before ended, and nothing is
    lost or doubled at the seam."""
    was_missed(world, "limit={limit}&until_ms={?before_ms}", moment=lambda n: n // 7 * 10)


@scenario
def pages_on_from_the_newest_known(world):
    """`{?after}`: a backend that gives the oldest hundred behind a message; 130 more are behind those."""
    was_missed(world, "limit={limit}&after={?after}", order="oldest-first", is_told=False)


@scenario
def an_answer_behind_the_known_message_shows_no_gap(world):
    """`"exclusive": true`: "Where it begins right behind the one that `{after}` names". None, one and several pages, and the
    same is not asked for twice; after `kill -9` too."""
    for count in (0, 1, 99, 100, 230):
        other = type(world)()
        with other:
            was_missed(other, "limit={limit}&after={?after}", order="oldest-first", exclusive=True, count=count)
            calls = [path for path, _ in other.relay.calls()]
            assert len(set(calls)) == len(calls) <= count // 100 + 3 and all("after=" in path for path in calls), calls
    query, options = "limit={limit}&after={?after}", {"order": "oldest-first", "exclusive": True}
    directory = archive(world, query, **options)
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    wait_until(lambda: "before" in kept(directory), "the message behind which is asked is on disk")
    lose(world, ann)
    kill(world)
    said = missed(world)
    world.relay.release_handshakes()
    archive(world, query, directory=directory, **options)
    bob = world.irc("bob", caps=(
        "message-tags", "server-time", "batch", "labeled-response", "standard-replies", "draft/chathistory"))
    remy.say("live again")
    bob.expect_text("live again", patience=40)
    page = ["before"] + said + ["live again"]

    def told():
        return texts(ask(bob, "CHATHISTORY LATEST #lobby * 500"))

    wait_until(lambda: told() == page, lambda: "the page has it, without a gap: %s" % differences(page, told())[:300])


@scenario
def the_known_message_is_the_last_of_a_page(world):
    """Exactly one page, exactly two, and one more or less: the seam is nowhere a loss and nowhere a double."""
    for count in (99, 100, 101, 199, 200, 201):
        other = type(world)()
        with other:
            was_missed(other, "limit={limit}&before={?before_id}", count=count)


@scenario
def the_own_lines_are_among_them(world):
    """What IRC users said before the loss stands between what was missed; it comes once, and under their names."""
    archive(world, "limit={limit}&before={?before_id}")
    ann, bob = world.irc("ann"), world.irc("bob")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    for n in range(5):
        ann.say("#lobby", "own %d" % n)
        ann.expect_text("own %d" % n)
    bob.expect_text("own 4")
    lose(world, ann)
    ann.say("#lobby", "waits")
    ann.barrier()
    said = missed(world)
    come_back(world, bob, said, remy)
    for client in (ann, bob):
        client.barrier()
        wait_until(lambda: client.drain() or "waits" in client.texts("ann"), "it is sent")
        assert client.texts("ann") == ["own %d" % n for n in range(5)] + ["waits"], client.texts("ann")


# MARK: - Until the limit


@scenario
def more_than_the_limit(world):
    """docs/BACKENDS.md: "At most 1000 are shown; if there are more, a line says how many older ones are left out." The newest
    1000 come, in order, and nobody asks for ever."""
    archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    lose(world, ann)
    said = missed(world, 1450)
    # The line behind them may be one of the thousand.
    come_back(world, ann, said, remy, wanted=said[-1000:], but=1)
    word = [text for text in ann.texts(command="NOTICE") if re.search(r"older|left out|missing", text)]
    assert word, "450 are missing, and not a word: %r" % ann.texts(command="NOTICE")[-4:]
    assert len(world.relay.calls()) <= 17, len(world.relay.calls())


@scenario
def the_known_message_is_gone(world):
    """The backend has removed what was known: the pages go to its very first message, and the room is told that older ones may
    be missing; it is not asked for ever."""
    archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    lose(world, ann)
    with world.relay.lock:
        world.relay.log.clear()
    said = missed(world)
    come_back(world, ann, said, remy)
    stay(1, ann)
    assert len(world.relay.calls()) <= 8, len(world.relay.calls())


@scenario
def a_backend_that_always_gives_the_same_page(world):
    """It does not know `before`, and answers each call with its newest hundred: that is noticed, what can be had is shown once,
    the room is told, and nobody storms it."""
    archive(world, "limit={limit}&unknown={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    lose(world, ann)
    said = missed(world)
    # The line behind them may be one of the page.
    come_back(world, ann, said, remy, wanted=said[-100:], but=1)
    stay(2, ann)
    assert len(world.relay.calls()) <= 5, "%d calls" % len(world.relay.calls())
    word = [text for text in ann.texts(command="NOTICE") if re.search(r"older|left out|missing", text)]
    assert word, "130 are missing, and not a word: %r" % ann.texts(command="NOTICE")[-4:]


# MARK: - With faults on top


@scenario
def a_page_that_fails_is_asked_for_again(world):
    """500 in the middle of the pages: calls are tried three times where asking twice does no harm."""
    was_missed(world, "limit={limit}&before={?before_id}", prepare=lambda relay: relay.answers.extend([None, 500, None]))


@scenario
def the_link_dies_between_two_pages(world):
    """The second page is under way when the link is lost once more; more is said meanwhile. All of it comes in the end."""
    archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    lose(world, ann)
    said = missed(world)
    deaths = []

    def die(calls):
        if calls == 1 and not deaths:
            deaths.append(calls)
            world.relay.drop()
            for n in range(20):
                said.append("missed again %02d" % n)
                world.relay.keep("lobby", row(said[-1]))

    world.relay.on_call = die
    world.relay.release_handshakes()
    wait_until(lambda: deaths, "it dies in the middle of the pages")
    come_back(world, ann, said, remy)


@scenario
def talk_goes_on_while_pages_are_fetched(world):
    """Live lines that come between the pages stand behind everything that was missed, once."""
    archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    lose(world, ann)
    said, live = missed(world), []

    def talk(calls):
        if calls < 3:
            live.append("live %d" % calls)
            found_row = row(live[-1])
            world.relay.keep("lobby", found_row)
            world.relay.raw(json.dumps(found_row), bridge_only=True)

    world.relay.on_call = talk
    come_back(world, ann, said, remy)
    assert live and [text for text in ann.texts() if text.startswith("live ") and text != "live again"] == live, ann.texts()[-6:]


@scenario
def killed_between_two_pages(world):
    """`kill -9` while the pages are fetched: the next process has all of it, in its page too, once."""
    directory = archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann")
    remy = world.person("Remy", sender_id="8B0D4A62-8F51-4A43-9D0F-0A3C7B3C1A11")
    remy.say("before")
    ann.expect_text("before")
    ann.barrier()
    lose(world, ann)
    said = missed(world)
    came = []
    world.relay.on_call = lambda calls: came.append(calls) or (calls == 1 and world.bridge.process.kill())
    world.relay.release_handshakes()
    wait_until(lambda: 1 in came, "the second page is asked for")
    world.relay.on_call = None
    kill(world)
    archive(world, "limit={limit}&before={?before_id}", directory=directory)
    bob = world.irc("bob", caps=(
        "message-tags", "server-time", "batch", "labeled-response", "standard-replies", "draft/chathistory"))
    remy.say("live again")
    bob.expect_text("live again", patience=40)

    def page():
        return [text for text in texts(ask(bob, "CHATHISTORY LATEST #lobby * 500")) if text.startswith("missed")]

    wait_until(lambda: page() == said, lambda: "the page has it: %s" % differences(said, page())[:300], 20)


# MARK: - What nobody has asked for yet


@scenario
def the_first_link_leaves_the_parameter_out(world):
    """"`{?before_id}` leaves the parameter out where nothing is known (`before=` was answered 400)": at the very first link
    nothing is known, and the last 50 are had all the same, for those who ask."""
    world.relay.stop()
    world.relay = Archive()
    world.stack.callback(world.relay.stop)
    said = missed(world, 60, start=time.time() - 60)
    archive(world, "limit={limit}&before={?before_id}&after={?after}")
    ann = world.irc("ann", caps=(
        "message-tags", "server-time", "batch", "labeled-response", "standard-replies", "draft/chathistory"))
    wait_until(lambda: world.relay.calls(), "the history is asked for")

    def page():
        return texts(ask(ann, "CHATHISTORY LATEST #lobby * 20"))

    wait_until(lambda: page() == said[-20:], lambda: "the page: %r" % page()[-3:])
    calls = world.relay.calls()
    assert all(status == 200 for _, status in calls), calls
    assert "before=" not in calls[0][0] and "after=" not in calls[0][0], calls[0][0]


@scenario
def a_parameter_of_the_old_form_stays_empty(world):
    """`{before_id}` is what it was, "percent-encoded and empty where nothing is known"; a backend that takes an empty one is paged
    by it too."""
    world.relay.stop()
    world.relay = Archive()
    world.stack.callback(world.relay.stop)
    world.relay.takes_empty = True
    was_missed(world, "limit={limit}&before={before_id}")
    assert "before=" in world.relay.calls()[0][0], world.relay.calls()[0]


@scenario
def older_pages_for_who_asks(world):
    """CHATHISTORY beyond the room's first message goes back page by page as well: all 330, each once."""
    world.relay.stop()
    world.relay = Archive()
    world.stack.callback(world.relay.stop)
    said = missed(world, 330, start=time.time() - 60)
    archive(world, "limit={limit}&before={?before_id}")
    ann = world.irc("ann", caps=(
        "message-tags", "server-time", "batch", "labeled-response", "standard-replies", "draft/chathistory"))
    wait_until(lambda: world.relay.calls(), "the history is asked for")
    wait_until(lambda: ask(ann, "CHATHISTORY LATEST #lobby * 50"), "there is something")
    found_lines = chunk = ask(ann, "CHATHISTORY LATEST #lobby * 50")
    while chunk:
        chunk = ask(ann, "CHATHISTORY BEFORE #lobby msgid=%s 50" % chunk[0].tags["msgid"])
        found_lines = chunk + found_lines
        assert len(found_lines) <= 400, "it never ends"
    assert texts(found_lines) == said, differences(said, texts(found_lines))[:300]


# MARK: - The other wires


@on_wires(lambda wire: wire.history)
def as_many_on_every_wire_with_history(setting):
    """230 missed: "on wires with history everything must come"."""
    setting.start()
    catch_up(setting)


@on("directus")
def a_server_that_bounds_every_query(setting):
    """`QUERY_LIMIT_MAX=100`: however many rows are asked for, a hundred come."""
    setting.serve(query_limit_max=100)
    setting.start()
    catch_up(setting)


@on("directus")
def a_server_that_bounds_every_query_and_dies_meanwhile(setting):
    """The link is lost again right behind its return, in the middle of the pages."""
    setting.serve(query_limit_max=20, delay_ms=30)
    setting.start()
    catch_up(setting, again=True)


def catch_up(setting, again=False):
    ann, bob = setting.irc("ann"), setting.irc("bob")
    setting.backend.say("Remy", "before")
    for client in (ann, bob):
        client.expect_text("before")
    lost(setting, abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    said = []
    for n in range(MISSED):
        said.append("missed %03d" % n)
        setting.backend.say("Remy", said[-1])
    found(setting)
    setting.wait_up(2)
    if again:
        setting.backend.control("drop", abort=True)
        setting.wait_up(3)
    setting.backend.say("Remy", "live again")
    for client in (ann, bob):
        wait_line(client, "live again")
        client.barrier()
        got = [text for text in client.texts("Remy") if text.startswith("missed")]
        assert got == said, "%d of %d came: %s" % (len(got), len(said), differences(said, got)[:300])
    nothing_is_missing(ann)
