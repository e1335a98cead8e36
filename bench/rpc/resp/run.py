#!/usr/bin/env python3
"""CL.THROTTLE under load: Tidegate, redis-cell in Redis, and throttlecrab-server, in one run.

Servers run on one core and redis-benchmark on another. All servers are up all the time and are loaded
in turn, round after round, so that whatever else the machine does meanwhile hits all of them alike. Then
each is called at a fixed rate by `rpc/load`, in rounds as well, and these latencies are told by themselves:
redis-benchmark asks again when it was answered, and so spares a server that stalls.
"""

import argparse
import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, BENCH)

from contenders import contenders, encoded
from support import figures
from support.processes import Failed, Server, free_port, pinned

DEPTHS = [1, 16, 64]
AT_A_RATE = "paced"
HEADER = ["server", "depth", "calls/s", "±", "p50 ms", "p99 ms", "CPU µs/call", "±", "CPU ×", "stolen"]
PACED = ["server", "calls/s", "p50 ms", "p99 ms", "p99.9 ms", "(min-max)", "CPU µs/call", "±", "failed"]


def options():
    """The command line."""
    main = os.path.dirname(BENCH)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round: shows that it works")
    add("--rounds", type=int, help="default: 5")
    add("--calls", type=int, help="calls of a round at depth 1; more at greater depths")
    add("--connections", type=int, default=50)
    add("--keys", type=int, default=10_000)
    add("--rate", type=int, default=10_000, help="calls a second at the fixed rate")
    add("--seconds", type=float, help="length of a round at the fixed rate; default: 4")
    add("--only", metavar="NAMES", help="servers whose name contains one of these, by commas")
    add("--depths", metavar="NUMBERS", default=",".join(map(str, DEPTHS)))
    add("--json", metavar="FILE", help="write every round to this file")
    add("--server-core", type=int, default=0)
    add("--load-core", type=int, default=1)
    add("--tidegate", metavar="PROGRAM", default=f"{main}/target/release/tidegate")
    add("--load", metavar="PROGRAM", default=f"{BENCH}/target/release/tidegate-bench-rpc-load")
    add("--throttlecrab", metavar="PROGRAM", default="throttlecrab-server")
    add("--redis-server", metavar="PROGRAM", default="redis-server")
    add("--redis-cell", metavar="FILE", default="libredis_cell.so", help="the module")
    parsed = parser.parse_args()
    parsed.rounds = parsed.rounds or (1 if parsed.quick else 5)
    parsed.calls = parsed.calls or (20_000 if parsed.quick else 150_000)
    parsed.seconds = parsed.seconds or (1 if parsed.quick else 4)
    return parsed


def load(server, command, depth, settings):
    """One round of redis-benchmark for one server."""
    calls = settings.calls * {1: 1}.get(depth, 4)
    arguments = ["redis-benchmark", "-p", server.port, "-c", settings.connections, "-P", depth]
    arguments += ["-n", calls, "-r", settings.keys, "--csv", *command]
    cpu_before, waited_before = server.cpu_s(), server.waited_s()
    ran = subprocess.run(
        pinned(settings.load_core, arguments), capture_output=True, text=True, check=False
    )
    cpu_s, waited_s = server.cpu_s() - cpu_before, server.waited_s() - waited_before
    lines = [line for line in ran.stdout.splitlines() if line.startswith('"')]
    if ran.returncode or len(lines) < 2:
        raise Failed(f"redis-benchmark: {ran.stdout[-300:]}{ran.stderr[-300:]}")
    names, values = csv.reader(lines[-2:])
    found = dict(zip(names, values))
    per_s = float(found["rps"])
    return {
        "calls_per_s": per_s,
        "p50_ms": float(found["p50_latency_ms"]),
        "p99_ms": float(found["p99_latency_ms"]),
        "cpu_us": cpu_s / calls * 1e6,
        "stolen": waited_s / (calls / per_s),
    }


