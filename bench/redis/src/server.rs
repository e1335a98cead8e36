//! A Redis server on a separate core, and its statistics.

use std::str::FromStr;

use anyhow::{Context as _, bail, ensure};
use tidegate_testkit::redis::{BlockingClient, RespReply, Server, ServerProgram};

use crate::usage;

/// The server's core, and the client's core.
pub(crate) const SERVER_CORE: usize = 0;
pub(crate) const CLIENT_CORE: usize = 1;

/// A measured server.
pub(crate) struct MeasuredServer {
    pub(crate) server: Server,
    /// Its process number, as text.
    process: String,
    pub(crate) version: String,
}

/// A server's statistics so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) cpu_s: f64,
    pub(crate) waited_s: f64,
    pub(crate) bytes_in: f64,
    pub(crate) bytes_out: f64,
    /// Calls of scripts, modules and PING, without calls made by scripts.
    pub(crate) calls: f64,
}

impl MeasuredServer {
    /// Starts a server of this flavour with these further settings.
    pub(crate) fn start(flavour: ServerProgram, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let options = Server::builder().flavour(flavour);
        let options = settings.iter().fold(options, |options, (name, value)| {
            options.setting(name, value)
        });
        // A process starts on the cores of its parent.
        usage::pin(SERVER_CORE);
        let server = options.start();
        usage::pin(CLIENT_CORE);
        let info = server.client().command(&["INFO", "server"]).text();
        Ok(Self {
            process: field(&info, "process_id")?,
            version: field(&info, "redis_version")?,
            server,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn client(&self) -> anyhow::Result<BlockingClient> {
        self.server.try_client().context("the server is gone")
    }

    /// Runs one command that must not fail.
    pub(crate) fn command(&self, words: &[&str]) -> anyhow::Result<RespReply> {
        let reply = self.client()?.try_command(words)?;
        ensure!(reply.error().is_none(), "{}: {reply:?}", words.join(" "));
        Ok(reply)
    }

    /// Loads a script; returns its digest.
    pub(crate) fn load(&self, script: &str) -> anyhow::Result<String> {
        Ok(self.command(&["SCRIPT", "LOAD", script])?.text())
    }

    /// Reads its statistics.
    pub(crate) fn read(&self) -> anyhow::Result<Reading> {
        let mut client = self.client()?;
        let mut info = |section: &str| -> anyhow::Result<String> {
            Ok(client.try_command(&["INFO", section])?.text())
        };
        let stats = info("stats")?;
        let commands = info("commandstats")?;
        let cpu = info("cpu")?;
        Ok(Reading {
            cpu_s: number(&cpu, "used_cpu_sys")? + number(&cpu, "used_cpu_user")?,
            waited_s: usage::waited_s(&self.process),
            bytes_in: number(&stats, "total_net_input_bytes")?,
            bytes_out: number(&stats, "total_net_output_bytes")?,
            calls: calls(&commands),
        })
    }

    /// Returns the bytes of its data, and the number of keys in all databases.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let used = self.command(&["INFO", "memory"])?.text();
        let keyspace = self.command(&["INFO", "keyspace"])?.text();
        let keys = keyspace
            .lines()
            .filter_map(|line| {
                line.split_once("keys=")?
                    .1
                    .split(',')
                    .next()?
                    .parse::<f64>()
                    .ok()
            })
            .sum::<f64>();
        Ok((number(&used, "used_memory")?, keys))
    }

    /// Returns the number of error replies since its start.
    pub(crate) fn errors(&self) -> anyhow::Result<f64> {
        let stats = self.command(&["INFO", "stats"])?.text();
        number(&stats, "total_error_replies")
    }
}

/// The commands that count as calls: those that clients send.
const CALLS: [&str; 4] = ["evalsha", "eval", "cl.throttle", "ping"];

fn calls(commandstats: &str) -> f64 {
    CALLS
        .iter()
        .filter_map(|name| {
            let line = field::<String>(commandstats, &format!("cmdstat_{name}")).ok()?;
            let calls = line.strip_prefix("calls=")?.split(',').next()?;
            calls.parse::<f64>().ok()
        })
        .sum()
}

fn number(info: &str, name: &str) -> anyhow::Result<f64> {
    field(info, name)
}

/// Returns a line of INFO: `name:value`.
fn field<T: FromStr>(info: &str, name: &str) -> anyhow::Result<T> {
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let Some(value) = value.and_then(|value| value.trim().parse().ok()) else {
        bail!("INFO tells no {name}");
    };
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_call_counts_include_only_client_calls() {
        let text = "# Commandstats\r\ncmdstat_evalsha:calls=7,usec=1,rejected_calls=0\r\n\
                    cmdstat_get:calls=9,usec=1\r\ncmdstat_ping:calls=2,usec=1\r\n";
        assert!((calls(text) - 9.0).abs() < 1e-9);
        assert!(field::<f64>(text, "cmdstat_hget").is_err());
    }
}
