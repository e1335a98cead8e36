//! The sources of plans.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the loader for the source that a configuration names |
//! | `http` | a document at a URL, fetched only if it has changed |
//! | `documents`, `entries` | plans, groups and subjects in a document store, each by its name |
//! | `once` | plans for commands, loaded once |
//! | `mongodb` | collections of MongoDB, with the feature `mongodb` |

mod documents;
pub mod entries;
mod http;
#[cfg(feature = "mongodb")]
mod mongodb;
pub mod once;

use crate::docstore::DocumentStore;
use crate::mongo::WITHOUT_MONGODB;
use std::future::Future;
use std::sync::Arc;
use tidegate::plan::{PlanOrigin, PlanSource};
use tidegate::{FilePlans, LoadPlans, LoadedPlans};
use tidegate_policy::documents::DocumentLocation;

/// Loads plans from the source that a configuration names. Clones are cheap and share the connections.
#[derive(Clone, Debug, Default)]
pub struct PlanLoader {
    http: http::Fetch,
    shelves: documents::DocumentStores,
    #[cfg(feature = "mongodb")]
    mongodb: mongodb::Clients,
}

impl LoadPlans for PlanLoader {
    fn load(
        &self,
        source: &PlanSource,
        tag: Option<&str>,
        hides_subjects: bool,
    ) -> impl Future<Output = Result<LoadedPlans, String>> + Send {
        let (this, source) = (self.clone(), source.clone());
        let tag = tag.map(str::to_owned);
        async move {
            match &source.origin {
                PlanOrigin::Http { url, token, tls } => {
                    let asked = http::FetchTerms {
                        format: source.format,
                        tls,
                        url,
                        token: token.as_ref(),
                        time_max: source.timeout,
                        hides_subjects,
                    };
                    this.http.load(&asked, tag).await
                }
                #[cfg(feature = "mongodb")]
                PlanOrigin::MongoDb {
                    url,
                    database,
                    collections,
                } => {
                    let place = mongodb::CollectionQuery {
                        url,
                        database,
                        collections,
                        time_max: source.timeout,
                    };
                    this.mongodb.load(&place, hides_subjects).await
                }
                #[cfg(not(feature = "mongodb"))]
                PlanOrigin::MongoDb { .. } => Err(WITHOUT_MONGODB.to_owned()),
                PlanOrigin::Shelf(settings) => {
                    let place = this.shelves.get(settings, source.timeout)?;
                    documents::load(&*place, tag, hides_subjects).await
                }
                PlanOrigin::File(_) | PlanOrigin::Inline(_) | PlanOrigin::Program => {
                    FilePlans
                        .load(&source, tag.as_deref(), hides_subjects)
                        .await
                }
            }
        }
    }
}

impl PlanLoader {
    /// Returns the document store of a plan source, if it has one.
    pub(crate) fn shelf(
        &self,
        source: &PlanSource,
    ) -> Option<Result<Arc<dyn DocumentStore>, String>> {
        let place = source.shelf()?;
        Some(self.shelves.get(place, source.timeout))
    }
}

/// Returns the error for a source that this build does not support; `None` if it can load it.
pub fn missing(source: &PlanSource) -> Option<&'static str> {
    let is_mongodb = match &source.origin {
        PlanOrigin::MongoDb { .. } => true,
        PlanOrigin::Shelf(shelf) => matches!(shelf.place, DocumentLocation::MongoDb(_)),
        _ => false,
    };
    (is_mongodb && cfg!(not(feature = "mongodb"))).then_some(WITHOUT_MONGODB)
}
