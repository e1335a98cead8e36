use super::document::PlanDocument;
use super::{PlanRate, PlanShare, Unset};
use proptest::prelude::*;

/// Returns the share of a subject as text.
fn has(document: PlanDocument, unset: Unset, subject: &str) -> String {
    let table = document
        .table(unset)
        .unwrap_or_else(|errors| panic!("{errors}"));
    told(&table, table.get(subject))
}

fn told(table: &super::PlanTable, found: Option<super::SubjectEntry<'_>>) -> String {
    let Some(found) = found else {
        return "unknown".to_owned();
    };
    let given = match found.given {
        PlanShare::Rate(number) => table.rates()[usize::try_from(number).unwrap()].to_string(),
        PlanShare::Unlimited => "unlimited".to_owned(),
        PlanShare::Nothing => "nothing".to_owned(),
    };
    if found.is_unset {
        format!("unset: {given}")
    } else {
        given
    }
}

fn read(text: &str) -> PlanDocument {
    PlanDocument::read(text, false).unwrap_or_else(|errors| panic!("{errors}"))
}

fn wrong(text: &str) -> String {
    match PlanDocument::read(text, false) {
        Err(errors) => errors.to_string(),
        Ok(document) => match document.table(Unset::Unlimited) {
            Err(errors) => errors.to_string(),
            Ok(table) => panic!("nothing is wrong: {table:?}"),
        },
    }
}

#[test]
fn the_more_specific_wins_field_by_field() {
    let text = "
plans: { basic: { N: 100, T: 60 }, big: { N: 9000, T: 3600 } }
workspaces:
  acme: { plan: basic, N: 500 }
  lost: { N: 7, T: 10 }
  bare: { plan: basic }
projects:
  inherits: { workspaceId: acme }
  slower: { workspace: acme, T: 1h }
  own-plan: { workspace: acme, plan: big }
  own-plan-and-more: { group: acme, plan: big, N: 5 }
  of-lost: { group: lost }
  of-lost-more: { group: lost, N: 8 }
  zero: { group: bare, N: 0, T: -1 }
  half: { N: 3 }
  free: { group: bare, unlimited: true }
  nowhere: { group: no-such-group, N: 1, T: 1 }
";
    for (subject, expected) in [
        ("inherits", "500/min"),
        ("slower", "500/h"),
        ("own-plan", "9000/h"),
        ("own-plan-and-more", "5/h"),
        ("of-lost", "7/10s"),
        ("of-lost-more", "8/10s"),
        ("zero", "100/min"),
        ("half", "unset: unlimited"),
        ("free", "unlimited"),
        ("nowhere", "1/s"),
        ("stranger", "unknown"),
    ] {
        assert_eq!(
            has(read(text), Unset::Unlimited, subject),
            expected,
            "{subject}"
        );
    }
    let table = read(text).table(Unset::Unlimited).unwrap();
    assert_eq!(table.notes().groups_missing, 1);
    assert_eq!(table.notes().unset, 1);
}

#[test]
fn a_whole_rate_above_an_unlimited_plan_limits_and_half_a_rate_does_not() {
    let text = "
plans: { free: unlimited }
groups: { g: { plan: free } }
subjects: { all: { group: g }, half: { group: g, N: 5 }, whole: { group: g, rate: 5/s }, back: { group: h, unlimited: true } }
";
    let of = |subject| has(read(text), Unset::Refuse, subject);
    assert_eq!(of("all"), "unlimited");
    assert_eq!(of("half"), "unlimited");
    assert_eq!(of("whole"), "5/s");
    assert_eq!(of("back"), "unlimited");
}

#[test]
fn what_is_unset_everywhere_is_what_the_source_says() {
    let rate = PlanRate {
        amount: 2,
        period_us: 1_000_000,
        burst: None,
        block_us: None,
    };
    for (unset, expected) in [
        (Unset::Unlimited, "unset: unlimited"),
        (Unset::Refuse, "unset: nothing"),
        (Unset::Rate(rate), "unset: 2/s"),
    ] {
        assert_eq!(has(read("subjects: { a: {} }"), unset, "a"), expected);
        assert_eq!(
            has(read("subjects: { a: { N: 0, T: 60 } }"), unset, "a"),
            expected
        );
    }
}

#[test]
fn a_rate_that_is_also_what_the_source_says_for_the_unset_is_not_unset() {
    let rate = PlanRate {
        amount: 2,
        period_us: 1_000_000,
        burst: None,
        block_us: None,
    };
    let text = "subjects: { a: { rate: 2/s }, b: }";
    assert_eq!(has(read(text), Unset::Rate(rate), "a"), "2/s");
    assert_eq!(has(read(text), Unset::Rate(rate), "b"), "unset: 2/s");
}

