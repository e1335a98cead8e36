//! Instances that count, close, die and are followed by others, in any order: what was acknowledged
//! is counted exactly once.

use super::kit::{Ground, ROOMY, run};
use crate::world;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::time::Duration;
use tidegate_redis::{Census, CensusLimits, Closing, ClosingToken, CountBatch};

const INSTANCES: usize = 3;

/// What an instance does next.
#[derive(Clone, Debug)]
enum Act {
    /// Adds so much to each of so many names, and sends the batch again if so.
    Add(u64, usize, bool),
    /// Asks for the end of the period; gives others that long to take over.
    Close(Duration),
    /// Reads the map that it has got, and finishes.
    Finish,
    /// Dies with all it had; another one comes.
    Die,
}

fn act() -> impl Strategy<Value = Act> {
    let leases = prop_oneof![Just(Duration::ZERO), Just(Duration::from_mins(10))];
    prop_oneof![
        4 => (1_u64..50, 1_usize..40, any::<bool>()).prop_map(|(n, names, twice)| Act::Add(n, names, twice)),
        3 => leases.prop_map(Act::Close),
        3 => Just(Act::Finish),
        1 => Just(Act::Die),
    ]
}

struct Instance {
    census: Census,
    /// The closing that it believes to have.
    token: Option<ClosingToken>,
}

struct Schedule<'a> {
    ground: &'a Ground,
    limits: CensusLimits,
    /// A period of no length: every map is to be closed as soon as anybody asks.
    instances: Vec<Instance>,
    acknowledged: u64,
    finished: u64,
}

impl<'a> Schedule<'a> {
    fn new(ground: &'a Ground) -> Self {
        // So few that some of it goes to `other`.
        let limits = CensusLimits {
            period_max: 25,
            ..ROOMY
        };
        let instance = || Instance {
            census: ground.census(limits),
            token: None,
        };
        Self {
            ground,
            limits,
            instances: (0..INSTANCES).map(|_| instance()).collect(),
            acknowledged: 0,
            finished: 0,
        }
    }

    fn act(&mut self, who: usize, act: &Act) {
        let instance = &mut self.instances[who];
        match act {
            Act::Add(n, names, twice) => {
                let counts = (0..*names).map(|i| (format!("name-{i}").into_bytes(), *n));
                let mut batch = CountBatch::new(counts.collect());
                run(instance.census.add(&mut batch)).unwrap();
                if *twice {
                    run(instance.census.add(&mut batch)).unwrap();
                }
                self.acknowledged += batch.sum();
            }
            Act::Close(lease) => {
                let closing = run(instance.census.close(Duration::ZERO, *lease)).unwrap();
                if let Closing::Mine { token } = closing {
                    instance.token = Some(token);
                }
            }
            Act::Finish => {
                if let Some(token) = instance.token.take() {
                    let sum = run(instance.census.scan_closing(|_, _| {})).unwrap();
                    let is_done = run(instance.census.finish(&token, sum)).unwrap();
                    self.finished += u64::from(is_done);
                }
            }
            Act::Die => {
                *instance = Instance {
                    census: self.ground.census(self.limits),
                    token: None,
                };
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let names = self.ground.names();
        let closing = format!("{{{}}}:closing", names.period);
        let figures = run(self.instances[0].census.figures()).unwrap();
        let open = self.ground.sum(&names.period) + self.ground.sum(&closing);
        prop_assert_eq!(figures.counted + open, self.acknowledged);
        prop_assert_eq!(self.ground.sum(&names.total), self.acknowledged);
        // Periods without counts end as well, and nobody finishes those.
        prop_assert!(figures.closed >= self.finished);
        prop_assert!(self.ground.int(&["HLEN", &names.period]) <= 26);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_acknowledged_is_counted_once_on_a_server(
        acts in prop::collection::vec((0..INSTANCES, act()), 1..40)
    ) {
        follow(&Ground::standalone(), &acts)?;
    }

    #[test]
    fn what_is_acknowledged_is_counted_once_on_a_cluster(
        acts in prop::collection::vec((0..INSTANCES, act()), 1..40)
    ) {
        follow(&Ground::cluster(), &acts)?;
    }
}

fn follow(ground: &Ground, acts: &[(usize, Act)]) -> Result<(), TestCaseError> {
    let mut schedule = Schedule::new(ground);
    for (who, act) in acts {
        schedule.act(*who, act);
        schedule.check()?;
    }
    Ok(())
}

everywhere! {
    all_at_once_instances_that_count_close_and_die_lose_nothing
}

/// The same with all instances at once: each counts and closes as fast as it can, and every third
/// closing is abandoned.
fn all_at_once_instances_that_count_close_and_die_lose_nothing(ground: &Ground) {
    let names = ground.names();
    let lease = Duration::from_millis(20);
    let tasks = (0..4_u64).map(|who| {
        let (connection, names) = (ground.another(), names.clone());
        world::runtime().spawn(async move {
            let mut acknowledged = 0;
            let mut census = Census::new(connection.clone(), &names, ROOMY);
            for round in 0..60_u64 {
                let counts = (0..20).map(|i| (format!("{}", i * who).into_bytes(), round + 1));
                let mut batch = CountBatch::new(counts.collect());
                census.add(&mut batch).await.unwrap();
                acknowledged += batch.sum();
                let closing = census.close(Duration::ZERO, lease).await.unwrap();
                let Closing::Mine { token } = closing else {
                    continue;
                };
                if (round + who) % 3 == 0 {
                    census = Census::new(connection.clone(), &names, ROOMY);
                    continue;
                }
                // Taken over while it was read: it may have been finished in between.
                if let Ok(sum) = census.scan_closing(|_, _| {}).await {
                    census.finish(&token, sum).await.unwrap();
                }
            }
            acknowledged
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let acknowledged: u64 = tasks.into_iter().map(|task| run(task).unwrap()).sum();
    // On a busy machine each may have been overtaken every time: somebody finishes when all are gone.
    let mut last = ground.census(ROOMY);
    let finished = (0..100_000).any(|_| {
        let token = match run(last.close(Duration::ZERO, lease)).unwrap() {
            Closing::Mine { token } => token,
            Closing::Busy => return false,
            Closing::NotDue { .. } => return true,
        };
        let sum = run(last.scan_closing(|_, _| {})).unwrap();
        run(last.finish(&token, sum)).unwrap();
        true
    });
    assert!(finished, "a lease of {lease:?} never ended");
    let figures = run(ground.census(ROOMY).figures()).unwrap();
    let closing = format!("{{{}}}:closing", names.period);
    let open = ground.sum(&names.period) + ground.sum(&closing);
    assert_eq!(figures.counted + open, acknowledged);
    assert_eq!(ground.sum(&names.total), acknowledged);
    assert!(figures.closed > 0 && figures.counted > 0, "{figures:?}");
}
