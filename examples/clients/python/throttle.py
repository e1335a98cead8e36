"""Limits jobs of a worker through the Redis protocol, by redis-py."""
import os

import redis

tidegate = redis.Redis.from_url(
    os.environ.get("TIDEGATE_RESP", "redis://127.0.0.1:6380"), socket_timeout=0.25
)


def wait_before(key, burst, count, period):
    """Returns 0 if the job may run, else the seconds to wait."""
    limited, _limit, _remaining, retry_after, _reset = tidegate.execute_command(
        "CL.THROTTLE", key, burst, count, period
    )
    return retry_after if limited else 0


# Three jobs at once, then one a minute.
for job in range(1, 5):
    wait = wait_before("jobs:python", 2, 1, 60)
    print(f"job {job}:", f"wait {wait} s" if wait else "run")
