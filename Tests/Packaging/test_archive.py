"""The archive: what is in it, that it is reproducible, and its binary where there is neither Swift nor a C++ library."""

import hashlib
import os
import re
import shutil
import tarfile
import unittest

from support import DIST, ROOT, folder, free_port, inside, process, run, stop, talk_with_the_demo, version


def the_archive():
    name = "chatbridge-%s-linux-%s" % (version(), os.uname().machine)
    return DIST / (name + ".tar.gz"), name


class Archive(unittest.TestCase):
    def test_content(self):
        path, name = the_archive()
        with tarfile.open(path) as archive:
            names = archive.getnames()
            for wanted in (
                "chatbridge", "chatbridge.1", "completions/chatbridge.bash", "INSTALL", "LICENSE", "copyright", "README.md",
                "docs/IRC.md", "config/chatbridge.toml",
                "config/systemd/chatbridge.service",
            ):
                self.assertIn("%s/%s" % (name, wanted), names)
            self.assertEqual({member.uid for member in archive.getmembers()}, {0})
            binary = archive.getmember(name + "/chatbridge")
            self.assertEqual(binary.mode, 0o755)
            said = archive.extractfile(name + "/INSTALL").read().decode()
        for library in ("libssl.so.3", "libsqlite3.so.0", "libc.so.6"):
            self.assertIn(library, said)
        self.assertNotRegex(said, "libswift|libstdc")

    def test_the_same_again(self):
        path, _ = the_archive()
        with folder() as other:
            # At another hour and with another mask.
            run("sh", "-c", 'umask 077; DIST="$1" "$2"', "sh", other, ROOT / "packaging" / "archive")
            again = (other / path.name).read_bytes()
        self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), hashlib.sha256(again).hexdigest())

    @unittest.skipIf(os.geteuid() != 0, "chroot needs root")
    def test_runs_without_swift(self):
        """A root with the loader and the named libraries, and nothing else."""
        path, name = the_archive()
        with folder() as root:
            run("tar", "-C", root, "-xzf", path)
            binary = root / name / "chatbridge"
            listed = (root / name / "INSTALL").read_text()
            found = dict(re.findall(r"(\S+) => (/\S+)", run("ldd", binary)))
            loader = re.search(r"(/\S*ld-linux\S*)", run("ldd", binary)).group(1)
            for library in re.findall(r"^    (\S+)$", listed, re.MULTILINE):
                target = root / "lib" / library
                target.parent.mkdir(exist_ok=True)
                shutil.copy(found.get(library, loader), target)
            (root / loader.lstrip("/")).parent.mkdir(exist_ok=True)
            shutil.copy(loader, root / loader.lstrip("/"))
            port = free_port()
            command = ["/%s/chatbridge" % name, "demo", "--listen", "irc://127.0.0.1:%d" % port]
            with process(*inside(root, *command)) as demo:
                talk_with_the_demo(port, demo)
                self.assertEqual(stop(demo), 0, demo.output())


if __name__ == "__main__":
    unittest.main()
