//! Keeps the file and its sources, and serves what is composed of them.

use super::begin::{Begun, kept};
use super::edit::{Edit, EditError};
use super::ground::{Fingerprint, Ground};
use super::health::{Board, Health};
use super::report::{self, Oddities};
use super::source::{Loaded, Part, Trouble, WriteError};
use super::state::{Base, Kept, Slot, State, Which, Whole};
use super::view::{Standing, View};
use crate::config_source::{Texts, Unusable};
use crate::serving::Serving;
use crate::tasks::blocking;
use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::fmt;
use std::sync::Arc;
use tidegate_policy::source::DocumentKind;
use tidegate_policy::{Config, ConfigErrors};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

/// Keeps the file and its sources, and serves what is composed of them. Clones share it.
#[derive(Clone)]
pub(crate) struct Composer {
    inner: Arc<Inner>,
}

struct Inner {
    ground: Ground,
    serving: Serving,
    view: ArcSwap<View>,
    board: Arc<Board>,
    file: Arc<Health>,
    /// One change at a time.
    state: Mutex<State>,
    /// How the files looked when they were last read.
    looked: parking_lot::Mutex<Fingerprint>,
    /// Rises whenever there are other sources to be kept.
    sources: watch::Sender<u64>,
}

/// Why what is served did not change.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Something could not be read.
    Unread(String),
    /// It is not sound: everything that is wrong with it.
    Invalid(ConfigErrors),
    /// It is sound, and cannot be served by what runs.
    Unservable(String),
    /// There is nothing to read.
    BuiltIn,
}

impl Composer {
    /// Goes on from what was begun with, which `serving` serves.
    pub(crate) fn new(begun: Begun, serving: Serving) -> Self {
        let Begun {
            ground,
            state,
            view,
            file,
            looked,
            ..
        } = begun;
        let board = Arc::clone(&serving.decider().metrics().sources);
        let composer = Self {
            inner: Arc::new(Inner {
                ground,
                serving,
                view: ArcSwap::from_pointee(view),
                board,
                file,
                state: Mutex::new(state),
                looked: parking_lot::Mutex::new(looked),
                sources: watch::Sender::new(0),
            }),
        };
        if let Ok(state) = composer.inner.state.try_lock() {
            composer.hang(&state);
        }
        composer
    }

    /// What people call the files.
    pub(crate) fn configuration(&self) -> String {
        self.inner.ground.name()
    }

    /// Whether there is anything to read again.
    pub(crate) fn can_reload(&self) -> bool {
        !self.inner.ground.is_built_in()
    }

