#!/usr/bin/env bash
# Common functions of the clients; their `run` scripts source it, with $client as their folder. It starts
# Tidegate and an application on free ports, and sends requests to the application.
#
# A `run` script defines `install`, which installs its packages into $packages.

# shellcheck source=../proxy.sh
source "$(dirname "${BASH_SOURCE[0]}")/../proxy.sh"
# shellcheck source=../../scripts/tools.sh
source "$examples/../scripts/tools.sh"
example=$examples/clients
fail=open
# shellcheck disable=SC2034 # for `try_tidegate`
tidegate_arguments=(--grpc 127.0.0.1:0 --resp 127.0.0.1:0)

# Installs packages, once for each version of the file that lists them.
packages_of() { # language file more
  packages=$tools/clients/$1-$({ cat "$2" && echo "${3:-}"; } | sha256sum | cut -c 1-12)
  [[ -e $packages/complete ]] && return
  say "installing packages for $1"
  rm -rf "$packages" && mkdir -p "$packages"
  install && : >"$packages/complete" || skip "the packages for $1 could not be installed"
}

listener() { sed -n "s/.*\"listener\":\"$1\",\"address\":\"\([^\"]*\)\".*/\1/p" "$work/tidegate.log"; } # name

# Starts an application on a free port, which its log has where the pattern has its group.
start_client() { # pattern command…
  : >"$work/proxy.log"
  # Four times the default: a busy machine is no outage.
  TIDEGATE_URL=http://$tidegate_address TIDEGATE_FAIL=$fail TIDEGATE_TIMEOUT_MS=1000 "${@:2}" >"$work/proxy.log" 2>&1 &
  proxy_pid=$!
  # Some need longer than one wait on a busy machine.
  local _
  for _ in 1 2; do
    if await "$proxy_pid" grep -qE "$1" "$work/proxy.log"; then break; fi
  done
  [[ $(<"$work/proxy.log") =~ $1 ]] || { echo "the application does not start:"; cat "$work/proxy.log"; exit 1; }
  proxy_address=127.0.0.1:${BASH_REMATCH[1]}
}

stop_client() {
  end "$proxy_pid"
  proxy_pid=
}

# The number of connections that Tidegate's HTTP listener has accepted.
accepted() {
  curl -s --max-time 10 "http://$(listener admin)/metrics" |
    sed -n 's/^tidegate_connections_accepted_total{listener="http"} //p'
}

passes=('^HTTP/1.1 200' '^application: GET /cart')
# shellcheck disable=SC2034 # for some
refused=('^HTTP/1.1 429' '^retry-after: (60|5[0-9])$' '^ratelimit: "per-client";r=0;t=(60|5[0-9])$'
  '^content-type: application/problem\+json' '"status": ?429')
unavailable=('^HTTP/1.1 503' '^retry-after: 1$' '^content-type: application/problem\+json' '"status": ?503')

use_up_client() { # last-byte-of-the-address
  local nth
  for nth in 1 2 3; do
    ask "$1"
    expect "request $nth of a client passes" "${passes[@]}" "^ratelimit: \"per-client\";r=$((3 - nth));t="
  done
  ask "$1"
  expect "the fourth is refused" "${refused[@]}"
}

is_checked() { ask 8 && grep -qi '^ratelimit:' "$work/answer"; }

# Checks an application that `$1` starts: allowed, refused, Tidegate slow, gone, back, without a decision.
see_client() { # function
  local before
  before=$(accepted)
  fail=open
  "$1"
  # The first request of a program may take longer than the rest.
  await "$proxy_pid" is_checked || { echo "no request is checked:"; cat "$work/answer" "$work/proxy.log"; exit 1; }
  use_up_client 2
  ask 3
  expect "another client's passes" "${passes[@]}"
  (($(accepted) <= before + 1)) || { echo "not one connection to Tidegate: $before, then $(accepted)"; exit 1; }
  echo "ok: over one connection to Tidegate"

  # The server of some applications rejects it first.
  ask 3 --request "$(printf 'A%.0s' {1..20000})"
  expect "a request that is too large to be checked does not pass" '"status": ?431|^HTTP/1.1 4(00|14|31)'

  kill -STOP "$tidegate_pid"
  ask 4 --max-time 5
  expect "while Tidegate hangs, requests pass" "${passes[@]}"
  expect_not "without its headers" '^ratelimit:'
  stop_tidegate
  ask 4
  expect "without Tidegate they pass as well" "${passes[@]}"
  start_tidegate
  use_up_client 5
  stop_tidegate
  mkdir -p "$work/other"
  sed 's/name: shop/name: other/' "$example/tidegate.yaml" >"$work/other/tidegate.yaml"
  example=$work/other start_tidegate
  ask 6
  expect "if Tidegate has no such policy, nothing passes" "${unavailable[@]}"
  stop_client
  stop_tidegate
  start_tidegate

  fail=closed
  "$1"
  await "$proxy_pid" is_checked || { echo "no request is checked:"; cat "$work/answer" "$work/proxy.log"; exit 1; }
  ask 7
  expect "if closed is chosen, requests pass with Tidegate" "${passes[@]}"
  kill -STOP "$tidegate_pid"
  ask 7 --max-time 5
  expect "nothing passes while it hangs" "${unavailable[@]}"
  stop_tidegate
  ask 7
  expect "and nothing without it" "${unavailable[@]}"
  stop_client
  start_tidegate
}

# Checks a program that limits four jobs through the Redis protocol.
see_throttle() { # command…
  TIDEGATE_RESP=redis://$(listener resp) "$@" >"$work/answer" 2>&1 || { cat "$work/answer"; exit 1; }
  expect "three jobs run at once" '^job 1: run$' '^job 2: run$' '^job 3: run$'
  expect "the fourth has to wait" '^job 4: wait (60|5[0-9]) s$'
}
