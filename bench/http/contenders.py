"""Who is measured: how each server is started, and what it is asked.

All of them get the same quota, 7 a second with a burst so large that everything passes, and the
same 10 000 clients.
"""

import dataclasses
import os
import shutil

from support.processes import free_port

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BURST = 4_000_000_000
RATE = f"7/s burst {BURST}"

RIVAL = "throttlecrab"
FLOOR = "floor"


@dataclasses.dataclass
class Question:
    """Where a check goes and what it says; see checks.lua for USER and ADDR."""

    path: str
    body: str


@dataclasses.dataclass
class Contender:
    """A server that may be there or not."""

    name: str
    program: str
    question: Question
    arguments: callable
    """Makes the command's arguments, given a port and a folder for files."""

    def command(self, port, folder):
        """The whole command line, or None where the program is absent."""
        program = shutil.which(self.program)
        return program and [program, *self.arguments(port, folder)]


def contenders(options):
    """Everybody, the floor and the rival first."""
    return [_floor(options), _throttlecrab(options), *_tidegates(options)]


def _floor(options):
    def arguments(port, _folder):
        runtime = ["--current-thread"] if options.floor_current_thread else []
        return ["--listen", f"127.0.0.1:{port}", *runtime]

    question = Question("/v1/check", '{"user":"USER"}')
    return Contender(FLOOR, options.floor, question, arguments)


def _throttlecrab(options):
    def arguments(port, _folder):
        listen = ["--http", "--http-host", "127.0.0.1", "--http-port", port]
        store = ["--store", "adaptive", "--store-capacity", 100_000]
        return [*listen, *store, "--log-level", "error"]

    numbers = f'"max_burst":{BURST},"count_per_period":7,"period":1,"quantity":1'
    question = Question("/throttle", '{"key":"USER",' + numbers + "}")
    return Contender(RIVAL, options.throttlecrab, question, arguments)


def _tidegates(options):
    kinds = {
        "tidegate-user": (["user"], '{"user":"USER"}'),
        "tidegate-ip": (["ip"], '{"ip":"ADDR"}'),
        "tidegate-three": (["ip", "user", "global"], '{"ip":"ADDR","user":"USER"}'),
    }
    for name, (keys, body) in kinds.items():
        arguments = _serve(name, keys)
        yield Contender(name, options.tidegate, Question("/v1/check", body), arguments)


def _serve(name, keys):
    def arguments(port, folder):
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_configuration(keys, port))
        return ["serve", "--config", path]

    return arguments


def _configuration(keys, port):
    """One limit for each key, all decided in one step."""
    lines = [
        f"listen: {{http: '127.0.0.1:{port}', admin: '127.0.0.1:{free_port()}'}}",
        "policies:",
        "- name: bench",
        "  limits:",
    ]
    for key in keys:
        lines += [f"  - name: per-{key}", f"    key: {key}", f"    rate: {RATE}"]
    return "\n".join(lines) + "\n"
