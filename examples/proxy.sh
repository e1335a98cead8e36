#!/usr/bin/env bash
# Common functions of the examples with a proxy; their `run` scripts source it. It starts Tidegate, an
# application and the proxy on free ports, and sends requests through the proxy as a client would.
#
# A `run` script sets $example to its folder, and defines two functions: `configure PORT` writes the
# proxy's configuration into $work, and `serve` executes the proxy. The addresses are in
# $tidegate_address and $application_address.
set -euo pipefail

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$examples/.."
tools=$PWD/target/tools/python
tidegate=$(realpath "${1:-target/debug/tidegate}")
work=$(mktemp -d)
tidegate_pid=
application_pid=
proxy_pid=
tidegate_address=
application_address=
proxy_address=
tidegate_arguments=() # further arguments of `tidegate serve`

# Waits a little: nothing ever writes to that pipe.
mkfifo "$work/nothing"
pause() { read -r -t 0.05 <>"$work/nothing" || true; }

# Waits for a command to succeed while the process runs, up to a maximum time.
await() { # pid command…
  local pid=$1 _
  shift
  for _ in {1..400}; do
    # If the process has ended, another one would have made the command succeed.
    kill -0 "$pid" 2>/dev/null || return 1
    if "$@"; then return 0; fi
    pause
  done
  return 1
}

# Ends a process of this script, even if it is stopped.
end() { # pid
  if [[ -n $1 ]]; then
    kill -CONT "$1" 2>/dev/null || true
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
  fi
}

finish() {
  end "$proxy_pid"
  end "$tidegate_pid"
  end "$application_pid"
  rm -rf "$work"
}
trap finish EXIT

# Finds a proxy: the path in the variable, the place where scripts/test installs it, or PATH. Without
# one, the example is skipped with status 113, which scripts/test expects.
find_proxy() { # name variable path-below-target/tools/python
  program=${!2:-}
  if [[ -z $program && -n ${3:-} && -x $tools/$3 ]]; then program=$tools/$3; fi
  if [[ -z $program ]]; then program=$(command -v "$1" || true); fi
  if [[ -z $program ]]; then
    echo "skipped: $1 is not installed; scripts/test installs it, or set $2 to its path"
    exit 113
  fi
}

# Starts Tidegate, on a free port the first time, and on the same port after that.
start_tidegate() {
  local _
  if [[ -n $tidegate_address ]]; then
    try_tidegate "$tidegate_address" && return
  else
    for _ in 1 2 3 4 5; do
      # Outside the kernel's range for outgoing connections, so that the port stays free.
      tidegate_address=127.0.0.1:$((20000 + RANDOM % 10000))
      try_tidegate "$tidegate_address" && return
    done
  fi
  cat "$work/tidegate.log"
  exit 1
}

try_tidegate() { # address
  : >"$work/tidegate.log" # create it before it is read
  "$tidegate" serve --config "${example:?}/tidegate.yaml" --http "$1" --admin 127.0.0.1:0 \
    "${tidegate_arguments[@]}" >"$work/tidegate.log" 2>&1 &
  tidegate_pid=$!
  await "$tidegate_pid" grep -q '"listener":"http","address"' "$work/tidegate.log" && return
  stop_tidegate
  return 1
}

stop_tidegate() {
  end "$tidegate_pid"
  tidegate_pid=
}

start_application() {
  : >"$work/application"
  python3 "$examples/application.py" >"$work/application" &
  application_pid=$!
  await "$application_pid" test -s "$work/application" || { echo "the application does not start"; exit 1; }
  # shellcheck disable=SC2034 # for `configure`
  application_address=$(<"$work/application")
}

# Proxies cannot choose a free port, so try several.
start_proxy() {
  local port _
  for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 10000))
    configure "$port"
    (cd "$work" && serve) >"$work/proxy.log" 2>&1 &
    proxy_pid=$!
    if await "$proxy_pid" is_serving "$port"; then
      proxy_address=127.0.0.1:$port
      return
    fi
    end "$proxy_pid"
    proxy_pid=
  done
  echo "the proxy does not start:"
  cat "$work/proxy.log"
  exit 1
}

