"""The environment of a scenario: a relay, a bridge linked to it, and users."""

import contextlib
import functools

from peer import IRC, MODERN, Bridge, Person, Relay


def scenario(function):
    """Marks a function for the runner and hands it a fresh World, unless it takes none."""
    if function.__code__.co_argcount == 0:
        function.is_scenario = True
        return function

    @functools.wraps(function)
    def run():
        with World() as world:
            result = function(world)
            if world.bridge:
                world.bridge.check_alive()
            return result

    run.is_scenario = True
    return run


class World:
    """Everything that it started ends with it."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.relay = None
        self.bridge = None

    def __enter__(self):
        self.relay = Relay()
        self.stack.callback(self.relay.stop)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, rooms=("lobby",), linked=True, **options):
        """A bridge with these rooms, all on the relay."""
        urls = {room: self.relay.url() for room in rooms}
        self.bridge = Bridge(urls, **options)
        self.stack.callback(self.bridge.stop)
        if linked:
            self.relay.wait_for_bridge(count=len(rooms))
        return self.bridge

    def irc(self, nick, join="#lobby", caps=MODERN):
        client = IRC(self.bridge.port, nick, caps=caps, join=[join] if join else [])
        self.stack.callback(client.close)
        return client

    def plain(self, nick, join="#lobby"):
        """A client without any capability."""
        return self.irc(nick, join, caps=())

    def person(self, name, room="lobby", sender_id=None):
        person = Person(self.relay.port, room, name, sender_id)
        self.stack.callback(person.close)
        return person
