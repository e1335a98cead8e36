//! The limit on open files (`RLIMIT_NOFILE`), which bounds connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most that macOS grants, regardless of its hard limit.
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit to the hard one, and returns the limit that applies. `None` means no limit.
///
/// The usual soft limit, 1,024, exists for programs that use `select`; this one does not.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = [
        maximum,
        maximum.map_or(Some(OPEN_MAX), |it| Some(it.min(OPEN_MAX))),
    ];
    for wanted in raised {
        let is_more = wanted.is_none_or(|wanted| current.is_some_and(|it| it < wanted));
        let limit = Rlimit {
            current: wanted,
            maximum,
        };
        if current.is_some() && is_more && setrlimit(Resource::Nofile, limit).is_ok() {
            return wanted;
        }
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_limit_is_raised_to_its_maximum() {
        let limit = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, limit);
        #[cfg(target_os = "linux")]
        assert_eq!(now.current, now.maximum);
        assert_eq!(raise(), limit, "a second time changes nothing");
    }
}
