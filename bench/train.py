#!/usr/bin/env python3
"""Runs a program that counts what it executes (`-C profile-generate`) under everything that it serves.

Profile-guided builds treat code that no training run reaches as cold. So every protocol takes part, in
memory and with Redis: the gateway over HTTP/1.1, HTTP/2 and TLS with and without bodies and refusals, the
HTTP API, forward-auth, reservations, Envoy's rate limit service, the Redis protocol and `simulate`. All
loads are bounded by a number of requests, not by a time, so that profiles of two machines are alike.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from support.processes import Failed, free_port

READY_S_MAX = 60
# An instrumented program writes its counters when it ends.
STOP_S_MAX = 120
LOAD_S_MAX = 600
KIB = 1024

PLENTY = "1000000/s"
RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("program", help="tidegate, built with -C profile-generate")
    add("profiles", metavar="FOLDER", help="gets the raw profiles; is created")
    add("--scale", type=float, default=1.0, help="of the number of requests; default: 1")
    return parser.parse_args()


class Process:
    """A server that must end by itself after SIGTERM, or its counters are lost."""

    def __init__(self, command, log, environment=None, ports=()):
        self.name = os.path.basename(command[0])
        self._log = log
        self._ports = ports
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self):
        try:
            for port in self._ports:
                self._wait_for(port)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise Failed(f"{self.name} did not end within {STOP_S_MAX} s") from None
        if status not in (0, -signal.SIGTERM):
            raise Failed(f"{self.name} ended with status {status}: {self._last_words()}")

    def _wait_for(self, port):
        deadline = time.monotonic() + READY_S_MAX
        while True:
            with contextlib.suppress(OSError):
                http.client.socket.create_connection(("127.0.0.1", port), 1).close()
                return
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} did not listen on {port}: {self._last_words()}")
            # Between two attempts, notice at once if it has ended.
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(0.05)
                raise Failed(f"{self.name} ended with status {status}: {self._last_words()}")

    def _last_words(self):
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read().strip()[-1000:]


class Place:
    """A folder for files of one server, and ports that are free."""

    def __init__(self, folder, *listeners):
        self.folder = folder
        self.ports = {name: free_port() for name in listeners}
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        """The path of a file there."""
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """Writes a file; what is neither text nor bytes becomes JSON."""
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        data = content if isinstance(content, bytes) else content.encode()
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)


def upstream(folder):
    """nginx: a short response, a file of 64 KiB, and bodies that are read and dropped."""
    place = Place(folder, "http")
    os.makedirs(place.path("files"), exist_ok=True)
    place.write("files/large", b"x" * 64 * KIB)
    kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    temporary = " ".join(f"{kind}_temp_path {place.path(kind)};" for kind in kinds)
    config = place.write(
        "nginx.conf",
        f"""daemon off; master_process off; pid {place.path("pid")}; error_log {place.path("error.log")};
events {{ worker_connections 2000; }}
http {{
  access_log off; keepalive_requests 1000000000; client_max_body_size 8m; {temporary}
  server {{
    listen 127.0.0.1:{place.ports["http"]};
    location / {{ return 200 'Hello from the upstream.'; }}
    location /files/ {{ root {place.folder}; }}
  }}
}}
""",
    )
    command = [program("nginx"), "-p", place.folder, "-e", place.path("start.log"), "-c", config]
    return Process(command, place.path("output.log"), ports=place.ports.values()), place


def redis(folder):
    """A Redis with nothing on disk."""
    place = Place(folder, "redis")
    command = [program("redis-server"), "--port", str(place.ports["redis"]), "--save", ""]
    command += ["--dir", place.folder, "--bind", "127.0.0.1"]
    return Process(command, place.path("output.log"), ports=place.ports.values()), place


def tidegate(settings, folder, upstream_port, store="memory", tls=None):
    """The program that is trained."""
    listeners = ["http", "grpc", "resp", "gateway", "admin"]
    place = Place(folder, *listeners)
    listen = {}
    for name in listeners:
        listen[name] = {"address": f"127.0.0.1:{place.ports[name]}"}
        if tls and name != "admin":
            listen[name]["tls"] = tls
    generous = {"name": "per-client", "key": "ip", "bands": [PLENTY, "1000000000/h"]}
    by_user = {"name": "per-user", "key": "user", "rate": PLENTY}
    large = {"name": "files", "match": {"path": "/files"}, "key": "user", "rate": PLENTY}
    by_entry = {"name": "per-entry", "match": {"descriptor": ["user_id"]}}
    by_entry |= {"key": "descriptor:user_id", "rate": "1000000000/h", "algorithm": "fixed-window"}
    upstreams = [f"http://127.0.0.1:{upstream_port}"]
    config = {
        "listen": listen,
        "store": {"url": store},
        "client": {"user": {"header": "X-User"}},
        "policies": [
            {"name": "api", "reserve": "60s", "limits": [generous, by_user, large]},
            {"name": "strict", "limits": [{"name": "few", "key": "user", "rate": "5/h"}]},
            {"name": "edge", "limits": [by_entry]},
        ],
        "routes": [
            {"name": "strict", "match": {"path": "/strict"}, "upstreams": upstreams, "policy": "strict"},
            {"name": "all", "upstreams": upstreams, "policy": "api"},
        ],
    }
    file = place.write("tidegate.yaml", config)
    command = [settings.program, "serve", file, "--log", "warn"]
    raw = os.path.join(os.path.abspath(settings.profiles), "%m-%p.profraw")
    environment = {"LLVM_PROFILE_FILE": raw}
    return Process(command, place.path("output.log"), environment, place.ports.values()), place


def program(name):
    """Where a program is, which must be there."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise Failed(f"no program {name}")
    return found


