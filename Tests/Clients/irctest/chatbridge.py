"""A controller of irctest (https://github.com/progval/irctest) for chatbridge.

Put into that suite's `irctest/controllers/`, it starts a bridge in front of a studio for each test:

    IRCTEST_BRIDGE_BIN=/path/to/chatbridge IRCTEST_BRIDGE_DIALECT=described python3 -m pytest \\
        --controller irctest.controllers.chatbridge -m "not implementation-specific and not deprecated" irctest/server_tests

With `described` the wire carries deletions and reactions; without, six tests more fail, since `envelope` has none. docs/reference/irc.md
says which tests ask for what has no meaning here.
"""

import functools
import inspect
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import List, Optional, Tuple, Type, Union

from irctest import patma
from irctest.basecontrollers import BaseServerController, DirectoryBasedController
from irctest.client_mock import ClientMock
from irctest.cases import BaseServerTestCase
from irctest.runner import NotImplementedByController
from irctest.specifications import Capabilities, OptionalBehaviors

BINARY = os.environ.get("IRCTEST_BRIDGE_BIN", "chatbridge")

# IRCTEST_BRIDGE_DIALECT=described: the studio relays whatever it is sent, so with a dialect of
# our own messages can be taken back and reacted to, which `envelope` has no words for.
DESCRIBED = """{
  "url": "ws://127.0.0.1/{room}",
  "identity": "puppet",
  "echo": "by-id",
  "decode": [
    { "when": { "/event": "message" }, "event": "message",
      "fields": { "id": "/id", "sender.id": "/uid", "sender.name": "/name", "text": "/text", "replyTo": "/re" } },
    { "when": { "/event": "delete" }, "event": "delete", "fields": { "ids": "/id", "sender.id": "/uid", "sender.name": "/name" } },
    { "when": { "/event": "reaction" }, "event": "reaction",
      "fields": { "target": "/id", "emoji": "/emoji", "op": "/op", "sender.id": "/uid", "sender.name": "/name" } }
  ],
  "encode": {
    "message": { "event": "message", "id": "{{id}}", "uid": "{{sender.id}}", "name": "{{sender.name}}", "text": "{{text}}", "re?": "{{replyTo}}" },
    "delete": { "$per": "ids", "as": { "event": "delete", "id": "{{item}}", "uid": "{{sender.id}}", "name": "{{sender.name}}" } },
    "reaction": { "event": "reaction", "id": "{{target}}", "emoji": "{{emoji}}", "op": "{{op}}", "uid": "{{sender.id}}", "name": "{{sender.name}}" }
  }
}
"""

LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


@functools.lru_cache(maxsize=None)
def hash_password(password: str) -> str:
    return (
        subprocess.run(
            [BINARY, "hash-password", "--iterations", "4096"],
            input=password.encode() + b"\n",
            stdout=subprocess.PIPE,
            check=True,
        )
        .stdout.decode()
        .strip()
    )


def account_table(username: str, password: str) -> str:
    return (
        f'\n[[accounts]]\nname = "{username}"\npassword = "{hash_password(password)}"\n'
    )


def short_accounts_of_test() -> List[Tuple[str, str]]:
    """REGISTER wants 8 characters; accounts with shorter passwords that the current test
    will ask for, perhaps when clients are there already, come into the configuration."""
    m = re.match(r"(.*?)::(\w+)::(\w+)", os.environ.get("PYTEST_CURRENT_TEST", ""))
    if not m:
        return []
    module = next(
        (
            x
            for x in list(sys.modules.values())
            if (getattr(x, "__file__", None) or "").endswith("/" + m.group(1))
        ),
        None,
    )
    test = getattr(getattr(module, m.group(2), None), m.group(3), None)
    if test is None:
        return []
    source = inspect.getsource(inspect.unwrap(test))
    for helper in set(re.findall(r"self\.(_\w+)\(", source)):
        if callable(f := getattr(getattr(module, m.group(2)), helper, None)):
            source += inspect.getsource(inspect.unwrap(f))
    found = re.findall(r'registerUser\(self, "(\w+)", "([^"]{1,7})"\)', source)
    return list(dict.fromkeys(found))


TEMPLATE_CONFIG = """
[server]
name = "My.Little.Server"
network = "chatbridge"
description = "test server"
motd = "Hello, this is the message of the day"
state_dir = "{state_dir}"
drain = "0s"

[[listeners]]
{listener}
{websocket_listener}
[room_defaults]
history_on_join = 0
member_idle = "off"

[[rooms]]
name = "*"
url = "ws://127.0.0.1:{studio_port}/{{room}}"
{dialect}

[identity]
require_login = "never"
registration = "{registration}"
registration_before_connect = {before_connect}
{password_field}

[[accounts]]
name = "operuser"
password = "{oper_hash}"
admin = true

[storage]
url = "{storage}"

[limits]
messages_per_second = "off"
accepts_per_second_per_ip = "off"
max_clients_per_ip = 1000
upstream_messages_per_second = "off"
upstream_connects_per_second = "off"

[log]
level = "info"
format = "json"
to = "{log}"
"""


