#!/usr/bin/env python3
"""Envoy's rate limit service under load: Tidegate, a tonic server with a constant answer, and peers.

Servers run on one core and the load on another. All are up all the time and are loaded in turn, round
after round, so that whatever else the machine does meanwhile hits all of them alike. Each round is one
run as fast as the server answers, and one at a fixed rate, whose latencies are told. Before that, each
has to refuse somebody.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from contenders import BENCH, FLOOR, contenders
from support import figures
from support.processes import Failed, Server, free_port, pinned

HEADER = ["server", "calls/s", "±", "CPU µs/call", "±", "of floor", "RSS MiB", "stolen"]
HEADER += ["p50 ms", "p99 ms", "p99.9 ms", "(min-max)", "failed"]

# The first field of a `RateLimitResponse`: OK, OVER_LIMIT.
PASSED, REFUSED = "0801", "0802"
# How many may pass while it is tried whether a server refuses, and how many ask.
STRICT, ASK = 5, 50
# Enough for each of 10 000 keys to be there before anything is measured.
WARM = 100_000

# What `verdicts` compares by CPU: ours, whose, and how many times as cheap ours should be.
BARS = [
    ("tidegate", FLOOR, 0.85),
    ("tidegate", "limitador", 1.4),
    ("tidegate-redis", "limitador-redis-cached", 2.0),
]


def options():
    """The command line."""
    main, built = os.path.dirname(BENCH), os.path.join(BENCH, "target/release")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="one round of a second: shows that it works")
    add("--rounds", type=int, help="default: 5")
    add("--seconds", type=float, help="length of each run; default: 4")
    add("--connections", type=int, default=10)
    add("--streams", type=int, default=10, help="calls at a time on each connection")
    add("--rate", type=int, default=10_000, help="calls a second at which latencies are taken")
    add("--only", metavar="NAMES", help="servers whose name contains one of these, by commas")
    add("--json", metavar="FILE", help="write every round to this file")
    add("--server-core", type=int, default=0)
    add("--load-core", type=int, default=1)
    add("--no-redis", action="store_true", help="leave out those that need a Redis")
    add("--tidegate", metavar="PROGRAM", default=f"{main}/target/release/tidegate")
    add("--floor", metavar="PROGRAM", default=f"{built}/tidegate-bench-rpc-floor")
    add("--load", metavar="PROGRAM", default=f"{built}/tidegate-bench-rpc-load")
    add("--limitador", metavar="PROGRAM", default="limitador-server")
    add("--ratelimit", metavar="PROGRAM", default="service_cmd", help="envoyproxy/ratelimit")
    add("--gubernator", metavar="PROGRAM", default="gubernator")
    parsed = parser.parse_args()
    parsed.rounds = parsed.rounds or (1 if parsed.quick else 5)
    parsed.seconds = parsed.seconds or (1 if parsed.quick else 4)
    return parsed


def load(settings, contender, port, *more, is_one_by_one=False):
    """One run of the load; fails if more than a call in a thousand did."""
    connections, streams = settings.connections, settings.streams
    if is_one_by_one:
        connections, streams = 1, 1
    command = [settings.load, "--port", port, "--path", contender.path]
    command += ["--message", contender.message.hex(), "--connections", connections]
    command += ["--streams", streams, *more]
    done = subprocess.run(
        pinned(settings.load_core, command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=settings.seconds + 60,
        check=False,
    )
    if done.returncode:
        raise Failed(f"the load: {done.stderr.strip()[-300:]}")
    found = json.loads(done.stdout)
    if found["failed"] * 1_000 > found["requests"]:
        raise Failed(f"{found['failed']} of {found['requests']} calls failed: {found['why']}")
    return found


def measure(server, contender, settings):
    """One round for one server."""
    cpu_before, waited_before = server.cpu_s(), server.waited_s()
    found = load(settings, contender, server.port, "--seconds", settings.seconds)
    found["cpu_us"] = (server.cpu_s() - cpu_before) / found["requests"] * 1e6
    found["stolen"] = (server.waited_s() - waited_before) / settings.seconds
    found["resident_mib"] = server.resident_mib()
    at_rate = ["--seconds", settings.seconds, "--rate", settings.rate]
    at_rate += ["--gives-way"] if contender.redis else []
    paced = load(settings, contender, server.port, *at_rate)
    found["failed"] += paced["failed"]
    return found | {name: paced[name] for name in ("p50_ms", "p99_ms", "p999_ms")}


def start(contender, settings, folder, running, **amount):
    """The server, once it listens."""
    port = free_port()
    command = contender.command(port, folder, **amount)
    if not command:
        raise LookupError(f"absent: no program {contender.program}")
    log = os.path.join(folder, f"{contender.name}.log")
    return running.enter_context(Server(command, settings.server_core, port, log))


def refuses(contender, settings, folder):
    """Fails unless a server with a strict limit lets the first call of a key pass, and not the last."""
    with contextlib.ExitStack() as running:
        settings.redis.running = running
        server = start(contender, settings, folder, running, amount=STRICT)
        asked = ["--keys", 1, "--calls", ASK]
        found = load(settings, contender, server.port, *asked, is_one_by_one=True)
    if not found["first"].startswith(PASSED) or not found["last"].startswith(REFUSED):
        raise Failed(f"does not decide: {found['first']} at first and {found['last']} at last")


def ready(contender, settings, folder, running):
    """The server, once it is known to decide and has answered for a moment."""
    if contender.decides:
        refuses(contender, settings, folder)
    settings.redis.running = running
    server = start(contender, settings, folder, running)
    load(settings, contender, server.port, "--calls", WARM)
    return server


def measure_all(everybody, settings, folder, running):
    """Rounds of everybody that is there, and a remark about everybody else."""
    rounds, remarks, servers = {}, {}, {}
    for contender in everybody:
        name = contender.name
        if settings.only and not any(text in name for text in settings.only.split(",")):
            continue
        rounds[name] = []
        try:
            servers[name] = (ready(contender, settings, folder, running), contender)
        except LookupError as absent:
            remarks[name] = str(absent)
        except (Failed, OSError, subprocess.SubprocessError) as failed:
            remarks[name] = f"failed: {failed}"
    for number in range(settings.rounds):
        for name, (server, contender) in list(servers.items()):
            print(f"\rround {number + 1}: {name:24}", end="", file=sys.stderr, flush=True)
            try:
                rounds[name].append(measure(server, contender, settings))
            except (Failed, OSError, subprocess.SubprocessError) as failed:
                remarks[name] = f"failed: {failed}"
                del servers[name]
    print("\r" + " " * 44 + "\r", end="", file=sys.stderr, flush=True)
    return rounds, remarks


class Redises:
    """Starts a Redis beside the load for whoever asks, and tells its address."""

    def __init__(self, settings, folder):
        self._settings, self._folder = settings, folder
        self.running = None
        """What the next one ends with."""

    def __call__(self):
        port = free_port()
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
        if not shutil.which(command[0]):
            raise LookupError(f"absent: no program {command[0]}")
        log = os.path.join(self._folder, f"redis-{port}.log")
        self.running.enter_context(Server(command, self._settings.load_core, port, log))
        return f"127.0.0.1:{port}"


def summary(rounds):
    """The medians that the table shows."""
    names = [name for name in rounds[0] if name not in ("first", "last", "why")]
    found = {name: figures.median(rounds, name) for name in names}
    found["requests_per_s_spread"] = figures.spread(rounds, "requests_per_s")
    found["cpu_us_spread"] = figures.spread(rounds, "cpu_us")
    found["p999_least_ms"] = min(each["p999_ms"] for each in rounds)
    found["p999_most_ms"] = max(each["p999_ms"] for each in rounds)
    found["stolen"] = max(each["stolen"] for each in rounds)
    found["failed"] = sum(each["failed"] for each in rounds)
    return found


def row(name, found, floor):
    """One line of the table. The ratio is better when larger."""
    return [
        name,
        f"{found['requests_per_s']:.0f}",
        figures.percent(found["requests_per_s_spread"]),
        f"{found['cpu_us']:.2f}",
        figures.percent(found["cpu_us_spread"]),
        figures.times(floor.get("cpu_us"), found["cpu_us"]),
        f"{found['resident_mib']:.0f}",
        f"{found['stolen']:.0%}",
        f"{found['p50_ms']:.3f}",
        f"{found['p99_ms']:.3f}",
        f"{found['p999_ms']:.3f}",
        f"({found['p999_least_ms']:.3f}-{found['p999_most_ms']:.3f})",
        f"{found['failed']:.0f}",
    ]


def verdicts(rounds, remarks):
    """A line for each bar: the median of the rounds' own ratios, so that a slow minute counts for both."""
    for ours, theirs, bar in BARS:
        if any(not rounds.get(name) or name in remarks for name in (ours, theirs)):
            continue
        pairs = zip(rounds[ours], rounds[theirs])
        ratios = [other["cpu_us"] / mine["cpu_us"] for mine, other in pairs]
        middle = statistics.median(ratios)
        said = "met" if middle >= bar else "MISSED"
        span = f"{min(ratios):.2f}-{max(ratios):.2f}"
        yield f"{said}: {ours} costs 1/{middle:.2f} of {theirs} ({span}; bar {bar})"


