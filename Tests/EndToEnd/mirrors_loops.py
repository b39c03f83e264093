"""No message comes back: tools that echo everything, two relays that mirror into each other, three in a ring."""

import time

from marks import slow
from mirrors import (
    FORMS, SECRETS, TOOLS, Mirrored, irc_numbers, mirrored, new_id, numbers, on_tools, say_all, table,
)
from mirrors_in import name_in
from peer import wait_until

SHARED = "5hared-by-the-relays"


# MARK: - Tools that echo


@on_tools(*TOOLS)
def a_tool_that_echoes_everything(m, tool):
    """As a bot's message, and as a person's of the same name: nothing is said twice, and the log says so briefly."""
    m.open(m.mirror(tool))
    ann, bob = m.irc("ann"), m.irc("bob")
    count = 0
    for bot in (True, False):
        m.tools.set(tool, echo={"url": m.hook_url("/hooks/" + tool), "secret": SECRETS[tool], "bot": bot})
        say_all(ann, ["n %d" % number for number in range(count, count + 10)])
        count += 10
        wait_until(lambda: len(m.tools.state(tool)["echoes"]) >= count, "the tool has echoed all")
        # What an echo caused would be in front of this, here and there.
        m.backend.say("Remy", "turn %d" % count)
        count_of_turns = count // 10
        wait_until(lambda: len(m.tools.state(tool)["echoes"]) >= count + count_of_turns, "that is echoed too")
        say_all(bob, ["end %d" % count])
        m.tools.expect_said(tool, "bob", "end %d" % count)
        m.tools.set(tool, echo=None)
    assert numbers(m.tools.messages(tool), "n") == list(range(count)), [x["raw"] for x in m.tools.messages(tool)]
    for client in (ann, bob):
        assert irc_numbers(client, "n") == list(range(count)), client.texts()
    upstream = [text for _, text in m.upstream()]
    assert upstream == ["n %d" % n for n in range(10)] + ["end 10"] + ["n %d" % n for n in range(10, 20)] + ["end 20"], upstream
    assert set(m.tools.state(tool)["echoes"]) <= {200}, m.tools.state(tool)["echoes"]
    assert len([entry for entry in m.logged_of() if entry["level"] != "info"]) <= 3, m.logged_of()


@on_tools(*TOOLS)
def an_echo_after_a_restart(m, tool):
    """A tool that echoes late, to the next process."""
    m.open(m.mirror(tool))
    m.irc("ann").say("#lobby", "said before")
    shown = m.tools.expect_said(tool, "ann", "said before")
    m.irc("bob").say("#lobby", "settled")
    m.tools.expect_said(tool, "bob", "settled")
    m.kill()
    m.open(m.mirror(tool))
    eve = m.irc("eve")
    sent = FORMS[tool].message(SECRETS[tool], shown["id"], shown["name"] or "ann", shown["raw"])
    assert m.post(tool, sent).status == 200
    m.tool_says(tool, name_in(tool), "end")
    eve.expect_text("end")
    assert "said before" not in " ".join(eve.texts()), eve.texts()


