"""A backup of a running bridge, and bridges that begin with it: what waited then, and what came after it."""

import os
import shutil
import subprocess

from accounts import account
from admin import done
from backends import on_wires
from restarts import log_in_as

ALICE = "[identity]\n" + account("alice", "secret")
# Those that are there; as docs/BACKUP.md has it.
FILES = "cp -r state/instance-id state/backends state/media state/media.key state/uploads.jsonl backup/ 2>/dev/null || true"


def back_up(setting):
    backup = os.path.join(setting.directory, "backup")
    os.mkdir(backup)
    done(setting.bridge, "backup", os.path.join(backup, "chatbridge.db"))
    subprocess.run(FILES, shell=True, cwd=setting.directory, check=True)


def restore(setting):
    """Instead of all that the bridge has, which has no chance to do anything more."""
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    state = os.path.join(setting.directory, "state")
    shutil.rmtree(state)
    shutil.copytree(os.path.join(setting.directory, "backup"), state)
    os.chmod(state, 0o700)


def begin_again(setting):
    """The backend is back for a restored bridge, and alice for her rooms."""
    setting.start(linked=False, server_extra=ALICE)
    setting.backend.set(refuse=0)
    setting.wait_up()
    return log_in_as(setting, "alice", "secret", "alice")


@on_wires(lambda wire: wire.history)
def what_waited_and_what_came_after_it(setting):
    """"Messages in an outbox are … sent (again)", and those since then "come from the backend's history", "with the same ids"."""
    setting.start(server_extra=ALICE)
    backend = setting.backend
    alice = log_in_as(setting, "alice", "secret", "alice", "#lobby")
    backend.say("Remy", "before")
    alice.expect_text("before")
    backend.set(refuse=-1)
    backend.control("drop")
    alice.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    alice.say("#lobby", "waits")
    alice.barrier()
    back_up(setting)

    restore(setting)
    backend.say("Remy", "meanwhile")
    alice = begin_again(setting)
    ids = [alice.expect_text("meanwhile").tags["msgid"]]
    alice.expect_text("waits")
    alice.say("#lobby", "since")
    ids.append(alice.expect_text("since").tags["msgid"])
    assert backend.heard("alice") == ["waits", "since"], backend.heard("alice")

    # From the same backup, after what waited in it has gone.
    restore(setting)
    alice = begin_again(setting)
    again = [alice.expect_text("meanwhile").tags["msgid"]]
    again.append(alice.expect_text(setting.wire.spoken("alice", "since")).tags["msgid"])
    known = ids[:1] if setting.wire.name == "jwt-rooms" else ids
    assert again[: len(known)] == known, (again, ids)
    alice.say("#lobby", "last")
    alice.expect_text("last")
    twice = ["waits"] if setting.wire.ids == "server" else []
    assert backend.heard("alice") == ["waits", "since", *twice, "last"], backend.heard("alice")
