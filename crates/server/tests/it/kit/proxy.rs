//! Check requests of a proxy to `/v1/auth`.

use super::client::{Client, Reply};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpSocket, TcpStream};

/// A check request to `/v1/auth`, built from its differences to the default.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Returns a check request as Traefik and Caddy send it. Default: a GET for `/` by 192.0.2.1.
pub(crate) fn ask(target: &str) -> Ask {
    let ask = Ask {
        line: format!("GET {target} HTTP/1.1"),
        headers: Vec::new(),
        body: String::new(),
    };
    ask.header("host", "tidegate.test")
        .header("x-forwarded-for", "192.0.2.1")
        .header("x-forwarded-method", "GET")
        .header("x-forwarded-host", "app.test")
        .header("x-forwarded-uri", "/")
}

impl Ask {
    /// Adds a header, even if there is one with this name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// Replaces a header.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// Sets the client's address.
    pub(crate) fn from(self, address: &str) -> Self {
        self.with("x-forwarded-for", address)
    }

    /// Sets the client's target.
    pub(crate) fn uri(self, uri: &str) -> Self {
        self.with("x-forwarded-uri", uri)
    }

    /// Sets the method and body, for proxies that keep the client's.
    pub(crate) fn method(mut self, method: &str, body: &str) -> Self {
        self.line = self.line.replacen("GET", method, 1);
        body.clone_into(&mut self.body);
        self
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        if !self.body.is_empty() {
            write!(text, "content-length: {}\r\n", self.body.len()).unwrap();
        }
        text + "\r\n" + &self.body
    }

    /// Sends it on a new connection.
    pub(crate) async fn at(&self, address: SocketAddr) -> Reply {
        Client::connect(address).await.ask(&self.text()).await
    }

    /// Sends it from another address of this machine.
    pub(crate) async fn at_from(&self, address: SocketAddr, source: &str) -> Reply {
        let stream = connect_from(address, source.parse().unwrap()).await;
        Client::over(stream).ask(&self.text()).await
    }
}

async fn connect_from(address: SocketAddr, source: IpAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(source, 0)).unwrap();
    socket.connect(address).await.unwrap()
}
