#!/usr/bin/env python3
"""Draws how each algorithm treats the same requests, as `tidegate simulate` decides them.

usage: book/pictures.py PROGRAM [FOLDER]

PROGRAM is the built tidegate. FOLDER is docs/explanation/pictures by default; scripts/test draws into
another folder and compares.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ALGORITHMS = ["token-bucket", "fixed-window", "sliding-window", "sliding-log", "bucketed-window"]
LIMIT, PERIOD = 10, 10  # requests, seconds
SECONDS = 40
BAR = 0.5  # seconds

# Pixels.
WIDTH, LEFT, RIGHT = 720, 34, 20
BARS_BOTTOM, BARS_STEP = 118, 7
LINE_BOTTOM, LINE_STEP = 212, 3.5
HEIGHT = 250

# A multiple of the period, because some windows are aligned to the clock.
START_MS = 1_700_000_000_000

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #57606a }
.allowed { fill: #2f7ed8 }
.refused { fill: #e5796b }
.axis { stroke: #8c959f; stroke-width: 1 }
.limit { stroke: #8c959f; stroke-dasharray: 4 4 }
.passed { fill: none; stroke: #2f7ed8; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #9da7b3 }
  .allowed { fill: #58a6ff }
  .refused { fill: #f08c80 }
  .passed { stroke: #58a6ff }
}
"""


def requests():
    """Returns the times of the requests in milliseconds: one, two bursts around a border, then two a second."""
    steady = range(14_000, SECONDS * 1000, 500)
    return [0] + [9_000] * 12 + [10_500] * 12 + list(steady)


def decide(program):
    """Returns for each algorithm a list of (milliseconds, allowed)."""
    policies = [
        {"name": name, "limits": [{"name": name, "key": "ip", "rate": f"{LIMIT}/{PERIOD}s", "algorithm": name}]}
        for name in ALGORITHMS
    ]
    asked = [(at, name) for at in requests() for name in ALGORITHMS]
    with tempfile.TemporaryDirectory() as folder:
        config, trace = Path(folder, "tidegate.yaml"), Path(folder, "trace.jsonl")
        config.write_text(json.dumps({"policies": policies}))
        lines = ({"at_ms": START_MS + at, "policy": name, "ip": "192.0.2.1"} for at, name in asked)
        trace.write_text("\n".join(map(json.dumps, lines)))
        command = [program, "simulate", "--config", config, "--trace", trace, "--quiet"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    decisions = {name: [] for name in ALGORITHMS}
    for (at, name), line in zip(asked, output.splitlines(), strict=True):
        decisions[name].append((at, json.loads(line)["allowed"]))
    return decisions


def x(seconds):
    return round(LEFT + (WIDTH - LEFT - RIGHT) * seconds / SECONDS, 1)


def bars(decisions):
    """Yields the bars: allowed requests below, refused ones on top."""
    for step in range(int(SECONDS / BAR)):
        begin = step * BAR
        inside = [allowed for at, allowed in decisions if begin <= at / 1000 < begin + BAR]
        allowed, width = sum(inside), round(x(BAR) - x(0) - 1.5, 1)
        for kind, count, below in (("allowed", allowed, 0), ("refused", len(inside) - allowed, allowed)):
            if count:
                top = BARS_BOTTOM - (below + count) * BARS_STEP
                yield f'<rect class="{kind}" x="{x(begin)}" y="{top}" width="{width}" height="{count * BARS_STEP}"/>'


def passed(decisions):
    """Returns the path of the number that passed within the last period, and its maximum."""
    times = [at for at, allowed in decisions if allowed]
    changes = sorted({*times, *(at + PERIOD * 1000 for at in times)})
    path, most = [f"M{x(0)} {LINE_BOTTOM}"], 0
    for change in changes:
        if change >= SECONDS * 1000:
            break
        count = sum(change - PERIOD * 1000 < at <= change for at in times)
        most = max(most, count)
        path.append(f"H{x(change / 1000)}V{LINE_BOTTOM - count * LINE_STEP}")
    return " ".join([*path, f"H{x(SECONDS)}"]), most


def picture(name, decisions):
    path, most = passed(decisions)
    admitted = sum(allowed for _, allowed in decisions)
    limit = LINE_BOTTOM - LIMIT * LINE_STEP
    right = WIDTH - RIGHT
    ticks = [
        f'<text x="{x(second)}" y="{LINE_BOTTOM + 16}" text-anchor="middle">{second} s</text>'
        for second in range(0, SECONDS + 1, PERIOD)
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{name}, {LIMIT}/{PERIOD}s: {admitted} of {len(decisions)} requests pass, at most {most} within {PERIOD} s</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="allowed" x="{LEFT}" y="4" width="10" height="10"/><text x="{LEFT + 15}" y="13">allowed</text>',
        f'<rect class="refused" x="{LEFT + 80}" y="4" width="10" height="10"/><text x="{LEFT + 95}" y="13">refused</text>',
        f'<text x="{right}" y="13" text-anchor="end">{name}, {LIMIT}/{PERIOD}s</text>',
        *bars(decisions),
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{BARS_BOTTOM}" y2="{BARS_BOTTOM}"/>',
        f'<text x="{LEFT}" y="{BARS_BOTTOM + 18}">passed within the last {PERIOD} s (at most {most})</text>',
        f'<line class="limit" x1="{LEFT}" x2="{right}" y1="{limit}" y2="{limit}"/>',
        f'<text x="{LEFT - 6}" y="{limit + 4}" text-anchor="end">{LIMIT}</text>',
        f'<path class="passed" d="{path}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{LINE_BOTTOM}" y2="{LINE_BOTTOM}"/>',
        *ticks,
        "</svg>\n",
    ])


def main():
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/explanation/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, decisions in decide(sys.argv[1]).items():
        (folder / f"{name}.svg").write_text(picture(name, decisions))


if __name__ == "__main__":
    main()
