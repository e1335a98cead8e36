//! The state of each source: the part that is served, and the part that waits to be.

use super::config_source::ConfigTexts;
use super::source::{LoadResult, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError};
use super::view::{PartView, ServedConfig};
use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use tidegate_config::Environment;
use tidegate_config::compose::{ComposedConfig, NamedText, OmittedPolicy, SourcePart as Text};
use tidegate_config::source::PolicySource;
use tidegate_config::{Config, ConfigErrors};
use tidegate_policy::text::counted;
use tidegate_telemetry::source_health::SourceHealth;
use tokio::time::timeout;

/// A source, as long as the file lists it with the same settings.
#[derive(Debug)]
pub(super) struct SourceHandle {
    pub(super) settings: PolicySource,
    pub(super) source: Box<dyn PolicyFetcher>,
    pub(super) health: Arc<SourceHealth>,
}

impl SourceHandle {
    /// Loads the source, within its timeout.
    pub(super) async fn load(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let loaded = timeout(self.settings.timeout, self.source.load(seen)).await;
        loaded.unwrap_or_else(|_| Err(SourceError("timeout".to_owned())))
    }

    /// Returns true if a configuration can be served without this source's answer.
    pub(super) fn can_be_away(&self) -> bool {
        !self.settings.required || self.source.has_fallback()
    }
}

/// The state of a source.
#[derive(Debug)]
pub(super) struct SourceState {
    pub(super) kept: Arc<SourceHandle>,
    /// The part that is served.
    pub(super) good: Option<Arc<LoadedPart>>,
    /// A newer part that is not served, or not yet.
    pub(super) wanted: Option<Arc<LoadedPart>>,
    /// The latest version, if it could not be parsed.
    pub(super) wrong: Option<SourceDefect>,
    /// The rejection of the pending part was logged.
    pub(super) is_told: bool,
    /// Policies that are left out because they conflict with the file or another source.
    left_out: Option<String>,
    /// Incremented with every change, so that a load that began before it is recognized as outdated.
    pub(super) epoch: u64,
}

impl SourceState {
    pub(super) fn new(kept: Arc<SourceHandle>) -> Self {
        Self {
            kept,
            good: None,
            wanted: None,
            wrong: None,
            is_told: false,
            left_out: None,
            epoch: 0,
        }
    }

    pub(super) fn latest(&self) -> Option<&Arc<LoadedPart>> {
        self.wanted.as_ref().or(self.good.as_ref())
    }

    /// Takes a new part. Returns true if it differs from the previous one.
    pub(super) fn take(&mut self, part: LoadedPart) -> bool {
        self.epoch = self.epoch.wrapping_add(1);
        self.wrong = None;
        self.is_told = false;
        match &mut self.good {
            // The same text under another version is no change.
            Some(good) if good.text == part.text && good.is_translated == part.is_translated => {
                *good = Arc::new(part);
                let was_waiting = self.wanted.take().is_some();
                self.kept.health.serves(&self.version());
                self.log_flaw();
                // Other pending parts may be valid without the part that was pending.
                was_waiting
            }
            _ => {
                self.wanted = Some(Arc::new(part));
                true
            }
        }
    }

    fn version(&self) -> String {
        let good = self.good.as_ref();
        good.map(|part| part.version.to_string())
            .unwrap_or_default()
    }

    /// Records that the pending part is served now.
    pub(super) fn promote(&mut self) {
        if let Some(part) = self.wanted.take() {
            self.kept.health.applied(&part.version.to_string());
            self.good = Some(part);
            self.log_flaw();
        }
    }

    /// Reports to the source if its last version is served or rejected. Does nothing while that is undecided.
    fn log_verdict(&self) {
        let source = &self.kept.source;
        let latest = self.latest().map(|part| &part.version);
        match (&self.wrong, &self.wanted, self.kept.health.refusal()) {
            (Some(wrong), ..) => source.decided(&wrong.version, Err(&wrong.why)),
            (None, Some(part), Some(why)) => source.decided(&part.version, Err(&why)),
            (None, Some(_), None) => {}
            (None, None, _) => {
                if let Some(version) = latest {
                    source.decided(version, Ok(()));
                }
            }
        }
    }

