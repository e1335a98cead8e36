#!/usr/bin/env bash
# Starts Redis for examples. `run` scripts source this after `proxy.sh`, and stop $redis_pid.
redis_pid=
redis_port=

# Redis cannot choose a free port, so try several.
start_redis() {
  local _
  command -v redis-server >/dev/null || { echo "redis-server is not installed"; exit 1; }
  for _ in 1 2 3 4 5; do
    redis_port=$((20000 + RANDOM % 10000))
    : >"${work:?}/redis.log" # create it before it is read
    redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >"$work/redis.log" 2>&1 &
    redis_pid=$!
    await "$redis_pid" grep -q 'Ready to accept connections' "$work/redis.log" && return
    end "$redis_pid"
    redis_pid=
  done
  echo "Redis does not start:"
  cat "$work/redis.log"
  exit 1
}

redis() { redis-cli -p "$redis_port" "$@"; }
