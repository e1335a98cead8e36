#!/usr/bin/env python3
"""Instructions and copied bytes of one request through the gateway, held to bounds.

Unlike times, these counts do not depend on what else the machine does, so a change can be judged on a shared
machine. The gateway runs twice, for some thousand requests and for three times as many; the
difference of the two runs is the requests alone, without starting and connecting. A count above its bound
fails the run.

Instructions are those of user space, counted by callgrind from when the gateway listens: at its start it
calibrates its clock, which takes some millions more or fewer each time. Copies are calls of memcpy and memmove, counted by
a preloaded library (copies.c).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import generators
import proxies
from support import figures
from support.processes import Failed, Server, pinned

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ["gateway", "instructions", "bound", "copies", "bytes copied", "bound"]

# For a limit by client, of which clients are told nothing, without profile-guided optimisation: a little
# above what is counted.
BOUNDS = {
    "HTTP/1.1": {"instructions": 25_500, "bytes": 6_500},
    "HTTP/2": {"instructions": 38_500, "bytes": 21_000},
}
NO_BOUND = float("inf")
CLIENTS = {
    "HTTP/1.1": ["--h1", "--clients=50"],
    "HTTP/2": ["--clients=10", f"--max-concurrent-streams={generators.HTTP2_STREAMS}"],
}


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--requests", type=int, default=5_000, help="of the shorter run; default: 5000")
    add("--profile", metavar="FOLDER", help="keep callgrind's output there")
    proxies.add_options(add)
    return parser.parse_args()


def library(folder):
    """The library that counts copies."""
    made = os.path.join(folder, "copies.so")
    compiler = shutil.which("cc")
    if not compiler:
        raise proxies.Absent("absent: no program cc")
    # Or the compiler would write the loops as calls of the functions that they are.
    flags = ["-O2", "-shared", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]
    subprocess.run([compiler, *flags, os.path.join(HERE, "copies.c"), "-o", made], check=True)
    return made


def load(place, protocol, requests, settings):
    """So many requests of one client, all of which must pass."""
    command = ["h2load", "--threads=1", f"--requests={requests}", *CLIENTS[protocol]]
    for header in generators.QUESTION.headers:
        command += ["--header", header.replace("USER", "user-00000001")]
    command += [f"http://127.0.0.1:{place.http1}/"]
    done = subprocess.run(
        pinned(settings.load_core, command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    codes = re.search(r"status codes: (\d+) 2xx", done.stdout)
    if not codes or int(codes.group(1)) != requests:
        raise Failed(f"h2load: {done.stdout[-500:]}")


def run(contender, protocol, requests, settings, folder, upstream, before, environment, ready):
    """One run of the gateway by the command `before`. Calls `ready` with its process id once it listens."""
    place = proxies.site(folder, upstream, 1000, same_port=True)
    os.makedirs(folder, exist_ok=True)
    arguments = contender.arguments(place, proxies.GENEROUS)
    command = [*before, proxies.program(settings, "tidegate"), *arguments]
    log = os.path.join(folder, "output.log")
    environment = [f"{name}={value}" for name, value in environment.items()]
    with Server(["env", *environment, *command], settings.proxy_core, place.http1, log) as gateway:
        ready(gateway.pid)
        load(place, protocol, requests, settings)


def instructions(contender, protocol, requests, settings, folder, upstream):
    """All instructions of a run."""
    name = f"callgrind.{contender.name}.{protocol[5:]}.{requests}"
    out = os.path.join(settings.profile or folder, name)
    before = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
    before += [f"--callgrind-out-file={out}"]
    run(contender, protocol, requests, settings, folder, upstream, before, {}, count_from_here)
    with open(out, encoding="utf-8") as told:
        return [int(re.search(r"^totals: (\d+)$", told.read(), re.MULTILINE).group(1))]


def count_from_here(pid):
    """Has callgrind count what this process does from now on."""
    command = ["callgrind_control", "--instr=on", str(pid)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)


def copies(contender, protocol, requests, settings, folder, upstream):
    """All calls and bytes of a run."""
    out = os.path.join(folder, "copies")
    environment = {"LD_PRELOAD": os.path.join(os.path.dirname(folder), "copies.so"), "COPIES": out}
    run(contender, protocol, requests, settings, folder, upstream, [], environment, lambda _: None)
    with open(out, encoding="utf-8") as told:
        return [int(number) for number in told.read().split()]


def each_request(count, contender, protocol, settings, folder, upstream):
    """What one request adds."""
    few, many = settings.requests, settings.requests * 3
    found = []
    for requests in few, many:
        own = os.path.join(folder, f"{count.__name__}-{contender.name}-{protocol[5:]}-{requests}")
        found.append(count(contender, protocol, requests, settings, own, upstream))
    return [(after - before) / (many - few) for before, after in zip(*found)]


def shown(bound):
    """A bound as it stands in the table."""
    return "-" if bound == NO_BOUND else f"{bound:,}"


def main():
    """Counts, tells, and holds what is told to its bounds."""
    settings = options()
    if settings.profile:
        os.makedirs(settings.profile, exist_ok=True)
    if not shutil.which("valgrind"):
        raise proxies.Absent("absent: no program valgrind")
    if not proxies.program(settings, "tidegate"):
        raise proxies.Absent("absent: no program tidegate")
    rows, too_many, told = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        library(folder)
        place = os.path.join(folder, "upstream")
        with proxies.start_upstream(settings, place, 1000) as upstream:
            for contender in proxies.chosen(settings, f"={proxies.OURS}"):
                for protocol, bounds in BOUNDS.items():
                    counted = (contender, protocol, settings, folder, upstream.port)
                    [ran] = each_request(instructions, *counted)
                    calls, copied = each_request(copies, *counted)
                    is_bound = contender.name == proxies.OURS
                    limit = bounds if is_bound else dict.fromkeys(bounds, NO_BOUND)
                    name = f"{contender.name}, {protocol}"
                    rows.append([name, f"{ran:,.0f}", shown(limit["instructions"])])
                    rows[-1] += [f"{calls:.0f}", f"{copied:,.0f}", shown(limit["bytes"])]
                    told[name] = {"instructions": ran, "copies": calls, "bytes": copied}
                    if ran > limit["instructions"] or copied > limit["bytes"]:
                        too_many.append(name)
    figures.print_table(HEADER, rows)
    figures.write_json(settings.json, told)
    if too_many:
        raise Failed(f"above its bound: {'; '.join(too_many)}")


if __name__ == "__main__":
    try:
        main()
    except (Failed, proxies.Absent, subprocess.SubprocessError) as failed:
        sys.exit(str(failed))