    /// Reports that the source is not served completely.
    fn log_flaw(&self) {
        let flaw = self.good.as_ref().and_then(|part| part.flaw.clone());
        let flaws: Vec<String> = flaw.into_iter().chain(self.left_out.clone()).collect();
        if !flaws.is_empty() {
            self.kept.health.refused(flaws.join("; "));
        }
    }

    /// Records the policies that are left out of the served configuration.
    fn leave_out(&mut self, left_out: Option<String>) {
        if self.left_out != left_out {
            self.left_out = left_out;
            self.kept.health.serves(&self.version());
            self.log_flaw();
        }
    }
}

/// The file, and the sources that it lists.
#[derive(Clone, Debug)]
pub(super) struct FileState {
    pub(super) texts: Arc<ConfigTexts>,
    pub(super) order: Vec<Arc<SourceHandle>>,
}

/// The origin of a pending change.
#[derive(Clone, Debug)]
pub(super) enum ChangedOrigin {
    File,
    Source(Arc<SourceHandle>),
}

/// The complete state.
#[derive(Debug)]
pub(super) struct ComposerState {
    pub(super) served: FileState,
    /// The current file, if it is not served, or not yet.
    pub(super) wanted: Option<FileState>,
    /// Every source of either file.
    pub(super) pool: Vec<SourceState>,
    /// Something was taken in, and serving it has not been tried yet.
    pub(super) is_unsettled: bool,
    /// The rejection of the pending file was logged.
    is_file_told: bool,
}

impl ComposerState {
    /// Creates the state of a file and its sources, before anything is served.
    pub(super) fn new(served: FileState, pool: Vec<SourceState>) -> Self {
        Self {
            served,
            wanted: None,
            pool,
            is_unsettled: false,
            is_file_told: false,
        }
    }

    pub(super) fn slot(&mut self, kept: &Arc<SourceHandle>) -> Option<&mut SourceState> {
        self.pool.iter_mut().find(|it| Arc::ptr_eq(&it.kept, kept))
    }

    pub(super) fn at(&self, kept: &Arc<SourceHandle>) -> Option<&SourceState> {
        self.pool.iter().find(|it| Arc::ptr_eq(&it.kept, kept))
    }

    /// Returns the last version of a source, and its epoch.
    pub(super) fn seen(&self, kept: &Arc<SourceHandle>) -> Option<(Option<Revision>, u64)> {
        let slot = self.at(kept)?;
        let latest = slot.latest().map(|part| &part.version);
        let wrong = slot.wrong.as_ref().map(|wrong| &wrong.version);
        let version = wrong.or(latest).cloned();
        Some((version, slot.epoch))
    }

    /// Takes a file that lists these sources, all of which are known, to be served from now on.
    pub(super) fn take_file(&mut self, texts: Arc<ConfigTexts>, listed: &[PolicySource]) {
        let slot = |it: &PolicySource| self.pool.iter().find(|slot| slot.kept.settings == *it);
        let order = listed.iter().filter_map(slot);
        let order = order.map(|slot| Arc::clone(&slot.kept)).collect();
        self.wanted = Some(FileState { texts, order });
        self.is_unsettled = true;
        self.is_file_told = false;
    }

    /// Returns true if the current file has these texts.
    pub(super) fn has_file(&self, texts: &ConfigTexts) -> bool {
        *self.wanted.as_ref().unwrap_or(&self.served).texts == *texts
    }

    /// Records that a rejection is logged. Returns true if it was not before.
    pub(super) fn tell(&mut self, which: &ChangedOrigin) -> bool {
        let is_told = match which {
            ChangedOrigin::File => Some(&mut self.is_file_told),
            ChangedOrigin::Source(kept) => self.slot(kept).map(|slot| &mut slot.is_told),
        };
        is_told.is_none_or(|is_told| !mem::replace(is_told, true))
    }

    /// Lets rejections be logged again, for a requested reload.
    pub(super) fn forget_logged(&mut self) {
        self.is_file_told = false;
        for slot in &mut self.pool {
            slot.is_told = false;
        }
    }

    /// Returns the pending changes. Sources that only a pending file lists are part of that file's
    /// change.
    pub(super) fn waiting(&self) -> Vec<ChangedOrigin> {
        let file = self.wanted.iter().map(|_| ChangedOrigin::File);
        let sources = self.pool.iter().filter(|slot| slot.wanted.is_some());
        let is_served = |slot: &&SourceState| {
            let mut order = self.served.order.iter();
            order.any(|it| Arc::ptr_eq(it, &slot.kept))
        };
        let sources = sources.filter(is_served);
        let sources = sources.map(|slot| ChangedOrigin::Source(Arc::clone(&slot.kept)));
        file.chain(sources).collect()
    }

