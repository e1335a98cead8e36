#!/usr/bin/env python3
"""A minute of forward-auth for clients that were never seen before: does memory stay where it is?

Every request comes from an address of its own. Each leaves a bucket that is as good as new a second
later, so that the number of buckets that matter is bounded by the rate of requests, and memory with it.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import load
from contenders import AUTH, BENCH, configuration
from support import figures
from support.looks import Looks
from support.processes import Server, free_port

RATE = "1/s"


def options():
    """The command line."""
    main = os.path.dirname(BENCH)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--seconds", type=int, default=60)
    add("--every", type=int, default=5, help="seconds between two looks; default: 5")
    add("--json", metavar="FILE", help="write every look to this file")
    add("--tidegate", metavar="PROGRAM", default=f"{main}/target/release/tidegate")
    return parser.parse_args()



def main():
    """Measures and prints."""
    settings = options()
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        port = free_port()
        path = os.path.join(folder, "strangers.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(configuration(["ip"], RATE, port))
        command = [settings.tidegate, "serve", "--config", path]
        with Server(command, 0, port, os.path.join(folder, "log")) as server:
            load.probe(port, AUTH)
            looks = Looks(server, settings.every)
            looks.start()
            loaded = load.run(port, AUTH, 1, settings.seconds, 50, load.STRANGERS)
            found = looks.end()
    print(figures.machine())
    print(f"{loaded['requests']} clients in {settings.seconds} s, {loaded['requests_per_s']:.0f} a second")
    print(f"resident MiB, every {settings.every} s: " + " ".join(f"{mib:.1f}" for mib in found))
    half = found[len(found) // 2]
    print(f"idle {found[0]:.1f}, half-way {half:.1f}, end {found[-1]:.1f}: × {found[-1] / half:.2f} since half-way")
    figures.write_json(settings.json, {"loaded": loaded, "resident_mib": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
