//! Documents of plans: the merge of their levels, and errors in them.

use proptest::prelude::*;
use tidegate_config::plans_in_format;
use tidegate_policy::plan::{
    PlanDocument, PlanFormat, PlanRate, PlanShare, PlanTable, RateName, SubjectEntry, UnsetShare,
};

/// Returns the share of a subject as text.
fn has(document: PlanDocument, unset: UnsetShare, subject: &str) -> String {
    let table = document
        .table(unset)
        .unwrap_or_else(|errors| panic!("{errors}"));
    describe(&table, table.get(subject))
}

fn describe(table: &PlanTable, found: Option<SubjectEntry<'_>>) -> String {
    let Some(found) = found else {
        return "unknown".to_owned();
    };
    let requests = RateName::default();
    let found = found.share(&requests).unwrap();
    let given = match found.share {
        PlanShare::Rate(number) => {
            let number = usize::try_from(number).unwrap();
            table.rates(&requests).get(number).unwrap().to_string()
        }
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
    tidegate_config::plans_from_text(text, false).unwrap_or_else(|errors| panic!("{errors}"))
}

fn wrong(text: &str) -> String {
    wrong_in(text, PlanFormat::Tidegate)
}

fn wrong_tokens(text: &str) -> String {
    wrong_in(text, PlanFormat::Tokens)
}

fn wrong_in(text: &str, format: PlanFormat) -> String {
    match plans_in_format(text, format, false) {
        Err(errors) => errors.to_string(),
        Ok(document) => match document.table(UnsetShare::Unlimited) {
            Err(errors) => errors.to_string(),
            Ok(table) => panic!("nothing is wrong: {table:?}"),
        },
    }
}

#[test]
fn the_more_specific_wins_field_by_field() {
    let text = "
plans: { basic: { amount: 100, period: 60 }, big: { amount: 9000, period: 3600 } }
groups:
  acme: { plan: basic, amount: 500 }
  lost: { amount: 7, period: 10 }
  bare: { plan: basic }
subjects:
  inherits: { group: acme }
  slower: { group: acme, period: 1h }
  own-plan: { group: acme, plan: big }
  own-plan-and-more: { group: acme, plan: big, amount: 5 }
  of-lost: { group: lost }
  of-lost-more: { group: lost, amount: 8 }
  zero: { group: bare, amount: 0, period: -1 }
  half: { amount: 3 }
  free: { group: bare, unlimited: true }
  nowhere: { group: no-such-group, amount: 1, period: 1 }
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
            has(read(text), UnsetShare::Unlimited, subject),
            expected,
            "{subject}"
        );
    }
    let table = read(text).table(UnsetShare::Unlimited).unwrap();
    assert_eq!(table.notes().groups_missing, 1);
    assert_eq!(table.notes().unset, 1);
}

#[test]
fn a_full_rate_above_an_unlimited_plan_limits_and_a_partial_one_not() {
    let text = "
plans: { free: unlimited }
groups: { g: { plan: free } }
subjects: { all: { group: g }, half: { group: g, amount: 5 }, whole: { group: g, rate: 5/s }, back: { group: h, unlimited: true } }
";
    let of = |subject| has(read(text), UnsetShare::Refuse, subject);
    assert_eq!(of("all"), "unlimited");
    assert_eq!(of("half"), "unlimited");
    assert_eq!(of("whole"), "5/s");
    assert_eq!(of("back"), "unlimited");
}

#[test]
fn values_unset_on_all_levels_come_from_the_source_defaults() {
    let rate = PlanRate::parse("2/s").unwrap();
    for (unset, expected) in [
        (UnsetShare::Unlimited, "unset: unlimited"),
        (UnsetShare::Refuse, "unset: nothing"),
        (UnsetShare::Rate(rate), "unset: 2/s"),
    ] {
        assert_eq!(has(read("subjects: { a: {} }"), unset, "a"), expected);
        assert_eq!(
            has(
                read("subjects: { a: { amount: 0, period: 60 } }"),
                unset,
                "a"
            ),
            expected
        );
    }
}

