"""The configuration of each proxy: one worker, one upstream, kept-alive connections, no access log.

Every function writes its files into `site.folder` and gives back the command's arguments. `limit` is
None where there is to be none.
"""

import dataclasses
import json
import os

# Long enough that no connection is closed for being idle while one measures.
IDLE_S = 600
USER_HEADER = "X-User"
MANY = 1_000_000_000


@dataclasses.dataclass
class Site:
    """Where a proxy stands."""

    folder: str
    http1: int
    http2: int
    admin: int
    upstream: int
    connections: int
    """How many it must be able to hold."""

    def write(self, name, content):
        """Writes one file of the configuration; what is not text becomes JSON."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path


@dataclasses.dataclass
class Limit:
    """How much each client may do, and what a client is."""

    rate: int
    """A second."""
    burst: int
    by_address: bool = False
    """By X-Forwarded-For, for we are a trusted proxy; else by the header X-User."""


def upstream(site, body):
    """The upstream of everybody: nginx, with a constant answer."""
    server = f"server {{ listen 127.0.0.1:{site.http1}; location / {{ return 200 '{body}'; }} }}"
    return _nginx(site, server)


def nginx(site, limit, traces=False):
    """nginx as a proxy, with `limit_req`. `traces`: it tells the upstream who asked, as we do."""
    zone, rule, told = "", "", ""
    if limit and limit.by_address:
        zone = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;\n"
    if limit:
        key = "$binary_remote_addr" if limit.by_address else "$http_x_user"
        zone += f"limit_req_zone {key} zone=clients:64m rate={limit.rate}r/s;"
        rule = f"limit_req zone=clients burst={limit.burst} nodelay; limit_req_status 429;"
    if traces:
        fields = {
            "Host": "$host",
            "Via": '"1.1 edge"',
            "Forwarded": '"for=$remote_addr;host=$host;proto=$scheme"',
            "X-Forwarded-For": "$proxy_add_x_forwarded_for",
            "X-Forwarded-Host": "$host",
            "X-Forwarded-Proto": "$scheme",
        }
        told = " ".join(f"proxy_set_header {name} {value};" for name, value in fields.items())
    return _nginx(
        site,
        f"""{zone}
  upstream up {{
    server 127.0.0.1:{site.upstream};
    keepalive 256; keepalive_requests {MANY}; keepalive_timeout {IDLE_S}s;
  }}
  server {{
    listen 127.0.0.1:{site.http1} backlog=4096;
    listen 127.0.0.1:{site.http2} http2;
    location / {{
      {rule}
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; {told}
    }}
  }}""",
    )


def _nginx(site, http):
    # Without a master the worker is the process that we started, and its accounts are all there is.
    temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    paths = " ".join(f"{kind}_temp_path {site.folder}/{kind};" for kind in temporary)
    path = site.write(
        "nginx.conf",
        f"""daemon off; master_process off; worker_processes 1; pid {site.folder}/pid;
error_log {site.folder}/error.log crit;
events {{ worker_connections {site.connections + 1000}; multi_accept on; }}
http {{
  access_log off; keepalive_requests {MANY}; keepalive_timeout {IDLE_S}s; {paths}
  {http}
}}
""",
    )
    return ["-p", site.folder, "-e", f"{site.folder}/start.log", "-c", path]


def haproxy(site, limit):
    """HAProxy with a stick table. It has rates and no bursts: what may be done at once may be done
    in ten seconds. It would not start unless every client may have an upstream connection of its
    own, which `no strict-limits` forgoes."""
    rules = ""
    if limit:
        by_address = limit.by_address
        kind, key = ("ip", "src") if by_address else ("string len 32", f"req.hdr({USER_HEADER})")
        if by_address:
            rules = "  http-request set-src req.hdr(X-Forwarded-For) if { src 127.0.0.0/8 }\n"
        rules += f"""  stick-table type {kind} size 1m expire 60s store http_req_rate(10s)
  http-request track-sc0 {key}
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {limit.burst} }}
"""
    path = site.write(
        "haproxy.cfg",
        f"""global
  nbthread 1
  maxconn {site.connections}
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client {IDLE_S}s
  timeout server {IDLE_S}s
  timeout http-keep-alive {IDLE_S}s
  http-reuse always
frontend in
  bind 127.0.0.1:{site.http1}
  bind 127.0.0.1:{site.http2} proto h2
{rules}  default_backend out
backend out
  server up 127.0.0.1:{site.upstream}
