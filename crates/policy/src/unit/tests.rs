use super::*;

fn units(names: &[&str]) -> Vec<Unit> {
    names
        .iter()
        .map(|name| Unit::parse(name).unwrap())
        .collect()
}

#[test]
fn names_of_units_are_short_and_in_lower_case() {
    for name in [
        "tokens",
        "microusd",
        "content-bytes",
        "gpu_s",
        "m2",
        &"x".repeat(32),
    ] {
        assert_eq!(
            Unit::parse(name).map(|unit| unit.as_str().to_owned()),
            Ok(name.to_owned())
        );
    }
    for name in [
        "",
        "Tokens",
        "2m",
        "-a",
        "a b",
        "a.b",
        "a\"",
        "é",
        &"x".repeat(33),
    ] {
        assert!(Unit::parse(name).is_err(), "{name}");
    }
}

#[test]
fn each_form_has_its_amounts() {
    let [requests, tokens] = [Unit::default(), Unit::parse("tokens").unwrap()];
    let of = |cost: Cost<'_>, only: bool| [cost.of(&requests, true), cost.of(&tokens, only)];
    assert_eq!(of(Cost::default(), true), [Some(1), None]);
    assert_eq!(of(Cost::from(7), false), [Some(7), None]);
    assert_eq!(of(Cost::from(0), true), [Some(0), Some(0)]);
    assert_eq!(of((&[("tokens", 7)]).into(), true), [Some(1), Some(7)]);
    assert_eq!(
        of((&[("tokens", 0), ("requests", 0)]).into(), true),
        [None, None]
    );
    assert_eq!(of((&[("requests", 3)]).into(), true), [Some(3), None]);
}

#[test]
fn unknown_and_repeated_units_are_mistakes() {
    let known = units(&["requests", "tokens"]);
    let fault = |cost: Cost<'_>| cost.check(&known).map_err(|fault| fault.to_string());
    assert_eq!(fault((&[("tokens", 1), ("requests", 2)]).into()), Ok(()));
    let cost = [("tokenz", 1)];
    let expected = "unknown unit `tokenz`; expected `requests`, `tokens`";
    assert_eq!(fault((&cost).into()), Err(expected.to_owned()));
    assert_eq!(fault(Cost::from(&cost).found()), Ok(()));
    let expected = "a cost names the unit `tokens` twice";
    assert_eq!(
        fault((&[("tokens", 1), ("tokens", 2)]).into()),
        Err(expected.to_owned())
    );
    let names: Vec<String> = (0..1_000).map(|nth| format!("u{nth}")).collect();
    let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    assert_eq!(
        fault(many[..].into()),
        Err("a cost has at most 16 units".to_owned())
    );
}

#[test]
fn a_cost_is_stated_unless_it_is_one_request() {
    for (cost, is_stated) in [
        (Cost::default(), false),
        (Cost::from(1), false),
        (Cost::from(2), true),
        ((&[("requests", 1)]).into(), false),
        ((&[("requests", 2)]).into(), true),
        ((&[("tokens", 1)]).into(), true),
        ((&[("tokens", 0)]).into(), false),
    ] {
        assert_eq!(cost.is_stated(), is_stated, "{cost:?}");
    }
}

#[test]
fn a_text_is_a_number_or_units() {
    let expected = CostMap::from_iter([("tokens", 1), ("bytes", u64::MAX)]);
    let text = format!("tokens=1, bytes = {}", u64::MAX);
    assert_eq!(CostMap::parse(&text), Ok(expected));
    let many: Vec<String> = (0..17).map(|nth| format!("u{nth}=1")).collect();
    for wrong in [
        "",
        "-1",
        "1.5",
        "tokens",
        "tokens=",
        "=1",
        "tokens=-1",
        "tokens=1,",
        "tokens=1,tokens=2",
        "tokens=18446744073709551616",
        "Tokens=1",
        &many.join(","),
    ] {
        assert!(CostMap::parse(wrong).is_err(), "{wrong}");
    }
}
