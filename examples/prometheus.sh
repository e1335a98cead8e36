#!/usr/bin/env bash
# Starts Prometheus for examples. `run` scripts source this after `proxy.sh`, and stop $prometheus_pid.
# If it is not installed, $prometheus is empty.
prometheus=${TIDEGATE_TEST_PROMETHEUS:-$(command -v prometheus || true)}
prometheus_pid=
prometheus_port=

# Prometheus cannot choose a free port, so try several.
start_prometheus() { # configuration
  local _
  for _ in 1 2 3 4 5; do
    prometheus_port=$((20000 + RANDOM % 10000))
    rm -rf "${work:?}/prometheus"
    : >"$work/prometheus.log"
    "$prometheus" --config.file="$1" --storage.tsdb.path="$work/prometheus" \
      --web.listen-address="127.0.0.1:$prometheus_port" >"$work/prometheus.log" 2>&1 &
    prometheus_pid=$!
    await "$prometheus_pid" grep -q 'Server is ready' "$work/prometheus.log" && return
    end "$prometheus_pid"
    prometheus_pid=
  done
  echo "Prometheus does not start:"
  cat "$work/prometheus.log"
  exit 1
}

# Prints the values of a query, one per line.
query() { # PromQL
  curl -s --max-time 10 --data-urlencode "query=$1" "http://127.0.0.1:$prometheus_port/api/v1/query" |
    python3 -c 'import json, sys
answer = json.load(sys.stdin)
print(*[result["value"][1] for result in answer["data"]["result"]] if answer["status"] == "success" else [answer], sep="\n")'
}
is_told() { grep -qE -- "$2" < <(query "$1"); } # PromQL pattern

told() { # what PromQL pattern
  await "$prometheus_pid" is_told "$2" "$3" || { echo "$1: expected $3, Prometheus says $(query "$2")"; exit 1; }
  echo "ok: $1"
}
