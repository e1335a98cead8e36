//! What each source says, what of it is served, and what waits to be.

use super::health::SourceHealth;
use super::source::{Loaded, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError};
use super::view::{PartView, ServedConfig};
use crate::config_source::ConfigTexts;
use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use tidegate_policy::config::Environment;
use tidegate_policy::source::{
    ComposedConfig, LeftOut, NamedText, PolicySource, SourcePart as Text,
};
use tidegate_policy::{Config, ConfigErrors};
use tokio::time::timeout;

/// A source, as long as the file names it as it does.
#[derive(Debug)]
pub(super) struct SourceHandle {
    pub(super) settings: PolicySource,
    pub(super) source: Box<dyn PolicyFetcher>,
    pub(super) health: Arc<SourceHealth>,
}

impl SourceHandle {
    /// What it says now, within its time.
    pub(super) async fn load(&self, seen: Option<&Revision>) -> Result<Loaded, SourceError> {
        let loaded = timeout(self.settings.timeout, self.source.load(seen)).await;
        loaded.unwrap_or_else(|_| Err(SourceError("no answer in time".to_owned())))
    }

    /// Whether something can be served without its word.
    pub(super) fn can_be_away(&self) -> bool {
        !self.settings.required || self.source.has_fallback()
    }
}

/// What a source says.
#[derive(Debug)]
pub(super) struct SourceState {
    pub(super) kept: Arc<SourceHandle>,
    /// What is served of it.
    pub(super) good: Option<Arc<LoadedPart>>,
    /// What it says since, which is not served, or not yet.
    pub(super) wanted: Option<Arc<LoadedPart>>,
    /// What it said last, where that was not even understood.
    pub(super) wrong: Option<SourceDefect>,
    /// Whether it was told that what waits is refused.
    pub(super) is_told: bool,
    /// Policies of it that are not served because of what the file or another source says.
    left_out: Option<String>,
    /// Rises with every change, so that whoever asked before it knows that the answer is old.
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

