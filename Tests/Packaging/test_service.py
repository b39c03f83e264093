"""The service as systemd runs it: a Debian 12 is booted with the package, which is enabled, reloaded, stopped, activated by its
socket, upgraded and purged.

Skipped, never passed, where systemd-nspawn cannot boot a system.
"""

import os
import shutil
import time
import unittest

from support import connect_inside, debian, process, run, stop, talk, wait_until
from test_deb import depends, left_of_it, the_package

# systemd and the services of a small Debian.
BOOT = 60


class Machine:
    """A booted root, and commands in it."""

    def __init__(self, nspawn):
        self.nspawn = nspawn

    def leader(self):
        """Its process 1, as seen from here."""
        with open("/proc/%d/task/%d/children" % (self.nspawn.pid, self.nspawn.pid), encoding="ascii") as file:
            return next((int(word) for word in file.read().split()), None)

    def command(self, *command):
        return ["nsenter", "--target", str(self.leader()), "--all", *command]

    def __call__(self, *command, **options):
        return run(*self.command(*command), **options).strip()

    def booted(self):
        if self.nspawn.poll() is not None:
            raise unittest.SkipTest("systemd-nspawn cannot boot here: %s" % self.nspawn.output()[-300:])
        if self.leader() is None:
            return False
        return self("systemctl", "is-system-running", status=None) in ("running", "degraded")

    def show(self, unit, name):
        return self("systemctl", "show", "--property", name, "--value", unit)


@unittest.skipIf(os.geteuid() != 0, "needs root")
@unittest.skipIf(shutil.which("mmdebstrap") is None or shutil.which("systemd-nspawn") is None, "needs mmdebstrap and systemd-nspawn")
class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = cls.enterClassContext(debian("minbase", ["systemd-sysv", *depends()]))
        shutil.copy(the_package(), cls.root / "root/chatbridge.deb")
        # A network of its own, so that the port of the packaged configuration is free.
        nspawn = cls.enterClassContext(process(
            "systemd-nspawn", "--quiet", "--directory", cls.root, "--boot", "--register=no", "--keep-unit", "--private-network",
            "--console=passive", "--machine=chatbridge-%d" % os.getpid()))
        cls.machine = Machine(nspawn)
        cls.addClassCleanup(lambda: nspawn.poll() is None and stop(nspawn, BOOT))
        end = time.monotonic() + BOOT
        while not cls.machine.booted():
            if time.monotonic() > end:
                raise unittest.SkipTest("systemd-nspawn boots no system here within %d s: %s" % (BOOT, nspawn.output()[-300:]))
            time.sleep(0.1)

    def state(self, unit="chatbridge.service"):
        return self.machine("systemctl", "is-active", unit, status=None)

    def journal(self):
        return self.machine("journalctl", "--no-pager", "--unit", "chatbridge.service")

    def talk(self):
        client = connect_inside(self.machine.leader(), 6667, "ada")
        talk(client)
        return client

    def test_life(self):
        machine = self.machine
        machine("dpkg", "--install", "/root/chatbridge.deb")
        self.assertEqual(machine("systemctl", "is-enabled", "chatbridge", status=1), "disabled")
        self.assertEqual(self.state(), "inactive")
        self.assertEqual(machine("systemd-analyze", "verify", "chatbridge.service", "chatbridge.socket"), "")

        machine("systemctl", "enable", "--now", "chatbridge")
        self.assertEqual(self.state(), "active", self.journal())
        first = machine.show("chatbridge", "MainPID")
        status = machine("cat", "/proc/%s/status" % first)
        self.assertNotRegex(status, r"Uid:.*\t0\b")
        for line in (r"CapEff:\s+0{16}\n", r"NoNewPrivs:\s+1\n", r"Seccomp:\s+2\n"):
            self.assertRegex(status, line)
        # There is no backend yet. The practice backend is one; its start is a unit's too.
        machine("chatbridge", "status", "--ready", status=1)
        machine("systemd-run", "--quiet", "--unit", "backend", "/usr/bin/chatbridge", "studio", "--port", "8080")
        machine("systemctl", "restart", "chatbridge")
        wait_until(lambda: "1/1 rooms up" in machine("systemctl", "status", "chatbridge"), self.journal, 30)
        machine("chatbridge", "status", "--ready")
        client = self.talk()

        # A reload keeps the process and its clients.
        process_id = machine.show("chatbridge", "MainPID")
        configuration = self.root / "etc/chatbridge/chatbridge.toml"
        configuration.write_text(
            configuration.read_text() + '[[rooms]]\nname = "second"\nurl = "ws://127.0.0.1:8080/second"\n')
        machine("systemctl", "reload", "chatbridge")
        wait_until(lambda: "event=reloaded" in self.journal(), self.journal, 30)
        client.join("#second")
        self.assertEqual(machine.show("chatbridge", "MainPID"), process_id)
        self.assertNotEqual(process_id, first)

        machine("systemctl", "stop", "chatbridge")
        client.wait_closed()
        client.close()
        self.assertEqual(self.state(), "inactive")
        self.assertEqual(machine.show("chatbridge", "Result"), "success")
        self.assertEqual(machine.show("chatbridge", "ExecMainStatus"), "0")

        # Killed, it comes back.
        machine("systemctl", "start", "chatbridge")
        machine("systemctl", "kill", "--signal", "KILL", "chatbridge")
        wait_until(lambda: machine.show("chatbridge", "NRestarts") == "1" and self.state() == "active", self.journal, 30)
        machine("systemctl", "disable", "--now", "chatbridge")

        # By its socket: the first connection starts it.
        configuration.write_text(configuration.read_text().replace("irc://127.0.0.1:6667", "irc+fd://irc"))
        machine("systemctl", "enable", "--now", "chatbridge.socket")
        self.assertEqual(self.state(), "inactive")
        self.talk().close()
        self.assertEqual(self.state(), "active")
        before = machine.show("chatbridge", "MainPID")
        machine("dpkg", "--install", "/root/chatbridge.deb")
        self.assertEqual(self.state(), "active")
        self.assertNotEqual(machine.show("chatbridge", "MainPID"), before)
        self.talk().close()

        machine("systemctl", "stop", "backend")
        machine("dpkg", "--purge", "chatbridge")
        for unit in ("chatbridge.service", "chatbridge.socket"):
            self.assertEqual(self.state(unit), "inactive")
        self.assertEqual([name for name in left_of_it(self.root) if name != "root/chatbridge.deb"], [])


if __name__ == "__main__":
    unittest.main()
