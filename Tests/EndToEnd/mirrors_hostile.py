"""The worst that people say, through every kind of mirror at once: it goes on, and forges, notifies and blocks nothing."""

from marks import slow
from mirrors import TOOLS, await_number, mirrored, table, visible
from mirrors_irc import Network, expect_text, joined, mirror, program
from mirrors_out import FLOOD
from peer import wait_until

WORST = (
    "one\r\nPRIVMSG #net :forged\r\n:ann!a@b QUIT :forged\n\nJOIN #forged\x00\x01ACTION hugs\x01",
    (FLOOD + " ") * 200, "\x01VERSION\x01", "\x01DCC SEND x 1 2 3\x01", "*" * 5000, "`" * 5000, "[" * 3000, "<" * 3000 + ">" * 3000,
    "[a](javascript:alert(1)) <https://a.example|b> <script>alert(1)</script> <at>all</at>", "\u202e\u2066\u200b\u2063\ufe00" * 500,
    "🍲" * 3000, "é̀" * 3000, "{nick} {text} %s %n \\u0000 \\", "x" * (50 << 10), "\n".join("line %d" % n for n in range(500)),
)


@slow("thousands of posts and lines")
@mirrored(**{kind: kind for kind in TOOLS})
def the_worst_texts_through_every_kind(m):
    has_network = program("ngircd") is not None
    tables = [m.mirror(kind, mirror_name=kind) for kind in TOOLS]
    tables.append(table("across", "room", to="den"))
    if has_network:
        network = Network("ngircd")
        m.stack.callback(network.stop)
        tables.append(mirror(network, nick="relay"))
    m.open(*tables, rooms=("lobby", "den"))
    eve = m.irc("eve", "#den")
    if has_network:
        joined(m)
        bob = network.irc("bob")
    for number, text in enumerate(WORST):
        m.backend.say("Remy", text)
        m.backend.say("Remy", "end %d" % number)
    last = len(WORST) - 1
    for kind in TOOLS:
        shown = await_number(m, kind, "end", last, patience=120)
        # What the tool itself would take for a mention of everybody.
        assert not [message for message in shown if message.get("mentions")], kind
        if kind != "json":
            assert not [message for message in shown if "\r" in visible(message["text"])], kind
    expect_text(eve, "end %d" % last, 60)
    assert not [line for line in eve.lines if "forged" in line.params[0] or line.command in ("QUIT", "PART")], eve.lines
    if has_network:
        expect_text(bob, "end %d" % last, 120)
        from_relay = [line for line in bob.lines if line.source and line.source.startswith("relay!")]
        assert {line.command for line in from_relay} <= {"JOIN", "PRIVMSG", "NOTICE", "MODE"}, {line.command for line in from_relay}
        assert {line.params[0] for line in from_relay} == {"#net"}, {line.params[0] for line in from_relay}
        assert not [line for line in from_relay if line.params[-1].startswith("\x01") and "ACTION" not in line.params[-1]]
    wait_until(lambda: ("Remy/across", "end %d" % last) in m.upstream("den"), "the other backend has it", 60)
    return "%d texts" % len(WORST)
