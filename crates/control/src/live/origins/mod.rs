//! The sources other than the file.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the constructor for the source that a configuration names |
//! | `keeper` | a key of a keeper: a document with a version, over HTTP |
//! | `http` | a document at a URL, fetched only if it has changed |
//! | `documents` | documents in a document store: a hash of Redis, keys of etcd, a document of `MongoDB` |
//! | `rules` | rules of `FluxGate`, in Redis and in `MongoDB` |
//! | `xds` | an xDS server that sends the configuration of envoyproxy/ratelimit |
//! | `translate` | translation of other systems' documents |
//! | `steady` | protection against a source that suddenly becomes empty |

mod documents;
mod http;
mod keeper;
mod rules;
mod steady;
mod translate;
mod xds;

use super::source::PolicyFetcher;
use tidegate_config::source::{PolicyOrigin, PolicySource};

/// The maximum length of a document: more than the configuration language accepts, so that a longer
/// document gets that error.
const BYTES_MAX: usize = 16 << 20;

/// Creates the source that `settings` name, or returns why they are invalid. Does not connect yet.
pub(super) fn open(settings: &PolicySource) -> Result<Box<dyn PolicyFetcher>, String> {
    let origin = origin(settings)?;
    Ok(match &settings.origin {
        // A response of xDS is complete, or it is no response: an empty one is meant.
        PolicyOrigin::Xds(_) => origin,
        _ => Box::new(steady::SteadySource::new(origin)),
    })
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
            Box::new(documents::ShelvedSource::new(shelf, time_max, every)?)
        }
        PolicyOrigin::RuleSets(rule_sets) => {
            let (name, time_max) = (&settings.name, settings.timeout);
            Box::new(rules::RuleSetSource::new(name, rule_sets, time_max, every)?)
        }
        PolicyOrigin::Xds(server) => {
            let (name, time_max) = (&settings.name, settings.timeout);
            Box::new(xds::XdsSource::new(name, server, time_max, every)?)
        }
        #[cfg(feature = "mongodb")]
        PolicyOrigin::MongoDb(rules) => {
            let (name, time_max) = (&settings.name, settings.timeout);
            Box::new(rules::MongoSource::new(name, rules, time_max, every))
        }
        #[cfg(not(feature = "mongodb"))]
        PolicyOrigin::MongoDb(_) => return Err(crate::mongo::WITHOUT_MONGODB.to_owned()),
    })
}
