//! Decisions on one core while a million members are reloaded on another.

use crate::Plan;
use crate::world::{self, RequestSequence, BLOCKED, Folder, PROJECTS};
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tidegate::Limiter;
use tidegate_bench_measure::{self as measure, Histogram, Summary};
use tidegate_policy::guard::GuardMembers;
use tidegate_policy::limit::{AddressRules, KeyPart};

/// The number of rounds.
const ROUNDS: usize = 5;

/// The number of reloads per round.
const TIMES: usize = 3;

/// The maximum time of one reload.
const PATIENCE: Duration = Duration::from_mins(1);

/// The work next to the decisions.
#[derive(Clone, Copy)]
enum BackgroundWork {
    /// Nothing.
    Nothing,
    /// Building a list of the same length without using it, which shows the effect of the machine
    /// alone.
    Building,
    /// The list of a guard is reloaded.
    List,
    /// Plans are replaced.
    Plans,
}

const ALL: [(BackgroundWork, &str); 4] = [
    (BackgroundWork::Nothing, "nothing"),
    (BackgroundWork::Building, "a list, put together"),
    (BackgroundWork::List, "a list, read again"),
    (BackgroundWork::Plans, "plans, replaced"),
];

/// The result of one kind of work; medians over the rounds.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    beside: &'static str,
    took_ms: Summary,
    p50_ns: Summary,
    p99_ns: Summary,
    p999_ns: Summary,
    most_ns: Summary,
    stolen: f64,
}

/// The state of one round.
struct Round {
    histogram: Histogram,
    stolen: f64,
    took: Duration,
}

struct Stage {
    limiter: Limiter,
    folder: Folder,
    /// Two lists, one a member longer than the other, and the path in the guard.
    files: [PathBuf; 2],
    path: PathBuf,
    /// The number of reloads.
    read: AtomicUsize,
    most: usize,
}

