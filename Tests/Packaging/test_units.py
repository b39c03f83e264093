"""The systemd units: complete, as strict as can be, and not stricter than the program can live with."""

import ctypes
import pathlib
import re
import subprocess
import unittest

from support import BINARY, ROOT, folder, free_port, process, run, stop, talk_with_the_demo

UNITS = ROOT / "config" / "systemd"
try:
    import seccomp
except ImportError:
    seccomp = None

PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN = 38, 65, 1


def values(key):
    """All values of a key in the service, in order."""
    text = (UNITS / "chatbridge.service").read_text()
    return re.findall(r"^%s=(.*)$" % key, text, re.MULTILINE)


def calls_of(group):
    names = set()
    for line in run("systemd-analyze", "syscall-filter", group, stderr=subprocess.DEVNULL).splitlines()[1:]:
        name = line.strip()
        if name.startswith("@"):
            names |= calls_of(name)
        elif name and not name.startswith("#"):
            names.add(name)
    return names


def permitted_calls():
    """As systemd reads the list: the first line permits, a line with ~ takes away, a later one gives back."""
    permitted = calls_of("@default")
    for line in values("SystemCallFilter"):
        for group in line.lstrip("~").split():
            calls = calls_of(group) if group.startswith("@") else {group}
            permitted = permitted - calls if line.startswith("~") else permitted | calls
    return permitted


class Units(unittest.TestCase):
    def test_verify_is_silent(self):
        with folder() as path:
            for unit in UNITS.iterdir():
                # The program need not be installed here.
                (path / unit.name).write_text(unit.read_text().replace("/usr/bin/chatbridge", "/usr/bin/true"))
            units = sorted(path.glob("chatbridge.*"))
            self.assertEqual(len(units), 2)
            self.assertEqual(run("systemd-analyze", "verify", *units), "")

    def test_what_the_documents_say_of_it(self):
        self.assertEqual(values("ProtectSystem"), ["strict"])
        self.assertEqual(values("CapabilityBoundingSet"), [""])
        self.assertEqual(values("RestartPreventExitStatus"), ["64 78"])

    def test_exposure_is_low(self):
        said = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / "chatbridge.service")
        level = float(re.search(r"exposure level for chatbridge.service: ([0-9.]+)", said).group(1))
        self.assertLess(level, 2.0, said)

    @unittest.skipIf(seccomp is None, "needs python3-seccomp and Debian's Python")
    def test_program_runs_within_the_filter(self):
        """The demo with the unit's system calls, address families, and memory that is never writable and executable."""
        families = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
        calls = permitted_calls() - {"socket"}
        self.assertNotIn("setuid", calls)
        self.assertIn("fchown", calls)
        allowed = [families[name] for name in values("RestrictAddressFamilies")[0].split()]
        self.assertEqual(values("MemoryDenyWriteExecute"), ["yes"])

        def enter():
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            libc.prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
            rules = seccomp.SyscallFilter(defaction=seccomp.ERRNO(1))
            for name in calls:
                try:
                    rules.add_rule(seccomp.ALLOW, name)
                except (RuntimeError, ValueError, OSError):
                    pass  # of another architecture
            for family in allowed:
                rules.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, family))
            rules.load()

        port = free_port()
        command = [BINARY, "demo", "--listen", "irc://127.0.0.1:%d" % port]
        with folder() as path, process(*command, cwd=path, preexec_fn=enter) as demo:
            talk_with_the_demo(port, demo)
            status = pathlib.Path("/proc/%d/status" % demo.pid).read_text()
            self.assertRegex(status, r"Seccomp:\s+2")
            self.assertRegex(status, r"NoNewPrivs:\s+1")
            self.assertEqual(stop(demo), 0, demo.output())


if __name__ == "__main__":
    unittest.main()
