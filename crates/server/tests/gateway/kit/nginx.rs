//! nginx as a reference proxy.

use super::programs::Program;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_testkit::redis::{Port, Process, until};

/// A running nginx, which ends when dropped.
pub(crate) struct Nginx {
    pub(crate) address: SocketAddr,
    _process: Process,
    _port: Port,
    folder: PathBuf,
}

impl Nginx {
    /// Starts an nginx that sends everything to `upstream`; `None` if it is not installed.
    ///
    /// It is configured like the gateway: keep connections, stream bodies, forward every header and
    /// every upgrade, and add forwarding headers.
    pub(crate) fn start(upstream: SocketAddr) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let program = Program::Nginx.find()?;
        let nth = NEXT.fetch_add(1, Relaxed);
        let name = format!("tidegate-gateway-nginx-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let port = Port::lease();
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let file = folder.join("nginx.conf");
        fs::write(file, config(address, upstream)).unwrap();
        let mut command = Command::new(program);
        command.current_dir(&folder).env_clear();
        command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr"]);
        // In one process, so that ending it ends everything.
        command.args(["-g", "daemon off; master_process off;"]);
        let log = folder.join("log");
        let mut process = Process::spawn_with_log(&mut command, &log);
        until("nginx listens", || {
            let says = || fs::read_to_string(&log).unwrap();
            assert!(!process.has_ended(), "nginx does not start: {}", says());
            TcpStream::connect(address).is_ok()
        });
        Some(Self {
            address,
            _process: process,
            _port: port,
            folder,
        })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn config(address: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    client_max_body_size 20m;
    large_client_header_buffers 8 32k;
    ignore_invalid_headers off;
    underscores_in_headers on;
    upstream application {{ server {upstream}; keepalive 8; }}
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    server {{
        listen {address};
        location / {{
            proxy_pass http://application;
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_buffering off;
            proxy_buffer_size 64k;
            proxy_buffers 8 64k;
            proxy_redirect off;
            proxy_next_upstream off;
            proxy_pass_header Server;
            proxy_pass_header Date;
            proxy_pass_header X-Accel-Redirect;
            proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Buffering;
            proxy_set_header Host $http_host;
            proxy_set_header Connection $connection_upgrade;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Real-IP $remote_addr;
        }}
    }}
}}
"
    )
}
