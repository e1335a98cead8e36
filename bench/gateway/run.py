#!/usr/bin/env python3
"""Requests through a reverse proxy to one upstream: Tidegate's gateway and its peers, in one run.

The proxy runs on one core, the upstream and the load generator on another. All proxies are up all
the time and are loaded in turn, round after round, so that whatever else the machine does meanwhile
hits all of them alike.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import generators
import probe
import proxies
import verdict
from support import figures
from support.processes import Failed

HEADER = ["proxy", "req/s", "±", "p50 ms", "p99 ms", "CPU µs/req", "±"]
HEADER += ["CPU ×", "req/s ×", "p99 ×", "of bare", "busy", "RSS MiB", "stolen"]

STOLEN_MAX = 0.05
"""Above this share, somebody else was measured as well."""

PROTOCOLS = {"HTTP/1.1": ("wrk", generators.http1), "HTTP/2": ("h2load", generators.http2)}


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="one round of a second: shows that it works")
    add("--rounds", type=int, help="default: 5")
    add("--seconds", type=int, help="length of a round for each proxy; default: 6")
    add("--connections", type=int, default=50, help="of wrk; h2load has 10 with 10 streams each")
    add("--protocols", default="1,2", help="default: 1,2")
    proxies.add_options(add)
    parsed = parser.parse_args()
    parsed.rounds = parsed.rounds or (1 if parsed.quick else 5)
    parsed.seconds = parsed.seconds or (1 if parsed.quick else 6)
    return parsed


def show_limit(contender, settings, folder, upstream):
    """With a strict limit, the proxy refuses whom it should and nobody else."""
    place = proxies.site(os.path.join(folder, f"{contender.name}-strict"), upstream, 100)
    with proxies.start(contender, proxies.STRICT, settings, place):
        # Traefik listens before it has routes; this client is none of those that are counted.
        probe.passes(place.http1, proxies.BODY, contender.tells)
        probe.refuses(place.http1)


def start(contender, settings, folder, upstream, running):
    """The proxy, seen to do what it is measured for."""
    if contender.limited:
        show_limit(contender, settings, folder, upstream)
    name = os.path.join(folder, contender.name)
    place = proxies.site(name, upstream, 1000, contender.same_port)
    server = running.enter_context(proxies.start(contender, proxies.GENEROUS, settings, place))
    probe.passes(place.http1, proxies.BODY, contender.tells)
    probe.never_refuses(place.http1)
    return server, place


def measure(server, place, load, settings, folder):
    """One round for one proxy."""
    cpu_before, waited_before = server.cpu_s(), server.waited_s()
    found = load(place, settings.seconds, settings, folder)
    cpu_s = server.cpu_s() - cpu_before
    found["cpu_us"] = cpu_s / found["requests"] * 1e6
    found["busy"] = cpu_s / (found["requests"] / found["requests_per_s"])
    found["stolen"] = (server.waited_s() - waited_before) / settings.seconds
    found["resident_mib"] = server.resident_mib()
    return found


def measure_all(servers, protocol, settings, folder):
    """Rounds of everybody that is up, and a remark about everybody that failed."""
    _, load = PROTOCOLS[protocol]
    rounds, remarks = {name: [] for name in servers}, {}
    order = list(servers)
    for number in range(-1, settings.rounds):
        # Each is first for once, or nearly; neighbours stay neighbours.
        turn = max(number, 0) % max(len(order), 1)
        for name in order[turn:] + order[:turn]:
            if name in remarks:
                continue
            server, place = servers[name]
            shown = f"round {number + 1}" if number >= 0 else "warm-up"
            print(f"\r{protocol} {shown}: {name:20}", end="", file=sys.stderr, flush=True)
            try:
                if number < 0:
                    load(place, 1, settings, folder)
                else:
                    rounds[name].append(measure(server, place, load, settings, folder))
            except (Failed, OSError) as failed:
                remarks[name] = proxies.one_line(f"failed: {failed}")
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    return {name: each for name, each in rounds.items() if name not in remarks}, remarks


def summary(rounds):
    """The medians that the table shows."""
    found = {name: figures.median(rounds, name) for name in rounds[0]}
    found["requests_per_s_spread"] = figures.spread(rounds, "requests_per_s")
    found["cpu_us_spread"] = figures.spread(rounds, "cpu_us")
    found["stolen"] = max(each["stolen"] for each in rounds)
    return found


def row(name, found, rival, bare):
    """One line of the table."""
    return [
        name,
        f"{found['requests_per_s']:.0f}",
        figures.percent(found["requests_per_s_spread"]),
        f"{found['p50_ms']:.2f}",
        f"{found['p99_ms']:.2f}",
        f"{found['cpu_us']:.2f}",
        figures.percent(found["cpu_us_spread"]),
        figures.times(rival.get("cpu_us"), found["cpu_us"]),
        figures.times(found["requests_per_s"], rival.get("requests_per_s")),
        figures.times(found["p99_ms"], rival.get("p99_ms")),
        figures.times(found["cpu_us"], bare.get("cpu_us")),
        f"{found['busy']:.0%}",
        f"{found['resident_mib']:.0f}",
        f"{found['stolen']:.0%}",
    ]


def report(protocol, everybody, rounds, remarks):
    """Prints a table and what it says about the bars; gives the same back, for programs."""
    found = {name: summary(each) for name, each in rounds.items()}
    rival, bare = found.get(proxies.RIVAL, {}), found.get(proxies.BARE, {})
    rows = []
    for contender in everybody:
        name = contender.name
        if name in found:
            rows.append(row(name, found[name], rival, bare))
        elif name in remarks:
            rows.append([name, remarks[name]])
    print(f"\n{protocol}, {PROTOCOLS[protocol][0]}\n")
    figures.print_table(HEADER, rows)
    says = verdict.verdicts(rounds, everybody)
    if says:
        print("\nWith a limit, by CPU per request unless it says otherwise:")
    for line, _, _ in says:
        print(f"  {line}")
    stolen = max((each["stolen"] for each in found.values()), default=0)
    if stolen > STOLEN_MAX:
        print(f"\nOthers had the proxies' core for up to {stolen:.0%} of a round: all of this is rough.")
    verdicts = {text: {"met": met, "says": line} for line, met, text in says}
    return {"medians": found, "rounds": rounds, "remarks": remarks, "verdicts": verdicts}


def start_everybody(everybody, settings, folder, running):
    """Everybody that is there and does what it should, and a remark about everybody else."""
    servers, remarks = {}, {}
    at = os.path.join(folder, "upstream")
    upstream = running.enter_context(proxies.start_upstream(settings, at, 1000)).port
    for contender in everybody:
        print(f"\rstarting {contender.name:20}", end="", file=sys.stderr, flush=True)
        try:
            servers[contender.name] = start(contender, settings, folder, upstream, running)
        except proxies.Absent as absent:
            remarks[contender.name] = str(absent)
        except Failed as failed:
            remarks[contender.name] = proxies.one_line(f"failed: {failed}")
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    return servers, remarks


def main():
    """Measures, prints, writes; the exit status tells whether every proxy that is there worked."""
    settings = options()
    everybody = proxies.chosen(settings)
    print(figures.machine())
    print(f"{settings.rounds} rounds of {settings.seconds} s, interleaved; medians; proxies on")
    print(f"core {settings.proxy_core}, upstream and load on {settings.load_core}. CPU × and req/s × are")
    print(f"how many times as good as {proxies.RIVAL}, p99 × how many times as long; of bare: CPU")
    print(f"over that of {proxies.BARE}; ± is (max - min) / median, * above 15 %.")
    content = {"settings": {"machine": figures.machine(), **vars(settings)}}
    bad = False
    with contextlib.ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-"))
        try:
            servers, unable = start_everybody(everybody, settings, folder, running)
        except proxies.Absent as absent:
            print(absent)
            return 1
        for protocol, (generator, _) in PROTOCOLS.items():
            if protocol.partition("/")[2][0] not in settings.protocols.split(","):
                continue
            if not shutil.which(generator):
                print(f"\n{protocol}: skipped, no program {generator}")
                continue
            speakers = [each for each in everybody if each.http2 or protocol != "HTTP/2"]
            up = {each.name: servers[each.name] for each in speakers if each.name in servers}
            rounds, remarks = measure_all(up, protocol, settings, folder)
            remarks = {**unable, **remarks}
            content[protocol] = report(protocol, speakers, rounds, remarks)
            bad |= any(remark.startswith("failed") for remark in remarks.values())
    figures.write_json(settings.json, content)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
