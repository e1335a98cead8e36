//! Announces this instance and the configuration that it serves to the other instances, and counts them.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the beat, every few seconds and whenever we serve something else |
//! | `beat.lua` | its script, one atomic step |
//! | `asking` | asking between the beats |
//! | `roll` | the live instances, and the version that each serves |
//! | `peak` | the highest recent number of instances |

mod asking;
mod peak;
mod roll;

use arc_swap::ArcSwapOption;
use asking::{BeatListener, BeatSpeaker};
use parking_lot::Mutex;
use peak::Peak;
use roll::{BeatReply, DatedRoll, PROGRAM_MAX, VERSION_MAX, is_word, says};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::shared_state::Roll;
use tidegate_redis_client::jitter::{jittered, random};
use tidegate_redis_client::{CallError, Connection, Script, WeakConnection};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

const EVERY: Duration = Duration::from_secs(5);
/// The time without a beat after which an instance is gone.
const GONE: Duration = Duration::from_secs(15);
/// The age up to which a result is reused.
const LATELY: Duration = Duration::from_secs(1);
/// The most instances that are listed. With more of them, an instance that missed the reply to its last
/// beat may be counted twice until its old entry expires: one too many is safer than one too few.
const INSTANCES_MAX: usize = 1_000;

/// Keeps this instance in the sorted set `<prefix>instances` until it is dropped or closed.
#[derive(Debug)]
pub struct Heartbeat {
    connection: Connection,
    beat: Arc<Beat>,
    asking: BeatListener,
    task: Option<AbortHandle>,
}

impl Heartbeat {
    /// Starts immediately, and repeats every 5 s ± 25 %.
    pub fn start(connection: &Connection, prefix: &str) -> Self {
        let beat = Arc::new(Beat {
            script: Script::new("heartbeat", include_str!("beat.lua").to_owned()),
            key: format!("{prefix}instances"),
            id: format!("{:016x}{:016x}", random(), random()),
            live: Arc::new(AtomicU32::new(0)),
            peak: Mutex::default(),
            announced: Mutex::new(None),
            said: Mutex::default(),
            news: Notify::new(),
            heard: ArcSwapOption::empty(),
            turn: tokio::sync::Mutex::new(()),
            is_closed: AtomicBool::new(false),
            has_warned: AtomicBool::new(false),
            has_warned_unread: AtomicBool::new(false),
        });
        let (saying, asking) = asking::channel();
        let task = forever(connection.downgrade(), Arc::clone(&beat), saying);
        Self {
            connection: connection.clone(),
            beat,
            asking,
            task: connection.spawn(task),
        }
    }

    /// Returns the number of live instances: the most seen in the last ten minutes in which Redis
    /// responded, at least 1.
    pub fn live(&self) -> u32 {
        self.beat.live.load(Ordering::Relaxed).max(1)
    }

    /// Returns the name of this instance in the list.
    pub fn id(&self) -> &str {
        &self.beat.id
    }

    /// Announces the configuration `version` (its first 16 characters) that this instance serves from now
    /// on, the version of its `program`, and the release of its time `zones`. All consist of letters, digits, `.`, `_`,
    /// `+` and `-`; anything else is not announced.
    pub fn announce(&self, version: &str, program: &str, zones: &str) {
        let version: String = version.chars().take(VERSION_MAX).collect();
        let words = [
            (version.as_str(), VERSION_MAX),
            (program, PROGRAM_MAX),
            (zones, VERSION_MAX),
        ];
        if !words.iter().all(|(word, max)| is_word(word, *max)) {
            return;
        }
        let what = format!("{version} {program}");
        let mut announced = self.beat.announced.lock();
        let is_news = |it: &AnnouncedConfig| it.what != what || it.zones != zones;
        if announced.as_ref().is_none_or(is_news) {
            *announced = Some(AnnouncedConfig {
                what,
                zones: zones.to_owned(),
                at: Instant::now(),
            });
            self.beat.news.notify_one();
        }
    }

    /// Returns the live instances and the configuration of each, as of now; `None` if we may not read the
    /// list. Concurrent callers share one call.
    pub async fn call(&self) -> Result<Option<Roll>, CallError> {
        self.asking.next(&self.beat.news).await
    }

    /// Returns the live instances and the configuration of each. Uses a result of the last second if our
    /// own configuration is the same; else asks now, and falls back to the last result after `patience`.
    /// Returns `None` while Redis is unreachable, or if we may not read the list.
    pub async fn roll(&self, patience: Duration) -> Option<Roll> {
        if let Some(roll) = self.beat.recent_roll() {
            return Some(roll);
        }
        let called = timeout(patience, self.call()).await;
        match called {
            Ok(Ok(roll)) => roll,
            Ok(Err(_)) | Err(_) => self.last_roll(),
        }
    }

    /// Returns the live instances and the configuration of each, from the last 15 s; `None` while Redis
    /// is unreachable, or if we may not read the list.
    pub fn last_roll(&self) -> Option<Roll> {
        self.beat.heard.load().as_ref()?.now()
    }

    /// Returns the number of live instances, as it changes; 0 while it is unknown.
    pub fn count(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.beat.live)
    }

    /// Ends it and takes us from the list.
    pub async fn close(&self) -> Result<(), CallError> {
        self.stop();
        self.beat.is_closed.store(true, Ordering::Relaxed);
        self.beat
            .send(&self.connection, BeatReason::Leave)
            .await
            .map(drop)
    }

    fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The configuration that we serve, and since when.