# Until a proxy has loaded its configuration, it does not respond, or responds with 404.
is_serving() { # port
  local status
  status=$(curl -s -o /dev/null -w '%{http_code}' --max-time 10 --interface 127.0.0.9 "http://127.0.0.1:$1/" || true)
  [[ $status != 000 && $status != 404 ]]
}

restart_proxy() {
  end "$proxy_pid"
  start_proxy
}

# Sends a request through the proxy, from one of many addresses. The file `answer` then has headers and
# body, and $asked is curl's exit status: 0, or 28 after a timeout.
ask() { # last-byte-of-the-address curl-arguments…
  local from=$1
  shift
  asked=0
  curl -s -i --max-time 10 --interface "127.0.0.$from" "$@" "http://$proxy_address/cart" >"$work/answer" || asked=$?
}

expect() { # what pattern…
  local what=$1 pattern
  shift
  for pattern in "$@"; do
    # Not a pipe: grep exits at the first match, and the writer would fail.
    if ! grep -qiE -- "$pattern" < <(tr -d '\r' <"$work/answer"); then
      echo "$what: expected $pattern in:"
      cat "$work/answer" "$work/proxy.log"
      exit 1
    fi
  done
  echo "ok: $what"
}

expect_to_wait() { # what
  if ((asked != 28)) || [[ -s $work/answer ]]; then
    echo "$1: expected no answer for as long as curl waited (28); it says $asked:"
    cat "$work/answer" "$work/proxy.log"
    exit 1
  fi
  echo "ok: $1"
}

expect_not() { # what pattern
  if grep -qiE -- "$2" < <(tr -d '\r' <"$work/answer"); then
    echo "$1: expected no $2 in:"
    cat "$work/answer" "$work/proxy.log"
    exit 1
  fi
  echo "ok: $1"
}

# --- checks that most examples share ---------------------------------------------------------------

allowed_headers=('^HTTP/1.1 200' '^application: ' '^x-ratelimit-limit: 3$' '^x-ratelimit-remaining: 0$'
  '^ratelimit: "per-client";r=0;t=' '^ratelimit-policy: "per-client";q=3;w=180$')
refused_headers=('^HTTP/1.1 429' '^retry-after: (60|5[0-9])$' '^x-ratelimit-limit: 3$' '^x-ratelimit-remaining: 0$'
  '^ratelimit: "per-client";r=0;t=' '^ratelimit-policy: "per-client";q=3;w=180$'
  '^content-type: application/problem\+json' '"title":"Too Many Requests","status":429')

use_up() { # last-byte-of-the-address
  local nth
  for nth in 1 2 3; do
    ask "$1"
    expect "request $nth of a client passes" '^HTTP/1.1 200' '^application: '
  done
}

see_limits() {
  use_up 2
  expect "and shows its limits" "${allowed_headers[@]}"
  ask 2
  expect "the fourth is refused" "${refused_headers[@]}"
  ask 3 --request POST --data hello
  expect "another client's passes, with its body" '^HTTP/1.1 200' '^application: POST /cart 5 bytes'
}

see_it_come_back() {
  start_tidegate
  use_up 5
  ask 5
  expect "when Tidegate is back, it decides" "${refused_headers[@]}"
}

see_it_open() {
  kill -STOP "$tidegate_pid"
  ask 4 --request POST --data hello
  expect "while Tidegate hangs, requests pass" '^HTTP/1.1 200' '^application: POST /cart 5 bytes'
  expect_not "and nothing is said of limits" 'ratelimit'
  stop_tidegate
  ask 4
  expect "without Tidegate they pass as well" '^HTTP/1.1 200' '^application: '
  see_it_come_back
}

see_it_closed() {
  restart_proxy
  kill -STOP "$tidegate_pid"
  ask 6
  expect "if that is chosen, nothing passes while Tidegate hangs" '^HTTP/1.1 503' '^retry-after: 1$' '"status":503'
  stop_tidegate
  ask 6
  expect "and nothing without it" '^HTTP/1.1 503' '^retry-after: 1$' '"status":503'
  see_it_come_back
}
