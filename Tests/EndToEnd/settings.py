"""Keys of the configuration whose effect only the running program shows. KeyCoverageTests names the scenario of each."""

import base64
import grp
import http.server
import json
import os
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import urllib.parse

import media
import peer
from backends import CALM, PASSWORD, on
from dialects import PNG
from listeners import answer, certificate
from logins import LOGIN_IN_WORDS, check_talk
from moments import WrongClock, preloaded
from operating import PAGES, command_output, web_port
from peer import OPEN_LIMITS, PATIENCE, wait_until
from restarts import folder
from world import scenario


def credential(directory, name, text):
    """The command in front of the program that hands it a credential, as systemd's LoadCredential= does."""
    path = os.path.join(directory, "credentials")
    os.makedirs(path, mode=0o700, exist_ok=True)
    with open(os.path.join(path, name), "w", encoding="utf-8") as file:
        file.write(text)
    return "env", "CREDENTIALS_DIRECTORY=" + path


@scenario
def the_instance_has_its_name(world):
    bridge = world.start(server_extra='instance_id = "edge-7"')
    assert {json.loads(line)["instance"] for line in bridge.log().splitlines()} == {"edge-7"}
    assert json.loads(command_output(world, "status", "--json"))["instance"] == "edge-7"


@scenario
def a_random_instance_is_told_by_its_beginning(world):
    """All of it would let a reader of the log guess the ids of users."""
    bridge = world.start()
    with open(os.path.join(bridge.directory, "state", "instance-id"), encoding="ascii") as file:
        whole = file.read().strip()
    assert len(whole) > 8, whole
    # What is said before the state is read has none.
    told = {json.loads(line).get("instance") for line in bridge.log().splitlines()} - {None}
    assert told == {whole[:8]}, (told, whole)


@scenario
def an_address_in_the_environment_is_a_room_beside_those_of_the_file(world):
    """Under CHATBRIDGE_ROOM, by default `lobby`. Where the file has a room of that name, there is none beside it: it is linked
    to the variable's address."""
    for variables, links in (
        ((), {"#den": "den", "#lobby": "other"}), (("CHATBRIDGE_ROOM=hall",), {"#den": "den", "#hall": "other"}),
        (("CHATBRIDGE_ROOM=den",), {"#den": "other"}),
    ):
        world.start(
            ("den",), linked=False, wrapper=("env", "CHATBRIDGE_UPSTREAM_URL=" + world.relay.url("other"), *variables))
        world.relay.wait_for_bridge(count=len(links))
        assert {link.room for link in world.relay.bridges()} == set(links.values()), variables
        ann = world.irc("ann", join=None)
        ann.send("LIST")
        ann.expect("323")
        assert {line.params[1] for line in ann.lines if line.command == "322"} == set(links), variables
        for channel, address in links.items():
            ann.join(channel)
            world.person("Remy", room=address).say("to " + channel)
            assert ann.expect_text("to " + channel).params[0] == channel
        assert world.bridge.terminate() == 0
        wait_until(lambda: not world.relay.bridges(), "the old links are gone")
    world.bridge = None


@scenario
def relative_paths_are_those_of_the_folder_of_the_start(world):
    """Not of the configuration's."""
    directory = folder(world)
    for name in ("etc", "here"):
        os.mkdir(os.path.join(directory, name))
    certificate(world, "localhost", out=os.path.join(directory, "here"))
    config = os.path.join(directory, "etc", "chatbridge.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            '[server]\nstate_dir = "state"\n[[listeners]]\nbind = "ircs://127.0.0.1:0"\ncert = "cert.pem"\nkey = "key.pem"\n'
            '[[rooms]]\nname = "lobby"\nurl = "%s"\n' % world.relay.url())

    def check(name):
        return subprocess.run(
            [peer.BINARY_PATH, "check", "--config", config], cwd=os.path.join(directory, name), capture_output=True, text=True,
            timeout=PATIENCE)

    assert check("here").returncode == 0, check("here")
    elsewhere = check("etc")
    assert elsewhere.returncode == 78, elsewhere
    assert 'there is no file "%s"' % os.path.join(directory, "etc", "cert.pem") in elsewhere.stderr, elsewhere