#[test]
fn a_rate_equal_to_the_source_default_counts_as_set() {
    let rate = PlanRate::parse("2/s").unwrap();
    let text = "subjects: { a: { rate: 2/s }, b: }";
    assert_eq!(has(read(text), UnsetShare::Rate(rate), "a"), "2/s");
    assert_eq!(has(read(text), UnsetShare::Rate(rate), "b"), "unset: 2/s");
}

#[test]
fn numbers_are_read_in_any_width_and_notation() {
    for text in [
        r#"{"subjects": {"a": {"amount": 100, "period": 60}}}"#,
        r#"{"subjects": {"a": {"amount": 100.0, "period": 6e1}}}"#,
        r#"{"subjects": {"a": {"amount": "100", "period": "60"}}}"#,
        "subjects: { a: { amount: 100, period: 1min } }",
        "subjects: { a: { rate: 100 per minute } }",
        "subjects: { a: 100/min }",
        "subjects: { a: { amount: 100, period: 60s } }",
    ] {
        assert_eq!(
            has(read(text), UnsetShare::Refuse, "a"),
            "100/min",
            "{text}"
        );
    }
    let large = r#"{"subjects": {"a": {"amount": 9007199254740993, "period": 1}}}"#;
    assert_eq!(
        has(read(large), UnsetShare::Refuse, "a"),
        "9007199254740993/s"
    );
}

#[test]
fn documents_of_other_systems_need_their_format() {
    let collector = "
plans: { basic: { rateLimitSettings: { N: 1e2, T: 60 } } }
workspaces: { acme: { plan: basic } }
projects: { a: { workspaceId: acme }, b: { workspace: acme, rateLimitSettings: { T: 1h } } }
";
    let tokens = r#"{"tokens": {"a": {"limit": 100, "window_seconds": 60}, "b": "100/h"}}"#;
    for (text, format) in [
        (collector, PlanFormat::Collector),
        (tokens, PlanFormat::Tokens),
    ] {
        let read = || plans_in_format(text, format, false).unwrap();
        assert_eq!(has(read(), UnsetShare::Refuse, "a"), "100/min");
        assert_eq!(has(read(), UnsetShare::Refuse, "b"), "100/h");
        // Another format does not have these names.
        for (_, other) in PlanFormat::ALL.into_iter().filter(|it| it.1 != format) {
            let read = plans_in_format(text, other, false).unwrap();
            read.table(UnsetShare::Refuse).unwrap_err();
        }
    }
    for (text, help) in [
        (
            "workspaces: { a: 1/s }",
            "use `groups`, or `format: collector`",
        ),
        ("tokens: { a: 1/s }", "use `subjects`, or `format: tokens`"),
        (
            "subjects: { a: { N: 1 } }",
            "use `amount`, or `format: collector`",
        ),
        (
            "subjects: { a: { window_seconds: 1 } }",
            "use `period`, or `format: tokens`",
        ),
    ] {
        assert!(wrong(text).contains(help), "{}", wrong(text));
    }
}

