//! An xDS server that sends the configuration of envoyproxy/ratelimit, a domain in each resource.
//!
//! ```text
//!   server ── response ──▶ feed ──▶ resource ──▶ files of envoyproxy/ratelimit ──▶ translation
//!          ◀─ ack, nack ──  ◀──────────────── decision of the composer ◀──────────────┘
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | this one | the source |
//! | `feed` | the stream, which is opened again after every failure |
//! | `messages` | requests and responses of the stream |
//! | `resource` | a resource, written as a file of envoyproxy/ratelimit |

mod feed;
mod messages;
mod resource;
#[cfg(test)]
mod tests;

use crate::live::config_source::without_limits;
use crate::live::source::{
    LoadResult, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError, SourceNote,
};
use feed::{Feed, FeedState, FeedVerdict, ReceivedVersion};
use futures_util::future::BoxFuture;
use messages::AnyResource;
use parking_lot::Mutex;
use resource::ResourceReader;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_config::ConfigErrors;
use tidegate_config::source::{XdsServer, XdsTranslation};
use tidegate_import::{EnvoyOptions, ImportedConfig, SourceFile, envoy};
use tidegate_net::tasks::{Tasks, blocking};
use tidegate_policy::text::counted;
use tokio::sync::watch;
use tokio::time::timeout;

/// The maximum length of all resources as text: more than the configuration language accepts.
const TEXT_MAX: usize = 16 << 20;

/// The maximum number of errors in the answer to a rejected version.
const ERRORS_MAX: usize = 5;

/// The number of configurations of this process whose version something else had before.
static RENAMED: AtomicU64 = AtomicU64::new(0);

/// An xDS server.
pub(super) struct XdsSource {
    /// The task of the stream; aborted first.
    tasks: Tasks,
    name: String,
    options: EnvoyOptions,
    /// The maximum time to wait for the first configuration.
    patience: Duration,
    /// The maximum delay between two loads, and between two attempts to connect.
    pause_max: Duration,
    /// The reason for having nothing while the server is silent.
    silence: String,
    /// The stream, until it is started.
    feed: Mutex<Option<Feed>>,
    state: watch::Receiver<FeedState>,
    verdicts: watch::Sender<Option<FeedVerdict>>,
    /// The serial number of the last configuration that was loaded.
    loaded: AtomicU64,
    /// The serial number of the last configuration that the composer got.
    offered: AtomicU64,
    /// The revision of a configuration, by its serial number, whose version something else had before.
    renamed: Mutex<Option<(u64, Revision)>>,
    /// The notes about it, so that each is logged once.
    notes: Mutex<Vec<SourceNote>>,
}

impl XdsSource {
    pub(super) fn new(
        name: &str,
        server: &XdsServer,
        time_max: Duration,
        pause_max: Duration,
    ) -> Result<Self, String> {
        let (state, states) = watch::channel(FeedState::default());
        let (verdicts, verdict) = watch::channel(None);
        let feed = Feed {
            name: name.to_owned(),
            target: feed::target(server)?,
            headers: feed::headers(server)?,
            server: server.clone(),
            pause_max,
            state,
            verdicts: verdict,
        };
        Ok(Self {
            tasks: Tasks::new(),
            name: name.to_owned(),
            options: options(server.translation),
            // A little less than the time of the caller, which does not know the reason.
            patience: time_max.mul_f32(0.9),
            pause_max,
            silence: feed::silence(server),
            feed: Mutex::new(Some(feed)),
            state: states,
            verdicts,
            loaded: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            renamed: Mutex::default(),
            notes: Mutex::default(),
        })
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        if let Some(feed) = self.feed.lock().take() {
            self.tasks.spawn(feed.run());
        }
        let received = timeout(self.patience, self.received()).await;
        let received = received.unwrap_or_else(|_| Err(SourceError(self.silence.clone())))?;
        let serial = received.serial;
        self.loaded.store(serial, Relaxed);
        let mut version = self.revision(&received);
        if seen == Some(&version) {
            if self.offered.load(Relaxed) == serial {
                return Ok(LoadResult::Unchanged);
            }
            // Servers may count from 1 again. The version that is served came from the source before this
            // one, which had another certificate or interval, or was followed by one that was never loaded.
            let number = RENAMED.fetch_add(1, Relaxed).saturating_add(1);
            version = Revision(format!("{}~{number}", received.revision));
            *self.renamed.lock() = Some((serial, version.clone()));
        }
        let (name, options) = (self.name.clone(), self.options);
        let read = blocking(move || load(&name, &received.resources, options, version));
        let read = read.await;
        let mut loaded = read.ok_or_else(|| SourceError("the read did not finish".to_owned()))?;
        if let LoadResult::Part(part) = &mut loaded {
            self.offered.store(serial, Relaxed);
            let notes = part.notes.clone();
            let mut before = self.notes.lock();
            part.notes.retain(|note| !before.contains(note));
            *before = notes;
        }
        Ok(loaded)
    }

