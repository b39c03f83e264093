"""`make install` into a staging folder, and out of it again."""

import unittest

from support import BINARY, ROOT, folder, run

INSTALL = ROOT / "packaging" / "install"


def knows(command):
    """Whether the program has that command; without it nothing is installed of it."""
    return command in run(BINARY, "help")


class Install(unittest.TestCase):
    def test_files_and_removal(self):
        with folder() as stage:
            environment = {"DESTDIR": str(stage), "PREFIX": "/opt/chat", "PATH": "/usr/bin:/bin"}
            run(INSTALL, env=environment)
            documents = stage / "opt/chat/share/doc/chatbridge"
            self.assertIn("chatbridge ", run(stage / "opt/chat/bin/chatbridge", "version"))
            for path in ("README.md", "LICENSE", "copyright", "docs/IRC.md", "examples/chatbridge.toml", "examples/pod.yaml"):
                self.assertTrue((documents / path).is_file(), path)
            unit = (stage / "opt/chat/lib/systemd/system/chatbridge.service").read_text()
            self.assertIn("\nExecStart=/opt/chat/bin/chatbridge run\n", unit)
            self.assertNotIn("/usr/bin/chatbridge", unit)
            self.assertEqual((stage / "opt/chat/share/man/man1/chatbridge.1.gz").exists(), knows("man  "))
            self.assertEqual(
                (stage / "opt/chat/share/bash-completion/completions/chatbridge").exists(), knows("completion  "))

            # An operator's configuration survives another installation and the removal.
            configuration = stage / "etc/chatbridge/chatbridge.toml"
            self.assertEqual(run(BINARY, "check", "--config", configuration), "ok\n")
            configuration.write_text("# mine\n")
            run(INSTALL, env=environment)
            run(INSTALL, "--uninstall", env=environment)
            left = [str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file()]
            self.assertEqual(left, ["etc/chatbridge/chatbridge.toml"])
            self.assertEqual(configuration.read_text(), "# mine\n")


if __name__ == "__main__":
    unittest.main()
