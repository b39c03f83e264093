"""Keys of the configuration whose effect only the running program shows. KeyCoverageTests names the scenario of each."""

import grp
import json
import os
import stat
import subprocess
import time
import urllib.parse

import media
import peer
from backends import CALM, PASSWORD, on
from dialects import PNG
from listeners import answer
from logins import LOGIN_IN_WORDS, check_talk
from operating import PAGES, command_output, web_port
from peer import PATIENCE, wait_until
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
def the_admin_socket_is_where_it_is_said_to_be(world):
    directory = folder(world)
    path = os.path.join(directory, "elsewhere.sock")
    world.start(directory=directory, tables='[admin]\nsocket = "%s"\nmode = "0660"\n' % path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert not os.path.exists(os.path.join(directory, "state", "admin.sock"))
    assert "1 of 1 rooms up" in command_output(world, "status")
    assert subprocess.run([peer.BINARY_PATH, "status", "--socket", path], capture_output=True, timeout=PATIENCE).returncode == 0


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
    """At the earliest after their lifetime; the link has the hour, in base 36."""
    media.start(setting, 'link_lifetime = "5h"\n')
    setting.irc("ann").barrier()
    link = media.upload(setting, b"x", name="a.txt", mime="text/plain").headers["Location"]
    end = expiry(link)
    assert 5 <= end - time.time() / 3600 <= 6.1, link


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
    subsystems = {json.loads(line)["subsystem"] for line in bridge.log().splitlines()}
    assert {"main", "downstream"} <= subsystems and "upstream" not in subsystems, subsystems
