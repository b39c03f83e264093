"""A room in a tool behind matterbridge: the real one, where this machine has it, with config/examples/matterbridge.py.

MATTERBRIDGE names the program, else it is looked for in PATH. The tool behind it is ngircd.
"""

import os
import shutil
import subprocess
import sys

from backends import HERE
from marks import LeftOut
from mirrors import Mirrored, irc_numbers, say_all, table
from mirrors_irc import Network, expect_text, free_port, plain, program
from peer import wait_until

PROGRAM = os.environ.get("MATTERBRIDGE") or shutil.which("matterbridge")
SHIM = os.path.join(HERE, "..", "..", "config", "examples", "matterbridge.py")
# As docs/MIRRORS.md has it.
FILE = """
[irc.net]
Server = "127.0.0.1:%(irc)d"
Nick = "bridge"
RemoteNickFormat = "<{NICK}> "
MessageDelay = 1
MessageQueue = 1000

[api.chatbridge]
BindAddress = "127.0.0.1:%(api)d"
Buffer = 1000
Token = "5esame-of-the-api"
RemoteNickFormat = "{NICK}"

[[gateway]]
name = "lobby"
enable = true

[[gateway.inout]]
account = "irc.net"
channel = "#net"

[[gateway.inout]]
account = "api.chatbridge"
channel = "api"
"""
SECRET = "5hared-by-both-sides"


def run(m, command, **environment):
    with open(os.path.join(m.directory, "behind.log"), "ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment})
    m.stack.callback(process.wait)
    m.stack.callback(process.kill)


def both_ways_through_the_real_one():
    if not PROGRAM or not program("ngircd"):
        raise LeftOut("this machine has no matterbridge, or no ngircd")
    with Mirrored() as m:
        network = Network("ngircd")
        m.stack.callback(network.stop)
        api, shim = free_port(), free_port()
        path = os.path.join(m.directory, "matterbridge.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(FILE % {"irc": network.port, "api": api})
        run(m, [PROGRAM, "-conf", path])
        bob = network.irc("bob")
        bob.expect("JOIN", lambda line: line.source.startswith("bridge!"), 30)
        m.open(table(
            "matterbridge", "json", url="http://127.0.0.1:%d/" % shim, path="/hooks/matterbridge", secret=SECRET,
            nick="{user}/matterbridge"))
        run(m, [
            sys.executable, SHIM, "--listen", "127.0.0.1:%d" % shim, "--api", "http://127.0.0.1:%d" % api, "--hook",
            m.hook_url("/hooks/matterbridge")], MIRROR_SECRET=SECRET, MATTERBRIDGE_TOKEN="5esame-of-the-api")
        ann = m.irc("ann")
        bob.say("#net", "from there")
        assert expect_text(ann, "from there", 30).source.startswith("bob/matterbridge!")
        ann.say("#lobby", "from here")
        line = bob.expect("PRIVMSG", lambda line: plain(line.params[-1]).endswith("from here"), 30)
        assert plain(line.params[-1]) == "<ann> from here", line
        say_all(ann, ["n %d" % number for number in range(50)])
        bob.send(*("PRIVMSG #net :back %d" % number for number in range(50)))
        wait_until(lambda: irc_numbers(bob, "n")[-1:] == [49], lambda: "all are there: %r" % irc_numbers(bob, "n"), 60)
        wait_until(lambda: len(irc_numbers(ann, "back")) >= 50, lambda: "all are here: %r" % irc_numbers(ann, "back"), 60)
        assert irc_numbers(bob, "n", "bridge") == list(range(50)), irc_numbers(bob, "n", "bridge")
        # It does not keep the order of what it reads at once.
        assert sorted(irc_numbers(ann, "back")) == list(range(50)), irc_numbers(ann, "back")
        assert not [text for text in ann.texts(command="PRIVMSG") if text.startswith("<ann>")], "an echo crossed"
        m.bridge.check_alive()
        return "50 messages each way"


both_ways_through_the_real_one.is_scenario = True