#[test]
fn numbers_are_read_at_any_width_and_in_any_spelling() {
    for text in [
        r#"{"subjects": {"a": {"N": 100, "T": 60}}}"#,
        r#"{"subjects": {"a": {"N": 100.0, "T": 6e1}}}"#,
        r#"{"subjects": {"a": {"N": "100", "T": "60"}}}"#,
        r#"{"tokens": {"a": {"limit": 100, "window_seconds": 60}}}"#,
        r#"{"projects": {"a": {"rateLimitSettings": {"N": 1e2, "T": 60}}}}"#,
        "subjects: { a: { amount: 100, period: 1min } }",
        "subjects: { a: { rate: 100 per minute } }",
        "subjects: { a: 100/min }",
        "subjects: { a: { N: 100, T: 60s } }",
    ] {
        assert_eq!(has(read(text), Unset::Refuse, "a"), "100/min", "{text}");
    }
    let large = r#"{"subjects": {"a": {"N": 9007199254740993, "T": 1}}}"#;
    assert_eq!(has(read(large), Unset::Refuse, "a"), "9007199254740993/s");
}

#[test]
fn everything_that_is_wrong_is_told_at_once_by_the_name_of_its_entry() {
    let said = wrong(
        "{ plans: { p: { N: many } }, groups: { g: { T: 1.5, quota: { M: 1 } } }, subjects: { s: { N: 1, rate: 1/s }, t: { unlimited: true, N: 1 }, u: [1] } }",
    );
    for words in [
        "plan `p`: `N`: `many` is not an amount",
        "group `g`: `T`: `1.5` is not a period",
        "group `g`: unknown field `quota.M`",
        "subject `s`: `rate`: `rate` says what another field says already",
        "subject `t`: it is unlimited, and says how much as well",
        "subject `u`: it is a list",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(wrong("subjects: { s: { peroid: 1 } }").contains("did you mean `period`?"));
    assert!(wrong("subject: {}").contains("did you mean `subjects`?"));
    assert!(wrong("[1]").contains("it is a list"));
    assert!(wrong("").contains("it says nothing"));
    assert!(wrong(r#"{"subjects": {"a": 5, "a": 6}}"#).contains("it is there twice"));
    assert!(wrong("subjects: { a: 5/s }\nprojects: { a: 5/s }").contains("it is there twice"));
}

#[test]
fn a_misspelt_plan_lifted_the_limit_of_its_subject() {
    let yaml = "
plans: { free: 100/min, pro: 1000/min }
groups:
  acme: { plan: pro }
  lost:
    N: 7
    plan: prp
subjects:
  p1: { plan: fre, N: 5, T: 60 }
  p2: { group: acme, plan: enterprise }
";
    let json = r#"{
  "plans": { "free": "100/min", "pro": "1000/min" },
  "groups": {
    "acme": { "plan": "pro" },
    "lost": {
      "N": 7,
      "plan": "prp" }
  }, "subjects": {
    "p1": { "plan": "fre", "N": 5, "T": 60 },
    "p2": { "group": "acme", "plan": "enterprise" }
  }
}"#;
    for (text, lines) in [(yaml, [7, 9, 10]), (json, [7, 9, 10])] {
        let said = wrong(text);
        for (line, words) in lines.iter().zip([
            "group `lost`: there is no plan `prp`; did you mean `pro`?",
            "subject `p1`: there is no plan `fre`; did you mean `free`?",
            "subject `p2`: there is no plan `enterprise`; there are `free`, `pro`",
        ]) {
            let words = format!("line {line}: {words}");
            assert!(said.contains(&words), "{words}\n{said}");
        }
    }
    let said = wrong("subjects: { p: { plan: pro } }");
    assert_eq!(
        said,
        "line 1: subject `p`: there is no plan `pro`, nor any other"
    );
    let said = wrong("tokens: { hunter2: { plan: pro } }");
    assert_eq!(
        said,
        "line 1: subject number 1: there is no plan `pro`, nor any other"
    );
}

#[test]
fn a_plan_that_was_turned_off_lifted_the_limits_of_its_subjects() {
    let text = "plans: { pro: { rate: 5/s, enabled: false } }\nsubjects: { p: { plan: pro } }";
    let said = wrong(text);
    assert_eq!(said, "line 2: subject `p`: plan `pro` has `enabled: false`");
    // A disabled entry needs no plan.
    let text = text.replace("{ plan: pro }", "{ plan: pro, enabled: false }");
    assert_eq!(has(read(&text), Unset::Refuse, "p"), "unknown");
}

#[test]
fn a_subject_of_a_group_that_does_not_exist_has_what_it_says_itself() {
    let text = "plans: { pro: 5/s }\nprojects: { p: { workspaceId: gone, plan: pro }, q: { workspaceId: gone } }";
    assert_eq!(has(read(text), Unset::Refuse, "p"), "5/s");
    assert_eq!(has(read(text), Unset::Refuse, "q"), "unset: nothing");
}

#[test]
fn errors_of_json_told_no_line() {
    let text = "{\n\"plans\": {\n\"a\": {\n\"N\": \"many\" },\n\"b\\u0062\": { \"N\": -1.5e, \"T\": 1 } } }";
    assert!(
        wrong(text).contains("line 5"),
        "it is no JSON: {}",
        wrong(text)
    );
    let text = text.replace("-1.5e", "\"x\"");
    assert_eq!(
        wrong(&text),
        "line 4: plan `a`: `N`: `many` is not an amount; expected a whole number, for example `100`; \
         line 5: plan `bb`: `N`: `x` is not an amount; expected a whole number, for example `100`"
    );
    assert_eq!(
        wrong("{\n\n\"plan\": {}}"),
        "line 3: unknown section `plan`; did you mean `plans`?"
    );
}

#[test]
fn no_message_and_no_debug_output_shows_a_secret() {
    for text in [
        r#"{"tokens": {"hunter2": {"limit": "x"}}}"#,
        r#"{"tokens": {"hunter2": 5, "hunter2": {"limit": 5}}}"#,
        "tokens:\n  hunter2: 5/s\n  hunter2: 6/s\n",
        "tokens:\n  hunter2: { limit: 5, window_seconds: ] }\n",
    ] {
        let said = wrong(text);
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!said.is_empty());
    }
    let hidden = PlanDocument::read("subjects: { hunter2: { N: x } }", true).unwrap();
    let shown = format!("{hidden:?}");
    let said = shown + &hidden.table(Unset::Unlimited).unwrap_err().to_string();
    assert!(!said.contains("hunter2"), "{said}");
    let table = read("tokens: { hunter2: 5/s }")
        .table(Unset::Unlimited)
        .unwrap();
    assert!(!format!("{table:?} {}", table.whose(0)).contains("hunter2"));
}

#[test]
fn groups_have_quotas_of_their_own_and_of_their_plans() {
    let text = "
plans: { pro: { N: 10, T: 1, quota: { N: 1000, T: 1d } } }
groups: { a: { plan: pro }, b: { plan: pro, quota: { N: 5000 } }, c: { quota: unlimited }, d: { plan: pro, quota: 3/h } }
subjects: { a1: { group: a }, b1: { group: b }, c1: { group: c }, d1: { group: d }, e1: { group: e }, f1: 1/s }
";
    let table = read(text).table(Unset::Unlimited).unwrap();
    let quota = |subject| told(&table, table.group_of(subject));
    assert_eq!(quota("a1"), "1000/d");
    assert_eq!(quota("b1"), "5000/d");
    assert_eq!(quota("c1"), "unlimited");
    assert_eq!(quota("d1"), "3/h");
    assert_eq!(quota("e1"), "unset: unlimited");
    assert_eq!(quota("f1"), "unknown");
    assert_eq!(table.group_of("b1").unwrap().group, Some("b"));
    assert_eq!(table.get("e1").unwrap().group, Some("e"));
    assert_eq!(table.get("f1").unwrap().group, None);
}

#[test]
fn a_hundred_thousand_subjects_share_a_few_rates_and_little_room() {
    let mut document = PlanDocument::default();
    for plan in 1..=5_u32 {
        document.plan(
            &format!("plan{plan}"),
            &[("N", &plan.to_string()), ("T", "60")],
        );
    }
    for group in 0..1_000_u32 {
        document.group(
            &format!("g{group}"),
            &[("plan", &format!("plan{}", group % 5 + 1))],
        );
    }
    for subject in 0..100_000_u32 {
        document.subject(
            &format!("{subject:024x}"),
            &[("group", &format!("g{}", subject % 1_000))],
        );
    }
    let table = document.table(Unset::Unlimited).unwrap();
    assert_eq!((table.subjects(), table.groups()), (100_000, 1_000));
    assert_eq!(table.rates().len(), 5);
    for subject in (0..100_000_u32).step_by(997) {
        let expected = format!("{}/min", subject % 5 + 1);
        assert_eq!(
            told(&table, table.get(&format!("{subject:024x}"))),
            expected
        );
    }
    assert!(table.get("0").is_none());
    assert!(table.bytes() < 100_000 * 64, "{}", table.bytes());
}

/// One level of the model: unlimited, or two fields that may be absent.
#[derive(Clone, Copy, Debug)]
enum Level {
    Unlimited,
    Fields(Option<i64>, Option<i64>),
}

fn level() -> impl Strategy<Value = Level> {
    let field = || prop_oneof![Just(None), (-1..4_i64).prop_map(Some)];
    prop_oneof![
        1 => Just(Level::Unlimited),
        4 => (field(), field()).prop_map(|(n, t)| Level::Fields(n, t)),
    ]
}

impl Level {
    fn fields(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Unlimited => vec![("unlimited", "true".to_owned())],
            Self::Fields(n, t) => {
                let n = n.map(|n| ("N", n.to_string()));
                n.into_iter()
                    .chain(t.map(|t| ("T", t.to_string())))
                    .collect()
            }
        }
    }
}

