//! All routes, and which one a request takes.

use super::{Paths, Route};
use crate::matching::{Router, RouterScratch};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Buffers, so that finding a route allocates nothing once they have grown.
    static SCRATCH: RefCell<RouterScratch> = RefCell::default();
}

/// The routes of a configuration, in the order written; none where it has no gateway.
///
/// ```
/// use tidegate_policy::Config;
///
/// let text = "
/// routes:
///   - id: orders
///     match: { path: /api/orders, method: GET }
///     upstreams: [http://127.0.0.1:9001]
///   - id: rest
///     upstreams: [http://127.0.0.1:9002]
/// policies:
///   - name: api
///     limits: [{ name: per-client, key: ip, rate: 10/s }]
/// ";
/// let config = Config::from_yaml(text)?;
/// let taken = |method, path| {
///     let found = config.routes.find(method, Some("example.com"), path)?;
///     Some(found.route.id.as_str())
/// };
/// assert_eq!(taken("GET", "/api/orders/7"), Some("orders"));
/// assert_eq!(taken("PUT", "/api/orders/7"), Some("rest"));
/// # Ok::<(), tidegate_policy::ConfigErrors>(())
/// ```
#[derive(Debug, Default)]
pub struct Routes {
    ordered: Vec<Arc<Route>>,
    router: Router,
    paths: Paths,
}

/// The route that a request takes.
#[derive(Clone, Copy, Debug)]
pub struct FoundRoute<'a> {
    /// The route.
    pub route: &'a Arc<Route>,
    /// Its place among the routes.
    pub index: usize,
    /// Which of [`Route::patterns`] led to it.
    pub pattern: usize,
}

// === impl Routes ===

impl Routes {
    /// Prepares these routes, in this order.
    pub fn new(routes: Vec<Route>) -> Self {
        Self {
            router: Router::new(routes.iter().map(|route| {
                // One that is off keeps its place, so that the others keep theirs.
                route.enabled.then_some(route.conditions.as_slice())
            })),
            ordered: routes.into_iter().map(Arc::new).collect(),
            paths: Paths::default(),
        }
    }

    /// The same routes, with paths read like that.
    #[must_use]
    pub fn with_paths(self, paths: Paths) -> Self {
        Self { paths, ..self }
    }

    /// How the paths of requests are read before a route is looked for.
    pub fn paths(&self) -> Paths {
        self.paths
    }

    /// The first route that is on, in the order written, of which any condition holds. `path` is the target as
    /// sent, not yet normalised; a query may follow it.
    pub fn find(&self, method: &str, host: Option<&str>, path: &str) -> Option<FoundRoute<'_>> {
        let found =
            SCRATCH.with_borrow_mut(|scratch| self.router.find(method, host, path, scratch));
        let (index, pattern) = found?;
        Some(FoundRoute {
            route: self.ordered.get(index)?,
            index,
            pattern,
        })
    }

    /// Whether any is for some hosts only, so that doors know when they need one.
    pub fn reads_host(&self) -> bool {
        self.router.reads_host()
    }

    /// The routes, in the order written, those that are off as well.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Route>> {
        self.ordered.iter()
    }

    /// The route at this place.
    pub fn get(&self, index: usize) -> Option<&Arc<Route>> {
        self.ordered.get(index)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }
}

// === impl Found ===

impl<'a> FoundRoute<'a> {
    /// The path pattern that led to it, as configured.
    pub fn pattern(&self) -> &'a str {
        self.route
            .patterns
            .get(self.pattern)
            .map_or("/", String::as_str)
    }
}
