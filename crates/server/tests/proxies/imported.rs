//! The limits of real nginx and Traefik compared with Tidegate and their imported configuration:
//! the same requests pass at once.
//!
//! Rates are so low that nothing refills while a test runs, so the result does not depend on time.

use crate::kit::Reply;
use crate::kit::application::Application;
use crate::kit::folder::Folder;
use crate::kit::programs::Program;
use crate::kit::tidegate::Tidegate;
use crate::kit::{exchange, head};
use serde_json::json;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use tidegate_testkit::redis::{Port, Process, output, until};
use tokio::runtime::Runtime;

/// A request of a client, `127.0.0.N`.
#[derive(Clone, Copy, Debug)]
struct Ask {
    client: u8,
    method: &'static str,
    host: &'static str,
    path: &'static str,
    /// A header, as `name: value`; none if it is empty.
    header: &'static str,
}

const ASK: Ask = Ask {
    client: 2,
    method: "GET",
    host: "shop.example",
    path: "/",
    header: "",
};

/// A proxy with limits, and Tidegate with the imported configuration.
struct ImportedPair {
    runtime: Runtime,
    proxy: SocketAddr,
    tidegate: Tidegate,
    policy: &'static str,
    _process: Process,
    _application: Application,
    _port: Port,
    _folder: Folder,
}

impl ImportedPair {
    /// Starts nginx with these directives of `http`. `LISTEN` and `PASS` stand for the directives of a server
    /// and of a location that make them work.
    fn nginx(http: &str) -> Option<Self> {
        let program = Program::Nginx.find()?;
        Some(Self::start(
            "nginx",
            "nginx",
            "nginx.conf",
            |folder, proxy, application| {
                let http = http
                    .replace("LISTEN", &format!("listen {proxy};"))
                    .replace("PASS", &format!("proxy_pass http://{application};"));
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
                let temporary = temporary
                    .map(|it| format!("{it}_temp_path {it};"))
                    .join(" ");
                let text = format!(
                    "worker_processes 1; pid nginx.pid; error_log stderr crit;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ access_log off; {temporary}\n{http}\n}}\n"
                );
                folder.write("nginx.conf", &text);
                let mut command = Command::new(&program);
                command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr"]);
                command.args(["-g", "daemon off; master_process off;"]);
                command
            },
        ))
    }

    /// Starts Traefik with these routers and middlewares. A router without limits serves `/ready`.
    fn traefik(routers: &str, middlewares: &str) -> Option<Self> {
        let program = Program::Traefik.find()?;
        Some(Self::start(
            "traefik-ratelimit",
            "traefik",
            "dynamic.yml",
            |folder, proxy, application| {
                let text = format!(
                    "entryPoints: {{ web: {{ address: \"{proxy}\" }} }}\n\
                 global: {{ checkNewVersion: false, sendAnonymousUsage: false }}\n\
                 providers: {{ file: {{ filename: dynamic.yml }} }}\n"
                );
                folder.write("traefik.yml", &text);
                let text = format!(
                    "http:\n  routers:\n    ready: {{ rule: 'Path(`/ready`)', service: app, priority: 10000 }}\n\
                 {routers}\n  middlewares:\n{middlewares}\n  services:\n    \
                 app: {{ loadBalancer: {{ servers: [{{ url: \"http://{application}\" }}] }} }}\n"
                );
                folder.write("dynamic.yml", &text);
                let mut command = Command::new(&program);
                command.arg("--configFile=traefik.yml");
                command
            },
        ))
    }

    /// Starts a proxy, imports its `file` and starts Tidegate with the translation.
    fn start(
        system: &str,
        policy: &'static str,
        file: &str,
        command: impl FnOnce(&Folder, SocketAddr, SocketAddr) -> Command,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let application = runtime.block_on(Application::start());
        let folder = Folder::make();
        let port = Port::lease();
        let proxy = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let mut command = command(&folder, proxy, application.address);
        command.current_dir(folder.path()).env_clear();
        let process = Process::spawn_with_log(&mut command, &folder.path().join("log"));

        let imported = output(
            Command::new(env!("CARGO_BIN_EXE_tidegate"))
                .args(["import", system, file])
                .current_dir(folder.path())
                .env_clear(),
        );
        let errors = String::from_utf8_lossy(&imported.stderr).into_owned();
        assert!(imported.status.success(), "{errors}");
        fs::write(folder.path().join("tidegate.yaml"), &imported.stdout).unwrap();
        let mut tidegate = Tidegate::new(&folder.path().join("tidegate.yaml"));
        tidegate.resume();

        let ready = head("GET /ready", "kit", &[]);
        until("the proxy answers", || {
            let reply = runtime.block_on(exchange(proxy, 250, ready.as_bytes()));
            reply
                .ok()
                .flatten()
                .is_some_and(|reply| reply.status == 200)
        });
        Self {
            runtime,
            proxy,
            tidegate,
            policy,
            _process: process,
            _application: application,
            _port: port,
            _folder: folder,
        }
    }