""",
    )
    return ["-db", "-f", path]


ENVOY_API = "type.googleapis.com/envoy.extensions.filters"


def _typed(name, kind, **fields):
    return {"name": name, "typed_config": {"@type": f"{ENVOY_API}.{kind}", **fields}}


def envoy(site, limit):
    """Envoy with local_ratelimit: a bucket for every value of the key, made as they come."""
    router = _typed("envoy.filters.http.router", "http.router.v3.Router")
    filters = [_envoy_limit(limit), router] if limit else [router]
    route = {"match": {"prefix": "/"}, "route": {"cluster": "up"}}
    hosts = [{"name": "all", "domains": ["*"], "routes": [route]}]
    manager = _typed(
        "envoy.filters.network.http_connection_manager",
        "network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="in",
        # Tells HTTP/2 from HTTP/1.1 by its first bytes.
        codec_type="AUTO",
        route_config={"name": "all", "virtual_hosts": hosts},
        http_filters=filters,
        # The peer is a trusted proxy only if it is to be.
        use_remote_address=bool(limit and limit.by_address),
        xff_num_trusted_hops=1 if limit and limit.by_address else 0,
    )
    listener = {
        "name": "in",
        "address": _envoy_address(site.http1),
        "filter_chains": [{"filters": [manager]}],
    }
    endpoint = {"endpoint": {"address": _envoy_address(site.upstream)}}
    cluster = {
        "name": "up",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "up", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    path = site.write(
        "envoy.json", {"static_resources": {"listeners": [listener], "clusters": [cluster]}}
    )
    return ["-c", path, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"]


def _envoy_limit(limit):
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    if limit.by_address:
        key, action = "remote_address", {"remote_address": {}}
    else:
        key = "user"
        action = {"request_headers": {"header_name": USER_HEADER.lower(), "descriptor_key": key}}

    def bucket(rate, burst):
        return {"max_tokens": burst, "tokens_per_fill": rate, "fill_interval": "1s"}

    return _typed(
        "envoy.filters.http.local_ratelimit",
        "http.local_ratelimit.v3.LocalRateLimit",
        stat_prefix="limit",
        filter_enabled=always,
        filter_enforced=always,
        token_bucket=bucket(MANY, MANY),
        always_consume_default_token_bucket=False,
        max_dynamic_descriptors=100_000,
        descriptors=[{"entries": [{"key": key}], "token_bucket": bucket(limit.rate, limit.burst)}],
        rate_limits=[{"actions": [action]}],
    )


def _envoy_address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def traefik(site, limit):
    """Traefik with the RateLimit middleware, in memory."""
    router = {"rule": "PathPrefix(`/`)", "entryPoints": ["in"], "service": "up"}
    servers = [{"url": f"http://127.0.0.1:{site.upstream}"}]
    services = {"up": {"loadBalancer": {"servers": servers}}}
    dynamic = {"routers": {"all": router}, "services": services}
    if limit:
        header = {"requestHeaderName": USER_HEADER}
        by = {"ipStrategy": {"depth": 1}} if limit.by_address else header
        rule = {"average": limit.rate, "burst": limit.burst, "sourceCriterion": by}
        dynamic["middlewares"] = {"limit": {"rateLimit": rule}}
        router["middlewares"] = ["limit"]
    entry = {
        "address": f"127.0.0.1:{site.http1}",
        "forwardedHeaders": {"trustedIPs": ["127.0.0.0/8"]},
        "transport": {"respondingTimeouts": {"idleTimeout": f"{IDLE_S}s"}},
    }
    # JSON is YAML, and the name's ending is all that it goes by.
    provider = {"filename": site.write("dynamic.yml", {"http": dynamic}), "watch": False}
    static = {
        "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
        "log": {"level": "ERROR"},
        "entryPoints": {"in": entry},
        "providers": {"file": provider},
    }
    return [f"--configFile={site.write('static.yml', static)}"]


def bare(site):
    """Our own proxy that does nothing else."""
    listen = ["--listen", f"127.0.0.1:{site.http1}", "--listen-http2", f"127.0.0.1:{site.http2}"]
    return [*listen, "--upstream", site.upstream]


def bare_shared(site):
    """The same with one runtime for all threads."""
    return [*bare(site), "--shared-runtime"]


def tidegate(site, limit, headers=None):
    """Tidegate. `headers` is what it tells of a limit; None for what it tells unless told."""
    route = {"name": "all", "upstreams": [f"http://127.0.0.1:{site.upstream}"]}
    listen = {"gateway": f"127.0.0.1:{site.http1}", "admin": f"127.0.0.1:{site.admin}"}
    content = {"listen": listen, "client": {"user": {"header": USER_HEADER}}, "routes": [route]}
    # A limit that nobody carries, where there is to be none: a configuration has at least one.
    limit, route["policy"] = (limit, "clients") if limit else (Limit(1, 1), "none")
    rule = {
        "name": "per-client",
        "key": "ip" if limit.by_address else "user",
        "rate": f"{limit.rate}/s burst {limit.burst}",
    }
    content["policies"] = [{"name": "clients", "limits": [rule]}]
    if headers is not None:
        content["respond"] = {"headers": headers}
    return ["serve", "--config", site.write("tidegate.yaml", content)]
