//! Tells the other instances that we live and what we serve, counts them, and hears the same of them.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the beat, every few seconds and whenever we serve something else |
//! | `beat.lua` | what it does there, in one step |
//! | `asking` | asking between the beats |
//! | `roll` | who lives, and what each of them serves |
//! | `peak` | how many there were at most, of late |

mod asking;
mod peak;
mod roll;

use crate::connection::pace::{jittered, random};
use crate::connection::{Connection, WeakConnection};
use crate::error::CallError;
use crate::script::Script;
use arc_swap::ArcSwapOption;
use asking::{BeatListener, BeatSpeaker};
use parking_lot::Mutex;
use peak::Peak;
use roll::{BeatReply, DatedRoll, PROGRAM_MAX, VERSION_MAX, is_word, says};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::shared_state::Roll;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

const EVERY: Duration = Duration::from_secs(5);
/// An instance that was not heard of for so long is gone.
const GONE: Duration = Duration::from_secs(15);
/// What was heard so lately need not be asked again.
const LATELY: Duration = Duration::from_secs(1);
/// The most instances that are named. Where there are more of them, one that did not hear the answer to
/// its last beat may be counted twice until what it said before is gone: rather one too many than one too
/// few.
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
    /// Starts at once, and goes on every 5 s, give or take a quarter.
    pub fn start(connection: &Connection, prefix: &str) -> Self {
        let beat = Arc::new(Beat {
            script: Script::new("heartbeat", include_str!("beat.lua").to_owned()),
            key: format!("{prefix}instances"),
            id: format!("{:016x}{:016x}", random(), random()),
            live: Arc::new(AtomicU32::new(0)),
            peak: Mutex::default(),
            told: Mutex::new(None),
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
            task: connection.tasks().spawn(task),
        }
    }

    /// How many instances live: the most seen in the last ten minutes in which Redis answered, at
    /// least 1.
    pub fn live(&self) -> u32 {
        self.beat.live.load(Ordering::Relaxed).max(1)
    }

    /// What this instance is called in the list.
    pub fn id(&self) -> &str {
        &self.beat.id
    }

    /// Lets the others know what we serve from now on: the configuration `version`, of which the first 16
    /// characters are told, by this version of a `program`. Both are letters, digits, `.`, `_`, `+` and
    /// `-`; anything else is not told.
    pub fn tell(&self, version: &str, program: &str) {
        let version: String = version.chars().take(VERSION_MAX).collect();
        if !is_word(&version, VERSION_MAX) || !is_word(program, PROGRAM_MAX) {
            return;
        }
        let what = format!("{version} {program}");
        let mut told = self.beat.told.lock();
        if told.as_ref().is_none_or(|it| it.what != what) {
            let at = Instant::now();
            *told = Some(AnnouncedConfig { what, at });
            self.beat.news.notify_one();
        }
    }

    /// Who lives and what each serves, asked now; nothing where we may not read it. All who call at one
    /// time share what is asked.
    pub async fn call(&self) -> Result<Option<Roll>, CallError> {
        self.asking.next(&self.beat.news).await
    }

    /// Who lives and what each serves: as heard in the last second, if we still serve the same; or else
    /// asked now, and as last heard where no answer comes within `patience`. Nothing while Redis is away,
    /// or where we may not read it.
    pub async fn roll(&self, patience: Duration) -> Option<Roll> {
        if let Some(roll) = self.beat.lately() {
            return Some(roll);
        }
        let called = timeout(patience, self.call()).await;
        match called {
            Ok(Ok(roll)) => roll,
            Ok(Err(_)) | Err(_) => self.heard(),
        }
    }

    /// Who lives and what each serves, as far as it was heard of in the last 15 s; nothing while Redis is
    /// away, or where we may not read it.
    pub fn heard(&self) -> Option<Roll> {
        self.beat.heard.load().as_ref()?.now()
    }

    /// Where the number of those that live is kept up to date; 0 while nobody knows.
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

/// What we serve, and since when.
#[derive(Debug)]
struct AnnouncedConfig {
    what: String,
    at: Instant,
}

/// Which beat it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeatReason {
    /// One of those that come every so often: what they count is remembered.
    Regular,
    /// One between them.
    Extra,
    /// The last.
    Leave,
}

/// What a heartbeat says, and what it has heard.
#[derive(Debug)]
struct Beat {
    script: Script,
    key: String,
    id: String,
    live: Arc<AtomicU32>,
    peak: Mutex<Peak>,
    told: Mutex<Option<AnnouncedConfig>>,
    /// What we are in the list as, by the last answer; nothing before the first.
    said: Mutex<Vec<u8>>,
    /// Something else is served, or somebody asks.
    news: Notify,
    heard: ArcSwapOption<DatedRoll>,
    /// One at a time, so that none says what an earlier one knew after the last one.
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
        // Whoever has left is not to come back because somebody asks.
        let leaves = word == BeatReason::Leave || self.is_closed.load(Ordering::Relaxed);
        let stay = if leaves { "leave" } else { "stay" };
        let (what, seconds) = match &*self.told.lock() {
            Some(told) => (told.what.clone(), told.at.elapsed().as_secs()),
            None => (String::new(), 0),
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
        ]
        .map(<[u8]>::to_vec);
        let sent = connection.evalsha(&self.script, &[&self.key], &args).await;
        let answer = sent
            .inspect_err(|error| self.complain(error))
            .and_then(|reply| BeatReply::read(reply, &self.id))?;
        self.said.lock().clone_from(&answer.said);
        let at = Instant::now();
        let called = answer.roll.clone().map(|roll| DatedRoll { roll, at });
        if called.is_none() && !self.has_warned_unread.swap(true, Ordering::Relaxed) {
            let key = &self.key;
            warn!(
                key,
                "the instances that share this Redis are counted, but not compared: its user may not \
                 read who they are, and needs +zrange"
            );
        }
        self.heard.store(called.map(Arc::new));
        self.count(word, answer.count);
        Ok(answer)
    }

    /// What was heard a moment ago, if it tells of us what we serve now.
    fn lately(&self) -> Option<Roll> {
        let called = self.heard.load_full()?;
        if called.at.elapsed() >= LATELY {
            return None;
        }
        let roll = called.now()?;
        let told = self.told.lock();
        let is_so = told.as_ref().is_none_or(|told| says(&roll, &told.what));
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

    /// That Redis is away is told by others. That it refuses this alone is told by nobody else.
    fn complain(&self, error: &CallError) {
        let is_refused = matches!(error.code(), Some("NOPERM" | "WRONGTYPE"));
        if is_refused && !self.has_warned.swap(true, Ordering::Relaxed) {
            warn!(%error, key = self.key, "the instances that share this Redis cannot hear of each other");
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
        // If Redis is away, which others tell, what was seen before still counts.
        send(&connection, BeatReason::Regular).await;
        drop(connection);
        let next = Instant::now() + jittered(EVERY);
        while news_before(next, &beat.news).await {
            let Some(connection) = weak.upgrade() else {
                return;
            };
            // Where it fails, the next one says it.
            send(&connection, BeatReason::Extra).await;
        }
    }
}

/// Waits for `next`, or news. Tells whether those came first.
async fn news_before(next: Instant, news: &Notify) -> bool {
    tokio::select! {
        () = sleep_until(next) => false,
        () = news.notified() => true,
    }
}
