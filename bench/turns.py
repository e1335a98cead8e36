#!/usr/bin/env python3
"""Two checkouts of Tidegate by turns: did a change make anything slower?

Runs the benchmarks of both checkouts alternately, and compares each figure of one round with the same
round of the other, so that a slow minute of the machine counts for both. Both checkouts must be built:

    (cd BEFORE && cargo build --release) && (cd BEFORE/bench && cargo build --release)
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from support import figures

HEADER = ["figure", "before", "±", "after", "±", "after / before", "(min-max)"]

RATIO_MAX = 1.03
"""Above this, a change has made it slower by more than a change may."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("before", metavar="BEFORE", help="a checkout of the commit before the change")
    add("after", metavar="AFTER", help="a checkout with the change")
    add("benches", metavar="BENCH", nargs="*", help="default: all, " + ", ".join(BENCHES))
    add("--rounds", type=int, default=5, help="default: 5")
    add("--json", metavar="FILE", help="write every figure of every round to this file")
    parsed = parser.parse_args()
    unknown = [name for name in parsed.benches if name not in BENCHES]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
    parsed.before, parsed.after = os.path.abspath(parsed.before), os.path.abspath(parsed.after)
    return parsed


def built(checkout, name):
    """A program of the bench workspace of this checkout."""
    return os.path.join(checkout, "bench/target/release", name)


def script(checkout, name):
    """A script of this checkout, with the interpreter that runs this one."""
    return [sys.executable, os.path.join(checkout, "bench", name)]


def inproc(checkout):
    """One decision in process: nanoseconds."""
    cells = "hot-allow/tidegate,hot-deny/tidegate,keys-10k/tidegate,step-"
    command = [built(checkout, "tidegate-bench-inproc"), "--reps", "3", "--filter", cells]

    def read(found):
        for cell in found["cells"]:
            if cell["threads"] == 1:
                yield f"{cell['row']}, {cell['store']}, ns", cell["ns_per_call"]

    return command, read


def tower(checkout):
    """The cost of the layer: nanoseconds above the bare service."""
    command = [built(checkout, "tidegate-bench-tower"), "--filter", "tidegate"]

    def read(found):
        bare = found[0]["ns"]
        for row in found[1:]:
            yield f"{row['name']}, added ns", row["ns"] - bare

    return command, read


def redis(checkout):
    """The Redis store: CPU of Redis and of the client, time of a call alone."""
    command = [built(checkout, "tidegate-bench-redis"), "--rounds", "1"]

    def read(found):
        for section in found["sections"]:
            for cell in section["cells"]:
                if not cell["name"].startswith("tidegate"):
                    continue
                name = f"{section['section']}: {cell['name']}"
                yield f"{name}, Redis µs", cell["redis_us"]
                if cell["client_us"]:
                    yield f"{name}, client µs", cell["client_us"]

    return command, read


def rpc(checkout):
    """Envoy's rate limit service: CPU per call."""
    command = [*script(checkout, "rpc/run.py"), "--rounds", "1", "--only", "tidegate"]

    def read(found):
        for name, median in found["medians"].items():
            if name.startswith("tidegate"):
                yield f"{name}, CPU µs", median["cpu_us"]

    return command, read


def gateway(checkout):
    """Requests through the gateway: CPU per request."""
    command = [*script(checkout, "gateway/run.py"), "--rounds", "1", "--only", "tidegate"]

    def read(found):
        for protocol, part in found.items():
            if protocol == "settings":
                continue
            for name, median in part["medians"].items():
                yield f"{protocol}: {name}, CPU µs", median["cpu_us"]

    return command, read


BENCHES = {each.__name__: each for each in (inproc, tower, redis, rpc, gateway)}


def run(bench, checkout, folder):
    """The figures of one round in one checkout, by name."""
    command, read = bench(checkout)
    path = os.path.join(folder, "found.json")
    done = subprocess.run(
        [*command, "--json", path],
        cwd=os.path.join(checkout, "bench"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not os.path.exists(path):
        sys.exit(f"{' '.join(command)} wrote no figures:\n{done.stdout[-4000:]}")
    with open(path, encoding="utf-8") as file:
        found = dict(read(json.load(file)))
    os.remove(path)
    return found


def compare(bench, settings, folder):
    """All rounds of one benchmark: a list of pairs (before, after) for each figure."""
    pairs = {}
    for number in range(settings.rounds):
        print(f"\r{bench.__name__}: round {number + 1} of {settings.rounds}", end="", file=sys.stderr)
        # Each is first in every second round.
        both = [settings.before, settings.after]
        order = both if number % 2 == 0 else both[::-1]
        found = {checkout: run(bench, checkout, folder) for checkout in order}
        for name, before in found[settings.before].items():
            after = found[settings.after].get(name)
            if after is not None:
                pairs.setdefault(name, []).append({"before": before, "after": after})
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return pairs


def row(name, rounds):
    """One line of the table."""
    ratios = [each["after"] / each["before"] for each in rounds]
    ratio = statistics.median(ratios)
    return [
        name,
        f"{figures.median(rounds, 'before'):.2f}",
        figures.percent(figures.spread(rounds, "before")),
        f"{figures.median(rounds, 'after'):.2f}",
        figures.percent(figures.spread(rounds, "after")),
        f"{ratio:.3f}{' SLOWER' if ratio > RATIO_MAX else ''}",
        f"({min(ratios):.2f}-{max(ratios):.2f})",
    ]


def main():
    """Measures, prints, writes."""
    settings = options()
    print(figures.machine())
    print(f"{settings.rounds} rounds by turns; medians; ± is (max - min) / median, * above 15 %;")
    print("after / before is the median of the rounds' own ratios.")
    content = {"settings": {"machine": figures.machine(), **vars(settings)}}
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        for name in settings.benches or BENCHES:
            pairs = compare(BENCHES[name], settings, folder)
            content[name] = pairs
            print(f"\n{name}\n")
            figures.print_table(HEADER, [row(figure, rounds) for figure, rounds in pairs.items()])
            figures.write_json(settings.json, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
