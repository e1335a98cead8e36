#!/usr/bin/env python3
"""How many lines a second `tidegate simulate` decides on one core, and in how much memory."""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.path.insert(0, BENCH)

import generate
from support import figures
from support.processes import Failed, PeakMemory, pinned

CONFIGS = os.path.join(HERE, "configs")
HEADER = ["configuration", "lines/s", "±", "CPU µs/line", "±", "peak RSS MiB", "allowed"]


def options():
    """The command line."""
    main = os.path.dirname(BENCH)
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--core", type=int, default=1)
    add("--only", metavar="NAMES", help="configurations whose name contains one of these")
    add("--json", metavar="FILE", help="write every round to this file")
    add("--tidegate", metavar="PROGRAM", default=f"{main}/target/release/tidegate")
    add("--timeout", type=int, default=120, metavar="S", help="for one run")
    generate.add_options(parser)
    return parser.parse_args()


def simulate(settings, config, trace, folder):
    """One run: what it took, and what it printed."""
    command = [settings.tidegate, "simulate", "--config", config, "--trace", trace]
    out_path, err_path = os.path.join(folder, "decisions"), os.path.join(folder, "log")
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(
            pinned(settings.core, command), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        memory = PeakMemory(process.pid, settings.timeout, process.kill)
        memory.start()
        # wait4 alone tells what this one child took.
        _, status, usage = os.wait4(process.pid, 0)
        elapsed_s = time.monotonic() - started
        peak_mib = memory.end()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        with open(err_path, encoding="utf-8", errors="replace") as err:
            raise Failed(f"status {process.returncode}: {err.read().strip()[-500:]}")
    lines, allowed, digest = read_decisions(out_path)
    if lines != settings.lines:
        raise Failed(f"{lines} decisions for {settings.lines} lines")
    return {
        "lines_per_s": lines / elapsed_s,
        "cpu_us": (usage.ru_utime + usage.ru_stime) / lines * 1e6,
        "peak_mib": peak_mib,
        "allowed": allowed / lines,
        "digest": digest,
    }


def read_decisions(path):
    """How many lines, how many of them allow, and a digest of all."""
    lines, allowed, digest = 0, 0, hashlib.sha256()
    with open(path, "rb") as decisions:
        for line in decisions:
            lines += 1
            allowed += b'"allowed":true' in line.replace(b" ", b"")
            digest.update(line)
    return lines, allowed, digest.hexdigest()


def measure_all(settings, configs, folder):
    """Rounds of every configuration, interleaved."""
    trace = os.path.join(folder, "trace.jsonl")
    print(f"writing a trace of {settings.lines} lines ...", file=sys.stderr)
    generate.write(trace, settings.lines, settings.clients, settings.per_second, settings.seed)
    rounds = {name: [] for name in configs}
    for _ in range(settings.rounds):
        for name in configs:
            config = os.path.join(CONFIGS, f"{name}.yaml")
            rounds[name].append(simulate(settings, config, trace, folder))
    for name, each in rounds.items():
        if len({found["digest"] for found in each}) > 1:
            raise Failed(f"{name}: the same trace was decided differently in two rounds")
    return rounds


def row(name, rounds):
    """One line of the table."""
    return [
        name,
        f"{figures.median(rounds, 'lines_per_s'):.0f}",
        figures.percent(figures.spread(rounds, "lines_per_s")),
        f"{figures.median(rounds, 'cpu_us'):.3f}",
        figures.percent(figures.spread(rounds, "cpu_us")),
        f"{figures.median(rounds, 'peak_mib'):.1f}",
        f"{figures.median(rounds, 'allowed'):.1%}",
    ]


def main():
    """Measures, prints, writes."""
    settings = options()
    if not os.access(settings.tidegate, os.X_OK):
        sys.exit(f"no program {settings.tidegate}: cargo build --release first")
    configs = sorted(name.removesuffix(".yaml") for name in os.listdir(CONFIGS))
    if settings.only:
        wanted = settings.only.split(",")
        configs = [name for name in configs if any(text in name for text in wanted)]
    try:
        with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
            rounds = measure_all(settings, configs, folder)
    except Failed as failed:
        sys.exit(f"simulate failed: {failed}")
    print(figures.machine())
    print(f"{settings.rounds} rounds of {settings.lines} lines, interleaved, on core {settings.core};")
    print("medians; ± is (max - min) / median, * above 15 %.\n")
    figures.print_table(HEADER, [row(name, each) for name, each in rounds.items()])
    content = {"settings": {"machine": figures.machine(), **vars(settings)}, "rounds": rounds}
    figures.write_json(settings.json, content)


if __name__ == "__main__":
    main()