    /// What is served now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.inner.view.load_full()
    }

    /// How it stands with each source, the file first.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let sources = self.inner.board.sources();
        sources.iter().map(|health| health.standing()).collect()
    }

    /// What serves it.
    pub(crate) fn serving(&self) -> &Serving {
        &self.inner.serving
    }

    /// What is served, read anew: for those who need more of it than its documents.
    pub(crate) async fn config(&self) -> Result<Config, Refused> {
        let whole = self.inner.state.lock().await.as_served();
        let ground = self.inner.ground.clone();
        let composed = blocking(move || whole.compose(&ground.environment()));
        let composed = composed
            .await
            .ok_or_else(|| Refused::Unread(NO_END.to_owned()))?;
        composed.map(|sound| sound.config).map_err(Refused::Invalid)
    }

    /// A document as it is written, secrets and all, for whoever changes a part of it; none where it
    /// stands in what cannot be written to.
    pub(crate) async fn raw(&self, kind: DocumentKind, name: &str) -> Option<String> {
        let state = self.inner.state.lock().await;
        let parts = state.pool.iter().filter_map(|slot| slot.good.as_ref());
        let mut documents = parts.filter_map(|part| part.documents.as_ref());
        documents
            .find_map(|it| it.get(kind, name))
            .map(str::to_owned)
    }

    /// Keeps all sources up to date, for as long as it is polled.
    pub(crate) async fn run(self) {
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

    /// Reads the file and all sources again, and serves what they say. What cannot be asked stays as it
    /// was; what is wrong is told, and changes nothing.
    pub(crate) async fn reload(&self) -> Result<(), Refused> {
        if self.inner.ground.is_built_in() {
            return Err(Refused::BuiltIn);
        }
        let looked = self.inner.ground.look().await;
        *self.inner.looked.lock() = looked;
        self.ask_all().await;
        self.read_file(true).await
    }

    /// Makes all of these changes to a source, or none: to the one that is named, or the first that can
    /// be written to. `expected` is the version of the view that they were made from.
    ///
    /// All that would be served is validated before anything is written, and served here at once.
    pub(crate) async fn edit(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: Vec<Edit>,
    ) -> Result<Arc<View>, EditError> {
        let mut state = self.inner.state.lock().await;
        let view = self.view();
        if view.version != expected {
            let now = view.version.clone();
            return Err(EditError::Stale { now });
        }
        let kept = super::edit::target(&state.served.order, source)?;
        let latest = state.slot(&kept).and_then(|slot| slot.latest().cloned());
        let latest = latest.ok_or_else(|| never_reached(&kept))?;
        let part = super::edit::edited(&view, &state.served.order, (&kept, &latest), &edits)?;
        let part = Arc::new(part);
        self.compose(state.with_part(&kept, &part))
            .await
            .map_err(EditError::from)?;
        let Some(writer) = kept.source.writer() else {
            return Err(EditError::Unknown(format!(
                "{} is not there",
                kept.settings.name
            )));
        };
        match writer.write(&latest.version, &edits).await {
            Ok(version) => {
                let part = Part::clone(&part);
                if let Some(slot) = state.slot(&kept) {
                    slot.take(Part { version, ..part });
                }
                kept.health.answered();
                let refused = self.settle(&mut state).await;
                let own = refused.into_iter().find(|(which, _)| is_of(which, &kept));
                match own {
                    None => Ok(self.view()),
                    Some((_, why)) => Err(why.into()),
                }
            }
            Err(WriteError::Away(why)) => Err(EditError::Away(why)),
            Err(WriteError::Conflict) => {
                drop(state);
                // Whatever comes of it is told where it belongs.
                self.refresh(&kept).await.ok();
                let now = self.view().version.clone();
                Err(EditError::Stale { now })
            }
        }
    }

    /// Keeps one source.
    async fn keep(&self, kept: Arc<Kept>) {
        // It may have failed before anybody kept it.
        let mut failures: u32 = u32::from(kept.health.is_failing());
        loop {
            match failures.checked_sub(1) {
                Some(earlier) => sleep(tidegate::retry_delay(earlier)).await,
                None => kept.source.changed().await,
            }
            let was_failing = failures > 0;
            match self.refresh(&kept).await {
                Ok(()) => {
                    if was_failing {
                        report::back(&kept.settings.name);
                    }
                    failures = 0;
                }
                Err(trouble) => {
                    if kept.health.failed(&trouble) {
                        report::failed(&kept.settings.name, &trouble);
                    }
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    /// Asks a source what it says, and serves it if that is something else.
    async fn refresh(&self, kept: &Arc<Kept>) -> Result<(), Trouble> {
        loop {
            let seen = self.inner.state.lock().await.seen(kept);
            let Some((seen, epoch)) = seen else {
                return Ok(());
            };
            let loaded = kept.load(seen.as_ref()).await?;
            let mut state = self.inner.state.lock().await;
            let Some(slot) = state.slot(kept) else {
                return Ok(());
            };
            if slot.epoch != epoch {
                // Something was written meanwhile, and this is from before.
                continue;
            }
            if self.take(slot, loaded) {
                self.settle(&mut state).await;
            }
            return Ok(());
        }
    }

    /// Asks all sources at once, without serving anything yet.
    async fn ask_all(&self) {
        let pool: Vec<_> = {
            let state = self.inner.state.lock().await;
            let seen = |slot: &Slot| (Arc::clone(&slot.kept), state.seen(&slot.kept));
            state.pool.iter().map(seen).collect()
        };
        let asked = pool.into_iter().map(|(kept, seen)| async move {
            let (version, epoch) = seen.unwrap_or_default();
            let loaded = kept.load(version.as_ref()).await;
            (kept, epoch, loaded)
        });
        for (kept, epoch, loaded) in join_all(asked).await {
            let mut state = self.inner.state.lock().await;
            let slot = state.slot(&kept).filter(|slot| slot.epoch == epoch);
            match (loaded, slot) {
                (Err(trouble), _) => {
                    if kept.health.failed(&trouble) {
                        report::failed(&kept.settings.name, &trouble);
                    }
                }
                (Ok(loaded), Some(slot)) => drop(self.take(slot, loaded)),
                // Something was written meanwhile, and this is from before.
                (Ok(_), None) => kept.health.answered(),
            }
        }
    }

    /// Takes what a source says. Tells whether that may change what is served.
    fn take(&self, slot: &mut Slot, loaded: Loaded) -> bool {
        let health = Arc::clone(&slot.kept.health);
        match loaded {
            Loaded::Unchanged => {
                health.unchanged();
                false
            }
            Loaded::Part(part) => {
                report::notes(&part.notes);
                health.answered();
                slot.take(part)
            }
            Loaded::Wrong { version, why } => {
                health.answered();
                slot.wrong = Some(version);
                self.inner.serving.reload_refused();
                self.refuse(
                    &Which::Source(Arc::clone(&slot.kept)),
                    &Refused::Unread(why),
                );
                false
            }
        }
    }

    /// Looks at the files, and reads them when they have changed.
    async fn watch_file(&self) {
        loop {
            let seen = self.inner.looked.lock().clone();
            let now = self.inner.ground.changed(&seen).await;
            *self.inner.looked.lock() = now;
            // What is wrong with it has been told.
            self.read_file(false).await.ok();
        }
    }

    /// Reads the file, and serves what it says: if it says something else, or else if `always`.
    async fn read_file(&self, always: bool) -> Result<(), Refused> {
        let texts = match self.inner.ground.read().await {
            Ok(texts) => Arc::new(texts),
            Err(unusable) => return Err(self.refuse_file(unusable.into())),
        };
        self.inner.file.answered();
        let mut state = self.inner.state.lock().await;
        let latest = state.wanted.as_ref().unwrap_or(&state.served);
        if !always && *latest.texts == *texts {
            self.inner.file.unchanged();
            return Ok(());
        }
        let before = state.kept();
        let taken = self.take_file(&mut state, texts).await;
        state.prune();
        let after = state.kept();
        let is_same = |(a, b): (&Arc<Kept>, &Arc<Kept>)| Arc::ptr_eq(a, b);
        if before.len() != after.len() || !before.iter().zip(&after).all(is_same) {
            self.hang(&state);
            self.inner
                .sources
                .send_modify(|it| *it = it.wrapping_add(1));
        }
        taken
    }

    async fn take_file(&self, state: &mut State, texts: Arc<Texts>) -> Result<(), Refused> {
        let base = self.base(state, texts).await;
        let base = base.map_err(|refused| self.refuse_file(refused))?;
        report::notes(base.texts.notes());
        state.wanted = Some(base);
        let refused = self.settle(state).await;
        match refused.into_iter().next() {
            None => Ok(()),
            Some((_, refused)) => Err(refused),
        }
    }

    /// The file, and the sources that it lists: those that it listed before go on, and the others are
    /// asked for the first time.
    async fn base(&self, state: &mut State, texts: Arc<Texts>) -> Result<Base, Refused> {
        let settings = {
            let (ground, texts) = (self.inner.ground.clone(), Arc::clone(&texts));
            let read = blocking(move || texts.sources(&ground.environment()));
            let read = read
                .await
                .ok_or_else(|| Refused::Unread(NO_END.to_owned()))?;
            read.map_err(Refused::Invalid)?
        };
        let mut order = Vec::new();
        for settings in settings {
            let known = state
                .pool
                .iter()
                .find(|slot| slot.kept.settings == settings);
            if let Some(slot) = known {
                order.push(Arc::clone(&slot.kept));
                continue;
            }
            let name = settings.name.clone();
            let kept =
                kept(settings).map_err(|why| Refused::Unservable(format!("{name}: {why}")))?;
            let slot = super::begin::first(Arc::new(kept)).await;
            order.push(Arc::clone(&slot.kept));
            state.pool.push(slot);
        }
        Ok(Base { texts, order })
    }

    fn refuse_file(&self, refused: Refused) -> Refused {
        self.inner.serving.reload_refused();
        report::refused("file", &self.inner.ground.name(), &refused);
        self.inner.file.refused(report::in_short(&refused));
        refused
    }

    /// Serves what waits: all of it, or as much of it as is sound. Tells what is not.
    async fn settle(&self, state: &mut State) -> Vec<(Which, Refused)> {
        let waiting = state.waiting();
        let Err(refused) = self.attempt(state.latest()).await else {
            for which in &waiting {
                self.promote(state, which);
            }
            return Vec::new();
        };
        let [only] = waiting.as_slice() else {
            return self.settle_each(state, waiting).await;
        };
        self.refuse(only, &refused);
        vec![(only.clone(), refused)]
    }

    /// Serves what waits, one after the other, as far as each is sound beside what is served.
    async fn settle_each(&self, state: &mut State, waiting: Vec<Which>) -> Vec<(Which, Refused)> {
        let mut refusals = Vec::new();
        for which in waiting {
            match self.attempt(state.with(&which)).await {
                Ok(()) => self.promote(state, &which),
                Err(refused) => {
                    self.refuse(&which, &refused);
                    refusals.push((which, refused));
                }
            }
        }
        refusals
    }

    fn promote(&self, state: &mut State, which: &Which) {
        state.promote(which);
        match which {
            Which::File => self.inner.file.applied(&self.view().version),
            Which::Source(kept) => {
                let version = kept.health.standing().version.unwrap_or_default();
                report::applied(&kept.settings.name, &version);
            }
        }
    }

    fn refuse(&self, which: &Which, refused: &Refused) {
        let (name, health) = match which {
            Which::File => ("file", &self.inner.file),
            Which::Source(kept) => (kept.settings.name.as_str(), &kept.health),
        };
        report::refused(name, &self.inner.ground.name(), refused);
        health.refused(report::in_short(refused));
    }

    /// Serves `whole`, or says why not.
    async fn attempt(&self, whole: Whole) -> Result<(), Refused> {
        let composed = self.compose(whole).await;
        let (config, view) = composed.inspect_err(|_| self.inner.serving.reload_refused())?;
        self.inner.serving.read_ahead(&config).await;
        let served = self.inner.serving.reload(config);
        served.map_err(|failure| Refused::Unservable(failure.to_string()))?;
        self.inner.view.store(Arc::new(view));
        Ok(())
    }

    /// What `whole` means, or what is wrong with it.
    async fn compose(&self, whole: Whole) -> Result<(Config, View), Refused> {
        if let Some(kept) = whole.missing() {
            let (name, standing) = (&kept.settings.name, kept.health.standing());
            let why = standing.trouble.unwrap_or_default();
            let message = format!("nothing is known of the source `{name}`: {why}");
            return Err(Refused::Unread(message));
        }
        let ground = self.inner.ground.clone();
        let composed = blocking(move || {
            let environment = ground.environment();
            let sound = whole.compose(&environment)?;
            let oddities = Oddities::of(&sound.config, &environment);
            Ok((sound, oddities))
        });
        let composed = composed
            .await
            .ok_or_else(|| Refused::Unread(NO_END.to_owned()))?;
        let (sound, oddities) = composed.map_err(Refused::Invalid)?;
        oddities.tell();
        Ok((sound.config, sound.view))
    }

    /// Lets everybody see how it stands with these sources.
    fn hang(&self, state: &State) {
        let sources = state.pool.iter().map(|slot| Arc::clone(&slot.kept.health));
        let file = Arc::clone(&self.inner.file);
        self.inner
            .board
            .hang(std::iter::once(file).chain(sources).collect());
    }
}

const NO_END: &str = "reading it came to no end";

fn is_of(which: &Which, kept: &Arc<Kept>) -> bool {
    matches!(which, Which::Source(it) if Arc::ptr_eq(it, kept))
}

fn never_reached(kept: &Kept) -> EditError {
    let trouble = kept.health.standing().trouble.unwrap_or_default();
    let name = &kept.settings.name;
    EditError::Away(format!(
        "the source `{name}` has never been reached: {trouble}"
    ))
}

impl From<Unusable> for Refused {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Unread(failure) => Self::Unread(failure.to_string()),
            Unusable::Wrong(errors) => Self::Invalid(errors),
        }
    }
}

impl From<Refused> for EditError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Invalid(errors),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) | Self::Unservable(why) => f.write_str(why),
            Self::Invalid(errors) => errors.fmt(f),
            Self::BuiltIn => f.write_str(
                "there is nothing to read again: this was started without --config FILE",
            ),
        }
    }
}

impl std::error::Error for Refused {}

impl fmt::Debug for Composer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composer")
            .field("ground", &self.inner.ground)
            .field("version", &self.view().version)
            .finish_non_exhaustive()
    }
}
