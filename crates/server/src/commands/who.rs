//! The user that runs a command, for the log.

use tidegate_policy::config::Environment;

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
    use tidegate_policy::config::Environment;

    struct Told(&'static [(&'static str, &'static str)]);

    impl Environment for Told {
        fn variable(&self, name: &str) -> Option<String> {
            let told = self.0.iter().find(|(told, _)| *told == name);
            told.map(|(_, value)| (*value).to_owned())
        }

        fn file(&self, _: &str) -> Result<String, String> {
            Ok("box\n".to_owned())
        }
    }

    #[test]
    fn who_asked_is_told_as_the_environment_tells_it() {
        let told = Told(&[
            ("USER", "root"),
            ("SUDO_USER", "ann"),
            ("HOSTNAME", "gate-1"),
        ]);
        assert_eq!(who(&told), "ann@gate-1");
        assert_eq!(who(&Told(&[("LOGNAME", "bob"), ("USER", "")])), "bob@box");
        assert_eq!(who(&Told(&[])), "unknown@box");
    }
}
