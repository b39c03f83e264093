"""Runs both roles of the Autobahn TestSuite and compares with the expectation; called by scripts/autobahn.

    autobahn-run.py fast|full PYTHON27 PROGRAM EXPECTED.json [--update]
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

AGENT = "chatbridge"
# Seconds for one role with all cases on a slow machine.
ROLE_TIMEOUT = 3600
# Seconds for a program on this machine to open its port.
START_TIMEOUT = 30
# 1000 messages each, of up to 128 KiB; the fast profile keeps the smaller sizes of these groups.
SLOW = re.compile(r"12\.1\.(9|1[0-8])$|12\.[2-5]\.([5-9]|1[0-8])$|13\.[1-7]\.([7-9]|1[0-8])$")
# wstest listens on every interface; here it shall be the loopback only.
LOOPBACK_WSTEST = """
import autobahn.twisted.websocket as websocket
listen = websocket.listenWS
websocket.listenWS = lambda factory, *rest, **named: listen(factory, interface="127.0.0.1")
from autobahntestsuite.wstest import run
run()
"""


class Trouble(Exception):
    """The suite could not run: exit 2."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process, what):
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise Trouble(f"{what} did not open port {port}")


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_role(role, excluded, python27, program, folder):
    """The suite's verdicts on one role: case → [behavior, behaviorClose]."""
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    reports = os.path.join(folder, role)
    specification = {"outdir": reports, "cases": ["*"], "exclude-cases": excluded, "exclude-agent-cases": {}}
    if role == "client":
        specification |= {"url": url, "options": {"failByDrop": False}}
    else:
        specification |= {"servers": [{"agent": AGENT, "url": url}], "options": {"failByDrop": False}}
    specification_path = os.path.join(folder, role + ".json")
    with open(specification_path, "w") as file:
        json.dump(specification, file)
    mode = "fuzzingserver" if role == "client" else "fuzzingclient"
    suite = [python27, "-c", LOOPBACK_WSTEST, "-m", mode, "-u", "0", "-s", specification_path]
    log_path = os.path.join(folder, role + ".log")
    started = []
    with open(log_path, "w") as log:

        def start(command):
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
            started.append(process)
            return process

        try:
            if role == "client":
                await_port(port, start(suite), "the fuzzing server")
                walk = start([program, "autobahn-client", url, "--agent", AGENT])
            else:
                server = start([program, "autobahn-server", "--port", str(port)])
                await_port(port, server, "the echo server")
                walk = start(suite)
            status = walk.wait(ROLE_TIMEOUT)
            if role == "server" and server.poll() is not None:
                raise Trouble(f"the echo server ended with {server.returncode}")
            if role == "client" and status != 0:
                raise Trouble(f"the echo client ended with {status}")
        except subprocess.TimeoutExpired:
            raise Trouble(f"{role}: not done after {ROLE_TIMEOUT} s") from None
        finally:
            for process in reversed(started):
                end(process)
    try:
        with open(os.path.join(reports, "index.json")) as file:
            cases = json.load(file)[AGENT]
    except (OSError, KeyError):
        with open(log_path) as log:
            sys.stderr.write(log.read()[-2000:])
        raise Trouble(f"{role}: the suite wrote no report") from None
    return {case: [result["behavior"], result["behaviorClose"]] for case, result in cases.items()}


def in_order(cases):
    return dict(sorted(cases.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


def text_of(verdicts):
    """JSON with a line for each case, so that a difference reads well."""
    roles = []
    for role, cases in verdicts.items():
        lines = [f"    {json.dumps(case)}: {json.dumps(result)}" for case, result in in_order(cases).items()]
        roles.append(f"  {json.dumps(role)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(roles) + "\n}\n"


def main():
    profile, python27, program, expected_path, *options = sys.argv[1:]
    python27 = os.path.abspath(python27)
    expected = {"client": {}, "server": {}}
    if os.path.exists(expected_path):
        with open(expected_path) as file:
            expected = json.load(file)
    elif "--update" not in options:
        raise Trouble(f"{expected_path} is missing")
    excluded = []
    if profile == "fast":
        excluded = sorted({case for cases in expected.values() for case in cases if SLOW.match(case)})
    verdicts = {}
    with tempfile.TemporaryDirectory(prefix="autobahn-") as folder:
        for role in ("client", "server"):
            begin = time.monotonic()
            verdicts[role] = run_role(role, excluded, python27, program, folder)
            print(f"autobahn, {role}: {len(verdicts[role])} cases in {time.monotonic() - begin:.0f} s", flush=True)
    if "--update" in options:
        if profile != "full":
            raise Trouble("only the full profile can be the expectation")
        with open(expected_path, "w") as file:
            file.write(text_of(verdicts))
        print(f"wrote {expected_path}")
        return 0
    different = 0
    for role, cases in verdicts.items():
        wanted = {case: result for case, result in expected[role].items() if case not in excluded}
        for case in in_order(wanted | cases):
            if wanted.get(case) != cases.get(case):
                different += 1
                was = " / ".join(wanted.get(case, ["not known"]))
                now = " / ".join(cases.get(case, ["not run"]))
                print(f"{role} {case}: expected {was}, got {now}")
    print(f"autobahn: {different} cases are not as expected")
    return 1 if different else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        print(f"autobahn: {trouble}", file=sys.stderr)
        sys.exit(2)
