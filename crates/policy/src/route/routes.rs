//! All routes, and the search for the route of a request.

use super::{Paths, Route};
use crate::matching::{Router, RouterScratch};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Buffers, so that finding a route allocates nothing once they have grown.
    static SCRATCH: RefCell<RouterScratch> = RefCell::default();
}

/// The routes of a configuration, in the order written; none where it has no gateway.
/// The first that matches a request is taken.
#[derive(Debug, Default)]
pub struct Routes {
    ordered: Vec<Arc<Route>>,
    router: Router,
    paths: Paths,
}

/// The route of a request.
#[derive(Clone, Copy, Debug)]
pub struct FoundRoute<'a> {
    /// The route.
    pub route: &'a Arc<Route>,
    /// Its index among the routes.
    pub index: usize,
    /// The index in [`Route::patterns`] of the pattern that matched.
    pub pattern: usize,
}

// === impl Routes ===

impl Routes {
    /// Prepares these routes, in this order.
    pub fn new(routes: Vec<Route>) -> Self {
        Self {
            router: Router::new(routes.iter().map(|route| {
                // A disabled route keeps its index, so that the others keep theirs.
                route.enabled.then_some(route.conditions.as_slice())
            })),
            ordered: routes.into_iter().map(Arc::new).collect(),
            paths: Paths::default(),
        }
    }

    /// Sets the treatment of ambiguous paths.
    #[must_use]
    pub fn with_paths(self, paths: Paths) -> Self {
        Self { paths, ..self }
    }

    /// Returns the treatment of ambiguous paths.
    pub fn paths(&self) -> Paths {
        self.paths
    }

    /// Returns the first enabled route, in the order written, of which any condition holds. `path` is the
    /// target as sent, not normalised; a query may follow it.
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

    /// Returns true if any route is restricted to certain hosts, so that a frontend has to provide the host.
    pub fn reads_host(&self) -> bool {
        self.router.reads_host()
    }

    /// Returns the routes in the order written, including disabled ones.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Route>> {
        self.ordered.iter()
    }

    /// Returns the route at this index.
    pub fn get(&self, index: usize) -> Option<&Arc<Route>> {
        self.ordered.get(index)
    }

    /// Returns the number of routes.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Returns true if there are no routes.
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }
}

// === impl FoundRoute ===

impl<'a> FoundRoute<'a> {
    /// Returns the path pattern that matched, as configured.
    pub fn pattern(&self) -> &'a str {
        self.route
            .patterns
            .get(self.pattern)
            .map_or("/", String::as_str)
    }
}
