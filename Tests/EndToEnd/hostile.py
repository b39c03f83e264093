"""Invalid input from both sides: the sender is answered or dropped, and others are not affected."""

import contextlib
import re
import socket
import threading
import time

from marks import alone, slow
from peer import IRC, TEXT, envelope, frame, new_id, wait_until
from world import scenario

# How long a PRIVMSG of somebody unharmed may take while another peer misbehaves. A healthy one takes a millisecond.
SANE_SECONDS = 2.0


def round_trip(ann, remy, text):
    """Seconds for a message up and one down; fails when it is not sane."""
    began = time.monotonic()
    ann.say("#lobby", text)
    remy.expect_message(text)
    remy.say("re: " + text)
    ann.expect_text("re: " + text)
    seconds = time.monotonic() - began
    assert seconds < SANE_SECONDS, "a round trip took %.2f s" % seconds
    return seconds


# MARK: - From IRC clients


@scenario
def a_line_too_long_gets_417_and_the_next_is_taken(world):
    world.start()
    ann = world.irc("ann")
    ann.send("PRIVMSG #lobby :" + "x" * 600)
    ann.expect("417")
    ann.send("@" + "a" * 9000 + " PRIVMSG #lobby :tags")
    ann.expect("417")
    ann.send_bytes(b"y" * 1_000_000 + b"\r\n")
    ann.expect("417")
    ann.say("#lobby", "still here")
    ann.expect_text("still here")
    assert [f["body"] for f in world.relay.messages_from_bridge()] == ["still here"]


