"""A client of Tidegate: checks a request, and says how to respond if it may not pass."""
import asyncio
import json
import logging
import math
from dataclasses import dataclass, field

import httpx

log = logging.getLogger("tidegate")

# Tidegate reads 64 KiB. A request that it cannot read must not look like Tidegate being down.
QUESTION_MAX = 16_384


@dataclass(frozen=True)
class Verdict:
    """Headers for the response. With a status, send status and body instead of serving the request."""

    headers: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    body: bytes = b""


class Rules:
    """The settings of both clients, and how they read Tidegate's responses."""

    def __init__(self, url, policy=None, *, timeout=0.25, fail_open=True, token=None):
        self.policy, self.timeout, self.fail_open = policy, timeout, fail_open
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.http = {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}

    def question(self, facts):
        return json.dumps({"policy": self.policy, **facts}).encode()

    def verdict(self, response):
        if response.status_code != 200:
            # Tidegate responded, and has no decision: a wrong policy or token, a request that is too
            # large, or `on_failure: error`. Never open: clients could cause some of these.
            log.error("tidegate: %s %s", response.status_code, response.text)
            return unavailable()
        decision = response.json()
        headers = limit_headers(decision)
        if decision["allowed"]:
            return Verdict(headers)
        if decision.get("decided_by") == "failure":
            return unavailable()  # its store is down: no limit was exceeded
        if decision.get("retry_after_ms") is not None:
            headers["Retry-After"] = str(seconds(decision["retry_after_ms"]))
        return problem(429, "Too Many Requests", "Rate limit exceeded.", headers)

    def without(self, error):
        """Tidegate did not respond in time: the switch decides."""
        log.warning("tidegate does not respond: %r", error)
        return Verdict() if self.fail_open else unavailable()


class Tidegate(Rules):
    """The client for threads. Its pool reuses connections."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.client = httpx.Client(**self.http)

    def check(self, **facts):
        question = self.question(facts)
        if len(question) > QUESTION_MAX:
            return too_large()
        try:
            response = self.client.post("/v1/check", content=question)
        except httpx.TransportError as error:
            return self.without(error)
        return self.verdict(response)


class AsyncTidegate(Rules):
    """The client for asyncio."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.client = httpx.AsyncClient(**self.http)

    async def check(self, **facts):
        question = self.question(facts)
        if len(question) > QUESTION_MAX:
            return too_large()
        try:
            async with asyncio.timeout(self.timeout):  # httpx bounds each step, this the whole call
                response = await self.client.post("/v1/check", content=question)
        except (httpx.TransportError, TimeoutError) as error:
            return self.without(error)
        return self.verdict(response)


def limit_headers(decision):
    """`RateLimit`, as in draft 11 of the header fields; nothing if no limit applied."""
    if decision["limit"] is None or decision["remaining"] is None:
        return {}
    wait = decision["reset_ms"] if decision["allowed"] else decision["retry_after_ms"]
    reset = "" if wait is None else f";t={seconds(wait)}"
    return {"RateLimit": f'"{decision["limit"]}";r={decision["remaining"]}{reset}'}


def unavailable():
    return problem(503, "Service Unavailable", "Try again in 1 second.", {"Retry-After": "1"})


def too_large():
    return problem(431, "Request Header Fields Too Large", "The request is too large.", {})


def problem(status, title, detail, headers):
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    headers = {**headers, "Content-Type": "application/problem+json"}
    return Verdict(headers, status, json.dumps(body).encode())


def seconds(milliseconds):
    return math.ceil(milliseconds / 1000)