@on_tools("slack", "mattermost", "rocketchat", "discord", "teams")
def somebody_who_quotes_is_no_echo(m, tool):
    """A person there may say what was said here; a copied text brings its invisible mark along at most in part."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    ann.say("#lobby", "yes")
    m.tools.expect_said(tool, "ann", "yes")
    m.tool_says(tool, name_in(tool), "yes")
    assert ann.expect("PRIVMSG", lambda line: line.params[-1] == "yes" and not line.source.startswith("ann!"))
    shown = m.tools.messages(tool)[0]
    m.tool_says(tool, name_in(tool), "did you mean “%s”?" % shown["text"][-3:])
    ann.expect("PRIVMSG", lambda line: "did you mean" in line.params[-1])


@mirrored(one="slack", two="slack")
def two_mirrors_into_one_channel_of_a_tool(m):
    """What the one posts, the tool sends to the hook of the other."""
    m.open(m.mirror("one", mirror_name="one"), m.mirror("two", mirror_name="two"))
    m.tools.set("one", echo={"url": m.hook_url("/hooks/two"), "secret": SECRETS["slack"]})
    m.tools.set("two", echo={"url": m.hook_url("/hooks/one"), "secret": SECRETS["slack"]})
    ann = m.irc("ann")
    say_all(ann, ["n %d" % number for number in range(10)])
    wait_until(lambda: all(len(m.tools.state(name)["echoes"]) >= 10 for name in ("one", "two")), "both have echoed")
    say_all(ann, ["n 10"])
    for name in ("one", "two"):
        wait_until(lambda: 10 in numbers(m.tools.messages(name), "n"), "the last is there")
        assert numbers(m.tools.messages(name), "n") == list(range(11)), m.tools.messages(name)
    assert irc_numbers(ann, "n") == list(range(11)), ann.texts()


# MARK: - Relays that mirror into each other


def link(m, pipe, name="link"):
    """A mirror of a relay that posts into this pipe and takes at /hooks/NAME."""
    return table(name, "json", url=m.tools.url(pipe), path="/hooks/" + name, secret=SHARED)


def talk(relays, seconds, word="n"):
    """On each relay an IRC user and a backend user talk for so long; how many each said."""
    clients = [relay.irc("ann-%s%d" % (word, number)) for number, relay in enumerate(relays)]
    watchers = [relay.irc("eve-%s%d" % (word, number)) for number, relay in enumerate(relays)]
    counts = [0] * len(relays)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number, relay in enumerate(relays):
            for _ in range(5):
                clients[number].say("#lobby", "%s%d-irc %d" % (word, number, counts[number]))
                relay.backend.say("remy%d" % number, "%s%d-up %d" % (word, number, counts[number]))
                counts[number] += 1
            clients[number].barrier()
        for client in clients + watchers:
            client.drain()
    return clients, watchers, counts


def each_once(relays, watchers, counts, word="n", patience=60):
    """Every relay's watcher has each message of every relay once, those of one author in order; and so has the backend."""
    for relay, watcher in zip(relays, watchers):
        for number, count in enumerate(counts):
            for side in ("irc", "up"):
                name = "%s%d-%s" % (word, number, side)
                wait_until(
                    lambda: len(set(irc_numbers(watcher, name))) >= count,
                    lambda: "%s has all of %s (%d of %d)" % (watcher.nick, name, len(set(irc_numbers(watcher, name))), count),
                    patience)
    for relay, watcher in zip(relays, watchers):
        # Anything doubled that was still on its way.
        watcher.barrier()
        for number, count in enumerate(counts):
            for side in ("irc", "up"):
                name = "%s%d-%s" % (word, number, side)
                got = irc_numbers(watcher, name)
                assert got == list(range(count)), "%s: %d of %s, %d different, in order: %r" % (
                    watcher.nick, len(got), name, len(set(got)), got == sorted(got))
        texts = [text for _, text in relay.upstream()]
        assert len(texts) == len(set(texts)), "doubled upstream"
    return sum(counts) * 2


def start_linked(m, ways, names):
    """Relays A, B, … where `ways` names pipes as {"ab": …}: the mirrors of each, and the targets of the pipes."""
    relays = {name: m if number == 0 else m.stack.enter_context(Mirrored()) for number, name in enumerate(names)}
    for name, relay in relays.items():
        out = [pipe for pipe in ways if pipe[0] == name]
        into = [pipe for pipe in ways if pipe[1] == name]
        tables = []
        # A mirror for each peer, with both directions where there are both.
        for peer in sorted({pipe[1] for pipe in out} | {pipe[0] for pipe in into}):
            tables.append(table(
                "to-" + peer, "json", url=m.tools.url(name + peer) if name + peer in ways else None,
                path="/hooks/" + peer if peer + name in ways else None, secret=SHARED))
        relay.tables = tables
        relay.open(*tables)
    aim(m, ways, relays)
    return relays


def aim(m, ways, relays):
    for pipe in ways:
        m.tools.set(pipe, target=relays[pipe[1]].hook_url("/hooks/" + pipe[0]))


@mirrored(ab="pipe", ba="pipe")
def two_relays_face_each_other(m):
    relays = list(start_linked(m, ("ab", "ba"), "ab").values())
    _, watchers, counts = talk(relays, 3)
    return "%d messages" % each_once(relays, watchers, counts)


@slow("a minute under load")
@mirrored(ab="pipe", ba="pipe")
def two_relays_for_a_minute(m):
    relays = list(start_linked(m, ("ab", "ba"), "ab").values())
    _, watchers, counts = talk(relays, 60)
    return "%d messages" % each_once(relays, watchers, counts, patience=120)


@mirrored(ab="pipe", bc="pipe", ca="pipe")
def three_relays_in_a_ring(m):
    """Each posts to the next: a message has gone round when it comes to where it began, and ends there."""
    relays = list(start_linked(m, ("ab", "bc", "ca"), "abc").values())
    _, watchers, counts = talk(relays, 3)
    return "%d messages" % each_once(relays, watchers, counts)


