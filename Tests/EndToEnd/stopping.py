"""The end of a process in its order: not ready, listeners closed, queues sent, clients told, links closed; and what the service
manager hears of a life."""

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
import urllib.error
import urllib.request

from marks import LeftOut, slow
from peer import IRC, OPEN_LIMITS, wait_until
from world import scenario

HTTP = '[[http]]\nbind = "http://127.0.0.1:0"\n'


def address(world):
    return world.bridge.log_entries("listening-http")[0]["address"]


def readiness(world):
    """(status, answer) of /readyz; None once nobody answers."""
    try:
        with urllib.request.urlopen("http://%s/readyz" % address(world), timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except (urllib.error.URLError, ConnectionError):
        return None


def is_alive(world):
    """By /healthz."""
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        with urllib.request.urlopen("http://%s/healthz" % address(world), timeout=5) as answer:
            return answer.status == 200
    return False


def refused(port):
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return False
    return True


class Manager:
    """A service manager's end of the notification socket: every datagram, with the moment at which it came."""

    def __init__(self, world, abstract=False):
        directory = tempfile.mkdtemp(prefix="chatbridge-")
        self.name = "@%s/notify" % directory if abstract else directory + "/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name[1:] if abstract else self.name)
        self.socket.setblocking(False)
        self.heard = []
        world.stack.callback(self.socket.close)

    def lines(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                datagram = self.socket.recv(4096).decode()
                self.heard += [(time.monotonic(), line) for line in datagram.split("\n")]
        return [line for _, line in self.heard]

    def wait(self, line, count=1):
        wait_until(lambda: self.lines().count(line) >= count, lambda: "%s; heard: %s" % (line, self.lines()))


def managed(world, manager, *more, **options):
    world.start(wrapper=("env", "NOTIFY_SOCKET=" + manager.name, *more), **options)


@scenario
def the_manager_hears_of_ready_status_and_the_end(world):
    manager = Manager(world)
    managed(world, manager)
    manager.wait("READY=1")
    manager.wait("STATUS=1/1 rooms up, 0 clients")
    ann = world.irc("ann")
    manager.wait("STATUS=1/1 rooms up, 1 client")
    assert world.bridge.terminate() == 0
    ann.expect("ERROR")
    lines = manager.lines()
    assert lines[0] == "READY=1" and lines.index("STOPPING=1") > 0, lines
    assert "EXTEND_TIMEOUT_USEC=15000000" in lines, lines
    assert not any(line.startswith("WATCHDOG") for line in lines), lines
    world.bridge = None


@scenario
def a_manager_with_an_abstract_name_hears_it_too(world):
    manager = Manager(world, abstract=True)
    managed(world, manager)
    manager.wait("READY=1")
    assert world.bridge.terminate() == 0
    assert "STOPPING=1" in manager.lines()
    world.bridge = None


@scenario
def the_manager_is_not_ready_before_the_port_is_open(world):
    """READY is the first that it hears, and a connection of that moment is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    manager = Manager(world)
    managed(world, manager, port=port)
    manager.wait("READY=1")
    assert not refused(port)


@scenario
def the_watchdog_is_fed_by_a_loop_that_turns(world):
    manager = Manager(world)
    managed(world, manager, "WATCHDOG_USEC=400000")
    manager.wait("WATCHDOG=1", 4)
    moments = [at for at, line in manager.heard if line == "WATCHDOG=1"]
    # A loop that does not turn says nothing.
    os.kill(world.bridge.process.pid, signal.SIGSTOP)
    manager.lines()
    count = len(manager.heard)
    time.sleep(1)
    silent = len(manager.lines()) == count
    os.kill(world.bridge.process.pid, signal.SIGCONT)
    assert silent, manager.heard[count:]
    manager.wait("WATCHDOG=1", len(moments) + 2)


@scenario
def the_watchdog_of_another_process_is_left_alone(world):
    manager = Manager(world)
    managed(world, manager, "WATCHDOG_USEC=100000", "WATCHDOG_PID=1")
    manager.wait("STATUS=1/1 rooms up, 0 clients")
    world.irc("ann").barrier()
    assert not any(line.startswith("WATCHDOG") for line in manager.lines()), manager.lines()


@scenario
def a_reload_is_told_with_its_time(world):
    manager = Manager(world)
    managed(world, manager)
    manager.wait("READY=1")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    world.bridge.process.send_signal(signal.SIGHUP)
    manager.wait("READY=1", 2)
    lines = manager.lines()
    at = lines.index("RELOADING=1")
    name, _, value = lines[at + 1].partition("=")
    assert name == "MONOTONIC_USEC" and before <= int(value) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, lines
    assert "READY=1" in lines[at:], lines
    world.bridge.logged("reloaded", "info", "changes")


@scenario
def a_manager_that_is_gone_is_said_once(world):
    manager = Manager(world)
    manager.socket.close()
    managed(world, manager)
    assert world.bridge.logged("manager-unreachable", "warn", "errno")["errno"] == "111"
    world.irc("ann").barrier()
    assert world.bridge.terminate() == 0
    assert len(world.bridge.log_entries("manager-unreachable")) == 1
    world.bridge = None


@scenario
def the_order_of_the_end(world):
    """Not ready, and served, for the prestop delay; then the port is closed and the queue goes; then clients and links."""
    manager = Manager(world)
    managed(world, manager, tables=HTTP, server_extra='prestop_delay = "2s"')
    ann, remy = world.irc("ann"), world.person("Remy")
    assert readiness(world) == (200, {"ready": True, "reasons": []})
    asked = time.monotonic()
    world.bridge.process.send_signal(signal.SIGTERM)
    manager.wait("STOPPING=1")
    assert readiness(world) == (503, {"ready": False, "reasons": ["stopping"]})
    # Served as before, and let in.
    bob = world.irc("bob")
    bob.say("#lobby", "let in while it is not ready")
    ann.expect_text("let in while it is not ready")
    assert not world.relay.closes
    # The listeners are closed; until the end probes are answered.
    wait_until(lambda: refused(world.bridge.port), "the port is closed")
    waited = time.monotonic() - asked
    assert 1.9 <= waited < 4, waited
    for client in (ann, bob):
        client.expect("NOTE", lambda line: "SHUTDOWN" in line.params)
        client.expect("ERROR")
    assert world.bridge.process.wait(10) == 0
    remy.expect_message("let in while it is not ready")
    wait_until(lambda: world.relay.closes == [1001], lambda: "Close 1001, got %r" % world.relay.closes)
    assert readiness(world) is None
    world.bridge = None


@scenario
def probes_are_answered_until_the_end(world):
    """Behind the closed port, and when the clients are gone: while a backend that hangs is waited for."""
    world.start(tables=HTTP)
    ann = world.irc("ann")
    world.relay.stall()
    world.bridge.process.send_signal(signal.SIGTERM)
    ann.wait_closed()
    assert refused(world.bridge.port)
    assert is_alive(world)
    assert readiness(world) == (503, {"ready": False, "reasons": ["stopping"]})
    assert world.bridge.process.wait(10) == 0
    assert not is_alive(world)
    world.bridge = None


@scenario
def a_second_signal_ends_it_at_once(world):
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
        world.start(tables=HTTP, server_extra='prestop_delay = "30s"')
        world.bridge.process.send_signal(first)
        wait_until(lambda: (readiness(world) or (0,))[0] == 503, "it is not ready")
        world.bridge.process.send_signal(second)
        assert world.bridge.process.wait(5) == 128 + second
    world.bridge = None


@scenario
def many_clients_are_disconnected_over_the_drain_time(world):
    world.start(server_extra='drain = "4s"', limits=OPEN_LIMITS + "\nmax_clients = 1000")
    clients = [world.irc("n%d" % number, caps=()) for number in range(150)]
    asked = time.monotonic()
    world.bridge.process.send_signal(signal.SIGTERM)
    ends = {}

    def gone():
        for client in clients:
            client.pump(0)
            if client.closed and client not in ends:
                ends[client] = time.monotonic() - asked
        return len(ends) == len(clients)

    wait_until(gone, lambda: "%d of %d are gone" % (len(ends), len(clients)))
    assert world.bridge.process.wait(10) == 0
    assert all(any(line.command == "ERROR" for line in client.lines) for client in clients)
    seconds = [sum(1 for at in ends.values() if second <= at < second + 1) for second in range(5)]
    assert max(seconds) < 75 and all(count > 10 for count in seconds[:4]), seconds
    order = sorted(clients, key=ends.get)
    assert order != clients, "in the order in which they came"
    world.bridge = None
    return "by the second: %s" % seconds


@slow("a drain that is used up takes its time")
@scenario
def more_time_is_asked_for_while_it_drains(world):
    manager = Manager(world)
    managed(world, manager, server_extra='prestop_delay = "11s"')
    manager.wait("READY=1")
    assert world.bridge.terminate(patience=20) == 0
    moments = [at for at, line in manager.heard if line.startswith("EXTEND") or manager.lines() is None]
    assert len(moments) >= 3 and all(b - a < 7 for a, b in zip(moments, moments[1:])), moments
    world.bridge = None


@scenario
def children_of_others_leave_no_zombies():
    """The first process of a container is the parent of all that lost theirs."""
    import signals
    if not signals.can_unshare():
        raise LeftOut("no right to make a namespace")
    with signals.directory() as place:
        with signals.first_process(signals.configuration(place)) as (outer, inner):
            wait_until(lambda: signals.catches_sigterm(inner), "it runs")
            marker = os.path.join(place, "orphan")
            script = "(sh -c 'echo $PPID > %s; exit 0'; true) & exit 0" % marker
            os.spawnvp(os.P_WAIT, "nsenter", ["nsenter", "-t", str(inner), "-p", "sh", "-c", script])
            wait_until(lambda: os.path.exists(marker), "an orphan ran")
            wait_until(lambda: not children(inner), lambda: "no child is left; there are %s" % children(inner))
            os.kill(inner, signal.SIGTERM)
            signals.ends(outer, "after orphans")
    return None


def children(pid):
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as file:
            found += file.read().split()
    return found
