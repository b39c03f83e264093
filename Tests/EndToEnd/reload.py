"""SIGHUP: the configuration is read again under clients and links."""

import signal

from peer import wait_until
from world import scenario


def rewrite(bridge, change):
    """The file with a change, and the signal."""
    with open(bridge.config_path, encoding="utf-8") as file:
        text = file.read()
    with open(bridge.config_path, "w", encoding="utf-8") as file:
        file.write(change(text))
    told = len(outcomes(bridge))
    bridge.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(outcomes(bridge)) > told, lambda: "the reload is over; the log says\n" + bridge.log()[-2000:])
    return outcomes(bridge)[-1]


def outcomes(bridge):
    return sorted(bridge.log_entries("reloaded") + bridge.log_entries("reload-refused"), key=lambda entry: entry["ts"])


@scenario
def rooms_come_and_go_under_clients(world):
    bridge = world.start(rooms=("lobby", "den"))
    ann, bob = world.irc("ann"), world.plain("bob", "#den")
    links = len(world.relay.bridges())

    def change(text):
        text = text.replace('name = "den"', 'name = "attic"').replace("/den", "/attic")
        return text.replace('name = "lobby"\n', 'name = "lobby"\ntopic = "soup"\n')

    told = rewrite(bridge, change)
    assert told["changes"] == "rooms-opened attic; rooms-closed den; rooms-changed lobby", told
    bridge.logged("reloaded", "info", "changes")
    part = bob.expect("PART")
    assert part.params[0] == "#den", part.raw
    topic = ann.expect("TOPIC")
    assert topic.params == ["#lobby", "soup"], topic.raw
    bob.join("#attic")
    world.person("remy", "attic").say("up here")
    bob.expect_text("up here")
    world.person("remy", "lobby").say("as before")
    ann.expect_text("as before")
    assert len(world.relay.bridges()) >= links, "the link of the room that stays stayed"


@scenario
def a_bad_file_changes_nothing(world):
    bridge = world.start()
    ann = world.irc("ann")
    rewrite(bridge, lambda text: text.replace('name = "lobby"', 'name = "lobby"\ntopik = "x"'))
    entry = bridge.logged("reload-refused", "error")
    assert "topik" in entry["msg"] and "chatbridge.toml:" in entry["msg"], entry
    world.person("remy").say("still here")
    ann.expect_text("still here")
    told = rewrite(bridge, lambda text: text.replace('topik = "x"', "")
                   .replace("[limits]", "[limits]\nmax_clients = 1").replace('name = "bridge.test"', 'name = "other.test"'))
    assert told["changes"] == "keys-changed limits.max_clients; keys-deferred server.name", told
    assert bridge.logged("reload-deferred", "warn", "key")["key"] == "server.name"
    ann.barrier()
