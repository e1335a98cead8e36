//! The comparisons.

use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_core::quota::CalendarCode;
use tidegate_core::{Algorithm, Align, Quota};

use crate::candidates::tidegate::ample;
use crate::candidates::{BareClient, Plain, Tidegate};
#[cfg(feature = "limitador")]
use crate::candidates::{Limitador, limitador::Storage};
use crate::compare::{Bench, Candidate, Section, Turns};
use crate::load::{Expect, Load};
use crate::server::MeasuredServer;

/// The number of concurrent tasks. Default of all rows.
const TASKS: usize = 1_024;

/// Some lifetimes of a deny cache entry, which is a second.
const DENY_LIVES: Duration = Duration::from_millis(2_500);

/// 30 days.
const MONTH_US: u64 = 30 * 86_400_000_000;

/// The rows of the bars.
pub(crate) const PLAIN: &str = "plain script";
pub(crate) const PLAIN_THREE: &str = "plain script, three times";
pub(crate) const DISTINCT: [(&str, usize); 3] = [
    ("tidegate, 256 tasks", 256),
    ("tidegate, 1024 tasks", 1_024),
    ("tidegate, 2048 tasks", 2_048),
];
pub(crate) const HOT: &str = "tidegate";
pub(crate) const BANDS: &str = "tidegate, three bands";
pub(crate) const UNITS: &str = "three units, two bands each";
pub(crate) const ONE_UNIT: &str = "one unit, three limits of two bands";
pub(crate) const GENERAL: &str = "fixed window, general path";
pub(crate) const CALENDAR: &str = "calendar window";
pub(crate) const BARE: &str = "bare EVALSHA";
pub(crate) const ALONE: &str = "tidegate";
pub(crate) const CACHED: &str = "tidegate";

/// redis-cell's server, or the reason why it is missing.
pub(crate) type Cell = Result<Rc<MeasuredServer>, String>;

/// The constructor of a section.
pub(crate) type Make = fn(&Bench, &Cell) -> anyhow::Result<Section>;

/// All sections, by name.
pub(crate) const ALL: [(&str, Make); 7] = [
    ("distinct", distinct),
    ("hot", hot),
    ("three", three),
    ("units", units),
    ("calendar", calendar),
    ("alone", alone),
    ("refused", refused),
];

/// Returns a section without peers.
fn section(id: &'static str, title: impl Into<String>) -> Section {
    Section {
        id,
        title: title.into(),
        candidates: Vec::new(),
        absent: Vec::new(),
        turns: Turns::Usual,
    }
}

fn distinct(bench: &Bench, cell: &Cell) -> anyhow::Result<Section> {
    let title = format!("{} keys, one band each; all pass", bench.keys);
    let mut section = section("distinct", title);
    section.add(Plain::script(bench)?);
    for (name, tasks) in DISTINCT {
        let load = Load::distinct(ample()?, bench.keys);
        section.add(Tidegate::new(name, load, tasks));
    }
    section.add_limitador(bench, 1, bench.keys);
    section.add_cell(
        cell,
        "cell:__rand_int__",
        ["6999999", "7", "600"],
        bench.keys,
    );
    section.add(Plain::ping());
    Ok(section)
}

fn hot(bench: &Bench, cell: &Cell) -> anyhow::Result<Section> {
    let mut section = section("hot", "one key; all pass but in the row that says so");
    section.add(Plain::hot(bench)?);
    // 1000 a second: keys stay, and the expected rest can be computed exactly.
    let huge = Quota::new(1_000, 1_000_000).burst(1_000_000_000).build()?;
    section.add(Tidegate::new(HOT, Load::hot(huge, Expect::All), TASKS));
    section.add(Tidegate::new(
        "tidegate, 256 tasks",
        Load::hot(huge, Expect::All),
        256,
    ));
    section.add(Tidegate::new(
        "tidegate, costs of 1 to 5",
        Load::hot_costs(huge),
        TASKS,
    ));
    // A second's worth, so that a stall of the machine does not let it fill up.
    let tight = Quota::new(50_000, 1_000_000).burst(50_000).build()?;
    let some = Load::hot(tight, Expect::Some);
    section.add(Tidegate::new("tidegate, 50 000 a second pass", some, TASKS));
    let half = Load::half_hot(ample()?, bench.keys);
    section.add(Tidegate::new("tidegate, every second hot", half, TASKS));
    section.add_limitador(bench, 1, 1);
    section.add_cell(cell, "cell:everybody", ["6999999", "7", "600"], 1);
    Ok(section)
}

fn three(bench: &Bench, _: &Cell) -> anyhow::Result<Section> {
    let title = format!(
        "{} keys, three buckets each, all or nothing; all pass",
        bench.keys
    );
    let mut section = section("three", title);
    section.add(Plain::three(bench)?);
    let band = |seconds: u64| Quota::new(7, seconds * 1_000_000).burst(7_000).build();
    let bands = [band(600)?, band(3_600)?, band(86_400)?];
    section.add(Tidegate::new(BANDS, Load::bands(&bands, bench.keys), TASKS));
    section.add(Tidegate::new(
        "tidegate, three limits",
        Load::limits(&bands, bench.keys),
        TASKS,
    ));
    section.add_limitador(bench, 3, bench.keys);
    Ok(section)
}

