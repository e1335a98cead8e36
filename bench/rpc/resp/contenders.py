"""Who takes part: how each is started, and what it is asked."""

import os
import shutil
from dataclasses import dataclass
from typing import Callable

from support.processes import Server, free_port

# A quota that nobody reaches: all pass, and every key is one bucket.
CALL = ["key:__rand_int__", "1000000", "1000000", "1", "1"]
# What redis-benchmark writes a number over, and what our own load does.
PLACE, OUR_PLACE = "__rand_int__", "UUUUUUUU"

CONFIG = """
listen: {{ resp: '127.0.0.1:{port}', admin: '127.0.0.1:0' }}
store: {store}
policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
"""


@dataclass
class Contender:
    """A server, and what it is asked."""

    name: str
    call: list
    # From a port, a folder and a stack of what runs, to a command line; `None` if it is not there.
    start: Callable
    wants: str
    # Whether a Redis is on the core of the load.
    redis: bool = False


def encoded(call):
    """The call as it is sent."""
    words = [word.replace(PLACE, OUR_PLACE) for word in call]
    return "".join([f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)])


def contenders(settings):
    """Everybody."""
    throttle = ["CL.THROTTLE", *CALL]
    tidegate = f"no program {settings.tidegate}"
    return [
        Contender("tidegate", throttle, ours(settings, "memory"), tidegate),
        Contender("tidegate over redis", throttle, ours(settings, "redis"), tidegate, True),
        Contender(
            "redis-cell", throttle, redis_cell(settings), f"no module {settings.redis_cell}"
        ),
        Contender(
            "throttlecrab",
            ["THROTTLE", *CALL],
            throttlecrab(settings),
            f"no program {settings.throttlecrab}",
        ),
    ]


def ours(settings, store):
    """Tidegate with one worker, its buckets in itself or in a Redis on the other core."""

    def start(port, folder, running):
        if not shutil.which(settings.tidegate):
            return None
        described = "{ url: memory }"
        if store == "redis":
            redis_port = free_port()
            command = [settings.redis_server, "--port", redis_port, "--save", "", "--dir", folder]
            log = os.path.join(folder, "redis.log")
            running.enter_context(Server(command, settings.load_core, redis_port, log))
            described = f"{{ url: 'redis://127.0.0.1:{redis_port}', timeout: 2s }}"
        path = os.path.join(folder, f"{store}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, store=described))
        return ["env", "TOKIO_WORKER_THREADS=1", settings.tidegate, "serve", "--config", path]

    return start


def redis_cell(settings):
    """The module, in a Redis without persistence."""

    def start(port, folder, _running):
        if not os.path.exists(settings.redis_cell) or not shutil.which(settings.redis_server):
            return None
        module = os.path.abspath(settings.redis_cell)
        command = [settings.redis_server, "--port", port, "--save", "", "--dir", folder]
        return [*command, "--loadmodule", module]

    return start


def throttlecrab(settings):
    """throttlecrab-server with one worker, and no transport but this."""

    def start(port, _folder, _running):
        if not shutil.which(settings.throttlecrab):
            return None
        command = ["env", "TOKIO_WORKER_THREADS=1", settings.throttlecrab, "--redis"]
        return [*command, "--redis-host", "127.0.0.1", "--redis-port", port, "--log-level", "error"]

    return start
