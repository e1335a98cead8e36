//! Keeps the file and its sources up to date, and serves their composition.
//!
//! | module | what it is |
//! |---|---|
//! | `file` | the file: checked each second, and read again when it has changed |
//! | `asking` | sources: loaded again, and taken in |
//! | `settling` | application of pending changes: all of them, or the valid ones |
//! | `editing` | edits through this server: validated completely, written, and then served |
//! | `refused` | the reason why a reload was rejected |
//!
//! A task that takes something in also settles it, even if it is interrupted: otherwise it would be
//! known, and never served.

mod asking;
mod editing;
mod file;
mod reload_error;
mod settling;

use file::ReadReason;
pub use reload_error::ReloadError;
use reload_error::lost;

use crate::live::config_files::ConfigFiles;
use crate::live::edit::SourceDocument;
use crate::live::file_changes::FileWatch;
use crate::live::report::Oddities;
use crate::live::sources::ComposerState;
use crate::live::start::InitialConfig;
use crate::live::view::ServedConfig;
use crate::running::ServerState;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::fmt;
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_config::compose::DocumentKind;
use tidegate_net::tasks::{blocking, undisturbed};
use tidegate_policy::calendar::ZoneData;
use tidegate_telemetry::source_health::{SourceHealth, SourceHealthList, SourceView};
use tokio::sync::{Mutex, RwLock, watch};

/// Keeps the file and its sources up to date, and serves their composition. Clones share it.
#[derive(Clone)]
pub struct Composer {
    inner: Arc<ComposerInner>,
}

struct ComposerInner {
    ground: ConfigFiles,
    serving: ServerState,
    /// The view of the served configuration. Locked while it changes.
    view: RwLock<Arc<ServedConfig>>,
    board: Arc<SourceHealthList>,
    file: Arc<SourceHealth>,
    /// Serializes changes. The holder waits for nothing external, except for bounded waits: a write, and
    /// lists that are read ahead.
    state: Mutex<ComposerState>,
    /// Serializes readings of the file, which load new sources.
    reading: Mutex<()>,
    /// The state of the files when they were last read.
    looked: FileWatch,
    /// The warnings logged for the last composition that was served.
    told: parking_lot::Mutex<Oddities>,
    /// Incremented whenever the set of sources changes.
    sources: watch::Sender<u64>,
    /// Incremented with each requested reload.
    reloads: watch::Sender<u64>,
}

impl Composer {
    /// Creates a composer from the initial state, which `serving` serves.
    pub fn new(begun: InitialConfig, serving: ServerState) -> Self {
        let InitialConfig {
            ground,
            state,
            view,
            file,
            looked,
            told,
        } = begun;
        let board = Arc::clone(&serving.decider().metrics().sources);
        let version = view.version.clone();
        let composer = Self {
            inner: Arc::new(ComposerInner {
                ground,
                serving,
                view: RwLock::new(Arc::new(view)),
                board,
                file,
                state: Mutex::new(state),
                reading: Mutex::new(()),
                looked,
                told: parking_lot::Mutex::new(told),
                sources: watch::Sender::new(0),
                reloads: watch::Sender::new(0),
            }),
        };
        if let Ok(state) = composer.inner.state.try_lock() {
            composer.hang(&state);
        }
        composer.announce(&version);
        composer
    }

    /// Announces the served version to the instances that share the store.
    fn announce(&self, version: &str) {
        if let Some(instances) = self.serving().decider().limiter().instances() {
            let zones = ZoneData::current().version();
            instances.announce(version, env!("CARGO_PKG_VERSION"), zones);
        }
    }

    /// Returns the name of the files, for messages.
    pub fn configuration(&self) -> String {
        self.inner.ground.name()
    }

    /// Returns true if there are files to read again.
    pub fn can_reload(&self) -> bool {
        !self.inner.ground.is_built_in()
    }

    /// Returns true if files are read again when they change, and not only on request.
    pub fn is_watched(&self) -> bool {
        self.inner.ground.is_watched
    }

    /// Changes with each reload that is requested.
    pub fn reloads(&self) -> watch::Receiver<u64> {
        self.inner.reloads.subscribe()
    }

