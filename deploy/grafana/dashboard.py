#!/usr/bin/env python3
"""Writes the dashboard: deploy/grafana/dashboard.py > deploy/grafana/tidegate.json

Change this file, never the JSON. scripts/test --only chart compares the two, and
crates/server/tests/watch/dashboard.rs runs every query against a Prometheus that scrapes Tidegate.
"""

import json
import sys

# Every query selects by these. The names of limits are empty where no limit decided.
INSTANCES = 'job=~"$job", instance=~"$instance"'
POLICIES = f'{INSTANCES}, policy=~"$policy"'
LIMITS = f'{POLICIES}, limit=~"$limit"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
RED, GREEN, YELLOW = "red", "green", "yellow"


def rate(metric, selector=INSTANCES, extra=""):
    return f"rate({metric}{{{selector}{extra}}}[$__rate_interval])"


def total(metric, by, selector=INSTANCES, extra=""):
    return f"sum by ({by}) ({rate(metric, selector, extra)})"


def whole(metric, selector=INSTANCES, extra=""):
    return f"sum({rate(metric, selector, extra)})"


def quantile(share, metric, by="", selector=INSTANCES):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) ({rate(metric + '_bucket', selector)}))"


def gauge(metric, by, how="sum", selector=INSTANCES, extra=""):
    return f"{how} by ({by}) ({metric}{{{selector}{extra}}})"