    /// Sends a request to the proxy. Returns its status.
    async fn proxied(&self, ask: Ask) -> u16 {
        let lines = if ask.header.is_empty() {
            vec![]
        } else {
            vec![ask.header]
        };
        let text = head(&format!("{} {}", ask.method, ask.path), ask.host, &lines);
        let reply = exchange(self.proxy, ask.client, text.as_bytes()).await;
        reply.unwrap().expect("an answer of the proxy").status
    }

    /// Sends Tidegate a check request for the same request.
    async fn checked(&self, ask: Ask) -> bool {
        let header = ask.header.split_once(": ");
        let headers: serde_json::Map<String, serde_json::Value> = header
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let body = json!({
            "policy": self.policy,
            "ip": format!("127.0.0.{}", ask.client),
            "method": ask.method,
            "host": ask.host,
            "path": ask.path,
            "headers": headers,
        });
        let reply: Reply = crate::kit::post(self.tidegate.address(), &body.to_string()).await;
        assert!(matches!(reply.status, 200 | 429 | 503), "{reply:?}");
        reply.json()["allowed"].as_bool().unwrap()
    }

    /// Sends requests to both, one after the other. At both, exactly the first `expected` of them
    /// pass.
    fn admit(&self, ask: Ask, sent: usize, expected: usize, refusal: u16) {
        for nth in 0..sent {
            let passes = nth < expected;
            let status = self.runtime.block_on(self.proxied(ask));
            let wanted = if passes { 200 } else { refusal };
            assert_eq!(status, wanted, "the proxy, request {nth} of {ask:?}");
            let allowed = self.runtime.block_on(self.checked(ask));
            assert_eq!(allowed, passes, "Tidegate, request {nth} of {ask:?}");
        }
    }

    /// Sends two requests at a time to both: one is delayed, the other refused at once.
    fn delay_one_of_two(&self, ask: Ask, refusal: u16) {
        let status = self.runtime.block_on(async {
            tokio::select! {
                status = self.proxied(ask) => status,
                status = self.proxied(ask) => status,
            }
        });
        assert_eq!(status, refusal, "the proxy, {ask:?}");
        let allowed = self.runtime.block_on(async {
            tokio::select! {
                allowed = self.checked(ask) => allowed,
                allowed = self.checked(ask) => allowed,
            }
        });
        assert!(!allowed, "Tidegate, {ask:?}");
    }
}

#[test]
fn nginx_admits_one_more_than_its_burst() {
    let Some(both) = ImportedPair::nginx(
        "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
         server { LISTEN
             location /ready { PASS }
             location / { limit_req zone=one burst=5 nodelay; PASS }
             location /plain/ { limit_req zone=one; PASS } }",
    ) else {
        return;
    };
    both.admit(ASK, 9, 6, 503);
    both.admit(Ask { client: 3, ..ASK }, 7, 6, 503);
    both.admit(
        Ask {
            client: 4,
            path: "/plain/",
            ..ASK
        },
        3,
        1,
        503,
    );
}

#[test]
fn nginx_delays_requests_that_tidegate_queues() {
    let Some(both) = ImportedPair::nginx(
        "limit_req_zone $binary_remote_addr zone=queue:1m rate=1r/m;
         limit_req_zone $binary_remote_addr zone=stages:1m rate=1r/m;
         limit_req_status 429;
         server { LISTEN
             location /ready { PASS }
             location /queue/ { limit_req zone=queue burst=1; PASS }
             location /stages/ { limit_req zone=stages burst=4 delay=3; PASS } }",
    ) else {
        return;
    };
    let queue = Ask {
        path: "/queue/",
        ..ASK
    };
    both.admit(queue, 1, 1, 429);
    both.delay_one_of_two(queue, 429);
    // Three beyond the first pass at once, one more waits.
    let stages = Ask {
        path: "/stages/",
        ..ASK
    };
    both.admit(stages, 4, 4, 429);
    both.delay_one_of_two(stages, 429);
}

#[test]
fn nginx_and_tidegate_choose_the_same_location() {
    let Some(both) = ImportedPair::nginx(
        "limit_req_zone $binary_remote_addr zone=server:1m rate=1r/m;
         limit_req_zone $binary_remote_addr zone=api:1m rate=1r/m;
         limit_req_zone $binary_remote_addr zone=login:1m rate=1r/m;
         limit_req_zone $binary_remote_addr zone=carts:1m rate=1r/m;
         limit_req_zone $host zone=host:1m rate=1r/m;
         server { LISTEN
             limit_req zone=server burst=3 nodelay;
             location /ready { PASS }
             location / { PASS }
             location /api/ { limit_req zone=api burst=1 nodelay; limit_req zone=host burst=9 nodelay; PASS }
             location = /api/login { limit_req zone=login; PASS }
             location ~ ^/[^/]+/carts$ { limit_req zone=carts burst=2 nodelay; PASS }
             location ^~ /files/ { limit_req zone=carts burst=6 nodelay; PASS } }",
    ) else {
        return;
    };
    for (client, path, expected) in [
        (2, "/", 4),
        (3, "/other/path", 4),
        (4, "/api/orders", 2),
        (5, "/api/login", 1),
        (6, "/api/carts", 3),
        (7, "/files/carts", 7),
    ] {
        both.admit(
            Ask {
                client,
                path,
                ..ASK
            },
            expected + 2,
            expected,
            503,
        );
    }
    // The other limit of the location is by host, and charged by none of the refusals.
    for client in 20..28 {
        both.admit(
            Ask {
                client,
                path: "/api/orders",
                ..ASK
            },
            1,
            1,
            503,
        );
    }
    both.admit(
        Ask {
            client: 28,
            path: "/api/orders",
            ..ASK
        },
        1,
        0,
        503,
    );
}