    /// Returns the view of the served configuration. Requests from now on are decided by it or by a later
    /// one; no request so far was decided by a later one. If the configuration is just changing, waits
    /// for that.
    pub(crate) async fn view(&self) -> Arc<ServedConfig> {
        Arc::clone(&*self.inner.view.read().await)
    }

    /// Returns the status of each source, the file first.
    pub(crate) fn source_views(&self) -> Vec<SourceView> {
        let sources = self.inner.board.sources();
        sources.iter().map(|health| health.status()).collect()
    }

    /// Returns the part of the server that applies configurations.
    pub fn serving(&self) -> &ServerState {
        &self.inner.serving
    }

    /// Composes the served configuration again, for callers that need more of it than its documents.
    pub(crate) async fn config(&self) -> Result<Config, ReloadError> {
        let whole = self.inner.state.lock().await.as_served();
        let ground = self.inner.ground.clone();
        let composed = blocking(move || whole.compose(&ground.environment()));
        let composed = composed.await.ok_or_else(lost)?;
        composed
            .map(|sound| sound.config)
            .map_err(ReloadError::Invalid)
    }

    /// Returns a document as its source has it, including secrets, as the base of an edit; `None` if its
    /// source is read-only. If the source has a newer version than the served one, this is the newer one.
    pub async fn raw(
        &self,
        source: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Option<SourceDocument> {
        let state = self.inner.state.lock().await;
        let mut order = state.served.order.iter();
        let kept = order.find(|kept| kept.settings.name == source)?;
        let slot = state.at(kept)?;
        super::edit::raw(slot, kind, name)
    }

    /// Returns a text in a writable source under a name that is not served, with the name of the source.
    pub(crate) async fn unserved(
        &self,
        kind: DocumentKind,
        name: &str,
    ) -> Option<(String, String)> {
        let state = self.inner.state.lock().await;
        let mut order = state.served.order.iter();
        order.find_map(|kept| {
            let text = super::edit::raw(state.at(kept)?, kind, name)?.text?;
            Some((kept.settings.name.clone(), text))
        })
    }

    /// Keeps all sources up to date, as long as it is polled.
    pub async fn run(self) {
        let mut changes = self.inner.sources.subscribe();
        loop {
            changes.borrow_and_update();
            let mut keeping: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
            let pool = self.inner.state.lock().await.kept();
            for kept in pool {
                keeping.push(Box::pin(self.keep(kept)));
            }
            if self.inner.ground.is_watched && !self.inner.ground.is_built_in() {
                keeping.push(Box::pin(self.watch_file()));
            }
            let kept = async {
                // None of them ever ends.
                while keeping.next().await.is_some() {}
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = kept => {}
                // The sender lives as long as the composer.
                _ = changes.changed() => {}
            }
        }
    }

    /// Reads the file and all sources again, and serves the result. A source that cannot be loaded keeps
    /// its part; an invalid version is reported, and changes nothing.
    ///
    /// A caller that stops waiting does not stop the reload.
    ///
    /// # Errors
    ///
    /// [`ReloadError::Unread`] if the file cannot be read, [`ReloadError::Invalid`] if the composition is invalid,
    /// [`ReloadError::Unservable`] if the running server cannot apply it, and [`ReloadError::BuiltIn`] if the server
    /// was started without a file. The previous configuration stays active.
    pub async fn reload(&self) -> Result<(), ReloadError> {
        if self.inner.ground.is_built_in() {
            return Err(ReloadError::BuiltIn);
        }
        let this = self.clone();
        let reloaded = undisturbed(async move { this.reload_now().await });
        reloaded.await.unwrap_or_else(|| Err(lost()))
    }

    async fn reload_now(&self) -> Result<(), ReloadError> {
        let reloads = &self.inner.reloads;
        reloads.send_modify(|it| *it = it.wrapping_add(1));
        let looked = &self.inner.looked;
        looked.see(self.inner.ground.look(looked.last().named).await);
        self.inner.told.lock().forget_warnings();
        self.ask_all().await;
        let read = self.read_file_now(ReadReason::Asked).await;
        // A file that cannot be read does not keep new versions of sources from being served.
        let mut state = self.inner.state.lock().await;
        if state.is_unsettled {
            self.apply_pending(&mut state).await;
        }
        state.log_verdicts();
        read
    }
}

impl fmt::Debug for Composer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composer")
            .field("ground", &self.inner.ground)
            .finish_non_exhaustive()
    }
}
