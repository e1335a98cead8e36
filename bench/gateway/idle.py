#!/usr/bin/env python3
"""What 10 000 idle keep-alive connections cost each proxy in memory, after one request on each.

Opened, asked, looked at; closed, and all of it once more: memory that a second time needs as well
was not kept for the next time, it leaked. Bytes are of the proxy's own memory, not the kernel's.
"""

import argparse
import contextlib
import os
import resource
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import probe
import proxies
from configs import USER_HEADER
from support import figures
from support.processes import Failed

HEADER = ["proxy", "before MiB", "open MiB", "bytes/conn", "closed MiB", "again MiB", "again ×"]

DEFAULT = "=tidegate-limit,=nginx-limit,=haproxy-limit,=envoy-limit,=bare"
REQUEST = f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{USER_HEADER}: idle\r\n\r\n".encode()
SOURCES = 20
"""Addresses that connections come from: each has ports of its own."""
WARM_UP = 200
SPARE = 2000
"""Files that a proxy has open beside its clients' connections, and more."""
SAMPLE_EVERY = 100
LOOK_S = 0.5
LOOKS_MAX = 20
IP_BIND_ADDRESS_NO_PORT = 24
"""Leaves the choice of a port to connect, which knows which ones are free for this destination."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--connections", type=int, default=10_000)
    add("--quick", action="store_true", help="500 connections: shows that it works")
    proxies.add_options(add)
    parsed = parser.parse_args()
    if parsed.quick:
        parsed.connections = 500
    return parsed


def may_open(count):
    """Lets us, and all that we start, open so many files; gives back whether that is permitted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = max(count, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    except (ValueError, OSError):
        return False
    return True


def connect(port, number):
    """One more connection, from one of our addresses."""
    connection = socket.socket()
    try:
        connection.settimeout(10)
        connection.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind((f"127.0.0.{2 + number % SOURCES}", 0))
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


def ask(connection):
    """One request and its whole answer; the connection stays."""
    connection.sendall(REQUEST)
    answer = b""
    while not answer.endswith(proxies.BODY.encode()):
        piece = connection.recv(4096)
        if not piece:
            raise Failed(f"closed the connection after {answer[:200]!r}")
        answer += piece
        if not answer.startswith(b"HTTP/1.1 200 "[: len(answer)]):
            raise Failed(f"answered {answer[:200]!r}")


def open_all(port, count, opened):
    """So many connections, each with a request."""
    for number in range(count):
        connection = opened.enter_context(connect(port, number))
        ask(connection)
        yield connection


def settled_mib(server):
    """The memory, once it rests: many give back what they no longer need a little later."""
    last = server.resident_mib()
    for _ in range(LOOKS_MAX):
        time.sleep(LOOK_S)
        now = server.resident_mib()
        if abs(now - last) < 0.05:
            return now
        last = now
    return last


def held(server, port, count):
    """Memory with all connections open and idle, and after they were closed."""
    with contextlib.ExitStack() as opened:
        connections = list(open_all(port, count, opened))
        mib = settled_mib(server)
        # They must be there still, or this was the memory of nothing.
        for connection in connections[::SAMPLE_EVERY]:
            ask(connection)
    return mib, settled_mib(server)


def measure(contender, settings, folder, upstream):
    """One proxy, alone."""
    count = settings.connections
    place = proxies.site(os.path.join(folder, contender.name), upstream, count + SPARE // 2)
    with proxies.start(contender, proxies.GENEROUS, settings, place) as server:
        probe.passes(place.http1, proxies.BODY, contender.tells)
        held(server, place.http1, WARM_UP)
        before = settled_mib(server)
        first, closed = held(server, place.http1, count)
        again, _ = held(server, place.http1, count)
    return {
        "before_mib": before,
        "open_mib": first,
        "closed_mib": closed,
        "again_mib": again,
        "bytes_per_connection": (first - before) * 2**20 / count,
    }


def row(name, found):
    """One line of the table."""
    return [
        name,
        f"{found['before_mib']:.1f}",
        f"{found['open_mib']:.1f}",
        f"{found['bytes_per_connection']:.0f}",
        f"{found['closed_mib']:.1f}",
        f"{found['again_mib']:.1f}",
        figures.times(found["again_mib"], found["open_mib"]),
    ]


def main():
    """Measures, prints, writes; the exit status tells whether every proxy that is there worked."""
    settings = options()
    files = settings.connections + SPARE
    if not may_open(files):
        print(f"skipped: may not open {files} files (ulimit -n)")
        return 0
    os.sched_setaffinity(0, {settings.load_core})
    found, remarks, rows = {}, {}, []
    with contextlib.ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-"))
        try:
            at = os.path.join(folder, "upstream")
            upstream = running.enter_context(proxies.start_upstream(settings, at, 1000)).port
        except proxies.Absent as absent:
            print(absent)
            return 1
        for contender in proxies.chosen(settings, DEFAULT):
            name = contender.name
            print(f"\r{name:20}", end="", file=sys.stderr, flush=True)
            try:
                found[name] = measure(contender, settings, folder, upstream)
                rows.append(row(name, found[name]))
            except proxies.Absent as absent:
                remarks[name] = str(absent)
            except (Failed, OSError) as failed:
                remarks[name] = proxies.one_line(f"failed: {failed}")
    print("\r" + " " * 20 + "\r", end="", file=sys.stderr, flush=True)
    print(figures.machine())
    print(f"{settings.connections} connections, idle after one request each\n")
    figures.print_table(HEADER, rows + [list(remark) for remark in remarks.items()])
    figures.write_json(settings.json, {"found": found, "remarks": remarks})
    return int(any(remark.startswith("failed") for remark in remarks.values()))


if __name__ == "__main__":
    sys.exit(main())
