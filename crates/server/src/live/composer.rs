//! Keeps the file and its sources, and serves what is composed of them.

use super::begin::{Begun, PATIENCE, first, kept};
use super::edit::{Edit, EditError, Raw};
use super::ground::{Fingerprint, Ground};
use super::health::{Board, Health};
use super::report::{self, Oddities};
use super::source::{Loaded, Part, Trouble, WriteError};
use super::state::{Kept, Slot, State, Which, Whole, Wrong};
use super::view::{Standing, View};
use crate::config_source::{Texts, Unusable};
use crate::serving::Serving;
use crate::tasks::{blocking, undisturbed};
use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::source::{DocumentKind, PolicySource};
use tidegate_policy::{Config, ConfigErrors};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long lists of guards are read ahead, in all, while a change waits to be served, and whoever else
/// has one waits for that. Lists that take longer are there a moment later.
const AHEAD: Duration = Duration::from_secs(5);

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
    /// One change at a time. Nobody who holds it waits for strangers, but for what is bounded: a write,
    /// and lists that are read ahead.
    state: Mutex<State>,
    /// One reading of the file at a time, which asks sources that are new.
    reading: Mutex<()>,
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
                reading: Mutex::new(()),
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
        let composed = composed.await.ok_or_else(lost)?;
        composed.map(|sound| sound.config).map_err(Refused::Invalid)
    }

    /// A document as its source has it, secrets and all, for whoever changes a part of it; none where it
    /// stands in what cannot be written to. It is what a change would be made to, and so not what is
    /// served where the source says something else since.
    pub(crate) async fn raw(&self, source: &str, kind: DocumentKind, name: &str) -> Option<Raw> {
        let state = self.inner.state.lock().await;
        let mut order = state.served.order.iter();
        let kept = order.find(|kept| kept.settings.name == source)?;
        let slot = state.at(kept)?;
        super::edit::raw(slot, kind, name)
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
        let this = self.clone();
        let reloaded = undisturbed(async move { this.reload_now().await });
        reloaded.await.unwrap_or_else(|| Err(lost()))
    }

    async fn reload_now(&self) -> Result<(), Refused> {
        let looked = self.inner.ground.look().await;
        *self.inner.looked.lock() = looked;
        self.ask_all().await;
        let read = self.read_file_now(true).await;
        // A file that is not even read keeps nothing from being served that sources have said.
        let mut state = self.inner.state.lock().await;
        if state.is_unsettled {
            self.settle(&mut state).await;
        }
        read
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
        let (this, source) = (self.clone(), source.map(str::to_owned));
        let expected = expected.to_owned();
        let edited = undisturbed(async move {
            let source = source.as_deref();
            this.edit_now(source, &expected, &edits).await
        });
        edited.await.unwrap_or_else(|| Err(lost().into()))
    }

    async fn edit_now(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: &[Edit],
    ) -> Result<Arc<View>, EditError> {
        let mut state = self.inner.state.lock().await;
        let view = self.view();
        if view.version != expected {
            let now = view.version.clone();
            return Err(EditError::Stale { now });
        }
        let kept = super::edit::target(&state.served.order, source)?;
        let latest = super::edit::base(state.at(&kept), &kept)?;
        let part = super::edit::edited(&view, &state.served.order, (&kept, &latest), edits)?;
        let part = Arc::new(part);
        let (config, _) = self.compose(state.with_part(&kept, &part)).await?;
        let checked = self.inner.serving.could_reload(config);
        checked.map_err(|failure| EditError::Refused(failure.to_string()))?;
        let Some(writer) = kept.source.writer() else {
            return Err(EditError::Unknown(format!(
                "{} is not there",
                kept.settings.name
            )));
        };
        match writer.write(&latest.version, edits).await {
            Ok(version) => {
                let part = Part::clone(&part);
                if let Some(slot) = state.slot(&kept) {
                    slot.take(Part { version, ..part });
                }
                state.is_unsettled = true;
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
            let (this, kept) = (self.clone(), Arc::clone(kept));
            // Whoever keeps it may be let go at any time, and what was taken is to be served still.
            let taken = undisturbed(async move { this.take_in(&kept, epoch, loaded).await });
            if taken.await.unwrap_or(true) {
                return Ok(());
            }
            // Something was written meanwhile, and this is from before.
        }
    }

    /// Takes what a source said when it was at `epoch`, and serves it. Tells whether it still was.
    async fn take_in(&self, kept: &Arc<Kept>, epoch: u64, loaded: Loaded) -> bool {
        let mut state = self.inner.state.lock().await;
        let Some(slot) = state.slot(kept) else {
            return true;
        };
        if slot.epoch != epoch {
            return false;
        }
        if self.take(slot, loaded) {
            state.is_unsettled = true;
        }
        if state.is_unsettled {
            self.settle(&mut state).await;
            // Whoever reads the file counts on those that it found, and lets go of them afterwards.
            if let Ok(_reading) = self.inner.reading.try_lock() {
                self.prune(&mut state, false);
            }
        }
        true
    }

    /// Asks all sources at once, without serving anything yet: whoever calls it settles what they said.
    /// One that takes its time is not waited for; whoever keeps it asks it anyway.
    async fn ask_all(&self) {
        let pool: Vec<_> = {
            let state = self.inner.state.lock().await;
            let seen = |slot: &Slot| (Arc::clone(&slot.kept), state.seen(&slot.kept));
            state.pool.iter().map(seen).collect()
        };
        let asked = pool.into_iter().map(|(kept, seen)| async move {
            let (version, epoch) = seen.unwrap_or_default();
            let loaded = timeout(PATIENCE, kept.load(version.as_ref())).await;
            Some((kept, epoch, loaded.ok()?))
        });
        let asked = join_all(asked).await;
        let mut state = self.inner.state.lock().await;
        // Whoever asks for all of it wants to hear of what is still wrong.
        state.forget_told();
        for (kept, epoch, loaded) in asked.into_iter().flatten() {
            let slot = state.slot(&kept).filter(|slot| slot.epoch == epoch);
            match (loaded, slot) {
                (Err(trouble), _) => {
                    if kept.health.failed(&trouble) {
                        report::failed(&kept.settings.name, &trouble);
                    }
                }
                (Ok(loaded), Some(slot)) => {
                    let is_new = self.take(slot, loaded);
                    state.is_unsettled |= is_new;
                }
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
                let which = Which::Source(Arc::clone(&slot.kept));
                self.complain(&which, &Refused::Unread(why.clone()));
                slot.wrong = Some(Wrong { version, why });
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
        let this = self.clone();
        let read = undisturbed(async move { this.read_file_now(always).await });
        read.await.unwrap_or_else(|| Err(lost()))
    }

    async fn read_file_now(&self, always: bool) -> Result<(), Refused> {
        let _reading = self.inner.reading.lock().await;
        let texts = match self.inner.ground.read().await {
            Ok(texts) => Arc::new(texts),
            Err(unusable) => return Err(self.refuse_file(unusable.into())),
        };
        self.inner.file.answered();
        if !always && self.inner.state.lock().await.has_file(&texts) {
            self.inner.file.unchanged();
            return Ok(());
        }
        let (listed, new) = match self.listed(&texts).await {
            Ok(listed) => listed,
            Err(refused) => return Err(self.refuse_file(refused)),
        };
        report::notes(texts.notes());
        let mut state = self.inner.state.lock().await;
        // They are looked after from now on, whatever becomes of the file.
        let is_new = !new.is_empty();
        state.pool.extend(new);
        state.take_file(texts, &listed);
        let refused = self.settle(&mut state).await;
        self.prune(&mut state, is_new);
        match refused.into_iter().next() {
            None => Ok(()),
            Some((_, refused)) => Err(refused),
        }
    }

    /// The sources that a file lists, and those of them that are new and have been asked for the first
    /// time: all at once, and while everything else goes on.
    async fn listed(&self, texts: &Arc<Texts>) -> Result<(Vec<PolicySource>, Vec<Slot>), Refused> {
        let (ground, texts) = (self.inner.ground.clone(), Arc::clone(texts));
        let read = blocking(move || texts.sources(&ground.environment()));
        let listed = read.await.ok_or_else(lost)?.map_err(Refused::Invalid)?;
        // Nobody else adds to them.
        let known = self.inner.state.lock().await.kept();
        let mut new = Vec::new();
        for settings in &listed {
            if known.iter().any(|kept| kept.settings == *settings) {
                continue;
            }
            let opened = kept(settings.clone());
            let name = &settings.name;
            let opened = opened.map_err(|why| Refused::Unservable(format!("{name}: {why}")))?;
            new.push(first(Arc::new(opened), PATIENCE));
        }
        Ok((listed, join_all(new).await))
    }

    /// Lets go of sources that no file names any more. Whoever keeps them hears of that, and of new ones.
    fn prune(&self, state: &mut State, is_new: bool) {
        let before = state.pool.len();
        state.prune();
        if is_new || state.pool.len() != before {
            self.hang(state);
            let sources = &self.inner.sources;
            sources.send_modify(|it| *it = it.wrapping_add(1));
        }
    }

    fn refuse_file(&self, refused: Refused) -> Refused {
        self.complain(&Which::File, &refused);
        refused
    }

    /// Serves what waits: all of it, or as much of it as is sound. Tells what is not.
    async fn settle(&self, state: &mut State) -> Vec<(Which, Refused)> {
        let until = Instant::now() + AHEAD;
        let mut refusals = Vec::new();
        match (self.attempt(state.latest(), until).await, state.waiting()) {
            (Ok(()), _) => self.promote_all(state),
            (Err(refused), waiting) => match waiting.as_slice() {
                [only] => refusals.push((only.clone(), refused)),
                _ => refusals = self.settle_each(state, until).await,
            },
        }
        for (which, refused) in &refusals {
            self.refuse(state, which, refused);
        }
        state.is_unsettled = false;
        refusals
    }

    /// Serves what waits, one after the other, as far as each is sound beside what is served.
    async fn settle_each(&self, state: &mut State, until: Instant) -> Vec<(Which, Refused)> {
        let mut refusals = Vec::new();
        if state.wanted.is_some() {
            match self.attempt(state.with(&Which::File), until).await {
                Ok(()) => self.promote(state, &Which::File),
                Err(refused) => refusals.push((Which::File, refused)),
            }
        }
        // With the file, sources may have come that have more to say.
        for which in state.waiting() {
            if matches!(which, Which::File) {
                continue;
            }
            match self.attempt(state.with(&which), until).await {
                Ok(()) => self.promote(state, &which),
                Err(refused) => refusals.push((which, refused)),
            }
        }
        refusals
    }

    /// Notes that all that waits is served now: the file first, for the sources that come with it.
    fn promote_all(&self, state: &mut State) {
        if state.wanted.is_some() {
            self.promote(state, &Which::File);
        }
        for which in state.waiting() {
            self.promote(state, &which);
        }
    }

    fn promote(&self, state: &mut State, which: &Which) {
        let promoted = state.promote(which);
        if matches!(which, Which::File) {
            self.inner.file.applied(&self.view().version);
        }
        for kept in promoted {
            let version = kept.health.standing().version.unwrap_or_default();
            report::applied(&kept.settings.name, &version);
        }
    }

    /// Tells that something cannot be served, once for as long as it says the same.
    fn refuse(&self, state: &mut State, which: &Which, refused: &Refused) {
        if state.tell(which) {
            self.complain(which, refused);
        } else {
            self.health(which).still_refused(report::in_short(refused));
        }
    }

    fn complain(&self, which: &Which, refused: &Refused) {
        let health = self.health(which);
        self.inner.serving.reload_refused();
        report::refused(health.name(), &self.inner.ground.name(), refused);
        health.refused(report::in_short(refused));
    }

    fn health<'a>(&'a self, which: &'a Which) -> &'a Health {
        match which {
            Which::File => &self.inner.file,
            Which::Source(kept) => &kept.health,
        }
    }

    /// Serves `whole`, or says why not.
    async fn attempt(&self, whole: Whole, until: Instant) -> Result<(), Refused> {
        let (config, view) = self.compose(whole).await?;
        let ahead = self.inner.serving.read_ahead(&config);
        // What was not read in time is read by whoever keeps it.
        timeout_at(until, ahead).await.ok();
        let served = self.inner.serving.try_reload(config);
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
        let composed = composed.await.ok_or_else(lost)?;
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

/// Something of ours ended before its end.
fn lost() -> Refused {
    Refused::Unread("reading it came to no end".to_owned())
}

fn is_of(which: &Which, kept: &Arc<Kept>) -> bool {
    matches!(which, Which::Source(it) if Arc::ptr_eq(it, kept))
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