@scenario
def the_admin_socket_is_where_it_is_said_to_be(world):
    directory = folder(world)
    path = os.path.join(directory, "elsewhere.sock")
    world.start(directory=directory, tables='[admin]\nsocket = "%s"\nmode = "0660"\n' % path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert not os.path.exists(os.path.join(directory, "state", "admin.sock"))
    assert "1 of 1 rooms up" in command_output(world, "status")
    assert subprocess.run([peer.BINARY_PATH, "status", "--socket", path], capture_output=True, timeout=PATIENCE).returncode == 0


def status_at(*arguments, **variables):
    """The exit status of `status`, of somebody in an empty folder, and what it says."""
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            [peer.BINARY_PATH, "status", *arguments], cwd=nowhere, env={**os.environ, **variables}, capture_output=True,
            timeout=PATIENCE, text=True)
    return done.returncode, done.stdout + done.stderr


@scenario
def the_admin_socket_is_in_the_first_runtime_directory(world):
    """And a command looks there, by the same variable."""
    directory = folder(world)
    first, second = (os.path.join(directory, name) for name in ("run", "more"))
    os.mkdir(first)
    os.mkdir(second)
    both = first + ":" + second
    bridge = world.start(directory=directory, wrapper=("env", "RUNTIME_DIRECTORY=" + both))
    wait_until(lambda: os.path.exists(os.path.join(first, "admin.sock")), "the socket is there")
    assert os.listdir(second) == [] and "admin.sock" not in os.listdir(os.path.join(directory, "state"))
    config = ("--config", bridge.config_path)
    for places, status in ((both, 0), (second, 69), ("", 69)):
        found = status_at(*config, RUNTIME_DIRECTORY=places)
        assert found[0] == status, (places, found)


@scenario
def a_state_directory_names_its_admin_socket(world):
    bridge = world.start()
    state = os.path.join(bridge.directory, "state")
    found = status_at("--state-dir", state)
    assert found[0] == 0 and "1 of 1 rooms up" in found[1], found
    found = status_at("--state-dir", bridge.directory)
    assert found[0] == 69 and "no bridge answers at %s/admin.sock: there is no such file" % bridge.directory in found[1], found


@scenario
def an_empty_admin_socket_is_none(world):
    bridge = world.start(tables='[admin]\nsocket = ""\n')
    found = status_at("--config", bridge.config_path)
    assert found[0] == 69 and "no bridge answers: [admin] socket is empty in its configuration" in found[1], found
    assert "admin.sock" not in os.listdir(os.path.join(bridge.directory, "state"))


@scenario
def a_socket_file_has_its_mode_and_its_group(world):
    directory = folder(world)
    path = os.path.join(directory, "irc.sock")
    # A group other than the process's own; without the right to give files away there is none.
    groups = [group for group in grp.getgrall() if group.gr_gid != os.getegid()]
    group = groups[0] if os.geteuid() == 0 and groups else grp.getgrgid(os.getegid())
    world.start(
        directory=directory,
        tables='[[listeners]]\nbind = "irc+unix://%s"\nmode = "0606"\ngroup = "%s"\n' % (path, group.gr_name))
    wait_until(lambda: os.path.exists(path), "the socket file is there")
    found = os.stat(path)
    assert stat.S_IMODE(found.st_mode) == 0o606 and found.st_gid == group.gr_gid, found


@on("jwt-rooms")
def a_log_in_with_a_credential(setting):
    wrapper = credential(setting.directory, "chat", PASSWORD + "\n")
    setting.start(auth='user = "liaison"\npassword_credential = "chat"\n', wrapper=wrapper)
    check_talk(setting, setting.irc("ann"), "in")


@on("custom")
def a_log_in_in_words_with_a_credential(setting):
    """The key lives for 6 s, and is renewed a second ahead of its end; by default that would be after 3 s."""
    setting.serve(accounts={"bridge": PASSWORD}, key_ttl=6)
    words = LOGIN_IN_WORDS % {"base": setting.backend.origin, "word": "{password}"}
    wrapper = credential(setting.directory, "chat", PASSWORD)
    setting.start(
        room_extra=CALM + words + '  user = "bridge"\n  password_credential = "chat"\n  refresh_before = "1s"\n',
        wrapper=wrapper)
    (renewed,) = wait_until(lambda: setting.backend.requests("/keys/renew"), "the key is renewed ahead of its end")
    login = setting.backend.requests("/keys")[0]
    assert renewed["at"] - login["at"] > 4, (login, renewed)
    check_talk(setting, setting.irc("ann"), "in")


