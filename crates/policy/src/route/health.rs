//! Which upstreams are fit to be asked.

use std::time::Duration;

/// How upstreams are looked after between requests: each is asked for a path, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked for, with a `/` before it; a query may follow it. What the URL of an upstream
    /// has for a path stands before it. An answer of 200 to 399 is a good one.
    pub path: String,
    /// From one question to the next.
    pub interval: Duration,
    /// How long an answer may take; at most the interval.
    pub timeout: Duration,
    /// After how many good answers in a row an upstream is fit again.
    pub healthy: u32,
    /// After how many bad ones in a row it no longer is.
    pub unhealthy: u32,
}

/// When an upstream that fails requests is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eject {
    /// After how many failures in a row.
    pub failures: u32,
    /// For how long.
    pub lasts: Duration,
}

impl HealthCheck {
    /// The questions that are asked unless told otherwise, of this path.
    pub fn new(path: String) -> Self {
        Self {
            path,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            healthy: 2,
            unhealthy: 3,
        }
    }
}

impl Default for Eject {
    fn default() -> Self {
        Self {
            failures: 5,
            lasts: Duration::from_secs(10),
        }
    }
}