def paced(server, contender, settings):
    """One round at the fixed rate for one server."""
    message = encoded(contender.call).encode().hex()
    arguments = [settings.load, "--resp", "--port", server.port, "--message", message]
    arguments += ["--connections", settings.connections, "--keys", settings.keys]
    arguments += ["--seconds", settings.seconds, "--rate", settings.rate]
    arguments += ["--gives-way"] if contender.redis else []
    cpu_before = server.cpu_s()
    ran = subprocess.run(
        pinned(settings.load_core, arguments), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise Failed(f"the load: {ran.stderr.strip()[-300:]}")
    found = json.loads(ran.stdout)
    if found["failed"] * 1_000 > found["requests"]:
        raise Failed(f"{found['failed']} of {found['requests']} calls failed: {found['why']}")
    return found | {"cpu_us": (server.cpu_s() - cpu_before) / found["requests"] * 1e6}


def measure_all(settings, folder):
    """Rounds of everybody that is there, and a remark about everybody else."""
    rounds, remarks = {}, {}
    depths = [int(depth) for depth in settings.depths.split(",")]
    with contextlib.ExitStack() as running:
        servers = {}
        for contender in contenders(settings):
            name, port = contender.name, free_port()
            if settings.only and not any(text in name for text in settings.only.split(",")):
                continue
            command = contender.start(port, folder, running)
            if not command:
                remarks[name] = f"absent: {contender.wants}"
                continue
            try:
                log = os.path.join(folder, f"{name.replace(' ', '-')}.log")
                server = running.enter_context(Server(command, settings.server_core, port, log))
                # Every key is there before anything is measured.
                load(server, contender.call, 16, settings)
            except Failed as failed:
                remarks[name] = f"failed: {failed}"
                continue
            servers[name] = (server, contender)
        for number in range(settings.rounds):
            for depth in [*depths, AT_A_RATE]:
                for name, (server, contender) in servers.items():
                    print(f"\rround {number + 1}: {name:24} {depth:6}", end="", file=sys.stderr)
                    found = (
                        paced(server, contender, settings)
                        if depth == AT_A_RATE
                        else load(server, contender.call, depth, settings)
                    )
                    rounds.setdefault((name, depth), []).append(found)
        print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return rounds, remarks


def row(name, found):
    """One line of the table of the fixed rate."""
    worst = [each["p999_ms"] for each in found]
    return [
        name,
        f"{figures.median(found, 'requests_per_s'):.0f}",
        f"{figures.median(found, 'p50_ms'):.3f}",
        f"{figures.median(found, 'p99_ms'):.3f}",
        f"{figures.median(found, 'p999_ms'):.3f}",
        f"({min(worst):.3f}-{max(worst):.3f})",
        f"{figures.median(found, 'cpu_us'):.2f}",
        figures.percent(figures.spread(found, "cpu_us")),
        f"{sum(each['failed'] for each in found)}",
    ]


def main():
    """Measures and shows."""
    settings = options()
    with tempfile.TemporaryDirectory() as folder:
        rounds, remarks = measure_all(settings, folder)
    pipelined = {each: found for each, found in rounds.items() if each[1] != AT_A_RATE}
    rows = []
    for (name, depth), found in sorted(pipelined.items(), key=lambda it: (it[0][1], it[0][0])):
        cpu = figures.median(found, "cpu_us")
        ours = rounds.get(("tidegate", depth))
        ratio = cpu / figures.median(ours, "cpu_us") if ours else None
        rows.append(
            [
                name,
                str(depth),
                f"{figures.median(found, 'calls_per_s'):.0f}",
                figures.percent(figures.spread(found, "calls_per_s")),
                f"{figures.median(found, 'p50_ms'):.2f}",
                f"{figures.median(found, 'p99_ms'):.2f}",
                f"{cpu:.2f}",
                figures.percent(figures.spread(found, "cpu_us")),
                "-" if ratio is None else f"{ratio:.2f}",
                figures.percent(max(each["stolen"] for each in found)),
            ]
        )
    print(figures.machine())
    figures.print_table(HEADER, rows)
    print(f"\nAt {settings.rate} calls a second; a call's time begins when it was due:\n")
    paced_rows = [row(name, found) for (name, depth), found in rounds.items() if depth == AT_A_RATE]
    figures.print_table(PACED, paced_rows)
    for name, remark in remarks.items():
        print(f"{name}: {remark}")
    if settings.json:
        content = {f"{name} {depth}": found for (name, depth), found in rounds.items()}
        figures.write_json(settings.json, content)


if __name__ == "__main__":
    main()