@scenario
def a_page_is_served_under_the_names_of_its_listener(world):
    world.start(tables=PAGES + 'hosts = ["bridge.test"]\n')

    def status(host):
        request = "GET /status.json HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host
        return int(answer(web_port(world), request.encode()).split()[1])

    assert [status(host) for host in ("bridge.test", "BRIDGE.test:80", "localhost", "other.test")] == [200, 200, 200, 421]


@scenario
def a_page_with_a_token_in_a_file(world):
    directory = folder(world)
    wrapper = credential(directory, "page", "0123456789abcdef-credential")
    path = os.path.join(directory, "token")
    with open(path, "w", encoding="ascii") as file:
        file.write("0123456789abcdef-file\n")
    world.start(
        directory=directory, wrapper=wrapper,
        tables=PAGES + 'token_file = "%s"\n' % path + PAGES + 'token_credential = "page"\n')
    listening = wait_until(
        lambda: len(found := world.bridge.log_entries("listening-http")) == 2 and found, "both listen")
    ports = [int(entry["address"].rsplit(":", 1)[-1]) for entry in listening]

    def status(port, token):
        request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n" % token
        return int(answer(port, request.encode()).split()[1])

    tokens = ["0123456789abcdef-file", "0123456789abcdef-credential"]
    assert [[status(port, token) for token in tokens] for port in ports] == [[200, 401], [401, 200]]


@on("envelope")
def links_to_files_end(setting):
    """At the earliest after their lifetime, and at the latest an hour behind it; the link has the hour, in base 36."""
    clock = WrongClock(setting)
    media.start(setting, 'link_lifetime = "5h"\n', wrapper=clock.wrapper)
    ann = setting.irc("ann")
    link = media.upload(setting, b"x", name="a.txt", mime="text/plain").headers["Location"]
    end = expiry(link)
    assert 5 <= end - time.time() / 3600 <= 6.1, link
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=PNG)
    ended = ann.expect("PRIVMSG", lambda line: "/media/d/lobby/" in line.params[-1]).params[-1].split()[-1]
    wait_until(lambda: media.get(setting, ended).status == 200, "the file is kept")
    found = []
    for hours in (4.9, 6.2):
        clock.set(hours * 3600)
        found.append([media.get(setting, each).status for each in (link, ended)])
    assert found == [[200, 200], [410, 410]], found
    # CHATHISTORY has a fresh one of the file that came within a message; an upload's is the text of its message.
    ann.send("CAP REQ draft/chathistory", "CHATHISTORY LATEST #lobby * 10")
    fresh = ann.expect("PRIVMSG", lambda line: "/media/d/lobby/" in line.params[-1]).params[-1].split()[-1]
    assert fresh != ended and expiry(fresh) >= end + 6, (fresh, ended)
    assert media.get(setting, fresh).body == base64.b64decode(PNG)


def expiry(link):
    """Hours since 1970."""
    number = urllib.parse.urlsplit(link).path.split("/")[4].split(".")[0]
    return int(number, 36)


@on("envelope")
def kept_files_end(setting):
    """What is older than the retention is removed at the latest at the next start."""
    media.start(setting, 'retention = "1d"\n')
    setting.irc("ann").barrier()
    links = [media.upload(setting, PNG.encode() + name.encode(), name=name + ".png").headers["Location"] for name in "ab"]
    assert [media.get(setting, link).status for link in links] == [200, 200]
    assert setting.bridge.terminate() == 0
    kept = {}
    for path, _, names in os.walk(os.path.join(setting.directory, "state")):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                data = file.read()
            if data.startswith(PNG.encode()):
                kept[data[-1:]] = os.path.join(path, name)
    assert sorted(kept) == [b"a", b"b"], kept
    old = time.time() - 2 * 86400
    os.utime(kept[b"a"], (old, old))
    media.start(setting, 'retention = "1d"\n')
    wait_until(lambda: not os.path.exists(kept[b"a"]), "the old file is removed")
    assert [media.get(setting, link).status for link in links] == [404, 200]


