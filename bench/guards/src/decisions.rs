//! A decision with guards and plans, beside one without.

use crate::Plan;
use crate::world::{self, Asking, BLOCKED, Folder, PROJECTS};
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;
use tidegate::Limiter;
use tidegate_bench_measure::{self as measure, Summary};

/// How many each guard lists.
const LISTED: usize = 100_000;

/// What guards and plans together may add where all projects ask, in nanoseconds.
const BAR_NS: f64 = 150.0;

/// What is measured: with guards or without, with a plan or with a rate that is written.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    guards: bool,
    plans: bool,
}

/// All of them; what others are compared with comes first.
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

/// How many of the projects ask: so few that all they meet stays near, and all of them.
const ASKING: [usize; 2] = [500, PROJECTS];

/// What was found for one.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    projects: usize,
    name: &'static str,
    ns: Summary,
    /// Against the first, round by round.
    added_ns: Summary,
    samples: Vec<f64>,
}

impl Candidate {
    /// A limiter like that, which knows every project.
    pub(crate) fn limiter(&self, asking: &Asking) -> anyhow::Result<Limiter> {
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
  - {{ name: projects, refuse: attr:project, file: {} }}
  - {{ name: addresses, refuse: ip, file: {} }}",
                projects.display(),
                addresses.display()
            )?;
        }
        let rate = if self.plans {
            yaml += "\nplans: [{ name: events, from: { file: plans.yaml } }]";
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
    let mut asking = Asking::new(projects);
    let limiters = CANDIDATES.map(|it| it.limiter(&asking));
    let mut samples = CANDIDATES.map(|_| Vec::new());
    for _ in 0..plan.reps {
        // Round-robin, so that whatever else the machine does befalls all alike.
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
