"""The processes of the soak: started, killed, stopped and started again; none of them outlives the harness."""

import asyncio
import ctypes
import os
import signal
import time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_us():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One that is meant to run. `command()` and `environment()` are asked at each start.

    `on_line` gets what it prints. `ends` keeps how it ended when nobody had killed it.
    """

    def __init__(
        self, name, command, environment=lambda: None, on_line=lambda line: None, on_end=lambda pid, code, own: None,
        directory=None, on_start=lambda pid: None,
    ):
        self.name, self.command, self.environment = name, command, environment
        self.on_line, self.on_start, self.on_end = on_line, on_start, on_end
        self.directory = directory
        self.process = None
        self.is_wanted = False
        self.is_stopped = False
        self.was_killed = False
        self.pause = 0.0
        self.began = 0.0
        self.ends = []
        self.task = None

    @property
    def is_running(self):
        return self.process is not None and self.process.returncode is None

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        self.is_wanted = True
        self.task = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self):
        while self.is_wanted:
            self.was_killed = self.is_stopped = False
            self.pause = 0.5
            self.process = await asyncio.create_subprocess_exec(
                *self.command(), env=self.environment(), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, preexec_fn=_die_with_us,
                limit=1 << 20, cwd=self.directory)
            self.began = time.monotonic()
            pid = self.process.pid
            self.on_start(pid)
            while True:
                try:
                    line = await self.process.stdout.readline()
                except ValueError:
                    continue
                if not line:
                    break
                self.on_line(line.decode("utf-8", "replace").rstrip("\n"))
            code = await self.process.wait()
            is_own = not self.was_killed and self.is_wanted
            self.on_end(pid, code, is_own)
            if is_own:
                self.ends.append(code)
            await asyncio.sleep(self.pause)

    def signal(self, number):
        if not self.is_running:
            return False
        try:
            os.kill(self.process.pid, number)
        except ProcessLookupError:
            return False
        return True

    def kill(self, pause):
        """`kill -9`; it is started again after `pause` seconds."""
        if self.is_running:
            self.was_killed = True
        self.pause = pause
        return self.signal(signal.SIGKILL)

    def stall(self):
        self.is_stopped = self.signal(signal.SIGSTOP)
        return self.is_stopped

    def resume(self):
        self.is_stopped = False
        self.signal(signal.SIGCONT)

    def tell(self, word):
        if self.is_running:
            try:
                self.process.stdin.write(word.encode() + b"\n")
            except (OSError, RuntimeError):
                pass

    async def stop(self):
        self.is_wanted = False
        self.kill(0)
        if self.task:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        if self.process is not None:
            code = await self.process.wait()
            self.on_end(self.process.pid, code, False)
