//! Describes traces, statistics and logs.

use super::words::time;
use crate::statsd::{Format, Statsd, StatsdProtocol};
use crate::traces::{Logs, Traces};

/// Describes the export of spans. Its headers may be secret and are left out.
pub(super) fn traces(traces: &Traces) -> String {
    let Traces {
        url,
        sample,
        service,
        ..
    } = traces;
    format!(
        "Traces: spans of {sample} of all requests, and of requests sampled by their caller, are \
         sent to {url} as service {service}; timeout {}.",
        time(traces.timeout)
    )
}

/// Describes the export of statistics.
pub(super) fn statsd(statsd: &Statsd) -> String {
    if !statsd.enabled {
        return "Statsd: off.".to_owned();
    }
    let protocol = match statsd.protocol {
        StatsdProtocol::Udp => "UDP",
        StatsdProtocol::Tcp => "TCP",
    };
    let format = match statsd.format {
        Format::Statsd => "statsd",
        Format::Dogstatsd => "DogStatsD",
    };
    format!(
        "Statsd: limit statistics are sent to {} over {protocol} as {format} every {}, named \
         `{}.…`.",
        statsd.address,
        time(statsd.interval),
        statsd.prefix
    )
}

/// Describes the logging of refusals.
pub(super) fn logs(logs: &Logs) -> String {
    match logs.refusals {
        none if none.is_none() => "Logs: refusals are not logged.".to_owned(),
        refusals => format!("Logs: {refusals} of all refusals are logged."),
    }
}
