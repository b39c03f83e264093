"""The Debian package: lintian's errors, and its life in a Debian 12 without anything else."""

import os
import re
import shutil
import subprocess
import unittest

from support import DIST, ROOT, connect, folder, free_port, inside, process, run, stop, version


def the_package():
    return DIST / ("chatbridge_%s_%s.deb" % (version("--debian"), run("dpkg", "--print-architecture").strip()))


def field(name):
    return run("dpkg-deb", "--field", the_package(), name).strip()


class Package(unittest.TestCase):
    @unittest.skipIf(shutil.which("lintian") is None, "needs lintian")
    def test_lintian(self):
        root = ["--allow-root"] if os.geteuid() == 0 else []
        said = run("lintian", *root, "--fail-on", "error", the_package())
        self.assertNotRegex(said, r"(?m)^E:")

    def test_dependencies(self):
        packages = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", field("Depends")))
        self.assertEqual(packages, {"libc6", "libgcc-s1", "libsqlite3-0", "libssl3", "zlib1g"})

    def test_the_same_again(self):
        with folder() as other:
            run("sh", "-c", 'umask 077; DIST="$1" "$2"', "sh", other, ROOT / "packaging" / "deb")
            self.assertEqual((other / the_package().name).read_bytes(), the_package().read_bytes())


@unittest.skipIf(os.geteuid() != 0 or shutil.which("mmdebstrap") is None, "needs root and mmdebstrap")
class Life(unittest.TestCase):
    """Installation, first start, a changed configuration, another installation, removal and purge."""

    @classmethod
    def setUpClass(cls):
        cls.folder = folder()
        cls.root = cls.folder.__enter__() / "root"
        depends = re.sub(r" \([^)]*\)| ", "", field("Depends"))
        # What the package depends on and no more: dpkg refuses where that is not enough.
        try:
            run("mmdebstrap", "--quiet", "--variant=essential", "--include=" + depends, "bookworm", cls.root)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            cls.folder.__exit__(None, None, None)
            raise unittest.SkipTest("mmdebstrap cannot make a Debian here: %s" % str(error)[-200:]) from None

    @classmethod
    def tearDownClass(cls):
        cls.folder.__exit__(None, None, None)

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
        left = [path for path in self.root.rglob("*chatbridge*") if "/tmp/" not in str(path) and "/proc/" not in str(path)
                and not str(path).startswith(str(self.root / "var/lib/dpkg"))]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
