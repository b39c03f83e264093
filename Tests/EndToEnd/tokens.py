"""A log-in that works and then expires is not a refusal, and implausible lifetimes are reported."""

import time

from backends import CALM, PASSWORD, on
from dialects import wait_line
from faults import stay
from logins import LOGIN_IN_WORDS, check_talk, logins, refreshes
from marks import slow
from peer import wait_until

def talk_through(setting, span, every=1.0):
    """Both ways for so many seconds, whatever the tokens do meanwhile; nothing is lost, doubled or reordered."""
    ann, bob = setting.irc("ann"), setting.irc("bob")
    up, down, end = [], [], time.monotonic() + span
    while time.monotonic() < end:
        down.append("down %d" % len(down))
        setting.backend.say("Remy", down[-1])
        up.append("up %d" % len(up))
        ann.say("#lobby", up[-1])
        stay(every, ann, bob)
        given_up = [text for text in ann.texts(command="NOTICE") if "15 min" in text or "no other" in text]
        assert not given_up, given_up
    for client in (ann, bob):
        wait_line(client, down[-1])
        wait_line(client, up[-1])
        client.barrier()
        assert client.texts("Remy") == down, "%s has %r" % (client.nick, client.texts("Remy"))
        assert client.texts("ann") == up, "%s has %r" % (client.nick, client.texts("ann"))
    assert setting.backend.heard("ann") == up, setting.backend.heard("ann")


def no_room_was_given_up(setting):
    long = [
        entry for entry in setting.bridge.log_entries("upstream-failed")
        if int(entry.get("retry-in", "0ms").rstrip("ms") or 0) > 600_000]
    assert not long, long


@slow("waits for the ends of several tokens")
@on("directus")
def tokens_of_eight_seconds(setting):
    """The issue's case: "`directus` with tokens of 8 s: the link is up for 8 s, the token ends on the open socket, and the room
    stays down for 15 minutes ("the login has expired, and there is no other") though the refresh token is good". The login says
    of its tokens that they live for a quarter of an hour, so nothing is renewed ahead of the end."""
    setting.serve(access_ttl=8, expires=900_000)
    setting.start()
    talk_through(setting, 26)
    no_room_was_given_up(setting)
    assert len(logins(setting)) == 1, "the refresh token is good: %r" % logins(setting)
    assert 3 <= len(refreshes(setting)) <= 6, refreshes(setting)
    return "%d renewals" % len(refreshes(setting))


@on("directus")
def tokens_of_three_seconds(setting):
    """"Only a credential that never opened a session counts as refused", however short the session was."""
    setting.serve(access_ttl=3, expires=900_000)
    setting.start()
    talk_through(setting, 16)
    no_room_was_given_up(setting)
    assert len(logins(setting)) == 1 and len(refreshes(setting)) <= 12, (logins(setting), refreshes(setting))


@slow("waits for the ends of several tokens")
@on("directus")
def tokens_of_eight_seconds_that_say_so(setting):
    """Renewed after half of their life; no link is lost over it."""
    setting.serve(access_ttl=8)
    setting.start()
    connections = setting.backend.connections()
    talk_through(setting, 20)
    no_room_was_given_up(setting)
    assert setting.backend.connections() == connections, "the link was lost over it"


@slow("waits for the ends of several tokens")
@on("directus")
def a_refresh_token_that_ends_with_the_token(setting):
    """Both live for eight seconds: there are still name and password."""
    setting.serve(access_ttl=8, refresh_ttl=7, expires=900_000)
    setting.start()
    talk_through(setting, 20)
    no_room_was_given_up(setting)
    assert 2 <= len(logins(setting)) <= 4, logins(setting)


@on("directus")
def tokens_of_eight_seconds_and_a_link_that_dies(setting):
    """The link dies twice while tokens come and go, once right when one has ended."""
    setting.serve(access_ttl=8, expires=900_000)
    setting.start()
    ann = setting.irc("ann")
    said = []
    for turn in range(2):
        began = time.monotonic()
        while time.monotonic() < began + 8.2 - 4 * turn:
            said.append("down %d" % len(said))
            setting.backend.say("Remy", said[-1])
            stay(0.5, ann)
        setting.backend.control("drop", abort=True)
        setting.wait_up(2 + turn, patience=30)
    check_talk(setting, ann, "after")
    wait_until(
        lambda: ann.drain() or ann.texts("Remy") == said + ["down after"], lambda: "all came: %r" % ann.texts("Remy"))
    no_room_was_given_up(setting)
    assert len(logins(setting)) == 1, logins(setting)