class Dashboard:
    """Panels from left to right, in rows of 24 columns."""

    def __init__(self):
        self.panels = []
        self.x = self.y = self.height = 0

    def place(self, panel, width, height):
        if self.x + width > 24:
            self.x, self.y, self.height = 0, self.y + self.height, 0
        position = {"h": height, "w": width, "x": self.x, "y": self.y}
        self.x += width
        self.height = max(self.height, height)
        self.panels.append({"id": len(self.panels) + 1, "gridPos": position, **panel})

    def row(self, title):
        self.x, self.y, self.height = 0, self.y + self.height, 0
        self.place({"type": "row", "title": title, "collapsed": False, "panels": []}, 24, 1)
        self.x, self.y, self.height = 0, self.y + 1, 0

    def targets(self, queries, instant, form="time_series"):
        targets = []
        for letter, (legend, query) in zip("ABCDEFGH", queries.items(), strict=False):
            target = {"refId": letter, "datasource": DATASOURCE, "expr": query, "legendFormat": legend, "editorMode": "code", "format": form}
            target["instant"], target["range"] = instant, not instant
            targets.append(target)
        return targets

    def stat(self, title, query, description, unit="short", steps=((GREEN, None),), mappings=()):
        thresholds = {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps]}
        defaults = {"unit": unit, "thresholds": thresholds, "mappings": list(mappings), "color": {"mode": "thresholds"}}
        reduce = {"values": False, "calcs": ["lastNotNull"], "fields": ""}
        options = {"reduceOptions": reduce, "orientation": "auto", "textMode": "value", "colorMode": "background", "graphMode": "area", "justifyMode": "auto"}
        self.place({"type": "stat", "title": title, "description": description, "datasource": DATASOURCE, "targets": self.targets({"": query}, False),
                    "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}, 4, 4)

    def graph(self, title, queries, description, unit="short", width=12, stacked=False, maximum=None):
        custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 20 if stacked else 5, "showPoints": "never", "spanNulls": False,
                  "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
        defaults = {"unit": unit, "min": 0, "custom": custom, "color": {"mode": "palette-classic"}}
        if maximum is not None:
            defaults["max"] = maximum
        options = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": True},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
        self.place({"type": "timeseries", "title": title, "description": description, "datasource": DATASOURCE, "targets": self.targets(queries, False),
                    "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}, width, 8)

    def table(self, title, query, description, unit="short", width=12):
        defaults = {"unit": unit, "custom": {"align": "auto", "filterable": True}}
        organize = {"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {}}}
        self.place({"type": "table", "title": title, "description": description, "datasource": DATASOURCE, "targets": self.targets({"": query}, True, "table"),
                    "fieldConfig": {"defaults": defaults, "overrides": []}, "options": {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]},
                    "transformations": [organize]}, width, 8)

    def heatmap(self, title, query, description, width=12):
        target = self.targets({"{{le}}": query}, False, "heatmap")
        options = {"calculate": False, "yAxis": {"unit": "s"}, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "fill": "dark-orange"},
                   "cellGap": 1, "legend": {"show": True}, "tooltip": {"mode": "single", "yHistogram": True}}
        self.place({"type": "heatmap", "title": title, "description": description, "datasource": DATASOURCE, "targets": target, "options": options,
                    "fieldConfig": {"defaults": {"custom": {}}, "overrides": []}}, width, 8)


def variable(name, query, every=None):
    return {"name": name, "label": name.capitalize(), "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": f"variable-{name}"}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True,
            "allValue": every or ".*", "current": {"text": ["All"], "value": ["$__all"]}, "options": [], "hide": 0, "skipUrlSync": False}


def variables():
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "multi": False, "includeAll": False,
              "current": {}, "options": [], "hide": 0, "regex": "", "skipUrlSync": False}
    return [
        source,
        variable("job", "label_values(tidegate_build_info, job)", ".+"),
        variable("instance", 'label_values(tidegate_build_info{job=~"$job"}, instance)', ".+"),
        variable("policy", f"label_values(tidegate_limit_hits_total{{{INSTANCES}}}, policy)"),
        variable("limit", f"label_values(tidegate_limit_hits_total{{{POLICIES}}}, limit)"),
    ]


UP = [{"type": "value", "options": {"0": {"text": "down", "color": RED}, "1": {"text": "up", "color": GREEN}}}]
YES = [{"type": "value", "options": {"0": {"text": "no", "color": GREEN}}}]


def panels():
    board = Dashboard()
    overview(board)
    decisions(board)
    latency(board)
    store(board)
    memory(board)
    gateway(board)
    configuration(board)
    connections(board)
    return board.panels


def overview(board):
    board.row("Overview")
    board.stat("Instances", f"count(tidegate_build_info{{{INSTANCES}}})", "Instances that Prometheus scrapes.")
    board.stat("Decisions", whole("tidegate_decisions_total", POLICIES, ', outcome!="shadow_refused"'), "Decisions per second.", "reqps")
    refused = whole("tidegate_decisions_total", POLICIES, ', outcome="refused"')
    every = whole("tidegate_decisions_total", POLICIES, ', outcome!="shadow_refused"')
    board.stat("Refused", f"{refused} / {every}", "Share of decisions that were refused.", "percentunit", ((GREEN, None), (YELLOW, 0.05), (RED, 0.1)))
    board.stat("Decision p99", quantile(0.99, "tidegate_decision_duration_seconds", selector=POLICIES),
               "99 of 100 decisions are faster. Time in a queue is not included.", "s", ((GREEN, None), (YELLOW, 0.005), (RED, 0.01)))
    board.stat("Store", f"min(tidegate_store_up{{{INSTANCES}}})",
               "Down: at least one instance cannot reach Redis, and applies on_failure. Empty with buckets in memory.", steps=((RED, None), (GREEN, 1)), mappings=UP)
    stale = f"max(tidegate_source_stale{{{INSTANCES}}} + tidegate_source_rejected{{{INSTANCES}}})"
    board.stat("Stale or rejected configuration", stale,
               "Above 0: an instance cannot load a config source, or rejected its current version, and serves the previous one.",
               steps=((GREEN, None), (RED, 1)), mappings=YES)


def decisions(board):
    board.row("Decisions per limit")
    board.graph("Decisions by outcome", {"{{outcome}}": total("tidegate_decisions_total", "outcome", LIMITS)},
                "Decisions per second. shadow_refused: a limit in shadow mode would have refused; counted in addition to the decision itself.", "reqps", stacked=True)
    board.graph("Refused decisions by limit", {"{{policy}} / {{limit}}": total("tidegate_decisions_total", "policy, limit", LIMITS, ', outcome="refused"')},
                "Refused decisions per second, by the reported limit. Without a limit: a guard refused.", "reqps", stacked=True)
    hits = "tidegate_limit_hits_total"
    board.graph("Allowed hits by limit", {"{{policy}} / {{limit}}": total(hits, "policy, limit", LIMITS, ', mode="enforce", outcome="allowed"')},
                "Hits (cost) per second of every limit that a request matches, also if another limit is reported.", stacked=True)
    refused = total(hits, "policy, limit", LIMITS, ', mode="enforce", outcome="refused"')
    share = refused + " / " + total(hits, "policy, limit", LIMITS, ', mode="enforce"')
    board.graph("Share of refused hits by limit", {"{{policy}} / {{limit}}": share}, "Refused hits as a share of all hits of the limit.", "percentunit", maximum=1)
    board.graph("Shadow mode: hits that would be refused", {"{{policy}} / {{limit}}": total(hits, "policy, limit", LIMITS, ', mode="shadow", outcome="refused"')},
                "Limits in shadow mode. Enforce them once this is what you expect.")
    board.graph("Hits near a limit", {"{{policy}} / {{limit}}": total("tidegate_limit_near_hits_total", "policy, limit", LIMITS)},
                "Allowed hits that used more than 80 % of their limit.")
    board.graph("Refusals by reason", {"{{policy}} {{reason}}": total("tidegate_decisions_total", "policy, reason", POLICIES, ', outcome="refused"')},
                "limited: a rate was exceeded. See docs/reference/metrics.md for the other reasons.", "reqps", stacked=True)
    board.graph("Guards", {"refused by {{guard}} ({{reason}})": total("tidegate_guard_refusals_total", "guard, reason"),
                           "allowed by {{guard}}": total("tidegate_guard_exemptions_total", "guard"),
                           "shadow match of {{guard}}": total("tidegate_guard_shadow_matches_total", "guard")},
                "Requests that allowlists, blocklists and bans decided.", "reqps")
    board.graph("Queued requests", {"{{policy}} / {{limit}}": gauge("tidegate_waiting_requests", "policy, limit", selector=LIMITS)},
                "Requests in a queue (on_refusal: wait). If it stays at max_waiting, further requests are refused.")
    board.graph("Bans", {"bans": whole("tidegate_address_bans_total"), "ended": whole("tidegate_address_bans_ended_total")},
                "Addresses that were banned, and bans that ended, per second.")


def latency(board):
    board.row("Latency")
    name = "tidegate_decision_duration_seconds"
    board.graph("Decisions", {f"p{share * 100:g}": quantile(share, name, selector=POLICIES) for share in (0.5, 0.95, 0.99, 0.999)},
                "Time per decision, without time in a queue. With buckets in memory, one decision of 64 is timed.", "s")
    board.graph("Decisions, p99 by policy", {"{{policy}}": quantile(0.99, name, "policy", POLICIES)}, "99 of 100 decisions are faster.", "s")
    board.heatmap("Decisions, distribution", total(f"{name}_bucket", "le", POLICIES), "Decisions per second by their duration.")
    board.graph("Calls to Redis, p99 by node", {"{{node}}": quantile(0.99, "tidegate_redis_call_duration_seconds", "node")}, "From sending a call to its reply.", "s")
    board.graph("HTTP API", {f"p{share * 100:g}": quantile(share, "tidegate_request_duration_seconds") for share in (0.5, 0.95, 0.99)},
                "From the request headers to the response, with all waiting: /v1/check and /v1/auth.", "s")
    board.graph("Gateway, p99 by route", {"{{route}}": quantile(0.99, "tidegate_gateway_request_duration_seconds", "route")},
                "From the request headers to the response headers, with the upstream and all waiting.", "s")


def store(board):
    board.row("Redis")
    board.graph("Store and circuit breakers", {"store of {{instance}}": gauge("tidegate_store_up", "instance", "min"),
                                               "connected to {{node}}": gauge("tidegate_redis_node_up", "node", "min"),
                                               "circuit closed for {{node}}": gauge("tidegate_redis_circuit_closed", "node", "min")},
                "1 is good. The circuit of a node opens after too many failures, until a probe succeeds; on_failure applies meanwhile.", maximum=1)
    board.graph("Decisions without the store", {"{{policy}} {{outcome}}": total("tidegate_decisions_without_store_total", "policy, outcome", POLICIES)},
                "Decisions by on_failure: local, allow, deny, error.", "reqps", stacked=True)
    board.graph("Errors by kind", {"{{kind}}": total("tidegate_store_errors_total", "kind")}, "Failed calls to the store per second.", stacked=True)
    board.graph("Calls by outcome", {"{{node}} {{outcome}}": total("tidegate_redis_node_calls_total", "node, outcome")},
                "failed: unreachable or disconnected; circuit_open: not sent, because the node failed too often.", "reqps", stacked=True)
    calls = f"sum by (instance) ({rate('tidegate_redis_decisions_total')}) / sum by (instance) ({rate('tidegate_redis_calls_total')})"
    board.graph("Checks per call", {"{{instance}}": calls}, "Checks that share a call to Redis. It grows with the load.", width=8)
    board.graph("Refused from the deny cache", {"{{instance}}": total("tidegate_deny_cache_hits_total", "instance")}, "Checks refused without a call to Redis, per second.", "reqps", width=8)
    used = f"max by (node) (tidegate_redis_memory_used_bytes{{{INSTANCES}}}) / max by (node) (tidegate_redis_memory_max_bytes{{{INSTANCES}}})"
    board.graph("Memory of the nodes", {"{{node}}": used}, "Share of maxmemory, or of the machine's memory. Needs INFO.", "percentunit", width=8, maximum=1)
    board.graph("Keys", {"{{node}}": gauge("tidegate_redis_keys", "node", "max")}, "Keys in the database of each node.", width=8)
    board.graph("Evicted keys", {"{{node}}": f"max by (node) ({rate('tidegate_redis_keys_evicted_total')})"},
                "Must stay 0: an evicted bucket loses its count. Set maxmemory-policy noeviction.", width=8)
    board.graph("Load of the nodes", {"{{node}}": gauge("tidegate_redis_operations_per_second", "node", "max")}, "Operations per second, of all clients.", "ops", width=8)


def memory(board):
    board.row("Buckets in memory")
    board.graph("Buckets", {"buckets of {{instance}}": gauge("tidegate_store_buckets", "instance"), "slots of {{instance}}": gauge("tidegate_store_slots", "instance")},
                "Buckets that are not full, and slots of the table. New keys without a slot share a bucket.", width=8)
    board.graph("Overflow", {"{{kind}} {{outcome}}": total("tidegate_store_overflow_total", "kind, outcome")},
                "Checks decided by an overflow bucket. If shared grows, raise store.max_keys, or find the client that creates so many keys.", "reqps", width=8)
    board.graph("Memory of records", {"{{instance}}": gauge("tidegate_store_record_bytes", "instance")}, "Buckets that do not fit into a slot.", "bytes", width=8)
    board.graph("Age of the snapshot", {"{{instance}}": gauge("tidegate_snapshot_age_seconds", "instance", "max")},
                "Time of charges that a crash would lose now. Must stay below store.snapshot.every and the duration of a write.", "s", width=8)
    board.graph("Writes of the snapshot", {"{{instance}} {{outcome}}": total("tidegate_snapshot_writes_total", "instance, outcome")},
                "unchanged: nothing to write. failed: see the log for the reason; the previous file stays.", width=8)
    board.graph("Size of the snapshot", {"{{instance}}": gauge("tidegate_snapshot_bytes", "instance", "max")}, "Bytes of the file.", "bytes", width=8)


def gateway(board):
    board.row("Gateway")
    requests = "tidegate_gateway_requests_total"
    board.graph("Requests by status", {"{{status}}": f"topk(10, {total(requests, 'status')})"}, "The ten most frequent statuses. 499: the client disconnected.", "reqps", stacked=True)
    board.table("Top routes and statuses", f"topk(20, {total(requests, 'route, route_path, status')})", "Requests per second. Without a route: no route matched.", "reqps")
    board.graph("Healthy upstreams", {"{{route}} {{upstream}}": gauge("tidegate_gateway_upstream_healthy", "route, upstream", "min")},
                "0: at least one instance sends no requests to this upstream, because its checks fail or it is ejected.", maximum=1)
    board.graph("Requests to upstreams by outcome", {"{{route}} {{outcome}}": total("tidegate_gateway_upstream_requests_total", "route, outcome")},
                "Requests to upstreams with retries. answered: any status.", "reqps", stacked=True)
    board.graph("In flight", {"{{route}} {{upstream}}": gauge("tidegate_gateway_upstream_in_flight", "route, upstream")}, "Requests in flight.", width=8)
    board.graph("Retries, ejections", {"retries of {{route}}": total("tidegate_gateway_retries_total", "route"),
                                       "ejections of {{route}}": total("tidegate_gateway_upstream_ejections_total", "route"),
                                       "no healthy upstream of {{route}}": total("tidegate_gateway_no_healthy_upstream_total", "route")},
                "no healthy upstream: sent to an unhealthy one, because none is healthy.", "reqps", width=8)
    board.graph("WebSockets and rejected requests", {"open tunnels of {{route}}": gauge("tidegate_gateway_tunnels", "route"),
                                                     "messages {{outcome}}": total("tidegate_gateway_messages_total", "outcome"),
                                                     "rejected: {{reason}}": total("tidegate_gateway_rejected_total", "reason")},
                "Open upgrades; messages per second; ambiguous requests that were rejected with 400, per second.", width=8)


def configuration(board):
    board.row("Configuration")
    board.graph("Reloads", {"{{outcome}}": f"sum by (outcome) (increase(tidegate_reloads_total{{{INSTANCES}}}[$__rate_interval]))"},
                "rejected: the log has the reason; the previous configuration stays in force.", width=8)
    board.graph("Age of the configuration", {"{{instance}}": f"time() - max by (instance) (tidegate_configuration_loaded_timestamp_seconds{{{INSTANCES}}})"},
                "Time since the current configuration was loaded. It should differ little between instances.", "s", width=8)
    board.graph("Instances by configuration", {"{{configuration}}": gauge("tidegate_instances", "configuration", "max")},
                "Instances that share Redis. other: they serve another configuration.", width=8)
    loads = f"sum by (source, outcome) (increase(tidegate_source_loads_total{{{INSTANCES}}}[$__rate_interval]))"
    board.graph("Loads of config sources", {"{{source}} {{outcome}}": loads}, "applied, unchanged, rejected, failed.", width=8)
    board.graph("Age of config sources", {"{{source}}": gauge("tidegate_source_age_seconds", "source", "max")}, "Time since the last response of the source.", "s", width=8)
    board.graph("Stale or rejected", {"source {{source}} stale": gauge("tidegate_source_stale", "source", "max"),
                                      "source {{source}} rejected": gauge("tidegate_source_rejected", "source", "max"),
                                      "list of {{guard}} stale": gauge("tidegate_list_stale", "guard", "max"),
                                      "plans {{plan}} stale": gauge("tidegate_plans_stale", "plan", "max")},
                "1: it cannot be loaded or is invalid, and the last good version stays in force.", width=8, maximum=1)


def connections(board):
    board.row("Connections")
    used = f"sum by (listener) (tidegate_connections{{{INSTANCES}}}) / sum by (listener) (tidegate_connections_max{{{INSTANCES}}})"
    board.graph("Connections in use", {"{{listener}}": used}, "Open connections as a share of the maximum.", "percentunit", width=8, maximum=1)
    board.graph("Closed early or refused", {"{{listener}} closed: {{reason}}": total("tidegate_connections_closed_total", "listener, reason"),
                                            "{{listener}} refused": total("tidegate_connections_refused_total", "listener")},
                "full: the listener is full; address: one address has too many.", width=8)
    board.graph("Error responses", {"{{listener}} {{status}}": f"topk(10, {total('tidegate_error_responses_total', 'listener, status')})"},
                "Error responses of Tidegate itself. Refusals by a limit do not count.", "reqps", width=8, stacked=True)
    expiry = f"min by (listener) (tidegate_tls_certificate_expiry_timestamp_seconds{{{INSTANCES}}}) - time()"
    board.graph("Time until certificates expire", {"{{listener}}": expiry}, "Replace the files: Tidegate reads them again.", "s", width=8)
    board.graph("Failed TLS handshakes", {"{{listener}}": total("tidegate_tls_handshake_failures_total", "listener")}, "Failed handshakes per second.", width=8)
    board.graph("Rejected tokens", {"{{reason}}": total("tidegate_tokens_rejected_total", "reason")}, "Bearer tokens (JWT) whose claims are missing therefore.", width=8)


def main():
    dashboard = {
        "uid": "tidegate", "title": "Tidegate", "description": "Limits, latency, stores, the gateway and the configuration of Tidegate. docs/reference/metrics.md explains the metrics.",
        "tags": ["tidegate"], "schemaVersion": 39, "version": 1, "editable": True, "graphTooltip": 1, "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"}, "timezone": "browser", "weekStart": "", "fiscalYearStartMonth": 0, "links": [],
        "annotations": {"list": [{"name": "Configuration changes", "enable": True, "datasource": DATASOURCE, "iconColor": "blue", "hide": False,
                                  "expr": f"changes(tidegate_configuration_loaded_timestamp_seconds{{{INSTANCES}}}[2m]) > 0", "titleFormat": "configuration loaded",
                                  "textFormat": "{{instance}}"}]},
        "templating": {"list": variables()}, "panels": panels(),
    }
    json.dump(dashboard, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
