"""Single requests, to see that a proxy does what it is measured for."""

import http.client
import time

from configs import USER_HEADER
from support.processes import Failed

READY_S_MAX = 10
# A strict limit lets two pass at once, and one more each second.
ATTEMPTS = 20


def ask(port, client):
    """One request; gives back status, headers in lower case, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    headers = {USER_HEADER: f"probe-{client}", "X-Forwarded-For": f"10.2.0.{client}"}
    try:
        connection.request("GET", "/", headers=headers)
        response = connection.getresponse()
        body = response.read().decode(errors="replace")
        told = {name.lower(): value for name, value in response.getheaders()}
        return response.status, told, body
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"GET /: {type(error).__name__} {error}") from error
    finally:
        connection.close()


def passes(port, expected, tells):
    """The upstream answers through the proxy, with or without telling of a limit."""
    deadline = time.monotonic() + READY_S_MAX
    while True:
        # A proxy may listen before it knows its routes.
        status, told, body = ask(port, 1)
        if status == 200 or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if (status, body) != (200, expected):
        raise Failed(f"GET /: {status} {body[:200]!r}, not what the upstream says")
    telling = any("ratelimit" in name for name in told)
    if telling != tells:
        raise Failed(f"GET /: {'tells' if telling else 'does not tell'} of a limit: {sorted(told)}")


def refuses(port):
    """A client that asks too much is refused, and another one is not."""
    statuses = [ask(port, 2)[0] for _ in range(ATTEMPTS)]
    if statuses[0] != 200 or 429 not in statuses:
        raise Failed(f"a strict limit answered {statuses}, not first 200 and then 429")
    if (other := ask(port, 3)[0]) != 200:
        raise Failed(f"a strict limit refused a client for what another did: {other}")


def never_refuses(port):
    """No client is refused, where there is no limit."""
    statuses = {ask(port, 2)[0] for _ in range(ATTEMPTS)}
    if statuses != {200}:
        raise Failed(f"without a limit it answered {statuses}")
