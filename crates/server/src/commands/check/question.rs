//! The check request that the flags describe.

use crate::commands::server_call::{file, secret};
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use tidegate::CostMap;
use tidegate_config::Environment;
use tidegate_control::failure::Failure;

/// The arguments that describe the request to check.
#[derive(Args, Debug, Default)]
pub struct QuestionArgs {
    /// Policy. Default: the first one
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Client address
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<IpAddr>,
    /// User
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Variable with the API key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "api_key_file")]
    pub api_key_env: Option<String>,
    /// File with the API key
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// HTTP method
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Host
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Path, with the query if limits need it
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Route
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Header. Repeat it for several
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// File with headers, one on each line, for those that are secret
    #[arg(long, value_name = "FILE")]
    pub header_file: Option<PathBuf>,
    /// Attribute. Repeat it for several
    #[arg(long = "attribute", value_name = "NAME=VALUE")]
    pub attributes: Vec<String>,
    /// Units to consume: a number, or amounts such as `tokens=800,bytes=9`. Default: one request, or as the
    /// server's configuration finds it
    #[arg(long, value_name = "UNITS", value_parser = CostMap::parse)]
    pub cost: Option<CostMap<'static>>,
}

impl QuestionArgs {
    /// Returns the body of `POST /v1/check`.
    pub(super) fn body(&self, environment: &dyn Environment) -> Result<String, Failure> {
        let mut body = Map::new();
        let texts = [
            ("policy", &self.policy),
            ("user", &self.user),
            ("method", &self.method),
            ("host", &self.host),
            ("path", &self.path),
            ("route", &self.route),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                body.insert(name.to_owned(), json!(text));
            }
        }
        if let Some(ip) = self.ip {
            body.insert("ip".to_owned(), json!(ip.to_string()));
        }
        let key = secret(
            self.api_key_env.as_deref(),
            self.api_key_file.as_ref(),
            environment,
        )?;
        if let Some(key) = key {
            body.insert("api_key".to_owned(), json!(key));
        }
        if let Some(cost) = &self.cost {
            let cost = match cost {
                CostMap::Number(number) => json!(number),
                CostMap::Units(units) => units
                    .iter()
                    .map(|(unit, amount)| (unit.clone().into_owned(), json!(amount)))
                    .collect(),
            };
            body.insert("cost".to_owned(), cost);
        }
        let headers = self.headers(environment)?;
        if !headers.is_empty() {
            body.insert("headers".to_owned(), json!(headers));
        }
        let attributes = self.attributes()?;
        if !attributes.is_empty() {
            body.insert("attributes".to_owned(), Value::Object(attributes));
        }
        Ok(Value::Object(body).to_string())
    }

    /// Returns the values of each header.
    fn headers(
        &self,
        environment: &dyn Environment,
    ) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        let secret = match &self.header_file {
            Some(path) => file(path, environment)?,
            None => String::new(),
        };
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let lines = secret.lines().filter(|line| !line.trim().is_empty());
        for (nth, line) in self
            .headers
            .iter()
            .map(String::as_str)
            .chain(lines)
            .enumerate()
        {
            // A line of the file may be secret.
            let shown = if nth < self.headers.len() {
                line
            } else {
                "a line of --header-file"
            };
            let header = line
                .split_once(':')
                .filter(|(name, _)| !name.trim().is_empty());
            let (name, value) = header.ok_or_else(|| {
                Failure::input(format!(
                    "`{shown}` is not a header\n   help: write `NAME: VALUE`"
                ))
            })?;
            let values = headers.entry(name.trim().to_ascii_lowercase());
            values.or_default().push(value.trim().to_owned());
        }
        Ok(headers)
    }

    fn attributes(&self) -> Result<Map<String, Value>, Failure> {
        let mut attributes = Map::new();
        for text in &self.attributes {
            let attribute = text.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = attribute.ok_or_else(|| {
                Failure::input(format!(
                    "`{text}` is not an attribute\n   help: write `NAME=VALUE`"
                ))
            })?;
            if attributes.insert(name.to_owned(), json!(value)).is_some() {
                return Err(Failure::input(format!("attribute `{name}` is set twice")));
            }
        }
        Ok(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::QuestionArgs;
    use tidegate::CostMap;
    use tidegate_config::Environment;

    struct Secrets;

    impl Environment for Secrets {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "KEY").then(|| " hunter2\n".to_owned())
        }

        fn file(&self, path: &str) -> Result<String, String> {
            match path {
                "headers" => Ok("Authorization: Bearer hunter3\n\nhunter4\n".to_owned()),
                "fine" => Ok("Authorization: Bearer hunter3\n".to_owned()),
                "empty" => Ok("\n".to_owned()),
                _ => Err("it does not exist".to_owned()),
            }
        }
    }

    #[test]
    fn a_cost_by_unit_is_sent_as_a_map() {
        let question = QuestionArgs {
            cost: CostMap::parse("tokens=800,bytes=9").ok(),
            ..QuestionArgs::default()
        };
        let body = question.body(&Secrets).unwrap();
        assert_eq!(body, r#"{"cost":{"bytes":9,"tokens":800}}"#);
    }

    #[test]
    fn the_body_has_only_the_given_fields() {
        let none = QuestionArgs::default();
        assert_eq!(none.body(&Secrets).unwrap(), "{}");
        let all = QuestionArgs {
            ip: "192.0.2.1".parse().ok(),
            api_key_env: Some("KEY".to_owned()),
            headers: vec!["X-A: 1".to_owned(), "x-a:2".to_owned()],
            header_file: Some("fine".into()),
            attributes: vec!["plan=gold=1".to_owned()],
            cost: Some(CostMap::Number(0)),
            ..QuestionArgs::default()
        };
        assert_eq!(
            all.body(&Secrets).unwrap(),
            r#"{"api_key":"hunter2","attributes":{"plan":"gold=1"},"cost":0,"headers":{"authorization":["Bearer hunter3"],"x-a":["1","2"]},"ip":"192.0.2.1"}"#
        );
    }

    #[test]
    fn errors_name_the_argument_and_never_a_secret() {
        let with = |change: fn(&mut QuestionArgs)| {
            let mut args = QuestionArgs::default();
            change(&mut args);
            args.body(&Secrets).unwrap_err().to_string()
        };
        for (error, expected) in [
            (
                with(|it| it.headers = vec!["x".into()]),
                "`x` is not a header",
            ),
            (
                with(|it| it.header_file = Some("headers".into())),
                "a line of --header-file",
            ),
            (
                with(|it| it.attributes = vec!["x".into()]),
                "`x` is not an attribute",
            ),
            (
                with(|it| it.attributes = vec!["x=1".into(), "x=2".into()]),
                "is set twice",
            ),
            (
                with(|it| it.api_key_env = Some("NONE".into())),
                "NONE is not set",
            ),
            (
                with(|it| it.api_key_file = Some("empty".into())),
                "empty is empty",
            ),
            (
                with(|it| it.api_key_file = Some("gone".into())),
                "cannot read gone",
            ),
        ] {
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("hunter"), "{error}");
        }
    }
}