last_relayed = 0.0
_send_line = ClientMock.sendLine


def _noting_send_line(self: ClientMock, line: Union[str, bytes]) -> None:
    global last_relayed
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    if re.search(r"\b(PRIVMSG|NOTICE|TAGMSG|REDACT|BATCH|JOIN|TOPIC)\b", text, re.I):
        last_relayed = time.monotonic()
    _send_line(self, line)


ClientMock.sendLine = _noting_send_line  # type: ignore[method-assign]


class ChatbridgeController(BaseServerController, DirectoryBasedController):
    software_name = "chatbridge"
    _port_wait_interval = 0.02
    supported_sasl_mechanisms = {"PLAIN", "SCRAM-SHA-256"}
    supports_sts = False
    # What is said in a room is shown when the backend has confirmed it; the answer to a
    # PING does not wait for that. So reading waits until 0.1 s after the last such line.
    @property
    def sync_sleep_time(self) -> float:  # type: ignore[override]
        return max(0.0, last_relayed + 0.1 - time.monotonic())

    # What docs/reference/irc.md says there is: were it missing, tests would fail, not be skipped.
    capabilities = frozenset(Capabilities) - {Capabilities.STS}
    optional_behaviors = frozenset(
        (
            OptionalBehaviors.CAP_REQ_MINUS,
            OptionalBehaviors.ELIST_C,
            OptionalBehaviors.ELIST_M,
            OptionalBehaviors.ELIST_N,
            OptionalBehaviors.ELIST_T,
            OptionalBehaviors.ELIST_U,
            OptionalBehaviors.INVITE_LIST,
            OptionalBehaviors.MULTI_JOIN,
            OptionalBehaviors.MULTI_KICK,
            OptionalBehaviors.MULTI_PRIVMSG,
            OptionalBehaviors.SASL_AFTER_REGISTRATION,
            OptionalBehaviors.SASL_REAUTHENTICATION,
        )
    )
    isupport = {
        "BOT": "B",
        "CASEMAPPING": "ascii",
        "ELIST": "CMNTU",
        "MONITOR": "100",
        "MSGREFTYPES": "msgid,timestamp",
        "PREFIX": "(ov)@+",
        "TARGMAX": patma.ANYSTR,
        "UTF8ONLY": None,
        "WHOX": None,
    }

    studio: Optional[subprocess.Popen] = None

    def _start_studio(self) -> int:
        assert self.directory
        out = open(self.directory / "studio.out", "wb")
        self.studio = subprocess.Popen(
            [BINARY, "studio", "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            start_new_session=True,
        )
        out.close()
        until = time.time() + 20
        while time.time() < until:
            text = (self.directory / "studio.out").read_text()
            m = re.search(r"ws://127\.0\.0\.1:(\d+)/", text)
            if m:
                return int(m.group(1))
            assert self.studio.poll() is None, text
            time.sleep(0.01)
        raise AssertionError("the studio does not start")

    def run(
        self,
        hostname: str,
        port: int,
        *,
        password: Optional[str],
        ssl: bool,
        run_services: bool,
        faketime: Optional[str],
        websocket_hostname: Optional[str] = None,
        websocket_port: Optional[int] = None,
    ) -> None:
        if self.test_config.account_registration_requires_email:
            raise NotImplementedByController("account registration with e-mail")
        assert self.proc is None
        self.port = port
        self.hostname = hostname
        self.create_config()
        assert self.directory
        if ssl:
            self.gen_ssl()
            listener = (
                f'bind = "ircs://127.0.0.1:{port}"\n'
                f'cert = "{self.pem_path}"\nkey = "{self.key_path}"\n'
            )
        else:
            listener = f'bind = "irc://127.0.0.1:{port}"\n'
        websocket_listener = ""
        if websocket_port:
            websocket_listener = (
                f'[[listeners]]\nbind = "ws://127.0.0.1:{websocket_port}"\n'
            )
        studio_port = self._start_studio()
        self.preset = short_accounts_of_test()
        self.config_path = self.directory / "chatbridge.toml"
        dialect = ""
        if os.environ.get("IRCTEST_BRIDGE_DIALECT") == "described":
            (self.directory / "described.json").write_text(DESCRIBED)
            dialect = 'dialect = "described"\n[dialects.described]\nfile = "described.json"'
        # Where there is a password for everybody, REGISTER before it is given is off anyway.
        before = self.test_config.account_registration_before_connect and not password
        self.config_path.write_text(
            TEMPLATE_CONFIG.format(
                state_dir=self.directory / "state",
                listener=listener,
                websocket_listener=websocket_listener,
                studio_port=studio_port,
                dialect=dialect,
                password_field=f'password = "{password}"' if password else "",
                oper_hash=hash_password("operpassword"),
                registration="local",
                before_connect="true" if before else "false",
                storage="sqlite:chatbridge.db",
                log=self.directory / "bridge.log",
            )
        )
        with open(self.config_path, "a") as f:
            for account in self.preset:
                f.write(account_table(*account))
        self.environment = dict(os.environ)
        self.faketime_enabled = False
        if faketime and os.path.exists(LIBFAKETIME):
            # as the command faketime does; timers keep to the true clock
            self.environment.update(
                LD_PRELOAD=LIBFAKETIME,
                FAKETIME=faketime,
                FAKETIME_DONT_FAKE_MONOTONIC="1",
            )
            self.faketime_enabled = True
        self._start()

    def _start(self) -> None:
        assert self.directory
        self.err_path = self.directory / "bridge.err"
        with open(self.err_path, "ab") as err:
            self.proc = self.execute(
                [BINARY, "run", "--config", str(self.config_path)],
                stdout=err,
                stderr=err,
                env=self.environment,
                # Swift loses the arguments below libfaketime; then ./chatbridge.toml is taken
                cwd=self.directory,
            )

    def _add_account(
        self, case: BaseServerTestCase, username: str, password: str
    ) -> None:
        """REGISTER wants passwords of 8 characters and more that fit into a line, and
        tests like others too: these accounts come into the configuration, and the bridge starts anew."""
        with open(self.config_path, "a") as f:
            f.write(account_table(username, password))
        assert self.proc
        self._terminate_process_group(signal.SIGKILL)
        self.proc.wait()
        self.port_open = False
        self._start()
        self.wait_for_port()

    def check_is_alive(self) -> None:
        try:
            super().check_is_alive()
        except Exception as e:
            raise type(e)(f"{e}: {self.err_path.read_text()}")

    def wait_for_services(self) -> None:
        pass  # there are none besides the bridge

    def registerUser(
        self,
        case: BaseServerTestCase,
        username: str,
        password: Optional[str] = None,
    ) -> None:
        if not case.run_services:
            raise ValueError(
                "Attempted to register a nick, but `run_services` it not True."
            )
        assert password
        if len(password) < 8 or len(password.encode()) > 450:
            if (username, password) in self.preset:
                return
            if not case.clients:
                self._add_account(case, username, password)
                return
            # Too late for the configuration: a longer password, which the suite's own
            # authenticateClient gives in place of the test's.
            short, longer = password, password.ljust(8, "_")
            authenticate = case.authenticateClient

            def substitute(client, account, given):  # type: ignore
                same = account == username and given == short
                authenticate(client, account, longer if same else given)

            case.authenticateClient = substitute  # type: ignore[method-assign]
            password = longer
        client = case.addClient(show_io=True)
        case.sendLine(client, "CAP LS 302")
        case.sendLine(client, "NICK " + username)
        case.sendLine(client, "USER r e g :user")
        case.sendLine(client, "CAP REQ :draft/account-registration")
        case.sendLine(client, "CAP END")
        while case.getRegistrationMessage(client).command != "001":
            pass
        case.getMessages(client)
        case.sendLine(client, f"REGISTER {username} * :{password}")
        until = time.time() + 10
        seen = []
        while time.time() < until:
            seen += case.getMessages(client)
            if any(m.command in ("REGISTER", "FAIL", "417") for m in seen):
                break
            time.sleep(0.05)
        done = [m for m in seen if m.command == "REGISTER"]
        assert done and done[0].params[:2] == ["SUCCESS", username], seen
        case.sendLine(client, "QUIT")
        case.assertDisconnected(client)

    def kill(self) -> None:
        keep = os.environ.get("IRCTEST_BRIDGE_KEEP")
        if self.proc:
            # The bridge drains at SIGTERM; nothing here needs that.
            self.proc.poll()
            code = self.proc.returncode
            if code is not None:
                print(f"---- the bridge had ended by itself: {code}")
                print(self.err_path.read_text())
            else:
                self._terminate_process_group(signal.SIGKILL)
                self.proc.wait()
        if self.studio:
            self.studio.kill()
            self.studio.wait()
            self.studio = None
        if keep and self.directory:
            shutil.copytree(
                self.directory, Path(keep) / self.directory.name, dirs_exist_ok=True
            )
        try:
            super().kill()
        finally:
            self.directory = None


def get_irctest_controller_class() -> Type[ChatbridgeController]:
    return ChatbridgeController
