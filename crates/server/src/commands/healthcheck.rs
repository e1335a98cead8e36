//! `tidegate healthcheck`.

use super::print;
use clap::Args;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_source::ConfigInput;
use tidegate_policy::listen::{ListenAddress, Listener};

/// The maximum length of a response. Health responses have a few hundred bytes.
const RESPONSE_MAX: u64 = 16 * 1024;

/// The maximum of `--timeout`, in seconds.
const TIMEOUT_MAX: u64 = 3600;

/// The arguments of `tidegate healthcheck`.
#[derive(Args, Debug)]
#[command(after_help = "\
Sends GET /readyz to the admin listener of a server on this machine, and prints
the response. The address is that of --admin, else of the configuration, else
127.0.0.1:8090. Config sources are not queried.

Exit code: 0 if the response is 200, 1 otherwise.

Examples:
  tidegate healthcheck --config tidegate.yaml
  tidegate healthcheck --admin :8090 --live

In a Compose file:
  healthcheck:
    test: [CMD, /usr/bin/tidegate, healthcheck]
    interval: 10s
    timeout: 5s")]
pub struct HealthcheckArgs {
    /// Configuration file. Only `listen.admin` is used
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port of the admin listener, or unix:PATH, as with `serve`
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<ListenAddress>,
    /// Check that the process runs (GET /livez), not that it is ready
    #[arg(long)]
    pub live: bool,
    /// Seconds to wait for the connection, and for each part of the response
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX))]
    pub timeout: u64,
}

/// Asks the server for its health. Fails if it is not healthy, or does not respond.
pub fn run(args: &HealthcheckArgs) -> Result<(), Failure> {
    let admin = listener(args)?;
    let path = if args.live { "/livez" } else { "/readyz" };
    let timeout = Duration::from_secs(args.timeout);
    let response = match reachable(&admin)? {
        ListenAddress::Tcp(address) => over_tcp(address, path, timeout),
        ListenAddress::Unix { path: socket, .. } => over_unix(&socket, path, timeout),
    };
    let address = &admin.address;
    let response = response.map_err(|error| {
        Failure::runtime(format!("the server at {address} does not respond: {error}"))
    })?;
    match response.status {
        200 => print::line(&response.body),
        status => Err(Failure::runtime(format!(
            "the server at {address} is not healthy: {status} {}",
            response.body
        ))),
    }
}

fn listener(args: &HealthcheckArgs) -> Result<Listener, Failure> {
    let mut environment = FlagEnvironment::new();
    environment.set("TIDEGATE_LISTEN_ADMIN", args.admin.as_ref());
    let input = ConfigInput {
        file: args.config.as_deref(),
        envoy: None,
        source: None,
    };
    Ok(input.admin_listener(&environment)?)
}

/// Returns the address to connect to for a listener on this machine.
fn reachable(admin: &Listener) -> Result<ListenAddress, Failure> {
    if admin.tls.is_some() {
        // A certificate for the public name would not match the address, and callers may need one.
        return Err(Failure::input(
            "the admin listener uses TLS, which `healthcheck` does not\n   help: probe it with an HTTPS \
             client, or listen on a unix socket without `tls`",
        ));
    }
    let ListenAddress::Tcp(address) = &admin.address else {
        return Ok(admin.address.clone());
    };
    if address.port() == 0 {
        return Err(Failure::input(
            "the admin listener takes any free port\n   help: set the port with `--admin ADDRESS`",
        ));
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()).into())
}

/// The response of the server.
#[derive(Debug, PartialEq, Eq)]
struct HealthResponse {
    status: u16,
    body: String,
}

fn over_tcp(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<HealthResponse> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    exchange(stream, path)
}

fn over_unix(socket: &str, path: &str, timeout: Duration) -> io::Result<HealthResponse> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    exchange(stream, path)
}

fn exchange(mut stream: impl Read + Write, path: &str) -> io::Result<HealthResponse> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(RESPONSE_MAX).read_to_end(&mut bytes)?;
    parse(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/1.1"))
}

fn parse(text: &str) -> Option<HealthResponse> {
    let status = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    Some(HealthResponse {
        status,
        body: body.trim_end().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{HealthResponse, parse, reachable};
    use tidegate_config::compose::NamedText;
    use tidegate_config::{Config, NoEnvironment};

    #[test]
    fn a_wildcard_address_is_reached_over_loopback() {
        let cases = [
            ("0.0.0.0:8090", Ok("127.0.0.1:8090")),
            ("'[::]:8090'", Ok("[::1]:8090")),
            ("192.0.2.1:8090", Ok("192.0.2.1:8090")),
            ("unix:/run/admin.sock", Ok("unix:/run/admin.sock?mode=660")),
            ("localhost:0", Err("any free port")),
            (
                "{ address: ':8090', tls: { cert: /c.pem, key: /k.pem } }",
                Err("uses TLS"),
            ),
        ];
        for (written, expected) in cases {
            let text = format!("listen: {{ admin: {written} }}");
            let own = NamedText {
                name: "own.yaml",
                text: &text,
            };
            let admin = Config::admin_listener_of(own, &NoEnvironment).unwrap();
            match (reachable(&admin), expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address.to_string(), expected),
                (Err(failure), Err(part)) => {
                    assert!(failure.to_string().contains(part), "{failure}");
                }
                (found, _) => panic!("{written}: {found:?}"),
            }
        }
    }

    #[test]
    fn only_complete_http_responses_count() {
        let ready = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"ready\":true}\n";
        let expected = HealthResponse {
            status: 200,
            body: "{\"ready\":true}".to_owned(),
        };
        assert_eq!(parse(ready), Some(expected));
        for text in [
            "",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 200 OK\r\n",
            "-ERR unknown",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
