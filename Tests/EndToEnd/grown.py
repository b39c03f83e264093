"""Memory that a backend can make the bridge allocate by editing messages."""

from backends import on
from marks import alone
from restarts import MEMORY

COUNT, SIZE = 200, 80 * 1024
WORDS = "y" * (SIZE - 16)


def settle(setting, ann, text):
    setting.backend.say("Remy", text)
    ann.expect_text(text, patience=60)


def resident(setting):
    return setting.bridge.rss_kib()[0] / 1024


def grown(setting, act):
    """MiB by which the bridge is larger after it, with `memory:`."""
    with type(setting)(setting.wire) as one:
        one.start(more="\n" + MEMORY + "\n")
        ann = one.irc("ann")
        ids = [one.backend.say("Remy", "first %d" % number) for number in range(COUNT)]
        settle(one, ann, "filled")
        before = resident(one)
        act(one, ids, ann)
        settle(one, ann, "done")
        one.bridge.check_alive()
        return resident(one) - before


@on("custom")
@alone("compares how large the bridge becomes")
def edits_take_no_more_memory_than_messages(setting):
    """Small messages that each become as large as a frame may be are bounded as messages of that size are."""
    def say(one, _, ann):
        for number in range(COUNT):
            one.backend.say("Remy", "%d %s" % (number, WORDS))
            ann.drain()

    def edit(one, ids, ann):
        for number, message_id in enumerate(ids):
            one.backend.do("edit", "Remy", id=message_id, text="%d %s" % (number, WORDS))
            ann.drain()

    said, edited = grown(setting, say), grown(setting, edit)
    assert edited < 1.3 * said + 2, "%.0f MiB by edits, %.0f MiB by as many messages" % (edited, said)
    return "%.0f MiB by edits, %.0f MiB by as many messages" % (edited, said)


@on("custom")
@alone("compares how large the bridge becomes")
def the_same_message_edited_again_and_again(setting):
    """What stood there before is not kept."""
    def edit(one, ids, ann):
        for number in range(COUNT):
            one.backend.do("edit", "Remy", id=ids[number % 3], text="%d %s" % (number, WORDS))
            ann.drain()

    found = grown(setting, edit)
    assert found < COUNT * SIZE / 2**20 / 2, "%.0f MiB for three messages of %d KiB" % (found, SIZE // 1024)
    return "%.0f MiB" % found