    /// Takes what it says now. Tells whether that is something else than what it said before.
    pub(super) fn take(&mut self, part: LoadedPart) -> bool {
        self.epoch = self.epoch.wrapping_add(1);
        self.wrong = None;
        self.is_told = false;
        match &mut self.good {
            // The same under another version is no change.
            Some(good) if good.text == part.text && good.is_translated == part.is_translated => {
                *good = Arc::new(part);
                let was_waiting = self.wanted.take().is_some();
                self.kept.health.serves(&self.version());
                self.tell_flaw();
                // What waits beside it may be sound without what it said.
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

    /// Notes that what it says is served now.
    pub(super) fn promote(&mut self) {
        if let Some(part) = self.wanted.take() {
            self.kept.health.applied(&part.version.to_string());
            self.good = Some(part);
            self.tell_flaw();
        }
    }

    /// What is served is not all that the source says.
    fn tell_flaw(&self) {
        let flaw = self.good.as_ref().and_then(|part| part.flaw.clone());
        let flaws: Vec<String> = flaw.into_iter().chain(self.left_out.clone()).collect();
        if !flaws.is_empty() {
            self.kept.health.refused(flaws.join("; "));
        }
    }

    /// Notes which policies of it are left out of what is served now.
    fn leave_out(&mut self, left_out: Option<String>) {
        if self.left_out != left_out {
            self.left_out = left_out;
            self.kept.health.serves(&self.version());
            self.tell_flaw();
        }
    }
}

/// The file, and the sources that it lists.
#[derive(Clone, Debug)]
pub(super) struct FileState {
    pub(super) texts: Arc<ConfigTexts>,
    pub(super) order: Vec<Arc<SourceHandle>>,
}

/// What is to be served otherwise.
#[derive(Clone, Debug)]
pub(super) enum ChangedOrigin {
    File,
    Source(Arc<SourceHandle>),
}

/// All that is known.
#[derive(Debug)]
pub(super) struct ComposerState {
    pub(super) served: FileState,
    /// The file as it is now, which is not served, or not yet.
    pub(super) wanted: Option<FileState>,
    /// Every source of either.
    pub(super) pool: Vec<SourceState>,
    /// Whether something was taken, and nobody has tried yet to serve it.
    pub(super) is_unsettled: bool,
    /// Whether it was told that the file that waits is refused.
    is_file_told: bool,
}

impl ComposerState {
    /// Of a file and its sources, before anything is served.
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

    /// What a source said last, and when that was.
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

    /// Whether the file, as it is now, says just this.
    pub(super) fn has_file(&self, texts: &ConfigTexts) -> bool {
        *self.wanted.as_ref().unwrap_or(&self.served).texts == *texts
    }

    /// Notes that a refusal is told. Tells whether that is news.
    pub(super) fn tell(&mut self, which: &ChangedOrigin) -> bool {
        let is_told = match which {
            ChangedOrigin::File => Some(&mut self.is_file_told),
            ChangedOrigin::Source(kept) => self.slot(kept).map(|slot| &mut slot.is_told),
        };
        is_told.is_none_or(|is_told| !mem::replace(is_told, true))
    }

    /// Lets refusals be told again, for whoever asks once more.
    pub(super) fn forget_told(&mut self) {
        self.is_file_told = false;
        for slot in &mut self.pool {
            slot.is_told = false;
        }
    }

    /// What waits to be served: sources that come only with a file which waits itself go with that.
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

    /// Everything as it is served.
    pub(super) fn as_served(&self) -> ConfigCandidate {
        self.whole(&self.served, |slot| slot.good.clone())
    }

    /// Everything as it is now.
    pub(super) fn latest(&self) -> ConfigCandidate {
        let base = self.wanted.as_ref().unwrap_or(&self.served);
        self.whole(base, |slot| slot.latest().cloned())
    }

    /// Everything as it is served.
    pub(super) fn good(&self) -> ConfigCandidate {
        self.whole(&self.served, |slot| slot.good.clone())
    }

    /// The sources that are kept.
    pub(super) fn kept(&self) -> Vec<Arc<SourceHandle>> {
        self.pool
            .iter()
            .map(|slot| Arc::clone(&slot.kept))
            .collect()
    }

    /// The same, each with its own word that is served, where there is one.
    pub(super) fn known(&self) -> Vec<(Arc<SourceHandle>, Option<Arc<LoadedPart>>)> {
        let known = self.pool.iter().map(|slot| {
            let is_own = !slot.kept.health.standing().is_fallback;
            let part = slot.good.clone().filter(|_| is_own);
            (Arc::clone(&slot.kept), part)
        });
        known.collect()
    }

    /// Everything as it is served, but for one, which is as it is now.
    pub(super) fn with(&self, which: &ChangedOrigin) -> ConfigCandidate {
        match which {
            ChangedOrigin::File => {
                let base = self.wanted.as_ref().unwrap_or(&self.served);
                // Of sources that are new with it, nothing is served yet.
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

    /// Everything as it is served, but for `part` of one source.
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

    /// Notes that this is served now. Tells whose word that is, beside the file's.
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

    /// Notes which policies are left out of what is served now. The log has them as warnings of the
    /// configuration.
    pub(super) fn leave_out(&mut self, left_out: &[(Arc<SourceHandle>, LeftOut)]) {
        for slot in &mut self.pool {
            let own = left_out
                .iter()
                .filter(|(kept, _)| Arc::ptr_eq(kept, &slot.kept));
            let own: Vec<String> = own
                .map(|(_, it)| format!("policy `{}` is left out: {}", it.policy, it.why))
                .collect();
            let told = own.split_first().map(|(first, more)| match more.len() {
                0 => first.clone(),
                more => format!("{first} (and {more} more policies)"),
            });
            slot.leave_out(told);
        }
    }

    /// Forgets sources that neither file names.
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

/// A file and what its sources say: all that is composed.
#[derive(Clone, Debug)]
pub(super) struct ConfigCandidate {
    texts: Arc<ConfigTexts>,
    parts: Vec<(Arc<SourceHandle>, Option<Arc<LoadedPart>>)>,
}

/// What was composed, and is sound.
#[derive(Debug)]
pub(super) struct Sound {
    pub(super) config: Config,
    pub(super) view: ServedConfig,
    /// Policies that are not in it, and whose they are.
    pub(super) left_out: Vec<(Arc<SourceHandle>, LeftOut)>,
}

impl ConfigCandidate {
    /// A source that something is needed of, and nothing is known.
    pub(super) fn missing(&self) -> Option<&Arc<SourceHandle>> {
        let mut missing = self.parts.iter().filter(|(_, part)| part.is_none());
        missing
            .find(|(kept, _)| kept.settings.required)
            .map(|(kept, _)| kept)
    }

    /// Composes it. Takes as long as reading all of it does, and never waits.
    pub(super) fn compose(&self, environment: &dyn Environment) -> Result<Sound, ConfigErrors> {
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
        } = self.texts.compose(&texts, environment)?;
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
        Ok(Sound {
            config,
            view,
            left_out,
        })
    }

    /// Its parts, as documents count them.
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
