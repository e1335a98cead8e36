//! The first composition, before anything is served.

use super::composer::ReloadError;
use super::config_files::ConfigFiles;
use super::file_changes::{FileWatch, NamedFiles};
use super::origins;
use super::report::{self, Oddities};
use super::source::{LoadResult, LoadedPart, SourceError, SourceNote};
use super::sources::{
    ComposerState, ConfigCandidate, FileState, SourceHandle, SourceState, ValidConfig,
};
use super::view::ServedConfig;
use crate::failure::Failure;
use crate::live::config_source::{ConfigTexts, SourceText};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::source::PolicySource;
use tidegate_config::{Config, ConfigErrors};
use tidegate_net::tasks::blocking;
use tidegate_telemetry::source_health::SourceHealth;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// The maximum time to wait for a source that is not required, or has a fallback.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The delay before a required source is queried again.
const PAUSE: Duration = Duration::from_millis(500);

/// The initial state, from which the `Composer` continues.
#[derive(Debug)]
pub struct InitialConfig {
    pub(super) ground: ConfigFiles,
    pub(super) state: ComposerState,
    pub(super) view: ServedConfig,
    pub(super) file: Arc<SourceHealth>,
    pub(super) looked: FileWatch,
    /// The variables and warnings to log at startup.
    pub(super) told: Oddities,
}

impl InitialConfig {
    /// Returns the names of the variables that took effect.
    pub fn variables(&self) -> &[String] {
        &self.told.variables
    }
}

/// Reads the file, loads all its sources, and returns the composed configuration, or all errors.
pub async fn begin(ground: ConfigFiles) -> Result<(Config, InitialConfig), Failure> {
    let looked = FileWatch::new(ground.look(NamedFiles::new()).await);
    let texts = ground.read().await.map_err(Failure::from)?;
    report::notes(texts.notes());
    let (state, named) = load(&ground, texts).await?;
    looked.begin(named);
    let (composition, state) = apply(&ground, state).await?;
    state.log_verdicts();
    let sound = composition.sound;
    looked.add(composition.named);
    let file = SourceHealth::new("file", "file", false);
    file.answered();
    file.applied(&sound.view.version);
    let begun = InitialConfig {
        ground,
        state,
        view: sound.view,
        file,
        looked,
        told: composition.oddities,
    };
    Ok((sound.config, begun))
}

/// Opens a source, or returns why its settings are invalid.
pub(super) fn kept(settings: PolicySource) -> Result<SourceHandle, String> {
    let source = origins::open(&settings)?;
    let is_writable = source.writer().is_some();
    let health = SourceHealth::new(&settings.name, settings.kind(), is_writable);
    Ok(SourceHandle {
        settings,
        source,
        health,
    })
}

/// Loads the sources of the file for the first time. Also returns the files that were read for that.
async fn load(
    ground: &ConfigFiles,
    texts: ConfigTexts,
) -> Result<(ComposerState, NamedFiles), Failure> {
    let (settings, named) = listed(ground, &texts)?;
    let mut order = Vec::new();
    for settings in settings {
        order.push(Arc::new(opened(settings)?));
    }
    let asked = order
        .iter()
        .map(|kept| first(Arc::clone(kept), None, Duration::MAX));
    let pool = join_all(asked).await;
    let texts = Arc::new(texts);
    Ok((ComposerState::new(FileState { texts, order }, pool), named))
}

fn listed(
    ground: &ConfigFiles,
    texts: &ConfigTexts,
) -> Result<(Vec<PolicySource>, NamedFiles), Failure> {
    let environment = ground.environment();
    let settings = texts.sources(&environment).map_err(Failure::input)?;
    Ok((settings, environment.files()))
}

/// Loads a source for the first time. If that fails, uses `before`, the part loaded through an earlier
/// handle, or else the source's fallback. Waits as long as its settings say, and never longer than
/// `most`.
pub(super) async fn first(
    kept: Arc<SourceHandle>,
    before: Option<Arc<LoadedPart>>,
    most: Duration,
) -> SourceState {
    let mut slot = SourceState::new(Arc::clone(&kept));
    let goes_on = before.is_some();
    match before {
        Some(part) => {
            kept.health.serves(&part.version.to_string());
            slot.good = Some(part);
        }
        None => slot.good = fallback(&kept),
    }
    let patience = if kept.can_be_away() {
        kept.settings.timeout.min(PATIENCE)
    } else {
        kept.settings.timeout
    };
    match timeout(patience.min(most), load_source(&kept)).await {
        Ok(Ok(LoadResult::Part(part))) => {
            kept.health.answered();
            report::notes(&part.notes);
            slot.take(part);
        }
        Ok(Ok(LoadResult::Wrong(wrong))) => {
            kept.health.answered();
            let refused = ReloadError::Unread(wrong.why.clone());
            kept.health.refused(report::in_short(&refused));
            report::refused(&kept.settings.name, &kept.settings.name, &refused);
            slot.wrong = Some(wrong);
            if slot.good.is_some() && !goes_on {
                kept.health.falls_back();
            }
        }
        // There is no earlier version, so this cannot happen.
        Ok(Ok(LoadResult::Unchanged)) => kept.health.answered(),
        Ok(Err(trouble)) => failed(&kept, &slot, goes_on, &trouble),
        Err(_) => {
            let trouble = SourceError("timeout".to_owned());
            failed(&kept, &slot, goes_on, &trouble);
        }
    }
    slot
}