#[test]
fn all_errors_are_reported_at_once_with_their_entry_names() {
    let said = wrong(
        "{ plans: { p: { amount: many } }, groups: { g: { period: 1.5, quota: { M: 1 } } }, subjects: { s: { amount: 1, rate: 1/s }, t: { unlimited: true, amount: 1 }, u: [1] } }",
    );
    for words in [
        "plan `p`: `amount`: `many` is not an amount",
        "group `g`: `period`: `1.5` is not a period",
        "group `g`: unknown field `quota.M`",
        "subject `s`: `rate`: `rate` duplicates another field",
        "subject `t`: it is unlimited, but also has a rate",
        "subject `u`: it is a list",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(wrong("subjects: { s: { peroid: 1 } }").contains("did you mean `period`?"));
    assert!(wrong("subject: {}").contains("did you mean `subjects`?"));
    assert!(wrong("[1]").contains("it is a list"));
    assert!(wrong("").contains("it is empty"));
    assert!(wrong(r#"{"subjects": {"a": 5, "a": 6}}"#).contains("it is a duplicate"));
    let twice = "subjects: { a: 5/s }\nprojects: { a: 5/s }";
    assert!(wrong_in(twice, PlanFormat::Collector).contains("it is a duplicate"));
}

#[test]
fn a_misspelt_plan_lifted_the_limit_of_its_subject() {
    let yaml = "
plans: { free: 100/min, pro: 1000/min }
groups:
  acme: { plan: pro }
  lost:
    amount: 7
    plan: prp
subjects:
  p1: { plan: fre, amount: 5, period: 60 }
  p2: { group: acme, plan: enterprise }
";
    let json = r#"{
  "plans": { "free": "100/min", "pro": "1000/min" },
  "groups": {
    "acme": { "plan": "pro" },
    "lost": {
      "amount": 7,
      "plan": "prp" }
  }, "subjects": {
    "p1": { "plan": "fre", "amount": 5, "period": 60 },
    "p2": { "group": "acme", "plan": "enterprise" }
  }
}"#;
    for (text, lines) in [(yaml, [7, 9, 10]), (json, [7, 9, 10])] {
        let said = wrong(text);
        for (line, words) in lines.iter().zip([
            "group `lost`: unknown plan `prp`; did you mean `pro`?",
            "subject `p1`: unknown plan `fre`; did you mean `free`?",
            "subject `p2`: unknown plan `enterprise`; expected `free`, `pro`",
        ]) {
            let words = format!("line {line}: {words}");
            assert!(said.contains(&words), "{words}\n{said}");
        }
    }
    let said = wrong("subjects: { p: { plan: pro } }");
    assert_eq!(
        said,
        "line 1: subject `p`: unknown plan `pro`; there are no plans"
    );
    let said = wrong_tokens("tokens: { hunter2: { plan: pro } }");
    assert_eq!(
        said,
        "line 1: subject number 1: unknown plan `pro`; there are no plans"
    );
}

#[test]
fn a_plan_that_was_turned_off_lifted_the_limits_of_its_subjects() {
    let text = "plans: { pro: { rate: 5/s, enabled: false } }\nsubjects: { p: { plan: pro } }";
    let said = wrong(text);
    assert_eq!(said, "line 2: subject `p`: plan `pro` has `enabled: false`");
    // A disabled entry needs no plan.
    let text = text.replace("{ plan: pro }", "{ plan: pro, enabled: false }");
    assert_eq!(has(read(&text), UnsetShare::Refuse, "p"), "unknown");
}

#[test]
fn a_subject_of_an_unknown_group_keeps_its_own_settings() {
    let text =
        "plans: { pro: 5/s }\nsubjects: { p: { group: gone, plan: pro }, q: { group: gone } }";
    assert_eq!(has(read(text), UnsetShare::Refuse, "p"), "5/s");
    assert_eq!(has(read(text), UnsetShare::Refuse, "q"), "unset: nothing");
}

#[test]
fn json_errors_had_no_line() {
    let text = "{\n\"plans\": {\n\"a\": {\n\"amount\": \"many\" },\n\"b\\u0062\": { \"amount\": -1.5e, \"period\": 1 } } }";
    assert!(
        wrong(text).contains("line 5"),
        "it is no JSON: {}",
        wrong(text)
    );
    let text = text.replace("-1.5e", "\"x\"");
    assert_eq!(
        wrong(&text),
        "line 4: plan `a`: `amount`: `many` is not an amount; expected a whole number, for example `100`; \
         line 5: plan `bb`: `amount`: `x` is not an amount; expected a whole number, for example `100`"
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
        for said in [wrong_tokens(text), wrong(text)] {
            assert!(!said.contains("hunter2"), "{said}");
            assert!(!said.is_empty());
        }
    }
    let hidden =
        tidegate_config::plans_from_text("subjects: { hunter2: { amount: x } }", true).unwrap();
    let shown = format!("{hidden:?}");
    let said = shown + &hidden.table(UnsetShare::Unlimited).unwrap_err().to_string();
    assert!(!said.contains("hunter2"), "{said}");
    let table = plans_in_format("tokens: { hunter2: 5/s }", PlanFormat::Tokens, false)
        .unwrap()
        .table(UnsetShare::Unlimited)
        .unwrap();
    assert!(
        !format!("{table:?} {}", table.owner_of_rate(&RateName::default(), 0)).contains("hunter2")
    );
}

#[test]
fn groups_have_their_own_quotas_and_those_of_their_plans() {
    let text = "
plans: { pro: { amount: 10, period: 1, quota: { amount: 1000, period: 1d } } }
groups: { a: { plan: pro }, b: { plan: pro, quota: { amount: 5000 } }, c: { quota: unlimited }, d: { plan: pro, quota: 3/h } }
subjects: { a1: { group: a }, b1: { group: b }, c1: { group: c }, d1: { group: d }, e1: { group: e }, f1: 1/s }
";
    let table = read(text).table(UnsetShare::Unlimited).unwrap();
    let quota = |subject| describe(&table, table.group_of(subject));
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
            &[("amount", &plan.to_string()), ("period", "60")],
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
    let table = document.table(UnsetShare::Unlimited).unwrap();
    assert_eq!((table.subjects(), table.groups()), (100_000, 1_000));
    assert_eq!(table.rates_count(), 5);
    for subject in (0..100_000_u32).step_by(997) {
        let expected = format!("{}/min", subject % 5 + 1);
        assert_eq!(
            describe(&table, table.get(&format!("{subject:024x}"))),
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
                let n = n.map(|n| ("amount", n.to_string()));
                n.into_iter()
                    .chain(t.map(|t| ("period", t.to_string())))
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
            let rate = PlanRate::parse(&format!("{n}/{t}s"));
            rate.unwrap().to_string()
        }
        _ if unlimited => "unlimited".to_owned(),
        _ => "unset: nothing".to_owned(),
    }
}

proptest! {
    #[test]
    fn levels_are_combined_as_in_the_naive_model(
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
        prop_assert_eq!(has(document, UnsetShare::Refuse, "s"), model(&levels));
    }
}

#[test]
fn subjects_with_similar_ids_are_never_confused() {
    let id = |nth: usize| format!("{}{nth}", "x".repeat(nth % 40));
    let mut document = PlanDocument::default();
    for nth in 1..=20_000_usize {
        document.subject(&id(nth), &[("amount", &nth.to_string()), ("period", "60")]);
    }
    let table = document.table(UnsetShare::Refuse).unwrap();
    assert_eq!(table.subjects(), 20_000);
    for nth in 1..=20_000_usize {
        assert_eq!(describe(&table, table.get(&id(nth))), format!("{nth}/min"));
        assert!(table.get(&format!("{}y", id(nth))).is_none());
    }
    assert!(table.get("").is_none());
}

#[test]
fn too_many_distinct_rates_are_rejected_with_the_first_name() {
    let of = |count: u32| {
        let mut document = PlanDocument::default();
        for nth in 1..=count {
            let amount = nth.to_string();
            document.subject(&format!("s{nth}"), &[("amount", &amount), ("period", "60")]);
            document.subject(
                &format!("same{nth}"),
                &[("amount", &amount), ("period", "60")],
            );
        }
        document.table(UnsetShare::Unlimited)
    };
    assert_eq!(of(65_536).unwrap().rates_count(), 65_536);
    let wrong = of(65_540).unwrap_err();
    assert_eq!(wrong.count(), 1);
    let wrong = wrong.to_string();
    assert!(
        wrong.starts_with("subject `s65537`: more than 65536 different rates"),
        "{wrong}"
    );
    assert!(wrong.contains("let subjects share plans"), "{wrong}");
}
