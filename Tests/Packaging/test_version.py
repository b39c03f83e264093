"""scripts/version, in a repository of its own: at a tag, after one, changed, tagged as another number, and without git."""

import os
import shutil
import unittest

from support import ROOT, folder, run

NUMBER = "Sources/Configuration/Values/BuildInformation.swift"
AUTHOR = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t"}
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if name != "CHATBRIDGE_VERSION"}, **AUTHOR}


class Version(unittest.TestCase):
    def setUp(self):
        stack = folder()
        self.path = stack.__enter__()
        self.addCleanup(stack.__exit__, None, None, None)
        for name in (NUMBER, "CHANGELOG.md", "scripts/version"):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.path / name)
        text = (self.path / NUMBER).read_text()
        self.number = text.split('static let release = "')[1].split('"')[0]

    def version(self, *arguments, status=0, **environment):
        said = run(self.path / "scripts" / "version", *arguments, status=status, env={**ENVIRONMENT, **environment})
        return said.strip()

    def git(self, *arguments):
        return run("git", "-C", self.path, *arguments, env=ENVIRONMENT).strip()

    def test_without_git(self):
        self.assertEqual(self.version(), self.number)
        # Also as a folder of another repository.
        self.git("init", "--quiet")
        inner = self.path / "inner"
        inner.mkdir()
        for name in ("Sources", "scripts"):
            shutil.copytree(self.path / name, inner / name)
        self.assertEqual(run(inner / "scripts" / "version", env=ENVIRONMENT).strip(), self.number)

    def test_of_a_repository(self):
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "one")
        first = self.git("rev-parse", "--short=7", "HEAD")
        self.assertEqual(self.version(), "%s-dev.1+g%s" % (self.number, first))
        self.git("tag", "v" + self.number)
        self.assertEqual(self.version(), self.number)
        self.assertEqual(self.version("--date"), self.git("log", "-1", "--format=%ct"))

        (self.path / "CHANGELOG.md").write_text("changed\n")
        self.assertEqual(self.version(), "%s-dev.0+g%s.dirty" % (self.number, first))
        self.git("commit", "--quiet", "--all", "--message", "two")
        second = self.git("rev-parse", "--short=7", "HEAD")
        self.assertEqual(self.version(), "%s-dev.1+g%s" % (self.number, second))
        # A Debian version sorts before the release; an image's tag has no plus sign.
        self.assertEqual(self.version("--debian"), "%s~dev.1+g%s" % (self.number, second))
        run("dpkg", "--compare-versions", self.version("--debian"), "lt", self.number)
        self.assertEqual(self.version("--tag"), "%s-dev.1-g%s" % (self.number, second))
        self.assertEqual(self.version(CHATBRIDGE_VERSION="9.9.9"), "9.9.9")

        self.git("tag", "v99.0.0")
        self.assertIn("v99.0.0", self.version(status=1))


if __name__ == "__main__":
    unittest.main()