def main():
    """Measures, prints, writes; the exit status tells whether every server that is there worked."""
    settings = options()
    with contextlib.ExitStack() as running:
        temporary = tempfile.TemporaryDirectory(prefix="tidegate-bench-")
        folder = running.enter_context(temporary)
        settings.redis = Redises(settings, folder)
        everybody = list(contenders(settings))
        rounds, remarks = measure_all(everybody, settings, folder, running)
    found = {name: summary(each) for name, each in rounds.items() if each and name not in remarks}
    print(figures.machine())
    print(f"{settings.rounds} rounds of {settings.seconds} s, interleaved; medians; servers on core")
    print(f"{settings.server_core}; load ({settings.connections} connections x {settings.streams}")
    print(f"calls) on {settings.load_core}; latencies at {settings.rate} calls a second; 'of floor' is")
    print(f"the CPU of {FLOOR} to that of the server; ± is (max - min) / median, * above 15 %.\n")
    rows = []
    for name in rounds:
        if name in found:
            floor = FLOOR + "-two" if name.endswith("-two") else FLOOR
            rows.append(row(name, found[name], found.get(floor, {})))
        else:
            rows.append([name, remarks.get(name, "nothing")])
    figures.print_table(HEADER, rows)
    print("", *verdicts(rounds, remarks), sep="\n")
    told = {name: value for name, value in vars(settings).items() if name != "redis"}
    content = {
        "settings": {"machine": figures.machine(), **told},
        "medians": found,
        "rounds": rounds,
        "remarks": remarks,
    }
    figures.write_json(settings.json, content)
    return int(any(remark.startswith("failed") for remark in remarks.values()))


if __name__ == "__main__":
    sys.exit(main())
