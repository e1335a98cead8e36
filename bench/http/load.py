"""One run of wrk, and what it found."""

import json
import os
import re
import subprocess
import urllib.request

from support.processes import Failed, pinned

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = os.path.join(HERE, "checks.lua")
STRANGERS = os.path.join(HERE, "strangers.lua")
MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def probe(port, question):
    """Asks once; fails unless the answer is a decision that allows."""

    def own(text):
        return text.replace("USER", "user-probe").replace("ADDR", "10.2.0.1")

    body = own(question.body)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{question.path}",
        data=body.encode() or None,
        headers=dict(own(header).split(": ", 1) for header in question.headers),
        method=question.method,
    )
    asked = f"{question.method} {question.path} {body}"
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            text = response.read()
            answer = json.loads(text) if text else {"allowed": response.status == 200}
    except (OSError, ValueError) as error:
        raise Failed(f"{asked}: {error}") from error
    if answer.get("allowed") is not True:
        raise Failed(f"{asked}: not allowed: {answer}")


def run(port, question, core, seconds, connections, script=CHECKS):
    """Sends as many requests as one thread of wrk on `core` can."""
    command = ["wrk", "--threads", "1", "--connections", connections, "--duration", f"{seconds}s"]
    command += ["--latency", "--script", script, f"http://127.0.0.1:{port}"]
    command += ["--", question.method, question.path, question.body, *question.headers]
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
