//! A gateway without a file: a configuration made from a few flags.

use super::environment::{Environment, NoEnvironment};
use super::problem::{ConfigErrors, ConfigProblem};
use super::syntax::TextSpan;
use crate::config::Config;
use crate::language::reader::ConfigReader;
use crate::sections::route::upstream_url;
use serde_json::json;
use tidegate_core::Algorithm;
use tidegate_policy::band::Band;
use tidegate_policy::text::ConfigFault;

impl Config {
    /// Returns the configuration of `tidegate gateway` without a file. A gateway on 127.0.0.1:8000
    /// sends every request to one of `upstreams`. `limit`, such as `100/s`, applies to each client
    /// address; without it, requests are unlimited.
    ///
    /// The flags are taken literally. Variables of `environment` override settings as they override
    /// those of a file.
    ///
    /// ```
    /// use tidegate_config::Config;
    /// use tidegate_config::NoEnvironment;
    ///
    /// let config = Config::gateway(&["http://127.0.0.1:9001"], Some("100/s"), &NoEnvironment)?;
    /// let found = config.routes.find("GET", None, "/anything").ok_or("no route")?;
    /// assert_eq!(found.route.upstreams[0].port, 9001);
    ///
    /// let errors = Config::gateway(&["localhost:9001"], None, &NoEnvironment).unwrap_err();
    /// assert!(errors.to_string().starts_with("--upstream:"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns all errors found. They name the flag.
    pub fn gateway(
        upstreams: &[impl AsRef<str>],
        limit: Option<&str>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        let text = Self::gateway_text(upstreams, limit)?;
        Self::parse(&text, "gateway", environment)
    }

    /// Returns the text that [`gateway`](Self::gateway) reads, as a start for a configuration file.
    ///
    /// # Errors
    ///
    /// Returns all errors found. They name the flag.
    pub fn gateway_text(
        upstreams: &[impl AsRef<str>],
        limit: Option<&str>,
    ) -> Result<String, ConfigErrors> {
        let mut problems = Vec::new();
        let mut urls = Vec::new();
        for written in upstreams.iter().map(|it| it.as_ref().trim()) {
            let url = upstream_url(written);
            problems.extend(check("--upstream", written, url.map(|it| urls.push(it))));
        }
        let twice =
            (1..urls.len()).find(|at| urls.iter().take(*at).any(|it| urls.get(*at) == Some(it)));
        if let Some(written) = twice.and_then(|at| upstreams.get(at)) {
            let fault = ConfigFault::new("duplicate upstream").help(
                "write each URL \
                once",
            );
            problems.extend(check("--upstream", written.as_ref(), Err(fault)));
        }
        if upstreams.is_empty() {
            let fault = ConfigFault::new("no upstream is set");
            let help = "add one, for example `--upstream http://127.0.0.1:9001`";
            problems.extend(check("--upstream", "", Err(fault.help(help))));
        }
        if let Some(written) = limit {
            let band = Band::parse(written.trim(), Algorithm::TokenBucket);
            let band = band.map(|_| ()).map_err(ConfigFault::new);
            problems.extend(check("--limit", written, band));
        }
        if !problems.is_empty() {
            return Err(ConfigErrors::new("command line".into(), problems, 0));
        }
        Ok(text(upstreams, limit))
    }
}

/// Returns the problems of a flag, if there are any.
fn check(flag: &str, written: &str, read: Result<(), ConfigFault>) -> Vec<ConfigProblem> {
    let mut reader = ConfigReader::new(flag, written, &NoEnvironment);
    let place = TextSpan::at(1, 1, written.chars().count().max(1));
    if let Err(fault) = read {
        reader.error((place, flag.to_owned()), fault);
    }
    match reader.finish() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.problems().to_vec(),
    }
}

fn text(upstreams: &[impl AsRef<str>], limit: Option<&str>) -> String {
    // Quote as JSON, which is also YAML, and escape text that looks like a variable.
    let quote = |text: &str| json!(text.trim().replace("${", "$${")).to_string();
    let upstreams = upstreams.iter().map(|it| quote(it.as_ref()));
    let upstreams: Vec<String> = upstreams.collect();
    let policy = if limit.is_some() { "gateway" } else { "none" };
    format!(
        "\
listen:
  gateway: 127.0.0.1:8000
routes:
  - name: all
    upstreams: [{}]
    policy: {policy}
policies:
  - name: gateway
    limits:
      - name: per-client
        key: ip
        rate: {}
",
        upstreams.join(", "),
        quote(limit.unwrap_or("100/s")),
    )
}
