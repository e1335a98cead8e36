//! The sources beside the file.
//!
//! | module | what it is |
//! |---|---|
//! | this one | whichever a configuration names |
//! | `keeper` | a key of a keeper: a document with a version, over HTTP |
//! | `http` | a document at a URL, fetched only if it has changed |
//! | `shelved` | documents on a shelf: a hash of Redis, keys of etcd, a document of `MongoDB` |
//! | `rules` | rules of `FluxGate`, in Redis and in `MongoDB` |
//! | `translate` | documents of others, told in our own language |
//! | `steady` | a source that had something to say is not believed when it has nothing |

mod http;
mod keeper;
mod rules;
mod shelved;
mod steady;
mod translate;

use super::source::PolicyFetcher;
use tidegate_policy::source::{PolicyOrigin, PolicySource};

/// The longest document: more than the language takes, so that it is the language's own message that
/// says so.
const BYTES_MAX: usize = 16 << 20;

/// The source that `settings` name, or what is wrong with them. Asks nobody yet.
pub(super) fn open(settings: &PolicySource) -> Result<Box<dyn PolicyFetcher>, String> {
    Ok(Box::new(steady::Steady::new(origin(settings)?)))
}

fn origin(settings: &PolicySource) -> Result<Box<dyn PolicyFetcher>, String> {
    let every = settings.refresh;
    Ok(match &settings.origin {
        PolicyOrigin::Keeper(keeper) => {
            Box::new(keeper::KeeperSource::new(keeper, settings.timeout, every)?)
        }
        PolicyOrigin::Http {
            url,
            token,
            format,
            tls,
        } => Box::new(http::HttpSource::new(
            &settings.name,
            (url, tls),
            (token.as_ref(), *format),
            settings.timeout,
            every,
        )?),
        PolicyOrigin::Shelf(shelf) => {
            let time_max = settings.timeout;
            Box::new(shelved::ShelvedSource::new(shelf, time_max, every)?)
        }
        PolicyOrigin::RuleSets(rule_sets) => {
            let (name, time_max) = (&settings.name, settings.timeout);
            Box::new(rules::RuleSetSource::new(name, rule_sets, time_max, every)?)
        }
        #[cfg(feature = "mongodb")]
        PolicyOrigin::MongoDb(rules) => {
            let (name, time_max) = (&settings.name, settings.timeout);
            Box::new(rules::MongoSource::new(name, rules, time_max, every))
        }
        #[cfg(not(feature = "mongodb"))]
        PolicyOrigin::MongoDb(_) => return Err(crate::sources::WITHOUT_MONGODB.to_owned()),
    })
}
