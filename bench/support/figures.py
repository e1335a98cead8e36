"""Figures: medians and spreads, tables for people, JSON for programs."""

import json
import platform
import statistics

SPREAD_MAX = 0.15


def median(rounds, name):
    """The median of one measurement over all rounds."""
    return statistics.median(each[name] for each in rounds)


def spread(rounds, name):
    """(max - min) / median of one measurement."""
    values = [each[name] for each in rounds]
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else float("nan")


def percent(share):
    """A spread as it stands in a table; a star marks one that wants a quieter machine."""
    return f"{share:.0%}{'*' if share > SPREAD_MAX else ''}"


def times(numerator, denominator):
    """A ratio as it stands in a table."""
    return f"{numerator / denominator:.2f}" if numerator and denominator else "-"


def print_table(header, rows):
    """Prints aligned columns, the first to the left and the others to the right. A row of two
    cells is a name and a remark."""
    whole = [row for row in rows if len(row) == len(header)]
    widths = [max(len(row[i]) for row in [header, *whole]) for i in range(len(header))]
    widths[0] = max(len(row[0]) for row in [header, *rows])
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0])]
        if len(row) == len(header):
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        else:
            cells += row[1:]
        print("  ".join(cells))


def write_json(path, content):
    """Writes `content`, if a path is given."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")


def machine():
    """The processor and kernel, for whoever reads the figures later."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, Linux {platform.release()}"