@slow("a minute under load")
@mirrored(ab="pipe", bc="pipe", ca="pipe")
def three_relays_in_a_ring_for_a_minute(m):
    relays = list(start_linked(m, ("ab", "bc", "ca"), "abc").values())
    _, watchers, counts = talk(relays, 60)
    return "%d messages" % each_once(relays, watchers, counts, patience=180)


@mirrored(ab="pipe", ba="pipe", bc="pipe", cb="pipe", ca="pipe", ac="pipe")
def three_relays_that_all_face_each_other(m):
    """Both ways round: the same message comes from two sides, and is said once."""
    relays = list(start_linked(m, ("ab", "ba", "bc", "cb", "ca", "ac"), "abc").values())
    _, watchers, counts = talk(relays, 3)
    return "%d messages" % each_once(relays, watchers, counts)


@slow("kills and faults")
@mirrored(ab="pipe", ba="pipe")
def two_relays_with_faults_and_kills(m):
    """The way between them fails, and each is killed once, while all talk."""
    ways = ("ab", "ba")
    relays = start_linked(m, ways, "ab")
    total = []
    for turn, killed in enumerate(("a", "b")):
        word = "turn%d" % turn
        m.tools.fault("ab", "reset", 3, taken=True)
        m.tools.fault("ba", "status", 3, status=503)
        m.tools.fault("ba", "cut", 2)
        _, watchers, counts = talk(list(relays.values()), 3, word)
        # Accepted and shown where it was said; how much of it is there, the killed one may not know.
        for relay, watcher, count, number in zip(relays.values(), watchers, counts, range(9)):
            wait_until(
                lambda: len(set(irc_numbers(watcher, "%s%d-up" % (word, number)))) >= count, "its own room has all", 30)
        relays[killed].kill()
        relays[killed].open(*relays[killed].tables)
        aim(m, ways, relays)
        survivor = 1 - turn
        alive = list(relays.values())[survivor]
        total.append(each_once([alive], [watchers[survivor]], counts, word))
        gone = list(relays.values())[turn]
        names = {text for _, text in gone.upstream()}
        for number, count in ((survivor, counts[survivor]),):
            wanted = {"%s%d-%s %d" % (word, number, side, n) for side in ("irc", "up") for n in range(count)}
            wait_until(
                lambda: wanted <= {text for _, text in gone.upstream()}, "the backend of the killed one has all", 60)
        texts = [text for _, text in gone.upstream()]
        assert len(texts) == len(set(texts)) and names <= set(texts), "doubled upstream after a kill"
    return "%d messages" % sum(total)


@on_tools("json")
def a_chain_with_our_own_place_is_not_said_again(m, tool):
    """What a form brings with the origin of this relay in it ends here, and is answered with 200."""
    m.open(m.mirror(tool))
    ann = m.irc("ann")
    ann.say("#lobby", "mine")
    origin = m.tools.expect_said(tool, "ann", "mine")["whole"]["origin"]
    form = FORMS[tool]
    for chain in (origin, ["ffffff"] + origin, origin + ["ffffff"]):
        answer = m.post(tool, form.message(SECRETS[tool], new_id(tool), "ada", "came round", origin=chain))
        assert answer.status == 200, answer
    answer = m.post(tool, form.message(SECRETS[tool], new_id(tool), "ada", "from afar", origin=["ffffff", "eeeeee"]))
    assert answer.status == 200, answer
    ann.expect_text("from afar")
    assert "came round" not in ann.texts(), ann.texts()
    # Chains that no relay makes.
    for chain in ("ffffff", [7], [None], [""], ["x" * 10000], ["a%d" % n for n in range(5000)], {"a": 1}):
        answer = m.post(tool, form.message(SECRETS[tool], new_id(tool), "ada", "odd chain", origin=chain))
        assert answer.status in (200, 400), (chain, answer)


@mirrored(two="json")
def the_chain_grows_by_one_place(m):
    """What came in with a chain goes out by another mirror with this relay's place behind it."""
    m.open(
        m.mirror("two", mirror_name="out", path=None),
        table("in", "json", path="/hooks/in", secret=SHARED))
    m.irc("ann").say("#lobby", "own")
    own = m.tools.expect_said("two", "ann", "own")["whole"]["origin"]
    assert len(own) == 1, own
    answer = m.post("in", FORMS["json"].message(SHARED, new_id("json"), "ada", "from afar", origin=["ffffff", "eeeeee"]))
    assert answer.status == 200, answer
    assert m.tools.expect_said("two", "ada/in", "from afar")["whole"]["origin"][:2] == ["ffffff", "eeeeee"]
    assert m.tools.messages("two")[-1]["whole"]["origin"][-1:] == own