/// Returns the fallback of a source, to be served until the source answers.
fn fallback(kept: &SourceHandle) -> Option<Arc<LoadedPart>> {
    match kept.source.fallback()? {
        Ok(part) => Some(Arc::new(part)),
        Err(trouble) => {
            warn!(event = "source_fallback_invalid", source = kept.settings.name, error = %trouble, "config source: the fallback is invalid");
            None
        }
    }
}

/// Loads a source: once, or, if it is required and has no fallback, until it answers.
async fn load_source(kept: &SourceHandle) -> Result<LoadResult, SourceError> {
    loop {
        match kept.load(None).await {
            Err(trouble) if !kept.can_be_away() => {
                // The timeout that ends the wait does not know the reason.
                kept.health.failed(&trouble);
                sleep(PAUSE).await;
            }
            loaded => return loaded,
        }
    }
}

fn failed(kept: &SourceHandle, slot: &SourceState, goes_on: bool, trouble: &SourceError) {
    let source = kept.settings.name.as_str();
    if !kept.health.is_failing() {
        kept.health.failed(trouble);
    }
    if goes_on {
        report::failed(source, trouble);
    } else if slot.good.is_some() {
        kept.health.falls_back();
        warn!(event = "source_unavailable", source, error = %trouble, "config source unavailable; serving its fallback");
    } else if !kept.settings.required {
        warn!(event = "source_unavailable", source, error = %trouble, "config source unavailable; starting without it");
    }
}

/// Composes all parts. If the result is invalid, composes it without the parts of optional sources.
async fn apply(
    ground: &ConfigFiles,
    mut state: ComposerState,
) -> Result<(Composition, ComposerState), Failure> {
    let refused = match composed(ground, state.latest()).await? {
        Ok(sound) => {
            for which in state.waiting() {
                state.promote(&which);
            }
            state.leave_out(&sound.sound.left_out);
            return Ok((sound, state));
        }
        Err(refused) => refused,
    };
    for slot in state
        .pool
        .iter_mut()
        .filter(|slot| !slot.kept.can_be_away())
    {
        slot.promote();
    }
    let waiting = state.waiting();
    if waiting.is_empty() {
        return Err(refused);
    }
    let Ok(sound) = composed(ground, state.good()).await? else {
        return Err(refused);
    };
    let error = ReloadError::Unservable(refused.to_string());
    for slot in state.pool.iter_mut().filter(|it| it.wanted.is_some()) {
        slot.is_told = true;
        slot.kept.health.refused(report::in_short(&error));
        report::refused(&slot.kept.settings.name, &ground.name(), &error);
        if slot.good.is_some() {
            slot.kept.health.falls_back();
        }
    }
    state.leave_out(&sound.sound.left_out);
    Ok((sound, state))
}

/// Composes `whole`. The outer error means that a source is missing, the inner one that the configuration
/// is invalid.
async fn composed(
    ground: &ConfigFiles,
    whole: ConfigCandidate,
) -> Result<Result<Composition, Failure>, Failure> {
    if let Some(kept) = whole.missing() {
        return Err(unreachable(kept));
    }
    let ground = ground.clone();
    let composed = blocking(move || {
        let environment = ground.environment();
        let sound = whole.compose(&environment)?;
        Ok(Composition {
            oddities: Oddities::of(&sound.config, &environment),
            sound,
            named: environment.files(),
        })
    });
    let lost = || Failure::runtime("reading the configuration did not finish");
    let composed = composed.await.ok_or_else(lost)?;
    Ok(composed.map_err(|errors: ConfigErrors| Failure::input(errors)))
}

/// A composed configuration, with its warnings and the files that it names.
struct Composition {
    sound: ValidConfig,
    oddities: Oddities,
    named: NamedFiles,
}

/// Loads sources once, for `tidegate validate` and for simulations. Also returns the notes about them.
pub(crate) fn ask_once(
    sources: Vec<PolicySource>,
) -> Result<(Vec<SourceText>, Vec<SourceNote>), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start threads: {error}")))?;
    let asked = runtime.block_on(async {
        let mut order = Vec::new();
        for settings in sources {
            order.push(Arc::new(opened(settings)?));
        }
        let pool = join_all(order.into_iter().map(|it| first(it, None, Duration::MAX))).await;
        let (mut told, mut notes) = (Vec::new(), Vec::new());
        for slot in pool {
            let settings = &slot.kept.settings;
            let Some(part) = slot.latest() else {
                if settings.required {
                    return Err(unreachable(&slot.kept));
                }
                let text = format!("the source `{}` did not respond", settings.name);
                notes.push(SourceNote::warning(text));
                continue;
            };
            notes.extend(part.notes.iter().cloned());
            let name = if part.is_translated {
                format!("{}, translated", settings.name)
            } else {
                settings.name.clone()
            };
            told.push(SourceText {
                name,
                text: part.text.clone(),
                is_translated: part.is_translated,
                is_separable: part.is_separable,
            });
        }
        Ok((told, notes))
    });
    runtime.shutdown_background();
    asked
}

fn opened(settings: PolicySource) -> Result<SourceHandle, Failure> {
    let name = settings.name.clone();
    kept(settings).map_err(|why| Failure::input(format!("source `{name}`: {why}")))
}

fn unreachable(kept: &SourceHandle) -> Failure {
    let name = &kept.settings.name;
    let why = kept.health.status().error.unwrap_or_default();
    Failure::runtime(format!(
        "the config source `{name}` is unavailable after {:?}: {why}\n   help: to start without \
         it, write `required: false`",
        kept.settings.timeout
    ))
}
