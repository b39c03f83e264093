"""Two clients of one account with the same name `ann`, connected at the same time."""

from accounts import account
from peer import IRC, wait_until
from restarts import folder, kill
from world import scenario

PEOPLE = "[identity]\n" + account("ann", "secret")


class Twin(IRC):
    """A program that gives no name but its ident."""

    def __init__(self, world, caps=""):
        super().__init__(world.bridge.port)
        world.stack.callback(self.close)
        self.nick = "ann"
        self.send("CAP REQ :" + caps, "PASS ann:secret", "NICK ann", "USER ann 0 * :Ann", "CAP END")
        self.expect("001")
        self.join("#lobby")

    def name(self):
        self.send("PRIVMSG *bridge :whoami")
        line = self.expect("PRIVMSG", lambda line: "this client is" in line.params[-1])
        return line.params[-1].rsplit("this client is ", 1)[1].rstrip(".")

    def is_known(self, name, older):
        older.drain()
        return self.name() == name


class Returned(Twin):
    """It comes while the other is there, which is asked meanwhile and has to read."""

    def __init__(self, world, reader, caps):
        self.reader = reader
        super().__init__(world, caps)

    def pump(self, seconds=0.0):
        self.reader.pump()
        return super().pump(seconds)


def rooms(client):
    client.drain()
    return [line.params[-1] for line in client.lines if line.command == "PRIVMSG" and line.params[0] == "#lobby"]


def meet(world, caps=("", "server-time message-tags")):
    one = Twin(world, caps[0])
    other = Twin(world, caps[1])
    wait_until(lambda: other.is_known("ann 2", one), lambda: "the two are known for two")
    assert one.name() == "ann"
    return one, other


@scenario
def each_shows_what_the_other_says(world):
    world.start(server_extra=PEOPLE)
    remy = world.person("Remy")
    one, other = meet(world)
    for speaker, listener, text in ((one, other, "from irssi"), (other, one, "from WeeChat")):
        speaker.say("#lobby", text)
        remy.expect_message(text)
        listener.expect_text(text)
    remy.say("to both")
    for client in (one, other):
        client.expect_text("to both")
    assert rooms(one) == ["from WeeChat", "to both"], rooms(one)
    assert rooms(other) == ["from irssi", "to both"], rooms(other)


@scenario
def each_gets_what_it_missed(world):
    """Alone, while the other is there; and both, over a relay that is killed."""
    directory = folder(world)
    world.start(directory=directory, server_extra=PEOPLE)
    remy = world.person("Remy")
    one, other = meet(world)

    def both_were_asked(text):
        remy.say(text)
        for client in (one, other):
            client.expect_text(text)
            client.expect("PING", lambda line: line.params[-1].startswith("cb-"))
            client.barrier()

    both_were_asked("shown to both")
    other.close()
    for number in range(3):
        remy.say("missed-%d" % number)
        one.expect_text("missed-%d" % number)
    one.expect("PING", lambda line: line.params[-1].startswith("cb-"))
    one.say("#lobby", "alone")
    remy.expect_message("alone")
    other = Returned(world, one, "server-time message-tags")
    other.expect_text("alone")
    both_were_asked("shown to both again")
    assert rooms(other) == ["missed-0", "missed-1", "missed-2", "alone", "shown to both again"], rooms(other)
    kill(world)
    remy.close()
    world.start(directory=directory, server_extra=PEOPLE)
    remy, carol = world.person("Remy"), world.irc("carol")
    remy.say("after")
    carol.expect_text("after")
    other = Twin(world, "server-time message-tags")
    one = Returned(world, other, "")
    remy.say("the end")
    for client in (one, other):
        client.expect_text("the end")
        # Without server-time the time stands in front.
        assert [text.split("] ")[-1] for text in rooms(client)] == ["after", "the end"], rooms(client)