/// Two bands for each of three units, in one call of the script.
fn units(bench: &Bench, _: &Cell) -> anyhow::Result<Section> {
    let title = format!(
        "{} keys, six buckets each, all or nothing; all pass",
        bench.keys
    );
    let mut section = section("units", title);
    let bands = |amount: u64| -> anyhow::Result<[Quota; 2]> {
        let band = |seconds: u64| Quota::new(7 * amount, seconds * 1_000_000);
        let burst = 7_000 * amount;
        Ok([band(600).burst(burst).build()?, band(86_400).burst(burst).build()?])
    };
    let [calls, tokens, money] = [bands(1)?, bands(800)?, bands(120)?];
    let three_units: [(u64, &[Quota]); 3] = [(1, &calls), (800, &tokens), (120, &money)];
    section.add(Tidegate::new(UNITS, Load::units(&three_units, bench.keys), TASKS));
    let one_unit: [(u64, &[Quota]); 3] = [(1, &calls), (1, &calls), (1, &calls)];
    section.add(Tidegate::new(ONE_UNIT, Load::units(&one_unit, bench.keys), TASKS));
    let [short, long] = calls;
    let six = [short, long, short, long, short, long];
    section.add(Tidegate::new(
        "one unit, six limits",
        Load::limits(&six, bench.keys),
        TASKS,
    ));
    Ok(section)
}

/// Windows of the calendar next to fixed windows. What may be refunded takes the general path of the script, which
/// calendar windows take too.
fn calendar(bench: &Bench, _: &Cell) -> anyhow::Result<Section> {
    let title = format!("{} keys, windows of a month; all pass", bench.keys);
    let mut section = section("calendar", title);
    let pace = Quota::new(7, 600_000_000).burst(7_000).build()?;
    let fixed = || {
        let window = Algorithm::FixedWindow(Align::Clock);
        Quota::new(1_000_000, MONTH_US).algorithm(window)
    };
    let (plain, general) = (fixed().build()?, fixed().refundable(true).build()?);
    let month = month()?;
    section.add(Tidegate::new(
        "fixed window",
        Load::distinct(plain, bench.keys),
        TASKS,
    ));
    for (name, quota) in [(GENERAL, general), (CALENDAR, month)] {
        section.add(Tidegate::new(name, Load::distinct(quota, bench.keys), TASKS));
    }
    for (name, quotas) in [
        ("token bucket and fixed window", [pace, plain]),
        ("token bucket and calendar window", [pace, month]),
    ] {
        let load = Load::bands(&quotas, bench.keys);
        section.add(Tidegate::new(name, load, TASKS));
    }
    Ok(section)
}

/// A calendar window around the present.
fn month() -> anyhow::Result<Quota> {
    let quota = Quota::new(1_000_000, MONTH_US).algorithm(Algorithm::CalendarWindow);
    let quota = quota.calendar(CalendarCode::new(NonZeroU64::MIN)).build()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let start = u64::try_from(now)? / MONTH_US * MONTH_US;
    let starts = [start - MONTH_US, start, start + MONTH_US, start + 2 * MONTH_US];
    Ok(quota.with_starts(starts))
}

fn alone(bench: &Bench, _: &Cell) -> anyhow::Result<Section> {
    let mut section = section("alone", "one task, which waits for each answer; all pass");
    section.turns = Turns::Short;
    section.add(BareClient::new(1));
    let load = Load::distinct(ample()?, bench.keys);
    section.add(Tidegate::new(ALONE, load, 1));
    Ok(section)
}

fn refused(bench: &Bench, cell: &Cell) -> anyhow::Result<Section> {
    let mut section = section("refused", "one key that has nothing left; all are refused");
    section.turns = Turns::Long(DENY_LIVES);
    section.add(Plain::refused(bench)?);
    let empty = Quota::new(1, 3_600_000_000).burst(1).build()?;
    let load = || Load::hot(empty, Expect::None);
    section.add(Tidegate::new(CACHED, load(), TASKS));
    section.add(Tidegate::new("tidegate, no deny cache", load(), TASKS).without_deny_cache());
    section.add_limitador_refused();
    section.add_cell(cell, "cell:empty", ["0", "1", "3600"], 1);
    Ok(section)
}

impl Section {
    fn add(&mut self, candidate: impl Candidate + 'static) {
        self.candidates.push(Box::new(candidate));
    }

    fn add_cell(&mut self, cell: &Cell, key: &str, quota: [&str; 3], keys: usize) {
        match cell {
            Ok(server) => self.add(Plain::cell(server, key, quota, keys)),
            Err(why) => self.absent.push(("redis-cell", why.clone())),
        }
    }

    #[cfg(feature = "limitador")]
    fn add_limitador(&mut self, _: &Bench, limits: u64, keys: usize) {
        for storage in [Storage::Redis, Storage::Cached] {
            self.add(Limitador::new(storage, limits, keys, TASKS));
        }
    }

    #[cfg(feature = "limitador")]
    fn add_limitador_refused(&mut self) {
        for storage in [Storage::Redis, Storage::Cached] {
            self.add(Limitador::refused(storage, TASKS));
        }
    }

    #[cfg(not(feature = "limitador"))]
    fn add_limitador(&mut self, _: &Bench, _: u64, _: usize) {
        self.add_limitador_refused();
    }

    #[cfg(not(feature = "limitador"))]
    fn add_limitador_refused(&mut self) {
        let why = "absent: built without its feature, see README.md".to_owned();
        self.absent.push(("limitador", why));
    }
}
