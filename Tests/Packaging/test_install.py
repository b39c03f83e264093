"""`make install` into a staging folder, and out of it again."""

import gzip
import shutil
import unittest

from support import BINARY, ROOT, folder, run

INSTALL = ROOT / "packaging" / "install"


class Install(unittest.TestCase):
    def test_files_and_removal(self):
        with folder() as stage:
            environment = {"DESTDIR": str(stage), "PREFIX": "/opt/chat", "PATH": "/usr/bin:/bin"}
            run(INSTALL, env=environment)
            documents = stage / "opt/chat/share/doc/chatbridge"
            self.assertIn("chatbridge ", run(stage / "opt/chat/bin/chatbridge", "version"))
            for path in ("README.md", "LICENSE", "copyright", "docs/IRC.md", "examples/chatbridge.toml", "examples/pod.yaml"):
                self.assertTrue((documents / path).is_file(), path)
            share = stage / "opt/chat/share"
            manual = gzip.decompress((share / "man/man1/chatbridge.1.gz").read_bytes()).decode()
            self.assertRegex(manual, r"(?m)^\.Dt CHATBRIDGE 1$")
            if shutil.which("mandoc"):
                self.assertEqual(run("mandoc", "-Tlint", "-Wstyle", share / "man/man1/chatbridge.1.gz"), "")
            for path in (
                "bash-completion/completions/chatbridge", "zsh/vendor-completions/_chatbridge",
                "fish/vendor_completions.d/chatbridge.fish",
            ):
                self.assertIn("chatbridge", (share / path).read_text())
            unit = (stage / "opt/chat/lib/systemd/system/chatbridge.service").read_text()
            self.assertIn("\nExecStart=/opt/chat/bin/chatbridge run\n", unit)
            self.assertNotIn("/usr/bin/chatbridge", unit)

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