class Loads:
    """The loads on one server. Each says what it does before it begins."""

    def __init__(self, settings, place, scheme="http"):
        self._scale = settings.scale
        self._place = place
        self._scheme = scheme

    def http(self, count, listener, path, *flags, headers=(), body=None, refused=False):
        """h2load. Each response must be a 2xx, or a 4xx where requests are refused."""
        count = self._count(count)
        command = [program("h2load"), "--threads=1", f"--requests={count}", *flags]
        for header in headers:
            command += ["--header", header]
        if body is not None:
            command += ["--data", self._place.write("body", body)]
        command.append(f"{self._scheme}://127.0.0.1:{self._place.ports[listener]}{path}")
        output = self._run(command, f"{count} × {self._scheme} {listener} {path} {' '.join(flags)}")
        codes = re.search(r"status codes: (\d+) 2xx, \d+ 3xx, (\d+) 4xx", output)
        if not codes:
            raise Failed(f"h2load: {output[-500:]}")
        passed, rejected = map(int, codes.groups())
        expected = rejected > passed if refused else passed == count
        if not expected or passed + rejected != count:
            raise Failed(f"h2load, {path}: {codes.group()}")

    def redis(self, count, pipelined, *words):
        """redis-benchmark with one command."""
        count = self._count(count)
        command = [program("redis-benchmark"), "-q", "-p", str(self._place.ports["resp"])]
        command += ["-n", str(count), "-c", "20", "-P", str(pipelined), *words]
        output = self._run(command, f"{count} × {words[0]}, {pipelined} at a time")
        if "requests per second" not in output or "rror" in output:
            raise Failed(f"redis-benchmark: {output[-500:]}")

    def reservations(self, count):
        """A reservation and its commit, again and again."""
        count = self._count(count)
        say(f"{count} × reserve and commit")
        api = http.client.HTTPConnection("127.0.0.1", self._place.ports["http"], timeout=60)
        for number in range(count):
            question = {"ip": "192.0.2.1", "user": f"user-{number % 100}", "cost": 5}
            reserved = self._ask(api, "/v1/reserve", question)
            self._ask(api, "/v1/commit", {"reservation": reserved["reservation"], "actual": 2})
        api.close()

    def pages(self, count):
        """Metrics and status."""
        count = self._count(count)
        say(f"{count} × /metrics and /status")
        admin = http.client.HTTPConnection("127.0.0.1", self._place.ports["admin"], timeout=60)
        for path in ["/metrics", "/status"] * count:
            admin.request("GET", path)
            if (answer := admin.getresponse()).status != 200:
                raise Failed(f"{path}: {answer.status}")
            answer.read()
        admin.close()

    def _count(self, count):
        return max(100, int(count * self._scale))

    @staticmethod
    def _ask(api, path, question):
        api.request("POST", path, json.dumps(question))
        response = api.getresponse()
        text = response.read()
        if response.status != 200:
            raise Failed(f"{path}: {response.status} {text!r}")
        return json.loads(text)

    @staticmethod
    def _run(command, what):
        say(what)
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LOAD_S_MAX,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{what}: {done.stdout[-500:]} {done.stderr[-500:]}")
        return done.stdout


HEADERS = ["x-user: user-1", "accept: application/json", "user-agent: train/1"]
HTTP1 = ["--h1", "--clients=50"]
HTTP2 = ["--clients=10", "--max-concurrent-streams=10"]
CHECK = json.dumps({"ip": "192.0.2.1", "user": "user-1", "path": "/files/7", "method": "GET"})
FORWARDED = [
    "x-forwarded-for: 192.0.2.7",
    "x-forwarded-method: GET",
    "x-forwarded-host: example.test",
    "x-forwarded-uri: /files/7?page=2",
    *HEADERS,
]


