//! Health checks and ejection of upstreams.

use std::time::Duration;

/// Active health checks: a request for a path to each upstream at an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// The path, starting with `/`; a query may follow it. It is appended to the path in the upstream's URL.
    /// A status of 200 to 399 is a success.
    pub path: String,
    /// The time between two checks.
    pub interval: Duration,
    /// The timeout of a check; at most the interval.
    pub timeout: Duration,
    /// The number of consecutive successes after which an upstream is healthy again.
    pub healthy: u32,
    /// The number of consecutive failures after which an upstream is unhealthy.
    pub unhealthy: u32,
}

/// The rules for ejecting an upstream that fails requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectionRules {
    /// The number of consecutive failures.
    pub failures: u32,
    /// The length of the ejection.
    pub lasts: Duration,
}

impl HealthCheck {
    /// Creates checks of this path with the default settings.
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

impl Default for EjectionRules {
    fn default() -> Self {
        Self {
            failures: 5,
            lasts: Duration::from_secs(10),
        }
    }
}
