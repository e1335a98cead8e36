"""Who is measured over gRPC: how each server is started, and what it is asked.

All get the same: an hour's window, so large that everything passes, for each of 10 000 users; and the
same message, with one descriptor of one entry. Who keeps counts in Redis has a Redis of its own.
"""

import dataclasses
import os
import shutil

from support.processes import free_port

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
GUBERNATOR = "/pb.gubernator.V1/GetRateLimits"
AMOUNT = 1_000_000_000

FLOOR = "tonic-constant"


def field(number, value):
    """A field of protobuf: bytes, or a number."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value)


def _varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def call(*descriptors):
    """A `RateLimitRequest`; each descriptor is a list of pairs."""
    message = field(1, b"bench")
    for pairs in descriptors:
        entries = [field(1, key) + field(2, value) for key, value in pairs]
        message += field(2, b"".join(field(1, entry) for entry in entries))
    return message + field(3, 1)


USER = (b"user_id", b"user-UUUUUUUU")
ONE = call([USER])
TWO = call([(b"path", b"/orders"), USER], [USER])


@dataclasses.dataclass
class Contender:
    """A server that may be there or not."""

    name: str
    program: str
    start: callable
    """Makes arguments and environment, given a port, a folder for files and the amount of an hour."""
    message: bytes = ONE
    path: str = RLS
    environment: dict = dataclasses.field(default_factory=dict)
    decides: bool = True
    """Whether it can be asked to refuse: the floor cannot, and gubernator's limit is in the message."""

    redis: bool = False
    """Whether a Redis of its own is on the core of the load."""

    def command(self, port, folder, amount=AMOUNT):
        """The whole command line, or None where the program is absent."""
        program = shutil.which(self.program)
        if not program:
            return None
        arguments = self.start(port, folder, amount)
        # For this process alone: servers look for each other's variables (`REDIS_URL`, `LOG_LEVEL`).
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *variables, program, *arguments]


def contenders(options):
    """Everybody, the floor first."""
    yield Contender(FLOOR, options.floor, _floor, decides=False)
    yield Contender("tidegate", options.tidegate, _tidegate("tidegate"))
    yield Contender("tidegate-two", options.tidegate, _tidegate("tidegate-two"), TWO)
    yield Contender(FLOOR + "-two", options.floor, _floor, TWO, decides=False)
    yield Contender("limitador", options.limitador, _limitador("memory"))
    if not options.no_redis:
        ours, redis = options.tidegate, options.redis
        yield Contender("tidegate-redis", ours, _tidegate("redis", redis), redis=True)
        cached = _limitador("redis_cached", redis)
        yield Contender("limitador-redis-cached", options.limitador, cached, redis=True)
        yield _ratelimit(options)
    yield _gubernator(options)


def _floor(port, _folder, _amount):
    return ["--listen", f"127.0.0.1:{port}"]


def _tidegate(name, redis=None):
    def start(port, folder, amount):
        path = os.path.join(folder, f"{name}.yaml")
        lines = [
            f"listen: {{grpc: '127.0.0.1:{port}', admin: '127.0.0.1:{free_port()}'}}",
            f"store: {{url: 'redis://{redis()}'}}" if redis else "",
            "policies:",
            "- name: bench",
            "  limits:",
            "  - name: per-user",
            "    match: {descriptor: [user_id]}",
            "    key: descriptor:user_id",
            f"    rate: {amount}/h",
            "    algorithm: fixed-window",
            "  - name: per-path",
            "    match: {descriptor: [path, user_id]}",
            "    key: descriptor",
            f"    rate: {amount}/h",
            "    algorithm: fixed-window",
        ]
        _write(path, "\n".join(lines) + "\n")
        return ["serve", "--config", path, "--log", "error"]

    return start


def _limitador(storage, redis=None):
    def start(port, folder, amount):
        path = os.path.join(folder, f"limitador-{storage}.yaml")
        _write(
            path,
            f"- namespace: bench\n  max_value: {amount}\n  seconds: 3600\n  conditions: []\n"
            "  variables:\n  - descriptors[0]['user_id']\n",
        )
        command = [path, "--rls-ip", "127.0.0.1", "--rls-port", port]
        command += ["--http-ip", "127.0.0.1", "--http-port", free_port(), storage]
        return [*command, f"redis://{redis()}"] if redis else command

    return start


def _ratelimit(options):
    environment = {"GOMAXPROCS": "1"}

    def start(port, folder, amount):
        config = os.path.join(folder, "ratelimit", "config")
        os.makedirs(config, exist_ok=True)
        _write(
            os.path.join(config, "bench.yaml"),
            "domain: bench\ndescriptors:\n- key: user_id\n"
            f"  rate_limit: {{unit: hour, requests_per_unit: {amount}}}\n",
        )
        environment.update(
            RUNTIME_ROOT=folder,
            RUNTIME_SUBDIRECTORY="ratelimit",
            RUNTIME_WATCH_ROOT="false",
            USE_STATSD="false",
            LOG_LEVEL="error",
            BACKEND_TYPE="redis",
            REDIS_SOCKET_TYPE="tcp",
            REDIS_URL=options.redis(),
            GRPC_HOST="127.0.0.1",
            GRPC_PORT=str(port),
            PORT=str(free_port()),
            DEBUG_PORT=str(free_port()),
        )
        return []

    name = "envoyproxy-ratelimit"
    return Contender(name, options.ratelimit, start, environment=environment, redis=True)


def _gubernator(options):
    environment = {"GOMAXPROCS": "1"}

    def start(port, _folder, _amount):
        environment.update(
            GUBER_GRPC_ADDRESS=f"127.0.0.1:{port}",
            GUBER_HTTP_ADDRESS=f"127.0.0.1:{free_port()}",
            GUBER_PEER_DISCOVERY_TYPE="none",
            GUBER_LOG_LEVEL="error",
        )
        return []

    # name, unique_key, hits, limit, duration in milliseconds
    limit = field(1, b"bench") + field(2, b"user-UUUUUUUU") + field(3, 1)
    limit += field(4, AMOUNT) + field(5, 3_600_000)
    message = field(1, limit)
    return Contender(
        "gubernator", options.gubernator, start, message, GUBERNATOR, environment, decides=False
    )


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
