"""The Debian package: lintian's errors, and its life in a Debian 12 without anything else."""

import os
import re
import shutil
import unittest

from support import DIST, ROOT, connect, debian, folder, free_port, inside, process, run, stop, version


def the_package():
    return DIST / ("chatbridge_%s_%s.deb" % (version("--debian"), run("dpkg", "--print-architecture").strip()))


def depends():
    return re.findall(r"(?:^|, )([a-z0-9.+-]+)", run("dpkg-deb", "--field", the_package(), "Depends").strip())


class Package(unittest.TestCase):
    @unittest.skipIf(shutil.which("lintian") is None, "needs lintian")
    def test_lintian(self):
        root = ["--allow-root"] if os.geteuid() == 0 else []
        said = run("lintian", *root, "--fail-on", "error", the_package())
        self.assertNotRegex(said, r"(?m)^E:")

    def test_dependencies(self):
        self.assertEqual(set(depends()), {"libc6", "libgcc-s1", "libsqlite3-0", "libssl3", "zlib1g"})

    def test_the_same_again(self):
        with folder() as other:
            run("sh", "-c", 'umask 077; DIST="$1" "$2"', "sh", other, ROOT / "packaging" / "deb")
            self.assertEqual((other / the_package().name).read_bytes(), the_package().read_bytes())


def left_of_it(root):
    """Files with the program's name in that root, but for the package itself and dpkg's log."""
    apart = ("tmp", "proc", "sys", "var/lib/dpkg", "var/log")
    names = (path.relative_to(root) for path in root.rglob("*chatbridge*"))
    return [str(name) for name in names if not any(name.is_relative_to(top) for top in apart)]


@unittest.skipIf(os.geteuid() != 0 or shutil.which("mmdebstrap") is None, "needs root and mmdebstrap")
class Life(unittest.TestCase):
    """Installation, first start, a changed configuration, another installation, removal and purge."""

    @classmethod
    def setUpClass(cls):
        # What the package depends on and no more: dpkg refuses where that is not enough.
        cls.root = cls.enterClassContext(debian("essential", depends()))

    def inside(self, *command, **options):
        return run(*inside(self.root, *command), **options)

    def test_life(self):
        shutil.copy(the_package(), self.root / "tmp/chatbridge.deb")
        self.inside("dpkg", "--install", "/tmp/chatbridge.deb")
        self.assertEqual(self.inside("dpkg", "--verify", "chatbridge"), "")
        self.assertEqual(self.inside("chatbridge", "version"), "chatbridge %s\n" % version())
        self.assertEqual(self.inside("chatbridge", "check"), "ok\n")

        # The configuration as installed listens on loopback; here on a free port, and with the service's folders.
        port = free_port()
        state = self.root / "var/lib/chatbridge"
        state.mkdir(mode=0o700)
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "STATE_DIRECTORY": "/var/lib/chatbridge",
            "CONFIGURATION_DIRECTORY": "/etc/chatbridge",
            "CHATBRIDGE__LISTENERS__0__BIND": "irc://127.0.0.1:%d" % port,
        }
        with process(*inside(self.root, "/usr/bin/chatbridge", "run"), env=environment) as started:
            client = connect(port, started, "ada")
            client.join("#lobby")
            client.close()
            self.assertEqual(stop(started), 0, started.output())
        self.assertTrue((state / "chatbridge.db").exists())

        # A change survives an upgrade and a removal; a purge takes everything.
        configuration = self.root / "etc/chatbridge/chatbridge.toml"
        configuration.write_text("# mine\n" + configuration.read_text())
        self.inside("dpkg", "--install", "/tmp/chatbridge.deb")
        self.assertTrue(configuration.read_text().startswith("# mine\n"))
        self.inside("dpkg", "--remove", "chatbridge")
        self.assertTrue(configuration.exists() and state.exists())
        self.assertFalse((self.root / "usr/bin/chatbridge").exists())
        self.inside("dpkg", "--purge", "chatbridge")
        self.assertEqual(left_of_it(self.root), [])


if __name__ == "__main__":
    unittest.main()