    /// Returns the revision of a configuration.
    fn revision(&self, received: &ReceivedVersion) -> Revision {
        match &*self.renamed.lock() {
            Some((serial, revision)) if *serial == received.serial => revision.clone(),
            _ => Revision(received.revision.clone()),
        }
    }

    /// Returns the last configuration, or waits for the first one.
    async fn received(&self) -> Result<Arc<ReceivedVersion>, SourceError> {
        let mut state = self.state.clone();
        let is_known = |state: &FeedState| state.trouble.is_some() || state.latest.is_some();
        // The sender lives as long as the task, and the task as long as this.
        let state = state.wait_for(is_known).await;
        let state = state.map_err(|_| SourceError("the stream ended".to_owned()))?;
        match (&state.trouble, &state.latest) {
            (None, Some(latest)) => Ok(Arc::clone(latest)),
            (trouble, _) => Err(SourceError(trouble.clone().unwrap_or_default())),
        }
    }

    async fn wait_for(&self, wanted: impl Fn(&FeedState) -> bool + Send) {
        let mut state = self.state.clone();
        let is_over = state.wait_for(|state| wanted(state)).await.is_err();
        if is_over {
            std::future::pending::<()>().await;
        }
    }
}

fn options(translation: XdsTranslation) -> EnvoyOptions {
    let XdsTranslation {
        merge_domains,
        each,
        charge,
        quota,
    } = translation;
    EnvoyOptions {
        merge_domains,
        each,
        charge,
        quota,
    }
}

/// Translates resources. This takes time.
fn load(
    name: &str,
    resources: &[AnyResource],
    options: EnvoyOptions,
    version: Revision,
) -> LoadResult {
    match translated(name, resources, options) {
        Ok(imported) => LoadResult::Part(LoadedPart {
            text: imported.as_ref().map_or_else(
                || without_limits(&format!("{name}-empty")),
                ImportedConfig::to_part,
            ),
            version,
            is_translated: true,
            is_separable: false,
            notes: imported.as_ref().map(SourceNote::of).unwrap_or_default(),
            flaw: None,
            documents: None,
        }),
        Err(why) => LoadResult::Wrong(SourceDefect::new(version, why)),
    }
}

/// Returns the translation; `None` if there are no resources, which is how a server lifts all limits.
fn translated(
    name: &str,
    resources: &[AnyResource],
    options: EnvoyOptions,
) -> Result<Option<ImportedConfig>, String> {
    let mut reader = ResourceReader::default();
    let (mut files, mut length) = (Vec::new(), 0_usize);
    for resource in resources {
        let domain = reader.read(resource)?;
        let text = domain.to_yaml();
        length = length.saturating_add(text.len());
        if length > TEXT_MAX {
            return Err(format!(
                "the resources have more than {TEXT_MAX} bytes as text"
            ));
        }
        files.push(SourceFile {
            name: format!("{name}/{}", domain.name()),
            text,
        });
    }
    if files.is_empty() {
        return Ok(None);
    }
    // Servers send resources in any order. The policies have always the same.
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let imported = envoy(name, &files, options);
    imported.map(Some).map_err(|errors| in_words(&errors))
}

/// Returns the errors for the operator of the server, who does not see the lines: the resource, the field and
/// the reason.
fn in_words(errors: &ConfigErrors) -> String {
    let problems = errors.problems().iter().take(ERRORS_MAX).map(|problem| {
        let place = match problem.path() {
            "" => problem.file().to_owned(),
            path => format!("{}: {path}", problem.file()),
        };
        let help = problem.help().map(|help| format!(" ({help})"));
        format!("{place}: {}{}", problem.message(), help.unwrap_or_default())
    });
    let mut words: Vec<String> = problems.collect();
    let more = errors.count().saturating_sub(words.len());
    if more > 0 {
        words.push(format!(
            "and {}",
            counted(more, "more error", "more errors")
        ));
    }
    words.join("; ")
}

impl PolicyFetcher for XdsSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        let loaded = || self.loaded.load(Relaxed);
        let is_due = move |state: &FeedState| {
            let serial = state.latest.as_ref().map(|it| it.serial);
            state.trouble.is_some() || serial.is_some_and(|serial| serial != loaded())
        };
        // The interval is for a version that was loaded while another one was taken in.
        let changed = timeout(self.pause_max, self.wait_for(is_due));
        Box::pin(async move { changed.await.unwrap_or_default() })
    }

    fn notified(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_for(|state| state.trouble.is_none() && state.latest.is_some()))
    }

    fn decided(&self, version: &Revision, verdict: Result<(), &str>) {
        let latest = self.state.borrow().latest.clone();
        let own = latest.filter(|latest| self.revision(latest) == *version);
        let Some(latest) = own else {
            // It was replaced meanwhile, and the server waits for no answer.
            return;
        };
        let verdict = FeedVerdict {
            serial: latest.serial,
            rejected: verdict.err().map(str::to_owned),
        };
        self.verdicts.send_if_modified(|last| {
            let is_new = last.as_ref() != Some(&verdict);
            *last = Some(verdict);
            is_new
        });
    }
}

impl fmt::Debug for XdsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdsSource")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
