"""One run of a load generator, and what it found: wrk for HTTP/1.1, h2load for HTTP/2."""

import dataclasses
import os
import re
import statistics
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))

import load  # of ../http: wrk, and its 10 000 clients
from configs import USER_HEADER
from support.processes import Failed, pinned

HERE = os.path.dirname(os.path.abspath(__file__))
STRANGERS = os.path.join(HERE, "strangers.lua")

HTTP2_CONNECTIONS = 10
HTTP2_STREAMS = 10


@dataclasses.dataclass
class Question:
    """What is asked; see checks.lua for USER and ADDR."""

    headers: list
    method: str = "GET"
    path: str = "/"
    body: str = ""


# As short as a request of an API client is, with an identity.
QUESTION = Question([f"{USER_HEADER}: USER", "Accept: application/json", "User-Agent: bench/1"])
STRANGER = Question(["X-Forwarded-For: ADDR", "Accept: application/json", "User-Agent: bench/1"])


def http1(place, seconds, options, _folder):
    """wrk, each request from one of 10 000 clients."""
    return load.run(place.http1, QUESTION, options.load_core, seconds, options.connections)


def strangers(place, seconds, core, connections):
    """wrk, each request from a client that was never seen before."""
    return load.run(place.http1, STRANGER, core, seconds, connections, STRANGERS)


def http2(place, seconds, options, folder):
    """h2load, all requests from one client: it cannot change headers from one to the next."""
    log = os.path.join(folder, "h2load.log")
    command = ["h2load", "--threads=1", f"--clients={HTTP2_CONNECTIONS}", f"--duration={seconds}"]
    command += [f"--max-concurrent-streams={HTTP2_STREAMS}", f"--log-file={log}"]
    for header in QUESTION.headers:
        command += ["--header", header.replace("USER", "user-00000001")]
    command += [f"http://127.0.0.1:{place.http2}/"]
    try:
        done = subprocess.run(
            pinned(options.load_core, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            check=True,
        )
        return {**_counted(done.stdout), **_latencies(log)}
    except subprocess.SubprocessError as error:
        raise Failed(f"h2load: {error} {error.stderr or ''}") from error
    finally:
        if os.path.exists(log):
            os.remove(log)


def _counted(text):
    rate = re.search(r"finished in [\d.]+m?s, ([\d.]+) req/s", text)
    requests = re.search(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored", text)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
    if not (rate and requests and codes):
        raise Failed(f"h2load said something unexpected: {text[-500:]}")
    succeeded, failed, errored = map(int, requests.groups())
    if failed or errored or not succeeded or int(codes.group(1)) < succeeded:
        raise Failed(f"h2load: {requests.group()}; {codes.group()}")
    return {"requests": succeeded, "requests_per_s": float(rate.group(1))}


def _latencies(path):
    """Each line has when, status, and how long in microseconds."""
    with open(path, encoding="ascii") as log:
        took = sorted(int(line.split()[2]) for line in log)
    if len(took) < 2:
        raise Failed("h2load logged no requests")
    return {
        "p50_ms": statistics.median(took) / 1e3,
        "p99_ms": took[len(took) * 99 // 100] / 1e3,
    }
