//! Loading plans from their sources.

use std::future::Future;
use tidegate_policy::plan::PlanDocument;
use tidegate_policy::plan_source::PlanSource;

/// Loads plans from their sources. The program `tidegate` implements it for HTTP, Redis, etcd and `MongoDB`;
/// [`FilePlans`] is for files.
///
/// # Example
///
/// Plans from a table of the program itself:
///
/// ```
/// use tidegate::plan::{PlanDocument, PlanSource};
/// use tidegate::{Limiter, LoadPlans, LoadedPlans, Request, plans_from_text};
///
/// struct Tariffs;
///
/// impl LoadPlans for Tariffs {
///     async fn load(
///         &self,
///         _source: &PlanSource,
///         tag: Option<&str>,
///         hides_subjects: bool,
///     ) -> Result<LoadedPlans, String> {
///         if tag == Some("1") {
///             return Ok(LoadedPlans::Unchanged);
///         }
///         let document = plans_from_text("subjects: { ann: 100/h }", hides_subjects)
///             .unwrap_or_else(PlanDocument::from);
///         Ok(LoadedPlans::Changed { document, tag: Some("1".to_owned()) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let limiter = Limiter::from_yaml("
/// plans: [{ name: shop, file: plans.yaml }]
/// policies:
///   - name: api
///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
/// ")?;
/// assert!(limiter.load_plans(&Tariffs).await.is_empty());
/// let decision = limiter.check_now(&Request::new().user("ann"))?;
/// assert_eq!(decision.binding().map(|band| band.remaining()), Some(99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LoadPlans: Send + Sync {
    /// Loads the current plans of `source`. `tag` is the tag of the last load: if it still matches, return
    /// [`LoadedPlans::Unchanged`]. If `hides_subjects`, subjects are secrets, such as API keys, and must not
    /// appear in messages.
    ///
    /// The future is dropped after [`PlanSource::timeout`].
    ///
    /// # Errors
    ///
    /// The source cannot be reached, or does not answer. A text that cannot be parsed is no such error: it is
    /// a [`PlanDocument`] made from its [`PlanErrors`](tidegate_policy::plan::PlanErrors).
    fn load(
        &self,
        source: &PlanSource,
        tag: Option<&str>,
        hides_subjects: bool,
    ) -> impl Future<Output = Result<LoadedPlans, String>> + Send;
}

/// The result of a load that reached its source. The text may still be invalid; then the document carries its
/// errors, and the last good plans stay active.
#[derive(Debug)]
pub enum LoadedPlans {
    /// The plans have the tag of the last load.
    Unchanged,
    /// The plans have changed.
    Changed {
        /// The new plans.
        document: PlanDocument,
        /// The tag of this version, if the source has one.
        tag: Option<String>,
    },
}

/// Loads plans from files, and rejects all other sources. The tag of a file is a hash of its text, so that an
/// unchanged file is not parsed again.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilePlans;