@scenario
def invalid_utf8_is_refused_aloud(world):
    world.start()
    ann = world.irc("ann")
    for bad in (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf"):
        ann.send_bytes(b"PRIVMSG #lobby :" + bad + b"\r\n")
        line = ann.expect("FAIL")
        assert line.params[:2] == ["*", "INVALID_UTF8"], line.raw
    ann.say("#lobby", "fine")
    ann.expect_text("fine")
    assert [f["body"] for f in world.relay.messages_from_bridge()] == ["fine"]


@scenario
def nul_and_bare_cr_do_not_cross(world):
    world.start()
    ann = world.irc("ann")
    ann.send_bytes(b"PRIVMSG #lobby :a\0b\r\n")
    ann.expect("FAIL")
    ann.send_bytes(b"PRIVMSG #lobby :a\rQUIT :b\r\n")
    ann.expect("FAIL")
    ann.say("#lobby", "fine")
    ann.expect_text("fine")
    assert [f["body"] for f in world.relay.messages_from_bridge()] == ["fine"]


@scenario
def bytes_that_come_one_by_one_are_lines_all_the_same(world):
    world.start()
    slow = IRC(world.bridge.port)
    world.stack.callback(slow.close)
    slow.nick = "slow"
    for byte in "NICK slow\r\nUSER slow 0 * :Slow\r\nJOIN #lobby\r\nPRIVMSG #lobby :un à un\n".encode():
        slow.send_bytes(bytes([byte]))
    slow.expect("366")
    wait_until(lambda: world.relay.messages_from_bridge(), "the message goes upstream")
    assert world.relay.messages_from_bridge()[0]["body"] == "un à un"


@scenario
def half_closed_clients_are_heard_to_the_end(world):
    """`printf ... | nc -N`: everything comes in one piece, and then the sender's side is closed."""
    world.start()
    sock = socket.create_connection(("127.0.0.1", world.bridge.port), timeout=20)
    sock.sendall(b"NICK p\r\nUSER p 0 * :P\r\nJOIN #lobby\r\nPRIVMSG #lobby :from a pipe\r\nQUIT\r\n")
    sock.shutdown(socket.SHUT_WR)
    received = b"".join(iter(lambda: sock.recv(65536), b""))
    sock.close()
    assert b" 001 p " in received and b" 366 p #lobby " in received, received[-300:]
    wait_until(
        lambda: "from a pipe" in [f["body"] for f in world.relay.messages_from_bridge()],
        "what was piped reaches the backend")


@scenario
def half_closed_without_quit_is_heard_too(world):
    world.start()
    sock = socket.create_connection(("127.0.0.1", world.bridge.port))
    sock.sendall(b"NICK p\r\nUSER p 0 * :P\r\nJOIN #lobby\r\nPRIVMSG #lobby :no goodbye\r\n")
    sock.shutdown(socket.SHUT_WR)
    wait_until(
        lambda: "no goodbye" in [f["body"] for f in world.relay.messages_from_bridge()], "the message goes upstream"
    )
    sock.settimeout(10)
    received = b""
    while True:
        data = sock.recv(65536)
        if not data:
            break
        received += data
    assert b" 001 p " in received, "the answers were thrown away: %r" % received[-200:]
    sock.close()


@scenario
def http_and_tls_on_the_irc_port_are_turned_away(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    hello = bytes.fromhex("16030100f8010000f40303") + bytes(240)
    for name, data in (
        ("GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("POST", b"POST / HTTP/1.1\r\nContent-Length: 40\r\n\r\nNICK evil\r\nUSER e 0 * :e\r\nJOIN #lobby\r\n"),
        ("TLS", hello),
    ):
        sock = socket.create_connection(("127.0.0.1", world.bridge.port))
        sock.settimeout(5)
        sock.sendall(data)
        answer = b""
        try:
            while True:
                more = sock.recv(4096)
                if not more:
                    break
                answer += more
        except ConnectionResetError:
            pass
        except socket.timeout:
            raise AssertionError("%s was not closed; it got %r" % (name, answer)) from None
        sock.close()
        assert b" 001 " not in answer, "%s became an IRC client" % name
    round_trip(ann, remy, "unharmed")


@scenario
def a_client_that_never_reads_is_dropped_alone(world):
    world.start(limits='messages_per_second = "off"\nupstream_messages_per_second = "off"\nsendq = "64KiB"')
    ann, remy = world.irc("ann"), world.person("Remy")
    deaf = world.irc("deaf")
    body = "x" * 400
    said = 0
    gone = []
    # The kernel's own buffers come on top of the queue, so keep talking until the bridge has enough.
    end = time.monotonic() + 60
    while not gone and time.monotonic() < end:
        for _ in range(50):
            remy.say("%d %s" % (said, body))
            said += 1
        remy.drain()
        ann.expect_text("%d %s" % (said - 1, body))
        gone = [line for line in ann.lines if line.command == "QUIT" and line.source.startswith("deaf!")]
    assert gone, "after %d messages the deaf client is still there" % said
    assert "SendQ exceeded" in gone[0].params[-1], gone[0].raw
    wait_until(lambda: ann.drain() or len(ann.texts("Remy")) >= said, "ann has all")
    assert ann.texts("Remy") == ["%d %s" % (n, body) for n in range(said)], "ann lost or doubled some"
    round_trip(ann, remy, "unharmed")
    return "after %d messages" % said


@scenario
def a_sudden_burst_from_the_backend_drops_nobody_who_reads(world):
    """Two hundred messages of a hundred lines in one write are more than sendq at once; a reader keeps up with them."""
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    bodies = ["\n".join("message %d line %d" % (n, line) for line in range(100)) for n in range(200)]
    world.relay.raw_bytes(b"".join(frame(envelope("message", remy.id, "Remy", body)) for body in bodies))
    world.relay.raw(envelope("message", remy.id, "Remy", "end"))
    ann.expect_text("end")
    assert ann.texts("Remy") == [line for body in bodies for line in body.split("\n")] + ["end"], "lost or swapped"


@scenario
def a_burst_of_2000_lines_is_delayed_and_nothing_is_lost(world):
    world.start(limits='messages_per_second = 200\nmessages_burst = 50\nupstream_messages_per_second = "off"')
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    texts = ["burst %d" % n for n in range(2000)]
    data = "".join("PRIVMSG #lobby :%s\r\n" % text for text in texts).encode()
    sender = threading.Thread(target=ann.send_bytes, args=(data,))
    began = time.monotonic()
    sender.start()
    slowest = 0.0
    for n in range(5):
        began_one = time.monotonic()
        bob.say("#lobby", "meanwhile %d" % n)
        remy.expect_message("meanwhile %d" % n)
        slowest = max(slowest, time.monotonic() - began_one)
    assert slowest < SANE_SECONDS, "others waited %.2f s" % slowest
    wait_until(lambda: len(remy.bodies("ann")) >= 2000, lambda: "all 2000; %d" % len(remy.bodies("ann")), 40)
    seconds = time.monotonic() - began
    sender.join()
    assert remy.bodies("ann") == texts, "out of order, doubled or lost"
    assert seconds > 7, "2000 lines at 200 a second took %.1f s: no flood control" % seconds
    ann.barrier()
    assert not ann.closed
    return "%.1f s" % seconds


@scenario
def the_default_limits_only_delay(world):
    world.start(limits="")
    ann, remy = world.irc("ann"), world.person("Remy")
    texts = ["default %d" % n for n in range(16)]
    ann.send(*("PRIVMSG #lobby :" + text for text in texts))
    wait_until(lambda: len(remy.bodies("ann")) >= 16, "all 16", 20)
    assert remy.bodies("ann") == texts


@scenario
def many_connections_that_say_nothing_harm_nobody(world):
    world.start(limits='messages_per_second = "off"\nmax_clients = 600\nregistration_timeout = "2s"')
    ann, remy = world.irc("ann"), world.person("Remy")
    silent = [socket.create_connection(("127.0.0.1", world.bridge.port)) for _ in range(500)]
    round_trip(ann, remy, "among the silent")
    for sock in silent:
        sock.settimeout(10)
        data = b""
        while True:
            try:
                more = sock.recv(4096)
            except ConnectionResetError:
                break
            if not more:
                break
            data += more
        assert data.startswith(b"ERROR"), data
        sock.close()
    round_trip(ann, remy, "alone again")


# MARK: - From the backend


@scenario
def line_ends_in_names_do_not_break_lines(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for number, name in enumerate(
        (
            "Evil\r\n:bridge.test NOTICE ann :forged", "Evil\nQUIT", "\r\n", "\0nul", "a b!c@d", ":colon", "#hash", "",
            "@at", "*bridge", "bridge.test", "ann", "x" * 5000,
            "e\u0301" * 400, "\u202eevil", "\u200b", "👩‍🍳" * 20, "\u2028sep",
        )
    ):
        text = "name %d" % number
        remy.send_raw(envelope("message", new_id(), name, text))
        line = ann.expect_text(text)
        nick, _, rest = line.source.partition("!")
        assert nick and nick != "ann" and rest.count("@") == 1, line.raw
        assert len(nick.encode()) <= 30 and not re.search(r"[\x00-\x20,:*?!@#]", nick), "nick %r" % nick
    ann.barrier()
    assert not [line for line in ann.lines if "forged" in line.params[-1] and line.command == "NOTICE"], "a forged line"
    ann.send("NAMES #lobby")
    ann.expect("366")
    ann.send("WHO #lobby")
    ann.expect("315")


@scenario
def line_ends_and_controls_in_bodies_do_not_break_lines(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    remy.say("one\r\ntwo\nthree\rQUIT :x\n\n\x00four\x01ACTION\x01")
    remy.say("end")
    ann.expect_text("end")
    commands = {line.command for line in ann.lines if line.source.startswith("Remy!")}
    assert commands == {"JOIN", "PRIVMSG"}, commands
    texts = ann.texts("Remy")
    assert texts[0] == "one" and texts[1] == "two", texts
    assert all(not re.search(r"[\r\n\x00]", text) for text in texts), texts


@scenario
def malformed_frames_are_dropped_and_the_link_stays(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    handshakes = len(world.relay.handshakes)
    for bad in (
        b"", b"{", b"[]", b"null", b"42", b'"text"', b"not json", b'{"event":"message"}', b'{"event":7,"body":1}',
        b'{"event":"message","body":5,"sender_id":"x"}', b'{"event":"message","body":"\\ud800"}', b"[" * 100_000,
        b'{"a":' * 50_000, b'{"event":"dance","body":"x"}', b'{"event":"message","body":"x"} trailing',
        b'{"event":"message","body":{"deep":[1,2,{"x":null}]},"sender_id":[],"sender_name":{}}',
        b'{"sent_at":1e999999999,"event":"typing","sender_id":"q","sender_name":"Q","body":"","message_id":"m"}',
        b'{"sent_at":-99999999999999999999999999,"event":"readReceipt","message_id":"' + b"9" * 300_000 + b'"}',
    ):
        world.relay.raw(bad, bridge_only=True)
    round_trip(ann, remy, "after the rubbish")
    assert len(world.relay.handshakes) == handshakes, "the link was cut for a bad frame"
    dropped = len(world.bridge.log_entries("frame-dropped"))
    return "%d frames dropped in the log" % dropped


@scenario
def times_beyond_reason_do_not_harm(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for number, stamp in enumerate(
        ("1e308", "-1e308", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "0", "null", '"x"',
         "true", "253402300799999", "1e14", "99999999999999999999999999999999999999", "0.0000000001", "-1")
    ):
        text = "time %d" % number
        remy.send_raw(
            '{"event":"message","message_id":"%s","sender_id":"%s","sender_name":"Remy","body":"%s","sent_at":%s}'
            % (new_id(), remy.id, text, stamp)
        )
        line = ann.expect_text(text)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.tags["time"]), line.raw
        year = int(line.tags["time"][:4])
        assert year <= time.gmtime().tm_year, "a time in the future is shown: " + line.raw


@scenario
def a_frame_of_5_mib_closes_with_1009_and_the_link_comes_back(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    handshakes = len(world.relay.handshakes)
    world.relay.raw(envelope("message", new_id(), "Remy", "z" * (5 << 20)), bridge_only=True)
    wait_until(lambda: 1009 in world.relay.closes, lambda: "Close 1009; got %r" % world.relay.closes)
    wait_until(lambda: len(world.relay.handshakes) > handshakes, "a new handshake")
    round_trip(ann, remy, "after the giant")
    return "RSS now and most: %d and %d KiB" % world.bridge.rss_kib()


@scenario
def a_frame_that_claims_more_than_memory_is_refused_by_its_head(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for head in (b"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"):
        handshakes = len(world.relay.handshakes)
        world.relay.raw_bytes(head)
        wait_until(lambda: len(world.relay.handshakes) > handshakes, "a new handshake")
        world.relay.wait_for_bridge()
    round_trip(ann, remy, "after the claim")


@scenario
def somebody_who_takes_our_id_is_somebody_else(world):
    world.start()
    ann, bob, remy = world.irc("ann"), world.irc("bob"), world.person("Remy")
    ann.say("#lobby", "it is me")
    real = remy.expect_message("it is me")
    ann.expect_text("it is me")
    impostor = world.person("ann", sender_id=real["sender_id"])
    impostor.say("it is me, ann")
    for client in (ann, bob):
        assert client.expect_text("it is me, ann").source.split("!")[0] != "ann", "the impostor passed"
    # The id of a message that ann said, said again by another: neither is taken for the other.
    remy.say("same id", message_id=real["message_id"])
    assert bob.expect_text("same id").source.startswith("Remy!")
    ann.say("#lobby", "and I still am")
    assert bob.expect_text("and I still am").source.startswith("ann!")
    remy.expect_message("and I still am")


@scenario
def a_body_of_a_million_newlines_is_one_message(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    began = time.monotonic()
    remy.say("\n" * ((1 << 20) - 1000))
    remy.say("a\n" * 500_000)
    remy.say("end")
    ann.expect_text("end")
    seconds = time.monotonic() - began
    lines = ann.texts("Remy")
    assert len(lines) <= 210, "%d lines" % len(lines)
    assert "more line" in " ".join(lines), lines[-3:]
    round_trip(ann, remy, "unharmed")
    return "%d lines, %.2f s" % (len(lines), seconds)


@scenario
def a_body_of_a_mebibyte_is_bounded_lines(world):
    world.start()
    ann, bob, remy = world.irc("ann"), world.plain("bob"), world.person("Remy")
    began = time.monotonic()
    remy.say("word " * 200_000)
    remy.say("ab" * 500_000)
    remy.say("👩‍🍳" * 90_000)
    remy.say("e" + "\u0301" * 500_000)
    remy.say("end")
    for client in (ann, bob):
        client.expect_text("end")
        lines = client.texts("Remy")
        assert len(lines) <= 420, "%d lines" % len(lines)
        for line in client.lines:
            # Without tags a line has 512 bytes with its CR LF.
            untagged = line.raw.split(" ", 1)[1] if line.raw.startswith("@") else line.raw
            assert len(untagged.encode()) <= 510, "%d bytes: %s" % (len(untagged.encode()), line.raw[:100])
    seconds = time.monotonic() - began
    assert seconds < 10, "it took %.1f s" % seconds
    round_trip(ann, remy, "unharmed")
    return "%.2f s, RSS now and most: %d and %d KiB" % ((seconds,) + world.bridge.rss_kib())


@scenario
@slow("a hundred thousand JOINs")
@alone("measures how long others wait under load")
def a_hundred_thousand_invented_people_are_bounded(world):
    world.start(rooms=("lobby", "flood"))
    ann, remy = world.irc("ann"), world.person("Remy")
    eve = world.irc("eve", join="#flood")
    round_trip(ann, remy, "before")
    before, _ = world.bridge.rss_kib()
    cpu = world.bridge.cpu_seconds()
    slowest = 0.0
    batch = bytearray()
    for n in range(100_000):
        batch += frame(envelope("message", "ID-%d" % n, "Person %d" % n, "hello %d" % n, message_id="M-%d" % n))
        if len(batch) > 250_000:
            world.relay.raw_bytes(bytes(batch), room="flood")
            batch.clear()
            eve.drain()
            if n % 5 == 0:
                slowest = max(slowest, round_trip(ann, remy, "during %d" % n))
    world.relay.raw_bytes(bytes(batch), room="flood")
    eve.expect("PRIVMSG", lambda line: "hello 99999" in line.params[-1], 60)
    slowest = max(slowest, round_trip(ann, remy, "after"))
    after, most = world.bridge.rss_kib()
    assert after - before < 100 * 1024, "RSS grew by %d KiB" % (after - before)
    texts = [line.params[-1] for line in eve.lines if line.command == "PRIVMSG"]
    assert len(texts) == 100_000, "eve saw %d of 100000 messages" % len(texts)
    return "RSS %d to %d KiB (most %d), slowest round trip %.3f s, CPU %.1f s" % (
        before, after, most, slowest, world.bridge.cpu_seconds() - cpu,
    )


@scenario
@alone("measures how long others wait under load")
def invented_people_of_one_name_cost_no_more(world):
    """Twenty thousand people who are all called Remy."""
    world.start(rooms=("lobby", "flood"))
    ann, remy = world.irc("ann"), world.person("Linguini")
    eve = world.irc("eve", join="#flood")
    cpu = world.bridge.cpu_seconds()
    slowest = 0.0
    for first in range(0, 20_000, 1000):
        world.relay.raw_bytes(
            b"".join(
                frame(envelope("message", "ID-%d" % n, "Remy", "hello %d" % n, message_id="M-%d" % n))
                for n in range(first, first + 1000)
            ),
            room="flood",
        )
        eve.drain()
        slowest = max(slowest, round_trip(ann, remy, "during %d" % first))
    eve.expect("PRIVMSG", lambda line: "hello 19999" in line.params[-1], 60)
    return "slowest round trip %.3f s, CPU %.1f s" % (slowest, world.bridge.cpu_seconds() - cpu)


@scenario
def protocol_errors_of_the_backend_end_in_a_new_link(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for name, data in (
        ("masked frame", frame("x", TEXT, masked=True)),
        ("reserved bits", b"\xf1\x01x"),
        ("reserved opcode", b"\x83\x01x"),
        ("text that is not UTF-8", b"\x81\x02\xff\xfe"),
        ("fragmented ping", b"\x09\x00"),
        ("ping of 126 bytes", b"\x89\x7e\x00\x7e" + b"x" * 126),
        ("continuation of nothing", b"\x80\x01x"),
        ("close with one byte", b"\x88\x01x"),
        ("close with code 1005", b"\x88\x02\x03\xed"),
    ):
        handshakes = len(world.relay.handshakes)
        world.relay.raw_bytes(data)
        wait_until(lambda: len(world.relay.handshakes) > handshakes, "a new handshake after a " + name)
        world.relay.wait_for_bridge()
        round_trip(ann, remy, "after a " + name)


@scenario
def strange_answers_to_the_handshake_are_refused_and_tried_again(world):
    world.start(room_extra='handshake_timeout = "1s"')
    ann, remy = world.irc("ann"), world.person("Remy")
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    answers = [
        upgrade + b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
        upgrade + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 301 Moved\r\nLocation: ws://127.0.0.2:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 999 What\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\xff" * 5000,
        b"HTTP/1.1 101 X\r\n" + b"A: b\r\n" * 100_000,
        b"HTTP/1.1 503\r\n\r\n",
        b"",
    ]
    for data in answers:
        world.relay.answer_next(data)
    world.relay.drop()
    wait_until(
        lambda: [status for status, _ in world.relay.handshakes].count(None) == len(answers),
        lambda: "a try for each answer: %r" % [status for status, _ in world.relay.handshakes], 40,
    )
    world.relay.wait_for_bridge()
    round_trip(ann, remy, "after the strange answers")
    told = [text for text in ann.texts(command="NOTICE") if "was lost" in text]
    assert len(told) == 1, told


@scenario
def a_redirect_to_another_port_is_not_followed(world):
    """Something else may listen there, and would be shown the bridge's credentials."""
    world.start(room_extra='handshake_timeout = "1s"')
    ann, remy = world.irc("ann"), world.person("Remy")
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = b"ws://127.0.0.1:%d/" % other.getsockname()[1]
        world.relay.answer_next(b"HTTP/1.1 307 Elsewhere\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n")
        handshakes = len(world.relay.handshakes)
        world.relay.drop()
        wait_until(lambda: len(world.relay.handshakes) > handshakes + 1, "a try after the redirect")
        world.relay.wait_for_bridge()
        round_trip(ann, remy, "after the redirect")
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            raise AssertionError("the other port was asked by %r" % (other.accept()[1],))


@scenario
def frames_cut_anywhere_are_read_all_the_same(world):
    world.start()
    ann = world.irc("ann")
    text = "cut ☕ anywhere"
    body = envelope("message", new_id(), "Remy", text).encode()
    for byte in frame(body):
        world.relay.raw_bytes(bytes([byte]))
    ann.expect_text(text)
    # Fragments, inside a character, with a ping between them.
    middle = body.index("☕".encode()) + 1
    body = body.replace(b'"message_id": "', b'"message_id": "F')
    middle += 1
    world.relay.raw_bytes(
        frame(body[:middle], TEXT, final=False) + frame(b"still there?", 9) + frame(body[middle:], 0)
    )
    ann.expect_text(text)
    ann.barrier()
    assert ann.texts("Remy") == [text, text]


@scenario
def a_flood_of_pings_from_the_backend_is_answered_and_bounded(world):
    world.start()
    ann, remy = world.irc("ann"), world.person("Remy")
    for _ in range(20):
        world.relay.raw_bytes(frame(b"p" * 100, 9) * 2000)
    round_trip(ann, remy, "after the pings")
