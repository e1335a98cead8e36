#!/usr/bin/env python3
"""Tries the manifests of Envoy Gateway with its real controller and a real Envoy, without a cluster.

usage: unshare --net --mount deploy/kubernetes/try_envoy_gateway.py TIDEGATE ENVOY_GATEWAY ENVOY

`scripts/soak envoy-gateway` installs the programs and calls it, as root, in a network and with mounts of its own:
the controller listens on fixed ports, and names of the cluster lead to this machine. The controller runs
standalone: it reads its objects from files, starts Envoy itself, and sends the limits of BackendTrafficPolicy
over xDS, with certificates of its own. The objects are those of envoy-gateway-xds.yaml, then of envoy-gateway.yaml;
Tidegate has the configurations of their values. PyYAML must be importable.
"""

import base64
import http.client
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
NAMESPACE = "envoy-gateway-system"
# The names of the cluster that lead to this machine. Envoy Gateway's certificate has the first.
NAMES = ["envoy-gateway", f"tidegate-grpc.{NAMESPACE}.svc.cluster.local", "tidegate-grpc.tidegate.svc.cluster.local"]
# The controller itself listens on 8081.
APPLICATION, ADMIN, RLS = 8085, 8090, 9081
PATIENCE = 60
CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"


def check(condition, what):
    if not condition:
        raise SystemExit(f"envoy gateway: {what}")


class Application(http.server.BaseHTTPRequestHandler):
    """What Envoy forwards to."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(port, path, **headers):
    """Returns status and headers, or None while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"host": "shop.example.com", **headers})
        response = connection.getresponse()
        body = response.read().decode()
        return response.status, dict(response.getheaders()), body
    except OSError:
        return None
    finally:
        connection.close()


