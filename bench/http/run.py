#!/usr/bin/env python3
"""POST /v1/check and GET /v1/auth under load: Tidegate, throttlecrab-server and a floor, in one run.

Servers run on one core and wrk on another. All servers are up all the time and are loaded in turn,
round after round, so that whatever else the machine does meanwhile hits all of them alike.
"""

import argparse
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import load
from contenders import BENCH, RIVAL, contenders
from support import figures
from support.processes import Failed, Server, free_port

HEADER = ["server", "req/s", "±", "p50 ms", "p99 ms", "CPU µs/req", "±"]
HEADER += ["req/s ×", "CPU ×", "of floor", "above floor µs", "RSS MiB", "stolen"]


def options():
    """The command line."""
    main = os.path.dirname(BENCH)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="one round of a second: shows that it works")
    add("--rounds", type=int, help="default: 5")
    add("--seconds", type=int, help="length of a round for each server; default: 4")
    add("--connections", type=int, default=50)
    add("--only", metavar="NAMES", help="servers whose name contains one of these, by commas")
    add("--json", metavar="FILE", help="write every round to this file")
    add("--server-core", type=int, default=0)
    add("--load-core", type=int, default=1)
    add("--tidegate", metavar="PROGRAM", default=f"{main}/target/release/tidegate")
    add("--throttlecrab", metavar="PROGRAM", default="throttlecrab-server")
    add("--floor", metavar="PROGRAM", default=f"{BENCH}/target/release/tidegate-bench-http-floor")
    add("--floor-current-thread", action="store_true", help="default: as ours, multi-thread")
    parsed = parser.parse_args()
    parsed.rounds = parsed.rounds or (1 if parsed.quick else 5)
    parsed.seconds = parsed.seconds or (1 if parsed.quick else 4)
    return parsed


def measure(server, question, settings):
    """One round for one server."""
    cpu_before, waited_before = server.cpu_s(), server.waited_s()
    found = load.run(
        server.port, question, settings.load_core, settings.seconds, settings.connections
    )
    found["cpu_us"] = (server.cpu_s() - cpu_before) / found["requests"] * 1e6
    found["stolen"] = (server.waited_s() - waited_before) / settings.seconds
    found["resident_mib"] = server.resident_mib()
    return found


def measure_all(everybody, settings, folder):
    """Rounds of everybody that is there, and a remark about everybody else."""
    rounds, remarks = {}, {}
    with contextlib.ExitStack() as running:
        servers = {}
        for contender in everybody:
            name, port = contender.name, free_port()
            if settings.only and not any(text in name for text in settings.only.split(",")):
                continue
            rounds[name] = []
            command = contender.command(port, folder)
            if not command:
                remarks[name] = f"absent: no program {contender.program}"
                continue
            try:
                log = os.path.join(folder, f"{name}.log")
                server = running.enter_context(Server(command, settings.server_core, port, log))
                load.probe(port, contender.question)
                load.run(port, contender.question, settings.load_core, 1, settings.connections)
            except Failed as failed:
                remarks[name] = f"failed: {failed}"
                continue
            servers[name] = (server, contender.question)
        for number in range(settings.rounds):
            for name, (server, question) in list(servers.items()):
                print(f"\rround {number + 1}: {name:20}", end="", file=sys.stderr, flush=True)
                try:
                    rounds[name].append(measure(server, question, settings))
                except (Failed, OSError) as failed:
                    remarks[name] = f"failed: {failed}"
                    del servers[name]
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
    return rounds, remarks


def summary(rounds):
    """The medians that the table shows."""
    names = rounds[0].keys()
    found = {name: figures.median(rounds, name) for name in names}
    found["requests_per_s_spread"] = figures.spread(rounds, "requests_per_s")
    found["cpu_us_spread"] = figures.spread(rounds, "cpu_us")
    found["stolen"] = max(each["stolen"] for each in rounds)
    return found


def row(name, found, rival, floor):
    """One line of the table. Ratios are better when larger."""
    above_floor = found["cpu_us"] - floor["cpu_us"] if floor else None
    return [
        name,
        f"{found['requests_per_s']:.0f}",
        figures.percent(found["requests_per_s_spread"]),
        f"{found['p50_ms']:.2f}",
        f"{found['p99_ms']:.2f}",
        f"{found['cpu_us']:.2f}",
        figures.percent(found["cpu_us_spread"]),
        figures.times(found["requests_per_s"], rival.get("requests_per_s")),
        figures.times(rival.get("cpu_us"), found["cpu_us"]),
        figures.times(floor.get("cpu_us"), found["cpu_us"]),
        "-" if above_floor is None else f"{above_floor:.2f}",
        f"{found['resident_mib']:.0f}",
        f"{found['stolen']:.0%}",
    ]


def main():
    """Measures, prints, writes; the exit status tells whether every server that is there worked."""
    settings = options()
    everybody = contenders(settings)
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        rounds, remarks = measure_all(everybody, settings, folder)
    found = {name: summary(each) for name, each in rounds.items() if each and name not in remarks}
    print(figures.machine())
    print(f"{settings.rounds} rounds of {settings.seconds} s, interleaved; medians; servers on core")
    print(f"{settings.server_core}, wrk ({settings.connections} connections) on {settings.load_core};")
    print(f"× is how many times as good as {RIVAL}; ± is (max - min) / median, * above 15 %.\n")
    rows = []
    for contender in everybody:
        name = contender.name
        if name in found:
            rival = found.get(contender.rival, {})
            rows.append(row(name, found[name], rival, found.get(contender.floor, {})))
        elif name in remarks:
            rows.append([name, remarks[name]])
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
