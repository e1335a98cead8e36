//! A statsd server that adds up the received counters.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// The prefix of the compared names.
const PREFIX: &str = "ratelimit.service.rate_limit.";

/// A statsd server over TCP, on a separate port.
pub(crate) struct CountingStatsd {
    port: u16,
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl CountingStatsd {
    pub(crate) fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::<Mutex<BTreeMap<String, u64>>>::default();
        let all = Arc::clone(&counts);
        // Ends with the process; not joined.
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let all = Arc::clone(&all);
                thread::spawn(move || read(stream, &all));
            }
        });
        Self { port, counts }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns all counters so far.
    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.counts.lock().clone()
    }

    /// Returns the sum of all counters with this suffix.
    pub(crate) fn sum_of(&self, end: &str) -> u64 {
        let counts = self.counts.lock();
        let counts = counts.iter().filter(|(name, _)| name.ends_with(end));
        counts.map(|(_, count)| count).sum()
    }
}

fn read(stream: TcpStream, counts: &Mutex<BTreeMap<String, u64>>) {
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else {
            return;
        };
        let Some((name, count)) = line.strip_suffix("|c").and_then(|it| it.split_once(':')) else {
            continue;
        };
        if name.starts_with(PREFIX) {
            *counts.lock().entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
    }
}
