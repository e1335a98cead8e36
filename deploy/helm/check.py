#!/usr/bin/env python3
"""Checks the Helm chart and the manifests of deploy/kubernetes. scripts/test --only chart runs it.

usage: deploy/helm/check.py TIDEGATE HELM KUBECONFORM SCHEMAS

SCHEMAS is the folder of kubernetes-validate that has the schemas of Kubernetes. PyYAML must be importable.
Nothing needs a cluster: objects are rendered and held against the schemas, and the program runs as the
pod would run it, on a folder that is updated as the kubelet updates a mounted ConfigMap.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.error import HTTPError

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHART = HERE / "tidegate"
# The oldest version that the chart supports, and the newest that has schemas here.
OLDEST, KUBERNETES = "1.27", "1.37"
MOUNTS = "/etc/tidegate"
# Kinds whose schemas do not come with Kubernetes. Only these may be skipped.
ELSEWHERE = {"ServiceMonitor", "PrometheusRule", "Middleware", "IngressRoute", "Gateway", "GatewayClass", "HTTPRoute", "BackendTrafficPolicy", "EnvoyGateway", "EnvoyPatchPolicy", "EnvoyProxy"}
# Fields of pods that a mistake in the chart must not weaken.
HARDENED = {"allowPrivilegeEscalation": False, "privileged": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def check(condition, what):
    if not condition:
        raise SystemExit(f"chart: {what}")


def run(*command, fails=False, **more):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False, **more)
    check((done.returncode != 0) == fails, f"{' '.join(map(str, command))} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


class Tools:
    def __init__(self, tidegate, helm, kubeconform, schemas):
        self.tidegate, self.helm, self.kubeconform = tidegate, helm, kubeconform
        self.locations = [f"{self.convert(Path(schemas), it)}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json" for it in (OLDEST, KUBERNETES)]

    @staticmethod
    def convert(source, version):
        """Rewrites ids and references, which kubeconform does not find: it would skip every object."""
        target = ROOT / "target" / "kubernetes-schemas" / version
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in (source / f"v{version}.0-local-strict").glob("*.json"):
            text = file.read_text().replace("/api/_definitions.json", "_definitions.json").replace("#/$defs/", "#/definitions/")
            schema = json.loads(text)
            schema.pop("$id", None)
            schema.pop("$schema", None)
            if "$defs" in schema:
                schema["definitions"] = schema.pop("$defs")
            (target / file.name).write_text(json.dumps(schema))
        check(len(list(target.iterdir())) > 500, f"there are no schemas in {source}")
        return target

    def lint(self, values):
        return run(self.helm, "lint", "--strict", "--kube-version", KUBERNETES, CHART, *files(values))

    def render(self, values, *sets, fails=False):
        words = [word for value in sets for word in ("--set-json", value)]
        return run(self.helm, "template", "limits", CHART, "--namespace", "edge", "--kube-version", KUBERNETES, *files(values), *words, fails=fails)

    def conform(self, text, kinds):
        """Checks the objects against the schemas. Only kinds without a schema may be skipped."""
        skipped = sum(count for kind, count in kinds.items() if kind in ELSEWHERE)
        wanted = {"valid": kinds.total() - skipped, "invalid": 0, "errors": 0, "skipped": skipped}
        for location in self.locations:
            output = run(self.kubeconform, "-strict", "-summary", "-output", "json", "-skip", ",".join(sorted(ELSEWHERE)), "-schema-location", location, input=text)
            summary = json.loads(output)["summary"]
            check(summary == wanted, f"expected {wanted}, kubeconform found {summary}")
        return wanted


def files(values):
    return ["--values", values] if values else []


def objects(text):
    return [it for it in yaml.safe_load_all(text) if it]


def kinds_of(found):
    return Counter(it["kind"] for it in found)


def header(file, word):
    """Returns the value of a comment in a file: `# expect: Service=2`."""
    return re.search(rf"^# {word}: (.*)$", file.read_text(), re.MULTILINE).group(1)


def workload(found):
    return next(it for it in found if it["kind"] in ("Deployment", "DaemonSet"))


def named(found, kind, name):
    return next((it for it in found if it["kind"] == kind and it["metadata"]["name"] == name), None)


def certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
        "-keyout", folder / "tls.key", "-out", folder / "tls.crt")
    shutil.copy(folder / "tls.crt", folder / "ca.crt")


class Pod:
    """The container of Tidegate: its arguments, variables and files, below a folder."""

    def __init__(self, found, folder):
        self.spec = workload(found)["spec"]["template"]["spec"]
        self.container = next(it for it in self.spec["containers"] if it["name"] == "tidegate")
        self.found, self.folder = found, folder
        self.updates = 0
        self.environment = {}
        for mount in self.container["volumeMounts"]:
            self.mount(mount)
        for variable in self.container.get("env", []):
            self.environment[variable["name"]] = self.local(variable.get("value") or self.secret(**variable["valueFrom"]["secretKeyRef"]))

    def local(self, text):
        return text.replace(MOUNTS, str(self.folder))

    def secret(self, name, key):
        made = named(self.found, "Secret", name)
        return made["stringData"][key] if made else "redis://127.0.0.1:1"

    def mount(self, mount):
        volume = next(it for it in self.spec["volumes"] if it["name"] == mount["name"])
        check("subPath" not in mount, "files that are mounted by subPath are never updated")
        at = Path(self.local(mount["mountPath"]))
        check(at != self.folder and str(at).startswith(str(self.folder)), f"{mount['mountPath']} is not below {MOUNTS}")
        at.mkdir(parents=True)
        if "configMap" in volume:
            made = named(self.found, "ConfigMap", volume["configMap"]["name"])
            self.update(at, made["data"] if made else {})
        elif "items" in volume["secret"]:
            certificate(at)
            for item in volume["secret"]["items"]:
                if not (at / item["path"]).exists():
                    (at / item["path"]).write_text("a-secret-of-more-than-thirty-two-bytes")
        else:
            certificate(at)

    def update(self, at, data):
        """Updates the files as the kubelet does: a dated folder, and `..data` renamed over the old one."""
        self.updates += 1
        dated = f"..2026_11_18_12_00_{self.updates:02}.4711"
        (at / dated).mkdir()
        for name, text in data.items():
            (at / dated / name).write_text(self.local(text))
        (at / "..data_tmp").symlink_to(dated)
        (at / "..data_tmp").rename(at / "..data")
        for name in data:
            if not (at / name).is_symlink():
                (at / name).symlink_to(Path("..data") / name)

    def config(self):
        path = next(it.removeprefix("--config=") for it in self.container["args"] if it.startswith("--config="))
        return Path(self.local(path))

    def arguments(self):
        return [self.local(it) for it in self.container["args"]]


def check_pod(found):
    template = workload(found)["spec"]["template"]
    spec = template["spec"]
    container = next(it for it in spec["containers"] if it["name"] == "tidegate")
    check(spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, "the pod is not hardened")
    check(container["securityContext"] == HARDENED, f"the container is not hardened: {container['securityContext']}")
    check(not spec["automountServiceAccountToken"] and not spec["enableServiceLinks"], "the pod has a token or the variables of Services")
    seconds = {name: int(value) for name, value in (it[2:].split("=") for it in container["args"] if it.startswith(("--shutdown-delay=", "--drain=")))}
    check(spec["terminationGracePeriodSeconds"] > sum(seconds.values()), "Kubernetes kills the pod before it has drained")
    ports = [it["name"] for it in container["ports"]]
    for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        asked = container[probe]["httpGet"]
        check(asked["path"] == path and asked["port"] in ports, f"{probe} asks {asked}")
    labels = template["metadata"]["labels"]
    for it in found:
        if it["kind"] == "Service":
            check(it["spec"]["selector"].items() <= labels.items(), f"{it['metadata']['name']} selects other pods")
            check(all(port["targetPort"] in ports for port in it["spec"]["ports"]), f"{it['metadata']['name']} leads nowhere")
        if it["kind"] in ("PodDisruptionBudget", "Deployment", "DaemonSet"):
            check(it["spec"]["selector"]["matchLabels"].items() <= labels.items(), f"the {it['kind']} selects other pods")
        if it["kind"] == "NetworkPolicy":
            allowed = [port["port"] for rule in it["spec"]["ingress"] for port in rule["ports"]]
            check(set(allowed) <= set(ports), f"the network policy allows {allowed}")


def check_values(tools, file):
    values = file if file else None
    tools.lint(values)
    text = tools.render(values)
    found = objects(text)
    kinds = kinds_of(found)
    if file:
        wanted = Counter({kind: int(count) for kind, count in (it.split("=") for it in header(file, "expect").split())})
        check(kinds == wanted, f"{file.name}: expected {dict(wanted)}, found {dict(kinds)}")
    summary = tools.conform(text, kinds)
    check_pod(found)
    with tempfile.TemporaryDirectory() as folder:
        pod = Pod(found, Path(folder))
        if pod.config().exists():
            run(tools.tidegate, "validate", pod.config(), env=pod.environment)
    print(f"{file.stem if file else 'no values'}: {summary['valid']} valid, {summary['skipped']} skipped")


def check_refusals(tools):
    refused = sorted((HERE / "tests" / "invalid").glob("*.yaml"))
    for file in refused:
        error = tools.render(file, fails=True)
        check(header(file, "error") in error, f"{file.name}: expected {header(file, 'error')!r} in:\n{error}")
    # kubeconform must see mistakes.
    wrong = {"replicas: 2": "replicas: two", "containerPort: 8080": "containerport: 8080", "type: ClusterIP": "type: 5"}
    text = tools.render(None)
    for right, mistake in wrong.items():
        check(right in text, f"{right} is not rendered")
        run(tools.kubeconform, "-strict", "-schema-location", tools.locations[-1], input=text.replace(right, mistake, 1), fails=True)
    print(f"refused: {len(refused)} files of wrong values, {len(wrong)} wrong objects")


def check_restarts(tools):
    """Changes that Tidegate reloads must not replace the pods; others must."""
    def pods(*sets):
        return workload(objects(tools.render(None, *sets)))["spec"]["template"]

    plain = pods()
    for change in ('config.policies=[{"name":"api","limits":[{"name":"all","rate":"1/s"}]}]', 'config.guards=[{"name":"g","deny":"ip","list":["192.0.2.1"]}]',
                   'config.store={"on_failure":"deny"}', 'config.client={"trusted_proxies":["10.0.0.0/8"]}', "replicas=5"):
        check(pods(change) == plain, f"{change} replaces the pods")
    for change in ('config.store="redis://redis:6379"', "listeners.http.settings.connections_per_address=5", 'config.logs={"refusals":"1%"}', 'redis.url="redis://redis"'):
        check(pods(change) != plain, f"{change} does not replace the pods")
    fixed = "restartOnChange=false"
    check(pods('config.store={"url":"redis://redis"}', fixed) == pods(fixed), "restartOnChange: false replaces the pods")


def check_readme():
    """Checks that the README has every value, with its default."""
    text = (CHART / "README.md").read_text()
    rows = dict(re.findall(r"^\| `([^`]+)` \|.*\| (?:`([^`]*)`)? ?\|$", text, re.MULTILINE))
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def leaves(value, path):
        if path in rows or not isinstance(value, dict) or not value:
            yield path, value
            return
        for name, inner in value.items():
            if path == "listeners" and name != "http":
                continue
            yield from leaves(inner, f"{path}.{name}" if path else name)

    wanted = dict(leaves(values, ""))
    for path, value in wanted.items():
        path = path.replace("listeners.http", "listeners.NAME")
        check(path in rows, f"README.md has no row for {path}")
        shown = rows[path]
        if shown:
            check(yaml.safe_load(shown) == value, f"README.md: the default of {path} is {value!r}, not {shown}")
    known = {path.replace("listeners.http", "listeners.NAME") for path in wanted}
    check(set(rows) <= known, f"README.md has rows for values that do not exist: {sorted(set(rows) - known)}")
    print(f"README: {len(rows)} values")


def check_docs(tools):
    """Runs the commands of the pages, with `helm template` for `helm upgrade`: there is no cluster."""
    pages = [ROOT / "docs/how-to/kubernetes.md", CHART / "README.md", ROOT / "deploy/kubernetes/README.md"]
    values = re.search(r"```yaml fragment\n(# my-values.yaml\n.*?)```", pages[0].read_text(), re.DOTALL).group(1)
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "my-values.yaml").write_text(values)
        (work / "deploy").symlink_to(ROOT / "deploy")
        (work / "bin").mkdir()
        for name, program in (("helm", tools.helm), ("tidegate", tools.tidegate)):
            (work / "bin" / name).symlink_to(Path(program).resolve())
        environment = {**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}"}
        rendered = objects(run(tools.helm, "template", "tidegate", CHART, "--kube-version", KUBERNETES, "--values", work / "my-values.yaml"))
        names = {(it["kind"].lower(), it["metadata"]["name"]) for it in rendered}
        for page in pages:
            blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
            for line in re.findall(r"^\$ (.*)$", "\n".join(blocks), re.MULTILINE):
                for kind, name in re.findall(r"\b(service|deployment)/([a-z-]+)", line):
                    check((kind, name) in names, f"{page.name}: the chart makes no {kind} {name}: {line}")
                for file in re.findall(r"kubectl apply -f (\S+)", line):
                    check((ROOT / file).is_file(), f"{page.name}: there is no {file}")
                if line.startswith(("helm ", "tidegate ")):
                    command = line.replace("helm upgrade --install", "helm template").replace(" --create-namespace", "").replace("helm template", f"helm template --kube-version {KUBERNETES}")
                    run("bash", "-euo", "pipefail", "-c", command, cwd=work, env=environment)
                    ran += 1
    check(ran >= 5, f"only {ran} commands were found")
    print(f"docs: {ran} commands")


def fetch(port, path, body=None, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body and json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


class Running:
    """The program with the arguments and variables of a pod."""

    def __init__(self, tools, pod):
        self.process = subprocess.Popen([tools.tidegate, *pod.arguments()], env=pod.environment, stderr=subprocess.PIPE, text=True)

    def logs(self, message, **fields):
        """Reads the log up to this line, and returns it."""
        seen = []
        for line in self.process.stderr:
            seen.append(line)
            entry = json.loads(line)
            if entry["message"] == message and fields.items() <= entry.items():
                return entry
        raise SystemExit(f"chart: never logged {message!r}:\n{''.join(seen)}")

    def port(self, listener):
        """Waits until a listener is open, and returns its port."""
        return int(self.logs("listening", listener=listener)["address"].rsplit(":", 1)[1])

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def check_life(tools):
    """Checks that a pod starts, gets ready, reloads another configuration without a restart, and drains."""
    sets = ["shutdownDelay=3", "drain=5", 'config.client={"trusted_proxies":["127.0.0.1"]}']

    def limits(rate):
        return 'config.policies=[{"name":"api","limits":[{"name":"per-client","key":"ip","rate":"%s"}]}]' % rate

    with tempfile.TemporaryDirectory() as folder:
        pod = Pod(objects(tools.render(None, *sets, limits("2/h"))), Path(folder))
        # The pod has its ports for itself. This machine may not: free ports replace them.
        pod.environment |= {"TIDEGATE_LISTEN_HTTP": "127.0.0.1:0", "TIDEGATE_LISTEN_ADMIN": "127.0.0.1:0"}
        running = Running(tools, pod)
        try:
            http, admin = (running.port(listener) for listener in ("http", "admin"))
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                path = pod.container[probe]["httpGet"]["path"]
                status, body = fetch(admin, path)
                check(status == 200, f"{path} says {status} {body}")
            status, body = fetch(http, "/v1/check", {"ip": "192.0.2.1"})
            check(json.loads(body)["band"] == "2/h", f"the first decision is {body}")
            check_forward_auth(http)
            changed = objects(tools.render(None, *sets, limits("7/h")))
            check(workload(changed)["spec"]["template"]["metadata"] == workload(pod.found)["spec"]["template"]["metadata"], "another limit replaces the pods")
            pod.update(pod.config().parent, named(changed, "ConfigMap", "limits-tidegate")["data"])
            running.logs("config reloaded")
            status, body = fetch(http, "/v1/check", {"ip": "192.0.2.9"})
            check(json.loads(body)["band"] == "7/h", f"after the change, the decision is {body}")
            running.process.send_signal(signal.SIGTERM)
            running.logs("shutting down")
            status, body = fetch(admin, "/readyz")
            check(status == 503, f"while it shuts down, /readyz says {status} {body}")
            status, body = fetch(http, "/v1/check", {"ip": "192.0.2.9"})
            check(status == 200, f"while it shuts down, a check gets {status} {body}")
            running.process.stderr.read()
            status = running.process.wait(timeout=pod.spec["terminationGracePeriodSeconds"])
            check(status == 0, f"it ended with {status}")
        finally:
            running.end()
    print("a pod: started, ready, reloaded, drained")


def check_forward_auth(port):
    """Sends the requests of ingress-nginx and of Traefik, header for header, to the paths of the manifests."""
    nginx = (ROOT / "deploy/kubernetes/ingress-nginx.yaml").read_text()
    path = re.search(r"auth-url: http://[^/]+(/\S+)", nginx).group(1)
    headers = {"X-Original-URL": "https://shop.example.com/orders?page=2", "X-Original-Method": "GET", "X-Sent-From": "nginx-ingress-controller",
               "X-Real-IP": "192.0.2.50", "X-Forwarded-For": "192.0.2.50", "X-Auth-Request-Redirect": "/orders?page=2", "X-Original-URI": "/orders?page=2", "X-Scheme": "https"}
    statuses = [fetch(port, path, **headers)[0] for _ in range(3)]
    check(statuses == [200, 200, 403], f"the requests of ingress-nginx get {statuses}")
    traefik = (ROOT / "deploy/kubernetes/traefik.yaml").read_text()
    path = re.search(r"address: http://[^/]+(/\S+)", traefik).group(1)
    headers = {"X-Forwarded-Method": "GET", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example.com", "X-Forwarded-Uri": "/orders?page=2", "X-Forwarded-For": "192.0.2.51"}
    statuses = [fetch(port, path, **headers)[0] for _ in range(3)]
    check(statuses == [200, 200, 429], f"the requests of Traefik get {statuses}")


def check_without_server(tools, pod):
    """Checks a configuration whose limits come from an xDS server. There is none here: that alone may be wrong."""
    copy = pod.folder / "tidegate.yaml"
    copy.write_text(re.sub(r"timeout: 1min\b", "timeout: 1s", pod.config().read_text()))
    done = subprocess.run([tools.tidegate, "validate", copy], text=True, capture_output=True, check=False, env=pod.environment)
    expected = "the config source `xds` is unavailable after 1s"
    check(done.returncode == 1 and expected in done.stderr, f"expected {expected!r}, validate exited with {done.returncode}:\n{done.stdout}{done.stderr}")


def check_manifests(tools):
    """Checks that the chart makes the Services that the manifests name."""
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml")):
        if file.name.endswith(".values.yaml"):
            continue
        text = file.read_text()
        found = objects(text)
        summary = tools.conform(text, kinds_of(found))
        values = file.with_suffix(".values.yaml")
        namespace = re.search(r"^# namespace: (\S+)$", values.read_text(), re.MULTILINE)
        namespace = namespace.group(1) if namespace else "tidegate"
        rendered = objects(run(tools.helm, "template", "tidegate", CHART, "--namespace", namespace, "--kube-version", KUBERNETES, *files(values)))
        check_pod(rendered)
        with tempfile.TemporaryDirectory() as folder:
            pod = Pod(rendered, Path(folder))
            if "xds:" in pod.config().read_text():
                check_without_server(tools, pod)
            else:
                run(tools.tidegate, "validate", pod.config(), env=pod.environment)
        services = {it["metadata"]["name"]: [port["port"] for port in it["spec"]["ports"]] for it in rendered if it["kind"] == "Service"}
        uses = re.findall(rf"\b(tidegate-[a-z]+)\.{namespace}\.svc(?:\.cluster\.local)?:?(\d+)?", text)
        check(uses, f"{file.name} names no Service of Tidegate")
        for name, port in uses:
            check(name in services and (not port or int(port) in services[name]), f"{file.name} names {name}:{port}, there are {services}")
        print(f"{file.stem}: {summary['valid']} valid, {summary['skipped']} skipped")


def check_against_examples():
    """The manifests configure Traefik and Envoy as the examples do, which run with the real proxies."""
    def loaded(path):
        return objects((ROOT / path).read_text())

    middleware = loaded("deploy/kubernetes/traefik.yaml")[0]["spec"]["forwardAuth"]
    example = loaded("examples/traefik-forward-auth/dynamic.yml")[0]["http"]["middlewares"]["limits"]["forwardAuth"]
    check({**middleware, "address": None} == {**example, "address": None}, f"traefik.yaml has {middleware}, the example {example}")

    patches = {it["type"].rsplit(".", 1)[1]: it["operation"] for it in loaded("deploy/kubernetes/envoy-gateway.yaml")[-1]["spec"]["jsonPatches"]}
    envoy = loaded("examples/envoy/envoy.yaml")[0]["static_resources"]
    manager = envoy["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    check(patches["Listener"]["value"] == manager["http_filters"][0], "envoy-gateway.yaml has another filter than the example")
    actions = manager["route_config"]["virtual_hosts"][0]["routes"][0]["route"]["rate_limits"]
    check(all(it in actions for it in patches["RouteConfiguration"]["value"]), "envoy-gateway.yaml has other descriptors than the example")
    cluster = next(it for it in envoy["clusters"] if it["name"] == "tidegate")
    for field in ("name", "connect_timeout", "typed_extension_protocol_options"):
        check(patches["Cluster"]["value"][field] == cluster[field], f"envoy-gateway.yaml has another {field} than the example")
    print("manifests: as in the examples")


def main():
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    tools = Tools(*sys.argv[1:])
    os.environ["HELM_CACHE_HOME"] = os.environ["HELM_CONFIG_HOME"] = os.environ["HELM_DATA_HOME"] = str(ROOT / "target" / "helm")
    for file in [None, *sorted((HERE / "tests" / "valid").glob("*.yaml"))]:
        check_values(tools, file)
    check_refusals(tools)
    check_restarts(tools)
    check_manifests(tools)
    check_against_examples()
    check_readme()
    check_docs(tools)
    check_life(tools)


if __name__ == "__main__":
    main()
