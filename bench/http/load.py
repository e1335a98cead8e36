"""One run of wrk, and what it found."""

import json
import os
import re
import subprocess
import urllib.request

from support.processes import Failed, pinned

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks.lua")
MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def probe(port, question):
    """Asks once and gives back the answer; fails unless it is a decision that allows."""
    body = question.body.replace("USER", "user-probe").replace("ADDR", "10.2.0.1")
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{question.path}",
        data=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            answer = json.load(response)
    except (OSError, ValueError) as error:
        raise Failed(f"POST {question.path} {body}: {error}") from error
    if answer.get("allowed") is not True:
        raise Failed(f"POST {question.path} {body}: not allowed: {answer}")
    return answer


def run(port, question, core, seconds, connections):
    """Sends as many requests as one thread of wrk on `core` can."""
    command = ["wrk", "--threads", "1", "--connections", connections, "--duration", f"{seconds}s"]
    command += ["--latency", "--script", SCRIPT, f"http://127.0.0.1:{port}"]
    command += ["--", question.path, question.body]
    try:
        done = subprocess.run(
            pinned(core, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise Failed(f"wrk: {error} {error.stderr or ''}") from error
    return parse(done.stdout)


def parse(text):
    """The figures in wrk's report."""
    if refused := re.search(r"Non-2xx or 3xx responses: \d+|Socket errors: .*", text):
        raise Failed(f"wrk: {refused.group()}")
    return {
        "requests": int(_find(r"(\d+) requests in", text)),
        "requests_per_s": float(_find(r"Requests/sec:\s+([\d.]+)", text)),
        "p50_ms": _ms(_find(r"^\s+50%\s+(\S+)", text)),
        "p99_ms": _ms(_find(r"^\s+99%\s+(\S+)", text)),
    }


def _find(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise Failed(f"wrk said something unexpected: {text[-500:]}")
    return found.group(1)


def _ms(duration):
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", duration).groups()
    return float(number) * MS[unit]