/// Adds an entry with these fields.
type Add<'a> = &'a mut dyn FnMut(&[(&str, &str)]);

/// The naive model: from the most specific level down, the first level that sets a field wins, and levels
/// below an unlimited one are ignored.
fn model(levels: &[Level]) -> String {
    let (mut n, mut t, mut unlimited) = (None, None, false);
    for level in levels {
        match level {
            Level::Unlimited => {
                unlimited = true;
                break;
            }
            Level::Fields(own_n, own_t) => {
                n = n.or(own_n.filter(|n| *n > 0));
                t = t.or(own_t.filter(|t| *t > 0));
            }
        }
    }
    match (n, t) {
        (Some(n), Some(t)) => {
            let (amount, seconds) = (u64::try_from(n).unwrap(), u64::try_from(t).unwrap());
            PlanRate {
                amount,
                period_us: seconds * 1_000_000,
                burst: None,
                block_us: None,
            }
            .to_string()
        }
        _ if unlimited => "unlimited".to_owned(),
        _ => "unset: nothing".to_owned(),
    }
}

proptest! {
    #[test]
    fn levels_come_together_as_the_naive_model_says(
        plan in level(), group in level(), own_plan in level(), own in level(),
        has_plan: bool, has_group: bool, has_own_plan: bool,
    ) {
        let mut document = PlanDocument::default();
        let fields = |level: Level, more: &[(&'static str, &str)]| {
            let mut fields = level.fields();
            fields.extend(more.iter().map(|(name, text)| (*name, (*text).to_owned())));
            fields
        };
        let tell = |list: &[(&'static str, String)], to: Add<'_>| {
            let list: Vec<(&str, &str)> = list.iter().map(|(name, text)| (*name, text.as_str())).collect();
            to(&list);
        };
        tell(&plan.fields(), &mut |it| document.plan("p", it));
        tell(&own_plan.fields(), &mut |it| document.plan("q", it));
        let group_plan = if has_plan { "p" } else { "" };
        tell(&fields(group, &[("plan", group_plan)]), &mut |it| document.group("g", it));
        let mut more = Vec::new();
        more.extend(has_group.then_some(("group", "g")));
        more.extend(has_own_plan.then_some(("plan", "q")));
        tell(&fields(own, &more), &mut |it| document.subject("s", it));

        let mut levels = vec![own];
        levels.extend(has_own_plan.then_some(own_plan));
        levels.extend(has_group.then_some(group));
        levels.extend((has_group && has_plan).then_some(plan));
        prop_assert_eq!(has(document, Unset::Refuse, "s"), model(&levels));
    }
}

#[test]
fn no_subject_is_taken_for_another_however_alike_their_ids_are() {
    let id = |nth: usize| format!("{}{nth}", "x".repeat(nth % 40));
    let mut document = PlanDocument::default();
    for nth in 1..=20_000_usize {
        document.subject(&id(nth), &[("N", &nth.to_string()), ("T", "60")]);
    }
    let table = document.table(Unset::Refuse).unwrap();
    assert_eq!(table.subjects(), 20_000);
    for nth in 1..=20_000_usize {
        assert_eq!(told(&table, table.get(&id(nth))), format!("{nth}/min"));
        assert_eq!(table.get(&format!("{}y", id(nth))), None);
    }
    assert_eq!(table.get(""), None);
}

#[test]
fn more_different_rates_than_can_be_are_refused_once_and_by_the_name_of_the_first() {
    let of = |count: u32| {
        let mut document = PlanDocument::default();
        for nth in 1..=count {
            let amount = nth.to_string();
            document.subject(&format!("s{nth}"), &[("N", &amount), ("T", "60")]);
            document.subject(&format!("same{nth}"), &[("N", &amount), ("T", "60")]);
        }
        document.table(Unset::Unlimited)
    };
    assert_eq!(of(65_536).unwrap().rates().len(), 65_536);
    let wrong = of(65_540).unwrap_err();
    assert_eq!(wrong.count(), 1);
    let wrong = wrong.to_string();
    assert!(
        wrong.starts_with("subject `s65537`: there are 65536 different rates"),
        "{wrong}"
    );
    assert!(wrong.contains("let subjects share plans"), "{wrong}");
}
