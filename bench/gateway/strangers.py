#!/usr/bin/env python3
"""A minute of clients that were never seen before, through the proxy: does memory stay where it is?

Every request comes from an address of its own, as X-Forwarded-For from a trusted proxy has it, in no
order. The limit is strict, 1 a second with a burst of 2, and nobody comes twice: each leaves a bucket
that is as good as new a second later, so that the buckets that matter are bounded by the rate of
requests, and memory with them.
"""

import argparse
import contextlib
import dataclasses
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import generators
import probe
import proxies
from support import figures
from support.looks import Looks
from support.processes import Failed

DEFAULT = "=tidegate-limit"
CONNECTIONS = 50


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--seconds", type=int, default=60)
    add("--every", type=int, default=5, help="seconds between two looks; default: 5")
    proxies.add_options(add)
    return parser.parse_args()



def measure(contender, settings, folder, upstream):
    """A minute for one proxy."""
    place = proxies.site(os.path.join(folder, contender.name), upstream, 1000)
    limit = dataclasses.replace(proxies.STRICT, by_address=True)
    with proxies.start(contender, limit, settings, place) as server:
        probe.passes(place.http1, proxies.BODY, contender.tells)
        if contender.limited:
            probe.refuses(place.http1)
        looks = Looks(server, settings.every)
        looks.start()
        loaded = generators.strangers(place, settings.seconds, settings.load_core, CONNECTIONS)
        return {"loaded": loaded, "resident_mib": looks.end()}


def report(name, found, settings):
    """What was seen, in three lines."""
    mib, loaded = found["resident_mib"], found["loaded"]
    half = mib[len(mib) // 2]
    rate = f"{loaded['requests_per_s']:.0f} a second"
    print(f"{name}: {loaded['requests']} clients in {settings.seconds} s, {rate}")
    print(f"  resident MiB, every {settings.every} s: " + " ".join(f"{each:.1f}" for each in mib))
    print(f"  start {mib[0]:.1f}, half-way {half:.1f}, end {mib[-1]:.1f}", end="")
    print(f": × {mib[-1] / half:.2f} since half-way")


def main():
    """Measures and prints; the exit status tells whether every proxy that is there worked."""
    settings = options()
    found, failures = {}, 0
    print(figures.machine())
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
            try:
                found[name] = measure(contender, settings, folder, upstream)
                report(name, found[name], settings)
            except proxies.Absent as absent:
                print(f"{name}: {absent}")
            except (Failed, OSError) as failed:
                print(f"{name}: {proxies.one_line(f'failed: {failed}')}")
                failures += 1
    figures.write_json(settings.json, found)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