#[derive(Debug)]
struct AnnouncedConfig {
    what: String,
    zones: String,
    at: Instant,
}

/// The reason of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeatReason {
    /// A regular beat, whose count is recorded.
    Regular,
    /// A beat between them, for callers.
    Extra,
    /// The last.
    Leave,
}

/// The state of a heartbeat: its announcement, and the last result.
#[derive(Debug)]
struct Beat {
    script: Script,
    key: String,
    id: String,
    live: Arc<AtomicU32>,
    peak: Mutex<Peak>,
    announced: Mutex<Option<AnnouncedConfig>>,
    /// Our entry in the list, according to the last reply; empty before the first.
    said: Mutex<Vec<u8>>,
    /// Notified when the configuration changes, or a caller asks.
    news: Notify,
    heard: ArcSwapOption<DatedRoll>,
    /// Held during a beat, so that none sends older content after a newer one.
    turn: tokio::sync::Mutex<()>,
    is_closed: AtomicBool,
    has_warned: AtomicBool,
    has_warned_unread: AtomicBool,
}

impl Beat {
    async fn send(
        &self,
        connection: &Connection,
        word: BeatReason,
    ) -> Result<BeatReply, CallError> {
        let _turn = self.turn.lock().await;
        // An instance that has left must not return because a caller asks.
        let leaves = word == BeatReason::Leave || self.is_closed.load(Ordering::Relaxed);
        let stay = if leaves { "leave" } else { "stay" };
        let (what, zones, seconds) = match &*self.announced.lock() {
            Some(it) => (it.what.clone(), it.zones.clone(), it.at.elapsed().as_secs()),
            None => <(String, String, u64)>::default(),
        };
        let last = self.said.lock().clone();
        let args = [
            self.id.as_bytes(),
            GONE.as_secs().to_string().as_bytes(),
            stay.as_bytes(),
            what.as_bytes(),
            seconds.to_string().as_bytes(),
            INSTANCES_MAX.to_string().as_bytes(),
            &last,
            zones.as_bytes(),
        ]
        .map(<[u8]>::to_vec);
        let sent = connection.evalsha(&self.script, &[&self.key], &args).await;
        let answer = sent
            .inspect_err(|error| self.log_failure(error))
            .and_then(|reply| BeatReply::read(reply, &self.id))?;
        self.said.lock().clone_from(&answer.said);
        let at = Instant::now();
        let called = answer.roll.clone().map(|roll| DatedRoll { roll, at });
        if called.is_none() && !self.has_warned_unread.swap(true, Ordering::Relaxed) {
            let key = &self.key;
            warn!(
                event = "instances_not_compared",
                key, "instances are counted but not compared: the Redis user lacks +zrange"
            );
        }
        self.heard.store(called.map(Arc::new));
        self.count(word, answer.count);
        Ok(answer)
    }

    /// Returns the result of a moment ago, if it contains our present configuration.
    fn recent_roll(&self) -> Option<Roll> {
        let called = self.heard.load_full()?;
        if called.at.elapsed() >= LATELY {
            return None;
        }
        let roll = called.now()?;
        let announced = self.announced.lock();
        let is_so = announced
            .as_ref()
            .is_none_or(|announced| says(&roll, &announced.what));
        is_so.then_some(roll)
    }

    fn count(&self, word: BeatReason, count: u32) {
        if word == BeatReason::Regular {
            let most = self.peak.lock().add(count);
            self.live.store(most, Ordering::Relaxed);
        } else {
            // Until the next regular one: a count too low would let too much through.
            self.live.fetch_max(count, Ordering::Relaxed);
        }
    }

    /// An unreachable Redis is logged elsewhere. A Redis that rejects only this script is logged here.
    fn log_failure(&self, error: &CallError) {
        let is_refused = matches!(error.code(), Some("NOPERM" | "WRONGTYPE"));
        if is_refused && !self.has_warned.swap(true, Ordering::Relaxed) {
            warn!(event = "heartbeat_failed", %error, key = self.key, "heartbeat through Redis failed; instances do not see each other");
        }
    }
}

async fn forever(weak: WeakConnection, beat: Arc<Beat>, saying: BeatSpeaker) {
    let send = async |connection: &Connection, word: BeatReason| {
        let nth = saying.begins();
        let answered = beat.send(connection, word).await;
        saying.ends(nth, answered.map(|answer| answer.roll));
    };
    // Held only while it is needed, or it would never end.
    while let Some(connection) = weak.upgrade() {
        // If Redis is unreachable, which is logged elsewhere, the previous count remains valid.
        send(&connection, BeatReason::Regular).await;
        drop(connection);
        let next = Instant::now() + jittered(EVERY);
        while news_before(next, &beat.news).await {
            let Some(connection) = weak.upgrade() else {
                return;
            };
            // If it fails, the next regular beat sends the same.
            send(&connection, BeatReason::Extra).await;
        }
    }
}

/// Waits for `next`, or news. Returns true if news came first.
async fn news_before(next: Instant, news: &Notify) -> bool {
    tokio::select! {
        () = sleep_until(next) => false,
        () = news.notified() => true,
    }
}