def gateway(loads, share=1.0):
    """Requests through the gateway. The usual one counts most."""
    for flags in HTTP1, HTTP2:
        loads.http(30_000 * share, "gateway", "/items/7?page=2", *flags, headers=HEADERS)
        loads.http(6_000 * share, "gateway", "/files/large", *flags, headers=HEADERS)
        loads.http(6_000 * share, "gateway", "/items", *flags, headers=HEADERS, body="x" * 4 * KIB)
        loads.http(8_000 * share, "gateway", "/strict", *flags, headers=HEADERS, refused=True)


def checks(loads, share=1.0):
    """The HTTP API and forward-auth."""
    loads.http(20_000 * share, "http", "/v1/check", *HTTP1, body=CHECK)
    loads.http(3_000 * share, "http", "/v1/check", *HTTP1, body=f"[{','.join([CHECK] * 10)}]")
    loads.http(15_000 * share, "http", "/v1/auth", *HTTP1, headers=FORWARDED)
    strict = "/v1/auth/strict"
    loads.http(5_000 * share, "http", strict, *HTTP1, headers=FORWARDED, refused=True)


def services(loads, share=1.0):
    """Envoy's rate limit service and the Redis protocol."""
    grpc = ["content-type: application/grpc", "te: trailers"]
    message = rls_call([b"user_id", b"user-1"])
    framed = b"\0" + len(message).to_bytes(4, "big") + message
    loads.http(20_000 * share, "grpc", RLS, *HTTP2, headers=grpc, body=framed)
    loads.redis(20_000 * share, 1, "CL.THROTTLE", "user:1", "1000000", "1000000", "1")
    loads.redis(60_000 * share, 16, "CL.THROTTLE", "user:1", "1000000", "1000000", "1")
    loads.redis(5_000 * share, 1, "CL.THROTTLE", "user:2", "5", "5", "3600")
    loads.redis(10_000 * share, 1, "TG.CHECK", "api", "ip", "192.0.2.1", "user", "user-1")


def rls_call(entry):
    """A `RateLimitRequest` of the domain `edge` with one descriptor of one entry."""

    def field(number, value):
        return bytes([number << 3 | 2, len(value)]) + value

    pair = field(1, entry[0]) + field(2, entry[1])
    return field(1, b"edge") + field(2, field(1, pair))


def simulation(settings, folder):
    """`tidegate simulate` over a trace of many clients."""
    count = max(1000, int(60_000 * settings.scale))
    say(f"{count} × simulate")
    place = Place(folder)
    limits = [{"name": "few", "key": "ip", "rate": "1/s burst 5"}]
    policy = place.write("tidegate.yaml", {"policies": [{"name": "api", "limits": limits}]})
    clients = (f"10.0.{number % 200}.{number % 97}" for number in range(count))
    lines = (f'{{"at_ms": {1_700_000_000_000 + number}, "ip": "{ip}"}}\n' for number, ip in enumerate(clients))
    trace = place.write("trace.jsonl", "".join(lines))
    raw = os.path.join(os.path.abspath(settings.profiles), "%m-%p.profraw")
    subprocess.run(
        [settings.program, "simulate", "--config", policy, "--trace", trace],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LLVM_PROFILE_FILE": raw},
        timeout=LOAD_S_MAX,
        check=True,
    )


def certificate(place):
    """A certificate of its own for 127.0.0.1."""
    command = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", place.path("key.pem"), "-out", place.path("cert.pem")]
    subprocess.run(command, capture_output=True, check=True)
    return {"cert": place.path("cert.pem"), "key": place.path("key.pem")}


def say(text):
    """Shows what it does."""
    print(f"  {text}", flush=True)


def main():
    """Trains one server after another: in memory, over TLS, with Redis."""
    settings = options()
    os.makedirs(settings.profiles, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:

        def inside(name):
            return os.path.join(folder, name)

        origin, origin_place = upstream(inside("upstream"))
        with origin:
            port = origin_place.ports["http"]
            server, place = tidegate(settings, inside("memory"), port)
            with server:
                loads = Loads(settings, place)
                gateway(loads)
                checks(loads)
                services(loads)
                loads.reservations(300)
                loads.pages(20)
            tls = certificate(Place(inside("certificate")))
            server, place = tidegate(settings, inside("tls"), port, tls=tls)
            with server:
                loads = Loads(settings, place, "https")
                gateway(loads, 0.2)
                checks(loads, 0.1)
            store, store_place = redis(inside("redis"))
            with store:
                url = f"redis://127.0.0.1:{store_place.ports['redis']}"
                server, place = tidegate(settings, inside("shared"), port, store=url)
                with server:
                    loads = Loads(settings, place)
                    gateway(loads, 0.3)
                    checks(loads, 0.5)
                    services(loads, 0.5)
                    loads.reservations(200)
        simulation(settings, inside("simulate"))


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError, subprocess.SubprocessError) as failed:
        sys.exit(f"train: {failed}")
