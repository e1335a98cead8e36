"""Processes that a driver starts, pins to a core, watches and ends again."""

import os
import socket
import subprocess
import threading
import time

READY_S_MAX = 20
STOP_S_MAX = 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A process did not do what it was started for."""


def pinned(core, command):
    """The command line that runs `command` on `core` alone. taskset becomes the command, so its
    process id is the command's own."""
    return ["taskset", "--cpu-list", str(core), *map(str, command)]


def free_port():
    """A TCP port of the loopback address that nobody used a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on a core of its own. Use it in a `with` statement, which ends it."""

    def __init__(self, command, core, port, log_path):
        self.port = port
        self._log_path = log_path
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(
                pinned(core, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def pid(self):
        """Its process id."""
        return self._process.pid

    def __enter__(self):
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Asks it to end, and makes it if it does not."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def cpu_s(self):
        """Processor seconds, user and system, of all its threads so far."""
        with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as stat:
            # The name in brackets may contain anything; the fields after it are numbers.
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def waited_s(self):
        """Seconds for which its threads were ready but other programs had the core, so far."""
        tasks = f"/proc/{self._process.pid}/task"
        total_ns = 0
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/schedstat", encoding="utf-8") as schedstat:
                    total_ns += int(schedstat.read().split()[1])
            except OSError:
                pass  # the thread ended, or the kernel does not tell
        return total_ns / 1e9

    def resident_mib(self):
        """Memory that it holds now."""
        with open(f"/proc/{self._process.pid}/smaps_rollup", encoding="utf-8") as rollup:
            for line in rollup:
                if line.startswith("Rss:"):
                    return int(line.split()[1]) / 1024
        return float("nan")

    def _wait_until_ready(self):
        deadline = time.monotonic() + READY_S_MAX
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.5).close()
                return
            except OSError:
                pass
            # Between two attempts, notice at once if it has ended.
            try:
                status = self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise Failed(f"ended with status {status}: {self._last_words()}")
        raise Failed(f"did not listen within {READY_S_MAX} s: {self._last_words()}")

    def _last_words(self):
        with open(self._log_path, encoding="utf-8", errors="replace") as log:
            return log.read().strip()[-500:] or "it said nothing"


class PeakMemory(threading.Thread):
    """Watches how much memory a process has held at most, until it ends.

    The kernel's own account at the end (`ru_maxrss`) will not do: it begins with the memory of
    whoever started the process.
    """

    INTERVAL_S = 0.01

    def __init__(self, pid, timeout_s, too_long):
        super().__init__(daemon=True)
        self.mib = 0.0
        self._pid = pid
        self._deadline = time.monotonic() + timeout_s
        self._too_long = too_long
        self._ended = threading.Event()

    def run(self):
        """Looks again and again; past the deadline, calls `too_long` once."""
        while not self._ended.wait(self.INTERVAL_S):
            self.mib = max(self.mib, self._high_water_mib())
            if time.monotonic() > self._deadline:
                self._too_long()
                return

    def end(self):
        """The process has ended: gives back what was found."""
        self._ended.set()
        self.join()
        return self.mib

    def _high_water_mib(self):
        try:
            with open(f"/proc/{self._pid}/status", encoding="utf-8") as status:
                for line in status:
                    if line.startswith("VmHWM:"):
                        return int(line.split()[1]) / 1024
        except OSError:
            pass
        return 0.0