@scenario
def the_log_is_as_quiet_as_is_said(world):
    """And goes into the file that is named: all other output of the program is discarded here."""
    directory = folder(world)
    bridge = world.start(
        directory=directory, wrapper=("sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh"),
        log_extra='level = "debug"\nlevels = { upstream = "error" }\nto = "%s/log"' % directory)
    ann = world.irc("ann")
    ann.say("#lobby", "hello")
    ann.barrier()
    entries = [json.loads(line) for line in bridge.log().splitlines()]
    subsystems = {entry["subsystem"] for entry in entries}
    assert {"main", "downstream"} <= subsystems and "upstream" not in subsystems, subsystems
    # Which the default, `info`, leaves out.
    assert "debug" in {entry["level"] for entry in entries}


@scenario
def the_log_has_the_form_that_is_set(world):
    """By default it is JSON where it goes into a file."""
    directory = folder(world)
    text = '[server]\nstate_dir = "%s/state"\n[[listeners]]\nbind = "irc://127.0.0.1:0"\n[log]\n%s\n' \
        '[[rooms]]\nname = "lobby"\nurl = "%s"\n'
    said = {}
    for key in ("", 'format = "text"'):
        path = os.path.join(directory, "chatbridge.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text % (directory, key, world.relay.url()))
        log = os.path.join(directory, "log")
        with open(log, "wb") as file:
            process = subprocess.Popen([peer.BINARY_PATH, "run", "--config", path], stdout=file, stderr=file)
        world.stack.callback(process.kill)

        def lines():
            with open(log, encoding="utf-8") as file:
                return [line for line in file.read().splitlines(True) if line.endswith("\n")]

        wait_until(lambda: any("listening" in line for line in lines()), "it listens")
        process.terminate()
        assert process.wait(PATIENCE) == 0
        said[key] = {line.startswith("{") for line in lines()}
    assert said == {"": {True}, 'format = "text"': {False}}, said


@scenario
def the_log_has_what_is_said_only_if_it_is_asked_to(world):
    found = {}
    for messages in (False, True):
        bridge = world.start(log_extra='level = "trace"\nmessages = %s' % str(messages).lower())
        ann = world.irc("ann")
        ann.say("#lobby", "kohlrabi for dinner")
        ann.expect_text("kohlrabi for dinner")
        ann.barrier()
        found[messages] = "kohlrabi" in bridge.log()
        assert bridge.terminate() == 0
    world.bridge = None
    assert found == {False: False, True: True}, found


@scenario
def a_page_takes_the_oldest_tls_that_is_set(world):
    cert, key = certificate(world, "localhost")
    table = '[[http]]\nbind = "https://127.0.0.1:0"\ncert = "%s"\nkey = "%s"\n' % (cert, key)
    world.start(tables=table + table + 'min_tls = "1.3"\n')
    listening = wait_until(
        lambda: len(found := world.bridge.log_entries("listening-http")) == 2 and found, "both listen")
    by_default, strict = (int(entry["address"].rsplit(":", 1)[-1]) for entry in listening)
    context = ssl.create_default_context(cafile=cert)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def status(port):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as link:
            with context.wrap_socket(link, server_hostname="localhost") as secured:
                secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return secured.recv(1024).split()[1]

    assert status(by_default) == b"200"
    try:
        raise AssertionError("%s was taken" % status(strict))
    except ssl.SSLError as error:
        assert "VERSION" in error.reason, error


@on("envelope")
def kept_files_have_so_much_room(setting):
    """The oldest give way."""
    media.start(setting, 'max_bytes = "1MiB"\n')
    setting.irc("ann").barrier()
    links = [
        media.upload(setting, PNG.encode() + name.encode() * 400_000, name=name + ".png").headers["Location"]
        for name in "abc"]
    wait_until(lambda: media.get(setting, links[0]).status == 404, "the oldest is removed")
    assert [media.get(setting, link).status for link in links] == [404, 200, 200]


class LoginServer(http.server.ThreadingHTTPServer):
    """Refuses every log-in, and remembers the path and the body of each."""

    def __init__(self):
        self.asked = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append((self.path, body))
                self.send_response(401)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@scenario
def a_backend_is_asked_where_and_as_whom_it_is_set(world):
    """Below `http_base`, not at the host of the socket, with the backend's user and password."""
    server = LoginServer()
    world.stack.callback(server.server_close)
    world.stack.callback(server.shutdown)
    directory = folder(world)
    with open(os.path.join(directory, "password"), "w", encoding="utf-8") as file:
        file.write("from a file\n")
    tables = ""
    for name, password in (("one", 'password = "as it is"'), ("two", 'password_file = "%s/password"' % directory)):
        tables += (
            '[backends.%s]\ndialect = "jwt-rooms"\nurl = "ws://127.0.0.1:1/ws/{room}"\nuser = "user-%s"\n'
            'http_base = "http://127.0.0.1:%d/below/%s"\n%s\n[[rooms]]\nname = "%s"\nbackend = "%s"\n'
            % (name, name, server.server_port, name, password, name, name))
    world.start(rooms=(), tables=tables)
    wait_until(lambda: len(server.asked) >= 2, lambda: "both are asked: %r" % server.asked)
    assert sorted((path, body["username"], body["password"]) for path, body in server.asked[:2]) == [
        ("/below/one/api/auth/login", "user-one", "as it is"), ("/below/two/api/auth/login", "user-two", "from a file"),
    ], server.asked


# Each sync of the database, or of its log, is a byte in a file.
COUNTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int counted(int file, const char *name) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (strstr(path, "/chatbridge.db")) {
        int count = open(getenv("SYNC_FILE"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (count < 0 || write(count, "x", 1) != 1) abort();
        close(count);
    }
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    return real(file);
}
int fsync(int file) { return counted(file, "fsync"); }
int fdatasync(int file) { return counted(file, "fdatasync"); }
"""


@scenario
def the_disk_is_awaited_as_often_as_is_set(world):
    """`normal`: when the log goes into the database; `full`: with each transaction; `off`: never."""
    library = preloaded(folder(world), COUNTED)
    counts = {}
    for sync in ("normal", "full", "off"):
        directory = folder(world)
        path = os.path.join(directory, "syncs")

        def count():
            return os.path.getsize(path) if os.path.exists(path) else 0

        world.start(
            directory=directory, tables='[storage]\nsync = "%s"\n' % sync, wrapper=("env", library, "SYNC_FILE=" + path))
        ann = world.irc("ann")
        before = count()
        for number in range(20):
            ann.say("#lobby", "n %d" % number)
            ann.expect_text("n %d" % number)
        ann.barrier()
        talk = count() - before
        assert world.bridge.terminate() == 0
        counts[sync] = (talk, count() - before)
    world.bridge = None
    assert counts["normal"][0] == 0 < counts["normal"][1], counts
    assert counts["full"][0] >= 20, counts
    assert counts["off"] == (0, 0), counts
    return "syncs while 20 messages are said, and until the end: %r" % counts


@scenario
def the_queue_of_a_client_has_the_size_that_is_set(world):
    """A client that never reads is disconnected when the kernel's buffers and the queue are full; the kernel's are the same."""
    dropped = {}
    for sendq in ("16KiB", "8MiB"):
        world.start(limits=OPEN_LIMITS + '\nsendq = "%s"' % sendq)
        ann, remy = world.irc("ann"), world.person("Remy")
        deaf = socket.socket()
        world.stack.callback(deaf.close)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", world.bridge.port))
        deaf.sendall(b"NICK deaf\r\nUSER deaf 0 * :deaf\r\nJOIN #lobby\r\n")
        ann.expect("JOIN", lambda line: line.source.startswith("deaf!"))
        said, body = 0, "x" * 400
        while not any(line.command == "QUIT" and line.source.startswith("deaf!") for line in ann.lines):
            assert said < 100_000, "after %d messages it is still there" % said
            for _ in range(200):
                remy.say(body + str(said))
                said += 1
            remy.drain()
            ann.expect_text(body + str(said - 1))
        assert "SendQ exceeded" in [line for line in ann.lines if line.command == "QUIT"][0].params[-1]
        dropped[sendq] = said * len(body)
        assert world.bridge.terminate() == 0
    world.bridge = None
    assert dropped["8MiB"] - dropped["16KiB"] > 4 << 20, dropped
    return "bytes until then: %r" % dropped