impl Stage {
    fn new(most: usize) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let lines = |count| world::id_lines(&world::ids(BLOCKED, count));
        let files = [
            folder.write("shorter", &lines(most))?,
            folder.write("longer", &lines(most + 1))?,
        ];
        let path = folder.write("projects", &lines(most))?;
        let limiter = world::limiter(&format!(
            "
guards: [{{ name: projects, deny: attr:project, file: {}, refresh: 100ms, timeout: 1min }}]
plans: [{{ name: events, file: plans.yaml }}]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        rate: {{ plan: events, subject: attr:project, default: refuse }}
        algorithm: fixed-window",
            path.display()
        ))?;
        limiter.replace_plans("events", world::document(most))?;
        Ok(Self {
            limiter,
            folder,
            files,
            path,
            read: AtomicUsize::new(0),
            most,
        })
    }

    /// Does the work several times; returns how long each took.
    fn act(&self, beside: BackgroundWork) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        match beside {
            BackgroundWork::Nothing => thread::sleep(Duration::from_secs(2)),
            BackgroundWork::Building => {
                let ids = world::ids(BLOCKED, self.most);
                let attribute = KeyPart::Attr("project".to_owned());
                for _ in 0..TIMES {
                    let members = (0..self.most).map(|nth| world::id(&ids, nth));
                    let list = GuardMembers::new(&attribute, AddressRules::default(), members);
                    ensure!(list.len() == self.most, "not all are listed");
                }
            }
            BackgroundWork::List => {
                let runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = { runtime }.enable_time().build()?;
                runtime.block_on(async {
                    let reading = async {
                        for _ in 0..TIMES {
                            let nth = self.read.fetch_add(1, Relaxed);
                            self.read_again((nth + 1) % 2).await?;
                        }
                        anyhow::Ok(())
                    };
                    tokio::select! {
                        () = self.limiter.keep_lists() => anyhow::bail!("nobody keeps lists"),
                        read = reading => read,
                    }
                })?;
            }
            BackgroundWork::Plans => {
                for _ in 0..TIMES {
                    let document = world::document(self.most);
                    self.limiter.replace_plans("events", document)?;
                }
            }
        }
        Ok(begun.elapsed() / u32::try_from(TIMES)?)
    }

    /// Puts another file in place, and waits until its list is in force.
    async fn read_again(&self, which: usize) -> anyhow::Result<()> {
        let file = self.files.get(which).context("there are two")?;
        let link = self.folder.path().join("link");
        fs::hard_link(file, &link)?;
        fs::rename::<&Path, &Path>(&link, &self.path)?;
        let begun = Instant::now();
        let is_there = || {
            let lists = self.limiter.lists();
            lists
                .first()
                .is_some_and(|it| it.members == self.most + which)
        };
        while !is_there() {
            ensure!(begun.elapsed() < PATIENCE, "the list was not read again");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    fn round(&self, beside: BackgroundWork, asking: &mut RequestSequence) -> anyhow::Result<Round> {
        let is_over = AtomicBool::new(false);
        let limiter = &self.limiter;
        thread::scope(|scope| {
            let is_over = &is_over;
            let deciding = scope.spawn(move || {
                measure::pin(0);
                decide(limiter, asking, is_over)
            });
            let took = self.act(beside);
            is_over.store(true, Relaxed);
            let decided = deciding.join().expect("a measuring thread does not panic");
            let (histogram, stolen) = decided?;
            Ok(Round {
                histogram,
                stolen,
                took: took?,
            })
        })
    }
}

/// Decides until the work ends; returns the duration of each decision, including a read of the
/// clock.
fn decide(
    limiter: &Limiter,
    asking: &mut RequestSequence,
    is_over: &AtomicBool,
) -> anyhow::Result<(Histogram, f64)> {
    let mut histogram = Histogram::new();
    let waited_before = measure::waited_for_core();
    let begun = Instant::now();
    let mut last = begun;
    while !is_over.load(Relaxed) {
        ensure!(asking.next(limiter), "not every request passed");
        let now = Instant::now();
        let took = now.duration_since(last).as_nanos();
        histogram.add(u64::try_from(took).unwrap_or(u64::MAX));
        last = now;
    }
    let waited = measure::waited_for_core().saturating_sub(waited_before);
    let stolen = waited.as_secs_f64() / begun.elapsed().as_secs_f64();
    Ok((histogram, stolen))
}

pub(crate) fn run(plan: Plan) -> anyhow::Result<Vec<Row>> {
    let most = plan.most;
    let mut asking = RequestSequence::new(PROJECTS);
    let stage = Stage::new(most)?;
    ensure!(asking.fill(&stage.limiter), "not all pass");
    // Everything but the decisions runs on the other core.
    measure::pin(1);
    let mut rounds = ALL.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((beside, _), rounds) in ALL.iter().zip(&mut rounds) {
            rounds.push(stage.round(*beside, &mut asking)?);
        }
    }
    println!("\ndecisions, each with a look at the clock, beside {most} members or subjects");
    println!(
        "  {:22} {:>9} {:>7} {:>8} {:>9} {:>22} {:>7}",
        "beside", "took ms", "p50 ns", "p99 ns", "p99.9 ns", "most µs (least..most)", "stolen"
    );
    let rows = ALL.iter().zip(&rounds).map(|((_, name), rounds)| {
        let of = |figure: &dyn Fn(&Round) -> f64| Summary::of(rounds.iter().map(figure));
        Row {
            beside: name,
            took_ms: of(&|it| it.took.as_secs_f64() * 1e3),
            p50_ns: of(&|it| it.histogram.within(500_000)),
            p99_ns: of(&|it| it.histogram.within(990_000)),
            p999_ns: of(&|it| it.histogram.within(999_000)),
            most_ns: of(&|it| it.histogram.most()),
            stolen: of(&|it| it.stolen).most,
        }
    });
    let rows: Vec<_> = rows.collect();
    for row in &rows {
        let most = row.most_ns;
        println!(
            "  {:22} {:>9.0} {:>7.0} {:>8.0} {:>9.0} {:>8.0} {:>13} {:>6.1}%",
            row.beside,
            row.took_ms.median,
            row.p50_ns.median,
            row.p99_ns.median,
            row.p999_ns.median,
            most.median / 1e3,
            format!("({:.0}..{:.0})", most.least / 1e3, most.most / 1e3),
            row.stolen * 100.0
        );
    }
    Ok(rows)
}
