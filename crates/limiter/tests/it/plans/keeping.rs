use super::{EVENTS, config, document, limiter, passes};
use crate::surroundings::Folder;
use std::time::Duration;
use tidegate::plan::PlanSource;
use tidegate::{FilePlans, Limiter, LoadPlans, LoadedPlans, ManualClock, MemoryStore};
use tokio::time::{Instant, sleep};

/// A source with scripted answers that records when it was called.
#[derive(Default)]
struct ScriptedSource {
    answers: parking_lot::Mutex<Vec<Answer>>,
    asked: parking_lot::Mutex<Vec<(Instant, Option<String>)>>,
}

#[derive(Clone)]
enum Answer {
    Plans(&'static str),
    Unchanged,
    Fails,
    Never,
}

impl LoadPlans for &ScriptedSource {
    async fn load(
        &self,
        _: &PlanSource,
        tag: Option<&str>,
        _: bool,
    ) -> Result<LoadedPlans, String> {
        self.asked
            .lock()
            .push((Instant::now(), tag.map(str::to_owned)));
        let answer = {
            let mut answers = self.answers.lock();
            if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers[0].clone()
            }
        };
        match answer {
            Answer::Plans(text) => Ok(LoadedPlans::Changed {
                document: document(text),
                tag: Some("v1".to_owned()),
            }),
            Answer::Unchanged => Ok(LoadedPlans::Unchanged),
            Answer::Fails => Err("it is away".to_owned()),
            Answer::Never => std::future::pending().await,
        }
    }
}

