"""The image: its size and content, a container as an operator runs it, and the compose and pod examples as they are typed.

Skipped, never passed, where podman cannot run a container.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tarfile
import unittest
import urllib.error
import urllib.request

from support import DIST, ROOT, connect, connect_inside, folder, free_port, run, talk, talk_by_ii, version, wait_until

EXAMPLES = ROOT / "config" / "examples"
IMAGE = "localhost/chatbridge:latest"
# As the README says.
MAX_BYTES = 30_000_000
# Longer than a drain without messages, and far shorter than the kill that would follow.
GRACE = 8


def the_image():
    return DIST / ("chatbridge-%s-image-%s.tar" % (version(), os.uname().machine))


class Engine:
    """podman with storage of its own, and in a form that compose can call."""

    def __init__(self, path):
        self.path = path
        configuration = path / "containers.conf"
        # A limit that needs no right to raise it.
        configuration.write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024","nproc=1000:1000"]\n')
        (path / "policy.json").write_text('{"default":[{"type":"insecureAcceptAnything"}]}')
        self.command = path / "podman"
        self.command.write_text(
            "#!/bin/sh\nCONTAINERS_CONF=%s exec podman --storage-driver vfs --root %s/storage --runroot %s/run "
            '--cgroup-manager cgroupfs --events-backend file --runtime runc "$@"\n' % (configuration, path, path))
        self.command.chmod(0o755)

    def __call__(self, *arguments, **options):
        return run(self.command, *arguments, **options)


def engine_or_reason(path):
    if shutil.which("podman") is None or shutil.which("runc") is None:
        return None, "needs podman and runc"
    if not the_image().exists():
        return None, "there is no image: make image"
    engine = Engine(path)
    try:
        engine("load", "--quiet", "--signature-policy", path / "policy.json", "--input", the_image())
        engine("tag", "localhost/chatbridge:%s" % version("--tag"), IMAGE)
        engine("run", "--rm", IMAGE, "version")
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return None, "podman cannot run a container here: %s" % str(error).strip()[-300:]
    return engine, None


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


class Content(unittest.TestCase):
    @unittest.skipUnless(the_image().exists(), "there is no image: make image")
    def test_size_and_files(self):
        with tarfile.open(the_image()) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            settings = json.load(archive.extractfile(manifest["Config"]))["config"]
            members = []
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=archive.extractfile(layer)) as content:
                    members += content.getmembers()
        self.assertLessEqual(sum(member.size for member in members), MAX_BYTES)
        self.assertEqual(settings["User"], "65532:65532")
        self.assertEqual(settings["Labels"]["org.opencontainers.image.version"], version())
        self.assertEqual([name for name in (m.name for m in members) if re.search(r"/(sh|bash|busybox)$", name)], [])
        programs = [m.name for m in members if m.name.startswith("usr/bin/") and m.isfile()]
        self.assertEqual(programs, ["usr/bin/chatbridge"])
        self.assertIn("etc/ssl/certs/ca-certificates.crt", (m.name for m in members if m.size))
        # All is root's and unwritable but the state.
        foreign = {m.name.rstrip("/"): m.uid for m in members if m.uid != 0}
        self.assertEqual(foreign, {"state": 65532})
        writable = [m.name for m in members if m.mode & 0o002 and not m.issym() and m.name.rstrip("/") != "tmp"]
        self.assertEqual(writable, [])


    @unittest.skipUnless(the_image().exists() and shutil.which("buildah"), "needs an image and buildah")
    def test_the_same_again(self):
        with folder() as other:
            environment = dict(os.environ, DIST=str(other), CONTAINER_STORAGE=str(other / "storage"))
            run(ROOT / "packaging" / "image", env=environment)
            again = hashlib.sha256((other / the_image().name).read_bytes())
        self.assertEqual(hashlib.sha256(the_image().read_bytes()).hexdigest(), again.hexdigest())


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        path = cls.stack.enter_context(folder())
        cls.engine, reason = engine_or_reason(path)
        if cls.engine is None:
            cls.stack.close()
            raise unittest.SkipTest(reason)

    @classmethod
    def tearDownClass(cls):
        cls.engine("rm", "--all", "--force", status=None)
        cls.stack.close()

    def exit_code(self, name):
        return self.engine("inspect", name, "--format", "{{.State.ExitCode}}").strip()

    def pid(self, name):
        return self.engine("inspect", name, "--format", "{{.State.Pid}}").strip()

    def with_backend(self, name):
        """The practice backend in the network of that container, on port 8080."""
        backend = name + "-backend"
        self.engine(
            "run", "--detach", "--name", backend, "--network", "container:" + name, "--read-only", IMAGE, "studio", "--port",
            "8080")
        self.addCleanup(self.engine, "rm", "--force", "--time", "1", backend, status=None)

    def test_read_only_without_capabilities(self):
        port = free_port()
        self.engine(
            "run", "--detach", "--name", "plain", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
            "--publish", "127.0.0.1:%d:6667" % port, "--env", "CHATBRIDGE_UPSTREAM_URL=ws://127.0.0.1:8080/lobby",
            "--env", "CHATBRIDGE_LISTEN=irc+insecure://0.0.0.0:6667", "--env", "CHATBRIDGE__IDENTITY__REQUIRE_LOGIN=never",
            IMAGE)
        self.with_backend("plain")
        client = connect(port, None, "ada")
        talk(client)
        if shutil.which("ii"):
            with folder() as files:
                talk_by_ii(port, files)
        status = pathlib.Path("/proc/%s/status" % self.pid("plain")).read_text()
        self.assertRegex(status, r"Uid:\s+65532\s+65532\s+65532\s+65532")
        self.assertRegex(status, r"CapEff:\s+0{16}")
        self.engine("stop", "--time", GRACE, "plain")
        self.assertEqual(self.exit_code("plain"), "0")
        client.wait_closed()
        client.close()

    def test_a_backend_on_the_host(self):
        with socket.create_server(("0.0.0.0", 0)) as host:
            host.settimeout(30)
            address = "host.containers.internal:%d" % host.getsockname()[1]
            self.engine(
                "run", "--detach", "--name", "guest", "--env", "CHATBRIDGE_UPSTREAM_URL=ws://%s/lobby" % address, IMAGE)
            self.addCleanup(self.engine, "rm", "--force", "--time", "1", "guest", status=None)
            link, _ = host.accept()
            with link, link.makefile("rb") as lines:
                self.assertEqual(lines.readline(), b"GET /lobby HTTP/1.1\r\n")
                self.assertIn(b"Host: %s\r\n" % address.encode(), iter(lines.readline, b"\r\n"))

    @unittest.skipIf(shutil.which("podman-compose") is None, "needs podman-compose")
    def test_compose_example(self):
        with folder() as path:
            irc, http = free_port(), free_port()
            text = (EXAMPLES / "compose.yaml").read_text()
            for port, free in ((6667, irc), (9667, http)):
                published = "127.0.0.1:%d:%d" % (port, port)
                self.assertIn(published, text)
                text = text.replace(published, "127.0.0.1:%d:%d" % (free, port))
            (path / "compose.yaml").write_text(text)
            path.chmod(0o755)
            compose = ["podman-compose", "--podman-path", self.engine.command, "-f", "compose.yaml"]
            environment = dict(os.environ, UPSTREAM_URL="ws://127.0.0.1:8080/lobby")
            name = "%s_chatbridge_1" % path.name
            try:
                # An empty password is none: with the port published the bridge does not start.
                (path / "password").write_text("\n")
                run(*compose, "up", "-d", cwd=path, env=environment)
                wait_until(
                    lambda: "start-failed" in self.engine("logs", name, status=None), lambda: self.engine("logs", name), 30)
                self.assertIn("password", self.engine("logs", name))
                run(*compose, "down", "--volumes", cwd=path, env=environment)

                (path / "password").write_text("a long password\n")
                run(*compose, "up", "-d", cwd=path, env=environment)
                self.with_backend(name)
                # Refused without the password, and with another one.
                for line in ([], ["PASS :another"]):
                    stranger = connect(irc)
                    stranger.send(*line, "NICK eve", "USER eve 0 * :eve")
                    stranger.expect("464")
                    stranger.wait_closed()
                    stranger.close()
                client = connect(irc)
                client.nick = "ada"
                client.send("PASS a long password", "NICK ada", "USER ada 0 * :ada")
                client.expect("001")
                talk(client)
                self.assertEqual(status_of("http://127.0.0.1:%d/readyz?strict" % http), 200)
                # podman-compose 1.0.3 would run it in a shell, against the specification; the image has none.
                check = json.loads(re.search(r"healthcheck: \{ test: (\[.*?\])", text).group(1))
                self.assertEqual(check[0], "CMD")
                self.engine("exec", name, *check[1:])
                self.engine("stop", "--time", GRACE, name)
                self.assertEqual(self.exit_code(name), "0")
                client.close()
            finally:
                # As seen last, should anything above fail.
                self.engine("rm", "--force", "--time", "1", name + "-backend", status=None)
                run(*compose, "down", "--volumes", cwd=path, env=environment, status=None)

    def test_pod_example(self):
        with folder() as path:
            http = free_port()
            text = (EXAMPLES / "pod.yaml").read_text()
            published = "{ containerPort: 9667, name: http }"
            self.assertIn(published, text)
            # Without the liveness probe, as the example says.
            self.assertIn("grep -v livenessProbe pod.yaml | podman play kube -", text)
            lines = [line for line in text.splitlines(True) if "livenessProbe" not in line]
            (path / "pod.yaml").write_text("".join(lines).replace(published, published[:-1] + ", hostPort: %d }" % http))
            with open(path / "pod.yaml", encoding="utf-8") as typed:
                said = self.engine("play", "kube", "-", stdin=typed, status=None)
            if "pause image" in said:
                self.skipTest("podman has no pause program here: catatonit")
            try:
                strict = "http://127.0.0.1:%d/readyz?strict" % http
                wait_until(lambda: status_of(strict) == 200, "a linked sidecar", 30)
                self.engine("exec", "app-chatbridge", "/usr/bin/chatbridge", "status", "--ready")
                client = connect_inside(self.pid("app-chatbridge"), 6667, "ada")
                talk(client)
                client.close()
                self.engine("stop", "--time", GRACE, "app-chatbridge")
                self.assertEqual(self.exit_code("app-chatbridge"), "0")
            finally:
                self.engine("play", "kube", "--down", path / "pod.yaml", status=None)


if __name__ == "__main__":
    unittest.main()
