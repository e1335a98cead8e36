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
AUTH_FLOOR = "floor-auth"
TOLD_FLOOR = "floor-auth-told"

# What Traefik's forwardAuth sends for a browser's request, without the cookies.
FORWARDED = [
    "X-Forwarded-Method: GET",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: shop.example.com",
    "X-Forwarded-Port: 443",
    "X-Forwarded-Server: edge-1",
    "X-Forwarded-Uri: /api/v2/orders/17?expand=items",
    "X-Forwarded-For: ADDR",
    "X-Real-Ip: ADDR",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: application/json",
    "Accept-Encoding: gzip",
]


@dataclasses.dataclass
class Question:
    """What is asked, and where; see checks.lua for USER and ADDR."""

    path: str
    body: str
    method: str = "POST"
    headers: list = dataclasses.field(default_factory=lambda: ["Content-Type: application/json"])


AUTH = Question("/v1/auth", "", "GET", FORWARDED)
TOLD = Question("/told", "", "GET", FORWARDED)


@dataclasses.dataclass
class Contender:
    """A server that may be there or not."""

    name: str
    program: str
    question: Question
    arguments: callable
    """Makes the command's arguments, given a port and a folder for files."""
    floor: str = FLOOR
    """Which constant answer it is held against: one to the same kind of request."""
    rival: str = RIVAL
    """Which peer, if one answers the same kind of request."""

    def command(self, port, folder):
        """The whole command line, or None where the program is absent."""
        program = shutil.which(self.program)
        return program and [program, *self.arguments(port, folder)]


def contenders(options):
    """Everybody, the floor and the rival first."""
    check = Question("/v1/check", '{"user":"USER"}')
    floors = [(FLOOR, check), (AUTH_FLOOR, AUTH), (TOLD_FLOOR, TOLD)]
    floors = [_floor(options, name, question) for name, question in floors]
    return [*floors, _throttlecrab(options), *_tidegates(options), *_auths(options)]


def _floor(options, name, question):
    def arguments(port, _folder):
        runtime = ["--current-thread"] if options.floor_current_thread else []
        return ["--listen", f"127.0.0.1:{port}", *runtime]

    rival = RIVAL if name == FLOOR else None
    floor = FLOOR if name == FLOOR else AUTH_FLOOR
    return Contender(name, options.floor, question, arguments, floor, rival)


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


def _auths(options):
    """Forward-auth, by address: with the headers that are told unless one says otherwise, with one
    kind of them, and with none, to show what telling costs."""
    kinds = {
        "auth": None,
        "auth-x-ratelimit": "respond: {headers: x-ratelimit}",
        "auth-no-headers": "respond: {headers: []}",
    }
    for name, respond in kinds.items():
        arguments = _serve(name, ["ip"], respond)
        yield Contender(name, options.tidegate, AUTH, arguments, AUTH_FLOOR, None)


def _serve(name, keys, more=None):
    def arguments(port, folder):
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(configuration(keys, RATE, port))
            file.write(f"{more}\n" if more else "")
        return ["serve", "--config", path]

    return arguments


def configuration(keys, rate, port):
    """One limit for each key, all decided in one step."""
    lines = [
        f"listen: {{http: '127.0.0.1:{port}', admin: '127.0.0.1:{free_port()}'}}",
        "policies:",
        "- name: bench",
        "  limits:",
    ]
    for key in keys:
        lines += [f"  - name: per-{key}", f"    key: {key}", f"    rate: {rate}"]
    return "\n".join(lines) + "\n"
