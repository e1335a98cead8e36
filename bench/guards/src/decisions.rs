//! A decision with guards and plans, compared with one without.

use crate::Plan;
use crate::world::{self, RequestSequence, BLOCKED, Folder, PROJECTS};
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;
use tidegate::Limiter;
use tidegate_bench_measure::{self as measure, Summary};

/// The number of entries in each guard's list.
const LISTED: usize = 100_000;

/// The maximum extra time for guards and plans together if all projects send requests, in
/// nanoseconds.
const BAR_NS: f64 = 150.0;

/// A measured variant: with or without guards, with a plan or with a literal rate.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    guards: bool,
    plans: bool,
}

/// All variants, the baseline first.
pub(crate) const CANDIDATES: [Candidate; 4] = [
    Candidate {
        name: "written",
        guards: false,
        plans: false,
    },
    Candidate {
        name: "guards",
        guards: true,
        plans: false,
    },
    Candidate {
        name: "plans",
        guards: false,
        plans: true,
    },
    Candidate {
        name: "both",
        guards: true,
        plans: true,
    },
];

/// The number of projects that send requests: few, so that their data stays in the cache, and all.
const ASKING: [usize; 2] = [500, PROJECTS];

/// The result of one variant.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    projects: usize,
    name: &'static str,
    ns: Summary,
    /// The difference to the baseline, per round.
    added_ns: Summary,
    samples: Vec<f64>,
}

impl Candidate {
    /// Returns a limiter of this variant that knows every project.
    pub(crate) fn limiter(&self, asking: &RequestSequence) -> anyhow::Result<Limiter> {
        let folder = Folder::new()?;
        let mut yaml = String::new();
        if self.guards {
            let blocked = world::id_lines(&world::ids(BLOCKED, LISTED));
            let projects = folder.write("projects", &blocked)?;
            let addresses = folder.write("addresses", &world::address_lines(LISTED))?;
            write!(
                yaml,
                "
guards:
  - {{ name: projects, deny: attr:project, file: {} }}
  - {{ name: addresses, deny: ip, file: {} }}",
                projects.display(),
                addresses.display()
            )?;
        }
        let rate = if self.plans {
            yaml += "\nplans: [{ name: events, file: plans.yaml }]";
            "{ plan: events, subject: attr:project, default: refuse }"
        } else {
            "1000000/h"
        };
        write!(
            yaml,
            "
policies:
  - name: events
    limits:
      - {{ name: per-project, key: attr:project, rate: {rate}, algorithm: fixed-window }}"
        )?;
        let limiter = world::limiter(&yaml)?;
        if self.plans {
            limiter.replace_plans("events", world::document(PROJECTS))?;
        }
        let lists = limiter.lists();
        let is_read = |it: &tidegate::ListStatus| it.members > LISTED / 2 && it.error.is_none();
        ensure!(lists.iter().all(is_read), "a list was not read: {lists:?}");
        ensure!(asking.fill(&limiter), "{}: not all pass", self.name);
        Ok(limiter)
    }
}

pub(crate) fn run(plan: Plan) -> anyhow::Result<Vec<Row>> {
    measure::pin(0);
    let mut all = Vec::new();
    for projects in ASKING {
        let rows = of(projects, plan)?;
        tell(plan, &rows);
        all.extend(rows);
    }
    Ok(all)
}

fn of(projects: usize, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let mut asking = RequestSequence::new(projects);
    let limiters = CANDIDATES.map(|it| it.limiter(&asking));
    let mut samples = CANDIDATES.map(|_| Vec::new());
    for _ in 0..plan.reps {
        // Round-robin, so that other load affects all alike.
        for (limiter, samples) in limiters.iter().zip(&mut samples) {
            let limiter = limiter
                .as_ref()
                .map_err(|error| anyhow::anyhow!("{error}"))?;
            let mut refused = false;
            samples.push(measure::ns_each(plan.span, || {
                let passed = asking.some(limiter);
                refused |= passed != 256;
                passed
            }));
            ensure!(!refused, "not every request passed");
        }
    }
    let first = samples.first().context("there are candidates")?.clone();
    let rows = CANDIDATES.iter().zip(samples).map(|(candidate, samples)| {
        let added = samples.iter().zip(&first).map(|(ns, first)| ns - first);
        Row {
            projects,
            name: candidate.name,
            ns: Summary::of(samples.iter().copied()),
            added_ns: Summary::of(added),
            samples,
        }
    });
    Ok(rows.collect())
}

fn tell(plan: Plan, rows: &[Row]) {
    println!(
        "\na decision; {PROJECTS} projects, of which {} ask; {LISTED} members a list; {} rounds of {} ms",
        rows.first().map_or(0, |row| row.projects),
        plan.reps,
        plan.span.as_millis()
    );
    println!(
        "  {:10} {:>8} {:>6} {:>10} {:>16}",
        "", "ns", "±", "added ns", "least .. most"
    );
    for row in rows {
        let added = row.added_ns;
        println!(
            "  {:10} {:>8.0} {:>5.0}% {:>10.0} {:>16}",
            row.name,
            row.ns.median,
            row.ns.spread(),
            added.median,
            format!("{:.0} .. {:.0}", added.least, added.most)
        );
    }
    if let Some(both) = rows.last().filter(|row| row.projects == PROJECTS) {
        let is_met = both.added_ns.median <= BAR_NS;
        let word = if is_met { "met" } else { "missed" };
        println!("  bar: both add at most {BAR_NS:.0} ns: {word}");
    }
}