@slow("waits for the ends of several tokens")
@on("jwt-rooms")
def tokens_of_eight_seconds_in_the_address(setting):
    """The backend closes with 1008 when the token with which the link was opened has ended: each such login worked, and then
    ended."""
    setting.serve(access_ttl=8, close_on_expiry=True)
    setting.start()
    ann, said = setting.irc("ann"), []
    end = time.monotonic() + 26
    while time.monotonic() < end:
        said.append("down %d" % len(said))
        setting.backend.say("Remy", said[-1])
        stay(1, ann)
    wait_until(lambda: ann.drain() or ann.texts("Remy") == said, lambda: "all came: %r" % ann.texts("Remy"), 30)
    no_room_was_given_up(setting)
    assert setting.ups() >= 3, "the links were not closed at all"
    assert len(logins(setting)) == 1, logins(setting)


@on("directus", "jwt-rooms")
def a_credential_that_never_opened_a_session_is_refused(setting):
    """The other side of the sentence: renewed tokens that open nothing are followed by others after pauses that grow, since the
    login worked before."""
    setting.start()
    ann = setting.irc("ann")
    check_talk(setting, ann, "before")
    setting.backend.set(access_ttl=-5)
    setting.backend.control("expire_tokens")
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "refuses the bridge" in line.params[-1])
    stay(8, ann)
    asked = len(logins(setting)) + len(refreshes(setting))
    # After 0.5 s, 1 s, 2 s, 4 s.
    assert asked <= 7, (logins(setting), refreshes(setting))
    stay(4, ann)
    assert len(logins(setting)) + len(refreshes(setting)) <= asked + 1, (logins(setting), refreshes(setting))


# MARK: - Lives that cannot be meant


def warnings(setting):
    """Of the log, those that name the key by which it is put right."""
    return [line for line in setting.bridge.log().splitlines() if '"level":"warn"' in line and "expires_in_unit" in line]


def warned_once(setting):
    wait_until(lambda: warnings(setting), lambda: "a warning names expires_in_unit; the log:\n" + setting.bridge.log()[-1500:])


@on("directus")
def a_life_of_seconds_where_milliseconds_are_meant(setting):
    """"A backend's `expires` that is absurd for its unit is noticed: one warning that names `expires_in_unit`". Here it says 900
    and means a quarter of an hour, which is 0.9 s in the unit of this wire. Nobody storms its login either."""
    setting.serve(expires=900)
    setting.start()
    ann = setting.irc("ann")
    warned_once(setting)
    asked = len(logins(setting)) + len(refreshes(setting))
    stay(5, ann)
    check_talk(setting, ann, "all the same")
    assert len(logins(setting)) + len(refreshes(setting)) - asked <= 10, "a storm: %r" % refreshes(setting)
    assert len(warnings(setting)) == 1, warnings(setting)


@on("custom")
def days_of_fifteen_minutes(setting):
    """"days of 15 minutes, milliseconds read as seconds": the login says 900000, which is ten days in seconds, and its keys end
    much sooner."""
    setting.serve(accounts={"bridge": PASSWORD}, key_ttl=900_000)
    setting.start(room_extra=CALM + LOGIN_IN_WORDS % {"base": setting.backend.origin, "word": PASSWORD})
    ann = setting.irc("ann")
    for turn in range(2):
        check_talk(setting, ann, "turn %d" % turn)
        setting.backend.control("expire_tokens")
        setting.backend.control("drop", abort=True)
        setting.wait_up(2 + turn)
    warned_once(setting)
    check_talk(setting, ann, "at last")
    assert len(warnings(setting)) == 1, warnings(setting)


@on("custom")
def the_unit_puts_it_right(setting):
    """What the warning asks for: with `expires_in_unit = "ms"` 6000 are six seconds, and a key is renewed ahead of its end."""
    setting.serve(accounts={"bridge": PASSWORD}, key_ttl=6000)
    words = LOGIN_IN_WORDS % {"base": setting.backend.origin, "word": PASSWORD}
    setting.start(room_extra=CALM + words + '  expires_in_unit = "ms"\n')
    wait_until(lambda: setting.backend.requests("/keys/renew"), "the key is renewed ahead of its end")
    check_talk(setting, setting.irc("ann"), "one")
    assert not warnings(setting), warnings(setting)


@on("directus", "custom")
def an_ordinary_life_is_no_reason_to_warn(setting):
    if setting.wire.name == "directus":
        setting.start()
    else:
        setting.serve(accounts={"bridge": PASSWORD}, key_ttl=900)
        setting.start(room_extra=CALM + LOGIN_IN_WORDS % {"base": setting.backend.origin, "word": PASSWORD})
    ann = setting.irc("ann")
    check_talk(setting, ann, "one")
    setting.backend.control("expire_tokens")
    setting.backend.control("drop", abort=True)
    setting.wait_up(2)
    check_talk(setting, ann, "two")
    assert not warnings(setting), warnings(setting)
