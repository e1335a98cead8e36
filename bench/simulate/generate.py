#!/usr/bin/env python3
"""Writes a trace for `tidegate simulate`: one request a line, in the shape of the test vectors.

The same seed gives the same trace. Clients come back as on the open internet: few send much, many
send little. Times rise; about one line in a hundred repeats an earlier time, as logs do.
"""

import argparse
import json
import random
import sys

START_MS = 1_700_000_000_000
PATHS = [
    "/",
    "/api/v1/shop/payments",
    "/api/v2/shop/payments/7",
    "/api/v2/desk/orders?page=2",
    "/files/a/b/c/raw",
    "/refund",
    "/static/app.js",
]
METHODS = ["GET", "GET", "GET", "POST", "PUT"]
TIERS = ["gold", "silver", "Gold"]


def requests(lines, clients, per_second, seed):
    """The requests, in order."""
    draw = random.Random(seed)
    at_ms = float(START_MS)
    for _ in range(lines):
        at_ms += draw.expovariate(per_second / 1_000)
        # Log-uniform over the clients, which is Zipf(1): the k-th is drawn in proportion to 1 / k.
        client = int(clients ** draw.random()) - 1
        request = {
            "at_ms": int(at_ms) - (draw.randrange(50) if draw.random() < 0.01 else 0),
            "ip": f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}",
        }
        if draw.random() < 0.8:
            request["user"] = f"user-{client % max(clients // 3, 1)}"
        request["method"] = draw.choice(METHODS)
        request["path"] = draw.choice(PATHS)
        if draw.random() < 0.3:
            request["headers"] = {"X-Tier": draw.choice(TIERS)}
        if draw.random() < 0.05:
            request["cost"] = draw.randrange(6)
        yield request


def write(path, lines, clients, per_second, seed):
    """Writes the trace to `path`, or to stdout for `-`."""
    out = sys.stdout if path == "-" else open(path, "w", encoding="utf-8")
    encode = json.JSONEncoder().encode
    try:
        for request in requests(lines, clients, per_second, seed):
            out.write(encode(request) + "\n")
    finally:
        if out is not sys.stdout:
            out.close()


def add_options(parser):
    """The options that describe a trace."""
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--per-second", type=float, default=2_000.0, help="of the trace's time")
    parser.add_argument("--seed", type=int, default=1)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", help="where to write, - for stdout")
    add_options(parser)
    options = parser.parse_args()
    write(options.path, options.lines, options.clients, options.per_second, options.seed)


if __name__ == "__main__":
    main()