fn scripted(answers: &[Answer]) -> ScriptedSource {
    ScriptedSource {
        answers: parking_lot::Mutex::new(answers.to_vec()),
        ..ScriptedSource::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_is_polled_at_its_interval_with_the_known_version() {
    let (limiter, _) = limiter(EVENTS, "");
    let told = scripted(&[Answer::Plans("subjects: { p: 4/h }"), Answer::Unchanged]);
    tokio::select! {
        () = limiter.keep_plans(&told) => panic!("there is a limiter"),
        () = sleep(Duration::from_secs(95)) => {}
    }
    let asked = told.asked.lock();
    let tags: Vec<Option<&str>> = asked.iter().map(|(_, tag)| tag.as_deref()).collect();
    assert_eq!(tags, [None, Some("v1"), Some("v1"), Some("v1")]);
    assert_eq!(passes(&limiter, "p", 9), 4);
    assert_eq!(limiter.plans()[0].loads, 4);
}

/// Returns a configuration whose plans are not in a file.
fn elsewhere() -> String {
    EVENTS.replace("file: plans.yaml", "http: 'http://plans.internal'")
}

#[tokio::test(start_paused = true)]
async fn a_failing_source_is_retried_with_backoff_and_keeps_its_plans() {
    let (limiter, _) = limiter(&elsewhere(), "");
    let told = scripted(&[
        Answer::Plans("subjects: { p: 4/h }"),
        Answer::Never,
        Answer::Fails,
    ]);
    tokio::select! {
        () = limiter.keep_plans(&told) => panic!("there is a limiter"),
        () = sleep(Duration::from_secs(600)) => {}
    }
    let asked = told.asked.lock();
    let gaps: Vec<Duration> = asked.windows(2).map(|it| it[1].0 - it[0].0).collect();
    let seconds = Duration::from_secs;
    assert_eq!(gaps[0].as_secs(), 30, "{gaps:?}");
    // It did not answer for five seconds, and was called again within one.
    assert!(gaps[1] >= seconds(5) && gaps[1] <= seconds(6), "{gaps:?}");
    assert!(gaps[2] >= seconds(1) && gaps[2] <= seconds(2), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= seconds(31)), "{gaps:?}");
    assert!(gaps.len() < 40, "{gaps:?}");
    let state = &limiter.plans()[0];
    assert_eq!(state.subjects, 1);
    assert!(
        state.failing_for.is_some_and(|time| time > seconds(500)),
        "{state:?}"
    );
    assert_eq!(state.error.as_deref(), Some("it is away"));
    assert_eq!(passes(&limiter, "p", 9), 4);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_document_was_taken_for_an_outage() {
    let (limiter, _) = limiter(&elsewhere(), "");
    let told = scripted(&[
        Answer::Plans("subjects: { p: 4/h }"),
        Answer::Plans("subjects: { p: { plan: gone } }"),
    ]);
    tokio::select! {
        () = limiter.keep_plans(&told) => panic!("there is a limiter"),
        () = sleep(Duration::from_secs(300)) => {}
    }
    let asked = told.asked.lock();
    let gaps: Vec<u64> = asked
        .windows(2)
        .map(|it| (it[1].0 - it[0].0).as_secs())
        .collect();
    assert!(gaps.iter().all(|gap| *gap == 30), "{gaps:?}");
    let error = limiter.plans()[0].error.clone().unwrap_or_default();
    assert!(error.contains("unknown plan `gone`"), "{error}");
    assert_eq!(passes(&limiter, "p", 9), 4, "the last good one stays");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_corrected_waited_for_the_backoff_of_an_outage() {
    let folder = Folder::new("plans-corrected");
    let file = folder.write("plans.yaml", "subjects: { p: 4/h }");
    let text = EVENTS.replace("plans.yaml", &file.display().to_string());
    let (limiter, _) = limiter(&text, "");
    let state = || limiter.plans().remove(0);
    let steps = async {
        sleep(Duration::from_secs(1)).await;
        for (wrong, why) in [
            (Some("subjects: { p: { plan: prp } }"), "unknown plan `prp`"),
            (Some("subjects: ["), "not valid YAML"),
            (None, "cannot read"),
        ] {
            match wrong {
                Some(wrong) => folder.write("plans.yaml", wrong),
                None => {
                    std::fs::remove_file(&file).unwrap();
                    file.clone()
                }
            };
            sleep(Duration::from_secs(240)).await;
            let error = state().error.unwrap_or_default();
            assert!(
                error.contains(why) && error.contains("plans.yaml"),
                "{error}"
            );
            assert_eq!(state().subjects, 1);
            folder.write("plans.yaml", "subjects: { p: 4/h, q: 4/h }");
            sleep(Duration::from_secs(3)).await;
            assert_eq!((state().error, state().subjects), (None, 2), "{why}");
            folder.write("plans.yaml", "subjects: { p: 4/h }");
            sleep(Duration::from_secs(60)).await;
        }
    };
    tokio::select! {
        () = limiter.keep_plans(FilePlans) => panic!("there is a limiter"),
        () = steps => {}
    }
}

#[tokio::test(start_paused = true)]
async fn plan_maintenance_follows_a_reload_and_ends_with_the_limiter() {
    let (limiter, _) = limiter(
        "policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]",
        "",
    );
    let told: &'static ScriptedSource =
        Box::leak(Box::new(scripted(&[Answer::Plans("subjects: { p: 4/h }")])));
    let mut keeping = tokio::task::JoinSet::new();
    keeping.spawn(limiter.keep_plans(told));
    sleep(Duration::from_secs(100)).await;
    assert!(told.asked.lock().is_empty(), "there is no source");
    limiter.reload(config(EVENTS)).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(passes(&limiter, "p", 9), 4);
    drop(limiter);
    let ended = keeping.join_next().await.expect("it was begun");
    ended.expect("it comes to an end");
}

#[tokio::test]
async fn a_file_is_read_and_one_that_is_wrong_changes_nothing() {
    let folder = Folder::new("plans-file");
    let file = folder.write(
        "plans.json",
        r#"{"subjects": {"p": {"amount": 4, "period": 3600}}}"#,
    );
    let text = EVENTS.replace("plans.yaml", &file.display().to_string());
    let (limiter, _) = limiter(&text, "");
    assert_eq!(limiter.load_plans(&FilePlans).await, []);
    assert_eq!(passes(&limiter, "p", 3), 3);
    folder.write("plans.json", r#"{"subjects": {"p": {"amount": "#);
    let wrong = limiter.load_plans(&FilePlans).await;
    assert_eq!(wrong[0].0, "events");
    assert!(wrong[0].1.to_string().contains("plans.json"), "{wrong:?}");
    assert_eq!(passes(&limiter, "p", 9), 1);
    folder.write(
        "plans.json",
        r#"{"subjects": {"p": {"amount": 6, "period": 3600}}}"#,
    );
    assert_eq!(limiter.load_plans(&FilePlans).await, []);
    assert_eq!(passes(&limiter, "p", 9), 2);
}

/// A source that returns older plans after a caller has set newer ones.
struct StaleSource(Limiter<MemoryStore<ManualClock>>);

impl LoadPlans for StaleSource {
    async fn load(
        &self,
        _: &PlanSource,
        tag: Option<&str>,
        _: bool,
    ) -> Result<LoadedPlans, String> {
        assert_eq!(tag, None, "plans set by a caller have no tag");
        let newer = document("subjects: { p: 4/h }");
        let told = self.0.replace_plans("events", newer);
        told.map_err(|error| error.to_string())?;
        Ok(LoadedPlans::Changed {
            document: document("subjects: { p: 2/h }"),
            tag: Some("v1".to_owned()),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn plans_read_before_a_newer_write_were_served_after_it() {
    let (limiter, _) = limiter(EVENTS, "");
    tokio::select! {
        () = limiter.keep_plans(StaleSource(limiter.clone())) => panic!("there is a limiter"),
        () = sleep(Duration::from_secs(45)) => {}
    }
    assert_eq!(passes(&limiter, "p", 9), 4);
}

/// A source like a document store: its version shows if it has changed, and a document that was removed is an
/// error.
struct Shelf(parking_lot::Mutex<(&'static str, &'static str)>);

impl LoadPlans for &Shelf {
    async fn load(
        &self,
        _: &PlanSource,
        tag: Option<&str>,
        _: bool,
    ) -> Result<LoadedPlans, String> {
        let (version, text) = *self.0.lock();
        match tag {
            Some(tag) if tag == version => Ok(LoadedPlans::Unchanged),
            Some(_) if version == "0" => Err("it is gone".to_owned()),
            _ => Ok(LoadedPlans::Changed {
                document: document(text),
                tag: Some(version.to_owned()),
            }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn plans_of_a_lost_document_store_were_wiped_by_the_next_reload() {
    let (limiter, _) = limiter(EVENTS, "");
    let shelf = Shelf(parking_lot::Mutex::new(("7", "subjects: { p: 4/h }")));
    let steps = async {
        sleep(Duration::from_secs(1)).await;
        *shelf.0.lock() = ("0", "subjects: {}");
        sleep(Duration::from_secs(60)).await;
        limiter.reload(config(EVENTS)).unwrap();
        sleep(Duration::from_secs(60)).await;
    };
    tokio::select! {
        () = limiter.keep_plans(&shelf) => panic!("there is a limiter"),
        () = steps => {}
    }
    assert_eq!(limiter.plans()[0].error.as_deref(), Some("it is gone"));
    assert_eq!(passes(&limiter, "p", 9), 4);
}

#[tokio::test(start_paused = true)]
async fn an_older_write_activated_last_was_served_forever() {
    let (limiter, _) = limiter(EVENTS, "");
    let shelf = Shelf(parking_lot::Mutex::new(("6", "subjects: { p: 4/h }")));
    let steps = async {
        sleep(Duration::from_secs(1)).await;
        // A caller wrote this version earlier, and activates it only now.
        let table = document("subjects: { p: 2/h }").table(tidegate::plan::UnsetShare::Unlimited);
        let table = std::sync::Arc::new(table.unwrap());
        limiter
            .use_plans("events", table, Some("5".to_owned()))
            .unwrap();
        assert_eq!(limiter.plans_tag("events").as_deref(), Some("5"));
        sleep(Duration::from_secs(60)).await;
    };
    tokio::select! {
        () = limiter.keep_plans(&shelf) => panic!("there is a limiter"),
        () = steps => {}
    }
    assert_eq!(passes(&limiter, "p", 9), 4);
}
