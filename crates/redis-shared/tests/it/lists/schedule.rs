//! Instances that count, close, die and are replaced, in any order: acknowledged counts are counted
//! exactly once.

use super::kit::{ROOMY, TestRedis, run};
use crate::world;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::time::Duration;
use tidegate_redis_shared::{Census, CensusLimits, ClosingToken, CountBatch, PeriodClose};

const INSTANCES: usize = 3;

/// The next step of an instance.
#[derive(Clone, Debug)]
enum Act {
    /// Adds this count to each of this many names; if true, sends the batch twice.
    Add(u64, usize, bool),
    /// Tries to close the period, with this lease.
    Close(Duration),
    /// Reads the closed map, and finishes.
    Finish,
    /// Dies with all pending counts; a new instance starts.
    Die,
}

fn act() -> impl Strategy<Value = Act> {
    let leases = prop_oneof![Just(Duration::ZERO), Just(Duration::from_secs(600))];
    prop_oneof![
        4 => (1_u64..50, 1_usize..40, any::<bool>()).prop_map(|(n, names, twice)| Act::Add(n, names, twice)),
        3 => leases.prop_map(Act::Close),
        3 => Just(Act::Finish),
        1 => Just(Act::Die),
    ]
}

struct Instance {
    census: Census,
    /// The closing that it holds, as far as it knows.
    token: Option<ClosingToken>,
}

struct Schedule<'a> {
    ground: &'a TestRedis,
    limits: CensusLimits,
    /// With periods of no length, every map is due immediately.
    instances: Vec<Instance>,
    acknowledged: u64,
    finished: u64,
}

impl<'a> Schedule<'a> {
    fn new(ground: &'a TestRedis) -> Self {
        // So few that some counts go to `other`.
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
                if let PeriodClose::Mine { token } = closing {
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
        // Periods without counts end as well, and need no finish.
        prop_assert!(figures.closed >= self.finished);
        prop_assert!(self.ground.int(&["HLEN", &names.period]) <= 26);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_batches_count_once_on_a_server(
        acts in prop::collection::vec((0..INSTANCES, act()), 1..40)
    ) {
        follow(&TestRedis::standalone(), &acts)?;
    }

    #[test]
    fn acknowledged_batches_count_once_on_a_cluster(
        acts in prop::collection::vec((0..INSTANCES, act()), 1..40)
    ) {
        follow(&TestRedis::cluster(), &acts)?;
    }
}

fn follow(ground: &TestRedis, acts: &[(usize, Act)]) -> Result<(), TestCaseError> {
    let mut schedule = Schedule::new(ground);
    for (who, act) in acts {
        schedule.act(*who, act);
        schedule.check()?;
    }
    Ok(())
}

everywhere! {
    concurrent_counting_closing_and_crashing_instances_lose_nothing
}

/// The same with concurrent instances: each counts and closes as fast as possible, and every third
/// closing is abandoned.
fn concurrent_counting_closing_and_crashing_instances_lose_nothing(ground: &TestRedis) {
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
                let PeriodClose::Mine { token } = closing else {
                    continue;
                };
                if (round + who) % 3 == 0 {
                    census = Census::new(connection.clone(), &names, ROOMY);
                    continue;
                }
                // Taken over during the scan: another instance may have finished it.
                if let Ok(sum) = census.scan_closing(|_, _| {}).await {
                    census.finish(&token, sum).await.unwrap();
                }
            }
            acknowledged
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let acknowledged: u64 = tasks.into_iter().map(|task| run(task).unwrap()).sum();
    // On a busy machine each may have been overtaken every time, so a last instance finishes.
    let mut last = ground.census(ROOMY);
    let finished = (0..100_000).any(|_| {
        let token = match run(last.close(Duration::ZERO, lease)).unwrap() {
            PeriodClose::Mine { token } => token,
            PeriodClose::Busy => return false,
            PeriodClose::NotDue { .. } => return true,
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