#[test]
fn nginx_and_tidegate_exempt_the_same_requests() {
    let Some(both) = ImportedPair::nginx(
        r#"geo $limit { default 1; 127.0.0.8/30 0; }
         map $limit $by_address { 0 ""; 1 $binary_remote_addr; }
         map $request_method $writes { default ""; POST $binary_remote_addr; }
         map $http_x_api_key $by_key { default $http_x_api_key; "" $binary_remote_addr; }
         limit_req_zone $by_address zone=address:1m rate=1r/m;
         limit_req_zone $writes zone=writes:1m rate=1r/m;
         limit_req_zone $by_key zone=key:1m rate=1r/m;
         limit_req_zone $http_x_tenant zone=tenant:1m rate=1r/m;
         server { LISTEN
             location /ready { PASS }
             location /address/ { limit_req zone=address burst=1 nodelay; PASS }
             location /writes/ { limit_req zone=writes burst=1 nodelay; PASS }
             location /key/ { limit_req zone=key burst=1 nodelay; PASS }
             location /tenant/ { limit_req zone=tenant burst=1 nodelay; PASS } }"#,
    ) else {
        return;
    };
    let by = |path, client| Ask {
        client,
        path,
        ..ASK
    };
    both.admit(by("/address/", 2), 3, 2, 503);
    both.admit(by("/address/", 9), 5, 5, 503);
    both.admit(by("/writes/", 2), 5, 5, 503);
    both.admit(
        Ask {
            method: "POST",
            ..by("/writes/", 2)
        },
        3,
        2,
        503,
    );
    both.admit(by("/key/", 2), 3, 2, 503);
    both.admit(
        Ask {
            header: "x-api-key: a",
            ..by("/key/", 2)
        },
        3,
        2,
        503,
    );
    both.admit(
        Ask {
            header: "x-api-key: a",
            ..by("/key/", 3)
        },
        1,
        0,
        503,
    );
    both.admit(by("/tenant/", 2), 5, 5, 503);
    both.admit(
        Ask {
            header: "x-tenant: a",
            ..by("/tenant/", 2)
        },
        3,
        2,
        503,
    );
}

#[test]
fn traefik_admits_its_burst() {
    let Some(both) = ImportedPair::traefik(
        "    all: { rule: 'PathPrefix(`/`)', service: app, middlewares: [everyone] }
    api: { rule: 'Host(`api.example`) && PathPrefix(`/v1/`)', service: app, middlewares: [keys] }
    login: { rule: 'Path(`/login`) && Method(`POST`)', service: app, middlewares: [strict, everyone] }
    free: { rule: 'Host(`free.example`)', service: app }",
        "    everyone: { rateLimit: { average: 1, period: 1h, burst: 4 } }
    keys: { rateLimit: { average: 1, period: 1h, burst: 3, sourceCriterion: { requestHeaderName: X-Key } } }
    strict: { rateLimit: { average: 1, period: 1h } }",
    ) else {
        return;
    };
    both.admit(ASK, 6, 4, 429);
    both.admit(
        Ask {
            client: 3,
            path: "/any/other",
            ..ASK
        },
        6,
        4,
        429,
    );
    both.admit(
        Ask {
            method: "POST",
            path: "/login",
            ..ASK
        },
        3,
        1,
        429,
    );
    both.admit(
        Ask {
            host: "free.example",
            ..ASK
        },
        6,
        6,
        429,
    );
    let api = Ask {
        host: "api.example",
        path: "/v1/a",
        header: "x-key: a",
        ..ASK
    };
    both.admit(api, 5, 3, 429);
    both.admit(Ask { client: 4, ..api }, 1, 0, 429);
    both.admit(
        Ask {
            header: "x-key: b",
            ..api
        },
        4,
        3,
        429,
    );
}

#[test]
fn traefik_counts_by_host() {
    let Some(both) = ImportedPair::traefik(
        "    all: { rule: 'PathPrefix(`/`)', service: app, middlewares: [hosts] }",
        "    hosts: { rateLimit: { average: 6, period: 10h, burst: 2, sourceCriterion: { requestHost: true } } }",
    ) else {
        return;
    };
    both.admit(ASK, 4, 2, 429);
    both.admit(Ask { client: 3, ..ASK }, 1, 0, 429);
    both.admit(
        Ask {
            host: "other.example",
            ..ASK
        },
        3,
        2,
        429,
    );
}
