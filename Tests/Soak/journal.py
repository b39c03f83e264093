"""Files that outlive `kill -9`: JSON lines, each written by one system call before anything follows from it."""

import json
import os
import re


class Journal:
    """Appends. What was written stays when the process is killed: the kernel has it."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # A line that was cut in the middle must not take the next one with it.
        if os.fstat(self.file).st_size and not _ends_with_newline(path):
            os.write(self.file, b"\n")

    def append(self, **fields):
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape") + b"\n"
        written = os.write(self.file, data)
        if written != len(data):
            raise OSError("the journal took %d of %d bytes" % (written, len(data)))


def _ends_with_newline(path):
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read(path):
    """All whole lines; of a file that does not exist yet, none."""
    entries = []
    try:
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                try:
                    entries.append(json.loads(line))
                except ValueError:
                    continue
    except FileNotFoundError:
        pass
    return entries


def disk_stalls(directory):
    """[(from, to)]: when the disk of a run stood still, in milliseconds."""
    path, found = os.path.join(directory, "faults.txt"), []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                stall = re.match(r"(\d+) +[\d.]+  stall disk +for ([\d.]+) s", line)
                if stall:
                    found.append((int(stall[1]), int(stall[1]) + round(1000 * float(stall[2]))))
    return found