    /// Returns the served configuration.
    pub(super) fn as_served(&self) -> ConfigCandidate {
        self.whole(&self.served, |slot| slot.good.clone())
    }

    /// Returns the latest configuration: all pending changes included.
    pub(super) fn latest(&self) -> ConfigCandidate {
        let base = self.wanted.as_ref().unwrap_or(&self.served);
        self.whole(base, |slot| slot.latest().cloned())
    }

    /// Returns the served configuration.
    pub(super) fn good(&self) -> ConfigCandidate {
        self.whole(&self.served, |slot| slot.good.clone())
    }

    /// Returns all sources.
    pub(super) fn kept(&self) -> Vec<Arc<SourceHandle>> {
        self.pool
            .iter()
            .map(|slot| Arc::clone(&slot.kept))
            .collect()
    }

    /// Returns all sources, each with the part that is served, unless that is a fallback.
    pub(super) fn known(&self) -> Vec<(Arc<SourceHandle>, Option<Arc<LoadedPart>>)> {
        let known = self.pool.iter().map(|slot| {
            let is_own = !slot.kept.health.status().is_fallback;
            let part = slot.good.clone().filter(|_| is_own);
            (Arc::clone(&slot.kept), part)
        });
        known.collect()
    }

    /// Returns the served configuration with one pending change.
    pub(super) fn with(&self, which: &ChangedOrigin) -> ConfigCandidate {
        match which {
            ChangedOrigin::File => {
                let base = self.wanted.as_ref().unwrap_or(&self.served);
                // Nothing is served yet of sources that are new with the file.
                self.whole(base, |slot| {
                    slot.good.as_ref().or(slot.wanted.as_ref()).cloned()
                })
            }
            ChangedOrigin::Source(kept) => self.whole(&self.served, |slot| {
                if Arc::ptr_eq(&slot.kept, kept) {
                    slot.latest().cloned()
                } else {
                    slot.good.clone()
                }
            }),
        }
    }

    /// Returns the served configuration with `part` for one source.
    pub(super) fn with_part(
        &self,
        kept: &Arc<SourceHandle>,
        part: &Arc<LoadedPart>,
    ) -> ConfigCandidate {
        self.whole(&self.served, |slot| {
            if Arc::ptr_eq(&slot.kept, kept) {
                Some(Arc::clone(part))
            } else {
                slot.good.clone()
            }
        })
    }

    fn whole(
        &self,
        base: &FileState,
        pick: impl Fn(&SourceState) -> Option<Arc<LoadedPart>>,
    ) -> ConfigCandidate {
        let parts = base.order.iter().map(|kept| {
            let part = self.at(kept).and_then(&pick);
            (Arc::clone(kept), part)
        });
        ConfigCandidate {
            texts: Arc::clone(&base.texts),
            parts: parts.collect(),
        }
    }

    /// Records that this change is served now. Returns the sources whose parts were promoted with it.
    pub(super) fn promote(&mut self, which: &ChangedOrigin) -> Vec<Arc<SourceHandle>> {
        let mut promoted = Vec::new();
        match which {
            ChangedOrigin::File => {
                if let Some(base) = self.wanted.take() {
                    self.served = base;
                }
                let order = mem::take(&mut self.served.order);
                for kept in &order {
                    let is_new = self.at(kept).is_some_and(|slot| slot.good.is_none());
                    if let Some(slot) = self.slot(kept).filter(|_| is_new) {
                        if slot.wanted.is_some() {
                            promoted.push(Arc::clone(kept));
                        }
                        slot.promote();
                    }
                }
                self.served.order = order;
            }
            ChangedOrigin::Source(kept) => {
                if let Some(slot) = self.slot(kept) {
                    slot.promote();
                    promoted.push(Arc::clone(kept));
                }
            }
        }
        promoted
    }

