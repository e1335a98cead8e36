#!/usr/bin/env python3
"""Envoy's rate limit service under load: Tidegate, a tonic server with a constant answer, and peers.

Servers run on one core and the load on another. All are up all the time and are loaded in turn, round
after round, so that whatever else the machine does meanwhile hits all of them alike. Each round is one
run as fast as the server answers, and one at a fixed rate, whose latencies are told.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from contenders import BENCH, FLOOR, contenders
from support import figures
from support.processes import Failed, Server, free_port, pinned

HEADER = ["server", "calls/s", "±", "CPU µs/call", "±", "of floor", "RSS MiB", "stolen"]
HEADER += ["p50 ms", "p99 ms", "p99.9 ms", "failed"]


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


def load(settings, contender, port, *more):
    """One run of the load; fails if more than a call in a thousand did."""
    command = [settings.load, "--port", port, "--path", contender.path]
    command += ["--message", contender.message.hex(), "--connections", settings.connections]
    command += ["--streams", settings.streams, *more]
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
    paced = load(settings, contender, server.port, *at_rate)
    found["failed"] += paced["failed"]
    return found | {name: paced[name] for name in ("p50_ms", "p99_ms", "p999_ms")}


def start(contender, settings, folder, running):
    """The server, once it has answered for a moment."""
    port = free_port()
    command = contender.command(port, folder)
    if not command:
        raise LookupError(f"absent: no program {contender.program}")
    os.environ.update(contender.environment)
    log = os.path.join(folder, f"{contender.name}.log")
    server = running.enter_context(Server(command, settings.server_core, port, log))
    load(settings, contender, port, "--calls", 2_000)
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
            servers[name] = (start(contender, settings, folder, running), contender)
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


def redis(settings, folder, running):
    """A Redis beside the load, if one is there."""
    if settings.no_redis:
        return None
    port = free_port()
    command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
    try:
        log = os.path.join(folder, "redis.log")
        running.enter_context(Server(command, settings.load_core, port, log))
    except (Failed, OSError):
        return None
    return f"127.0.0.1:{port}"


def summary(rounds):
    """The medians that the table shows."""
    names = [name for name in rounds[0] if name not in ("first", "why")]
    found = {name: figures.median(rounds, name) for name in names}
    found["requests_per_s_spread"] = figures.spread(rounds, "requests_per_s")
    found["cpu_us_spread"] = figures.spread(rounds, "cpu_us")
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
        f"{found['p50_ms']:.2f}",
        f"{found['p99_ms']:.2f}",
        f"{found['p999_ms']:.2f}",
        f"{found['failed']:.0f}",
    ]


def main():
    """Measures, prints, writes; the exit status tells whether every server that is there worked."""
    settings = options()
    with contextlib.ExitStack() as running:
        temporary = tempfile.TemporaryDirectory(prefix="tidegate-bench-")
        folder = running.enter_context(temporary)
        settings.redis = redis(settings, folder, running)
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
    content = {
        "settings": {"machine": figures.machine(), **vars(settings)},
        "medians": found,
        "rounds": rounds,
        "remarks": remarks,
    }
    figures.write_json(settings.json, content)
    return int(any(remark.startswith("failed") for remark in remarks.values()))


if __name__ == "__main__":
    sys.exit(main())