class Stand:
    def __init__(self, folder, tidegate, controller, envoy):
        self.folder, self.tidegate, self.controller = folder, tidegate, controller
        self.processes, self.logs = [], {}
        self.port = 80
        subprocess.run([controller, "certgen", "--local", "--config-home", folder / "config"], check=True, capture_output=True)
        # Where the controller would put an Envoy that it downloads.
        self.version = subprocess.run([envoy, "--version"], text=True, capture_output=True, check=True).stdout.split("/")[1]
        place = folder / "data" / "envoy-versions" / self.version / "bin"
        place.mkdir(parents=True)
        (place / "envoy").symlink_to(envoy)
        (folder / "objects").mkdir()

    def start(self, name, *command, **more):
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out, start_new_session=True, **more)
        self.processes.append(process)
        self.logs[name] = log
        return log

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)

    def stop(self):
        for process in reversed(self.processes):
            self.end(process)

    def until(self, what, found):
        """Waits for something, and shows the ends of the logs if it does not happen."""
        end = time.monotonic() + PATIENCE
        while not found():
            if time.monotonic() > end or any(it.poll() is not None for it in self.processes):
                logs = [f"--- {name}\n{file.read_text()[-6000:]}" for name, file in self.logs.items()]
                raise SystemExit("\n".join([f"envoy gateway: not within {PATIENCE} s: {what}", *logs]))
            time.sleep(0.05)

    def certificates(self, owner):
        return self.folder / "config" / "certs" / owner

    def start_controller(self):
        settings = {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1",
            "kind": "EnvoyGateway",
            "gateway": {"controllerName": CONTROLLER},
            "provider": {
                "type": "Custom",
                "custom": {
                    "resource": {"type": "File", "file": {"paths": [str(self.folder / "objects")]}},
                    "infrastructure": {
                        "type": "Host",
                        "host": {
                            "configHome": str(self.folder / "config"),
                            "dataHome": str(self.folder / "data"),
                            "stateHome": str(self.folder / "state"),
                            "runtimeDir": str(self.folder / "run"),
                        },
                    },
                },
            },
            "extensionApis": {"enableEnvoyPatchPolicy": True, "enableBackend": True},
            # Without it the controller rejects the policy. It starts no service here, and calls no Redis.
            "rateLimit": {"backend": {"type": "Redis", "redis": {"url": "localhost:6379"}}},
        }
        (self.folder / "controller.yaml").write_text(yaml.safe_dump(settings))
        self.start("controller", self.controller, "server", "--config-path", self.folder / "controller.yaml", env={**os.environ, "HOME": str(self.folder)})

    def write_objects(self, manifest, requests=None):
        """Writes the objects of a manifest, with another limit by address and what a cluster has besides."""
        text = (HERE / manifest).read_text()
        text = text.replace("/certs/ca.crt", str(self.certificates("envoy") / "ca.crt"))
        text = text.replace("port_value: 8081", f"port_value: {RLS}")
        objects = list(yaml.safe_load_all(text))
        kinds = {it["kind"]: it for it in objects}
        if requests:
            rules = kinds["BackendTrafficPolicy"]["spec"]["rateLimit"]["global"]["rules"]
            rules[0]["limit"] = {"requests": requests, "unit": "Hour"}
        # Services have endpoints in a cluster only.
        backend = {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "shop"}
        kinds["HTTPRoute"]["spec"]["rules"][0]["backendRefs"] = [backend]
        kinds["Gateway"]["spec"]["infrastructure"] = {"parametersRef": {"group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "host"}}
        secret = {it: base64.b64encode((self.certificates("envoy") / it).read_bytes()).decode() for it in ("tls.crt", "tls.key", "ca.crt")}
        gateway = "gateway.envoyproxy.io/v1alpha1"
        objects += [
            {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"}, "spec": {"controllerName": CONTROLLER}},
            {"apiVersion": gateway, "kind": "Backend", "metadata": {"name": "shop", "namespace": "shop"}, "spec": {"endpoints": [{"ip": {"address": "127.0.0.1", "port": APPLICATION}}]}},
            {"apiVersion": gateway, "kind": "EnvoyProxy", "metadata": {"name": "host", "namespace": "shop"}, "spec": {"provider": {"type": "Host", "host": {"envoyVersion": self.version}}}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "envoy", "namespace": NAMESPACE}, "type": "kubernetes.io/tls", "data": secret},
        ]
        # Replaced in one step: the controller watches the folder.
        new = self.folder / "objects.new"
        new.write_text(yaml.safe_dump_all(objects))
        new.rename(self.folder / "objects" / "objects.yaml")

    def start_tidegate(self, manifest):
        """Starts it with the configuration that the chart's values for a manifest give, and their certificates."""
        values = (HERE / manifest.replace(".yaml", ".values.yaml")).read_text()
        owner = self.certificates("envoy-rate-limit")
        values = yaml.safe_load(values.replace("/etc/tidegate/tls/grpc", str(owner)))
        config = {name: value for name, value in values["config"].items() if value is not None}
        grpc = {"address": f"127.0.0.1:{RLS}"}
        if "tls" in values["listeners"]["grpc"]:
            grpc["tls"] = {"cert": str(owner / "tls.crt"), "key": str(owner / "tls.key"), "client_ca": str(owner / "ca.crt")}
        config["listen"] = {"grpc": grpc, "admin": f"127.0.0.1:{ADMIN}"}
        (self.folder / "tidegate.yaml").write_text(yaml.safe_dump(config))
        return self.start("tidegate", self.tidegate, "serve", self.folder / "tidegate.yaml", env={})

    def limits(self):
        answer = ask(ADMIN, "/rlconfig")
        return answer[2] if answer and answer[0] == 200 else ""

    def status(self):
        answer = ask(self.port, "/")
        return answer and answer[0]

    def limited_over_xds(self):
        """Limits in BackendTrafficPolicy."""
        manifest = "envoy-gateway-xds.yaml"
        self.write_objects(manifest, 5)
        self.start_controller()
        log = self.start_tidegate(manifest)
        self.until("Tidegate has the limits of the policy", lambda: "requests_per_unit=5" in self.limits())
        self.until("Envoy serves the route", lambda: self.status() in (200, 429))
        self.until("Envoy asks Tidegate", lambda: self.passing(20) < 20)
        self.write_objects(manifest, 9)
        self.until("Tidegate has the changed limits", lambda: "requests_per_unit=9" in self.limits())
        check(self.passing(20) == 4, "the changed limit should let 4 more requests pass")
        check('"event":"config_error"' not in log.read_text(), f"Tidegate rejected a version:\n{log.read_text()}")
        print("envoy-gateway-xds.yaml: limits arrive over xDS, change at runtime, and Envoy enforces them")

    def limited_by_tidegate(self):
        """Limits in Tidegate's configuration."""
        manifest = "envoy-gateway.yaml"
        self.end(self.processes.pop())
        self.write_objects(manifest)
        self.start_tidegate(manifest)
        # The values allow 100 at once, for each address.
        self.until("Envoy asks Tidegate", lambda: self.passing(150) < 150)
        print("envoy-gateway.yaml: Envoy enforces the limits of Tidegate's configuration")

    def passing(self, most):
        """Returns the number of requests that pass before one is refused."""
        for count in range(most):
            status, headers, _ = ask(self.port, "/")
            if status == 429:
                check(headers.get("x-ratelimit-limit"), f"a refusal without X-RateLimit-Limit: {headers}")
                return count
            check(status == 200, f"status {status} instead of 200")
        return most


def private_names(folder):
    """Lets names of the cluster lead to this machine, for programs of this mount namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(NAMES)}\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


def main(tidegate, controller, envoy):
    server = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        private_names(folder)
        stand = Stand(folder, Path(tidegate).resolve(), Path(controller).resolve(), Path(envoy).resolve())
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", APPLICATION), Application)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stand.limited_over_xds()
            stand.limited_by_tidegate()
        finally:
            stand.stop()
            if server:
                server.shutdown()
            if os.environ.get("KEEP_LOGS"):
                for name, file in stand.logs.items():
                    Path(os.environ["KEEP_LOGS"], f"{name}.log").write_text(file.read_text())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