    /// Records the policies that are left out of the served configuration. They are logged as warnings of
    /// the configuration.
    pub(super) fn leave_out(&mut self, left_out: &[(Arc<SourceHandle>, OmittedPolicy)]) {
        for slot in &mut self.pool {
            let own = left_out
                .iter()
                .filter(|(kept, _)| Arc::ptr_eq(kept, &slot.kept));
            let own: Vec<String> = own
                .map(|(_, it)| format!("policy `{}` is skipped: {}", it.policy, it.why))
                .collect();
            let names = own.split_first().map(|(first, more)| match more.len() {
                0 => first.clone(),
                more => {
                    let more = counted(more, "more policy", "more policies");
                    format!("{first} (and {more})")
                }
            });
            slot.leave_out(names);
        }
    }

    /// Reports to each source if its last version is served or rejected.
    pub(super) fn log_verdicts(&self) {
        self.pool.iter().for_each(SourceState::log_verdict);
    }

    /// Removes sources that neither file names.
    pub(super) fn prune(&mut self) {
        let bases = [Some(&self.served), self.wanted.as_ref()];
        let named: Vec<Arc<SourceHandle>> = bases
            .into_iter()
            .flatten()
            .flat_map(|base| base.order.iter().cloned())
            .collect();
        let is_named = |slot: &SourceState| named.iter().any(|it| Arc::ptr_eq(it, &slot.kept));
        self.pool.retain(is_named);
    }
}

/// A file and the parts of its sources: the input of a composition.
#[derive(Clone, Debug)]
pub(super) struct ConfigCandidate {
    texts: Arc<ConfigTexts>,
    parts: Vec<(Arc<SourceHandle>, Option<Arc<LoadedPart>>)>,
}

/// A valid composition.
#[derive(Debug)]
pub(super) struct ValidConfig {
    pub(super) config: Config,
    pub(super) view: ServedConfig,
    /// Policies that are left out, with their sources.
    pub(super) left_out: Vec<(Arc<SourceHandle>, OmittedPolicy)>,
}

impl ConfigCandidate {
    /// Returns a required source that has no part.
    pub(super) fn missing(&self) -> Option<&Arc<SourceHandle>> {
        let mut missing = self.parts.iter().filter(|(_, part)| part.is_none());
        missing
            .find(|(kept, _)| kept.settings.required)
            .map(|(kept, _)| kept)
    }

    /// Composes the configuration. It parses everything, which takes time, but never waits.
    pub(super) fn compose(
        &self,
        environment: &dyn Environment,
    ) -> Result<ValidConfig, ConfigErrors> {
        let is_incomplete = self.parts.iter().any(|(_, part)| part.is_none());
        let parts = self.parts.iter().filter_map(|(kept, part)| {
            let part = part.as_ref()?;
            let name = kept.settings.name.as_str();
            let name = if part.is_translated {
                Cow::from(format!("{name}, translated"))
            } else {
                Cow::from(name)
            };
            Some((name, part, kept))
        });
        let parts: Vec<(Cow<'_, str>, &Arc<LoadedPart>, &Arc<SourceHandle>)> = parts.collect();
        let texts = parts.iter().map(|(name, part, _)| Text {
            named: NamedText {
                name,
                text: &part.text,
            },
            is_translated: part.is_translated,
            is_separable: part.is_separable,
            is_trusted: false,
        });
        let texts: Vec<Text<'_>> = texts.collect();
        let ComposedConfig {
            config,
            documents,
            version,
            left_out,
        } = self.texts.compose(&texts, is_incomplete, environment)?;
        let left_out = left_out.into_iter().filter_map(|it| {
            let (_, _, kept) = parts.get(it.part)?;
            Some((Arc::clone(kept), it))
        });
        let left_out = left_out.collect();
        let view = ServedConfig {
            version,
            parts: self.views(),
            documents,
        };
        Ok(ValidConfig {
            config,
            view,
            left_out,
        })
    }

    /// Returns its parts, in the order in which documents number them.
    fn views(&self) -> Vec<PartView> {
        let files = self.texts.names().into_iter().map(|name| PartView {
            name,
            kind: "file",
            is_writable: false,
        });
        let parts = self.parts.iter().filter_map(|(kept, part)| {
            part.as_ref()?;
            Some(PartView {
                name: kept.settings.name.clone(),
                kind: kept.settings.kind(),
                is_writable: kept.source.writer().is_some(),
            })
        });
        files.chain(parts).collect()
    }
}
