//! The user that runs a command, for the log.

use tidegate_config::Environment;

/// Returns `user@host` from the environment. It is not verified.
pub(super) fn who(environment: &dyn Environment) -> String {
    let first = |names: &[&str]| {
        let values = names.iter().filter_map(|name| environment.variable(name));
        values.into_iter().find(|value| !value.is_empty())
    };
    let user = first(&["SUDO_USER", "USER", "LOGNAME", "USERNAME"]);
    let host = first(&["HOSTNAME", "COMPUTERNAME"]);
    let host = host.or_else(|| {
        let name = environment.file("/etc/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    });
    let known = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
    format!("{}@{}", known(user), known(host))
}

#[cfg(test)]
mod tests {
    use super::who;
    use tidegate_config::Environment;

    struct TestEnvironment(&'static [(&'static str, &'static str)]);

    impl Environment for TestEnvironment {
        fn variable(&self, name: &str) -> Option<String> {
            let variable = self.0.iter().find(|(variable, _)| *variable == name);
            variable.map(|(_, value)| (*value).to_owned())
        }

        fn file(&self, _: &str) -> Result<String, String> {
            Ok("box\n".to_owned())
        }
    }

    #[test]
    fn the_operator_is_named_from_the_environment() {
        let environment = TestEnvironment(&[
            ("USER", "root"),
            ("SUDO_USER", "ann"),
            ("HOSTNAME", "gate-1"),
        ]);
        assert_eq!(who(&environment), "ann@gate-1");
        assert_eq!(
            who(&TestEnvironment(&[("LOGNAME", "bob"), ("USER", "")])),
            "bob@box"
        );
        assert_eq!(who(&TestEnvironment(&[])), "unknown@box");
    }
}
