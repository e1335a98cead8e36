use super::fluxgate_rules;
use crate::names::short_hash;
use std::slice;

fn part(rules: &[String]) -> String {
    let text = format!("[{}]", rules.join(", "));
    fluxgate_rules("rules", &text)
        .expect("a valid config")
        .to_part()
}

fn rule(set: &str, id: &str, bands: &str) -> String {
    format!(r#"{{ "ruleSetId": "{set}", "id": "{id}", "scope": "PER_IP", "bands": [{bands}] }}"#)
}

fn band(seconds: u64, capacity: u64, label: &str) -> String {
    let label = match label {
        "" => String::new(),
        label => format!(r#", "label": "{label}""#),
    };
    format!(r#"{{ "windowSeconds": {seconds}, "capacity": {capacity}{label} }}"#)
}

/// Returns true if the item called `name` contains `what`.
fn is_called(part: &str, name: &str, what: &str) -> bool {
    let after = part.split_once(&format!("- name: {name}\n"));
    after.is_some_and(|(_, after)| {
        let own = after.split("\n  - name: ").next();
        own.is_some_and(|own| own.contains(what))
    })
}

#[test]
fn a_new_rule_set_took_the_name_and_counts_of_another() {
    let hour = rule("api-v1", "a", &band(3_600, 100, ""));
    let minute = rule("api v1", "a", &band(60, 2, ""));
    let hashed = format!("api-v1-{}", short_hash("api v1"));
    assert!(is_called(&part(slice::from_ref(&hour)), "api-v1", "100/h"));
    assert!(is_called(&part(slice::from_ref(&minute)), &hashed, "2/min"));
    let both = part(&[minute, hour]);
    assert!(is_called(&both, "api-v1", "100/h"), "{both}");
    assert!(is_called(&both, &hashed, "2/min"), "{both}");
}

#[test]
fn rules_and_labels_also_took_the_names_of_others() {
    let rules = [
        rule("s", "per ip", &band(1, 1, "a b")),
        rule(
            "s",
            "per-ip",
            &[band(60, 2, "a b"), band(30, 3, "a-b")].join(", "),
        ),
    ];
    let translated = part(&rules);
    let id = format!("per-ip-{}", short_hash("per ip"));
    let label = format!("a-b-{}", short_hash("a b"));
    let first = format!("{{ rate: 1/s, label: {label} }}");
    assert!(is_called(&translated, &id, &first), "{translated}");
    let both = format!("{{ rate: 2/min, label: {label} }}, {{ rate: 3/30s, label: a-b }}");
    assert!(is_called(&translated, "per-ip", &both), "{translated}");
}

#[test]
fn ids_in_other_scripts_were_named_by_position() {
    let [seoul, busan] = ["서울", "부산"].map(|set| rule(set, "a", &band(1, 1, "")));
    let name = format!("limit-{}", short_hash("서울"));
    for rules in [vec![seoul.clone()], vec![busan, seoul]] {
        let translated = part(&rules);
        assert!(is_called(&translated, &name, "1/s"), "{translated}");
    }
}

#[test]
fn reordered_bands_of_equal_length_swapped_their_buckets() {
    for label in ["", "both"] {
        let bands = [(60, 5), (60, 3), (60, 4), (10, 2)];
        let mut bands = bands.map(|(seconds, capacity)| band(seconds, capacity, label));
        let labels = match label {
            "" => ["default", "per-60s", "per-60s-2", "per-10s"],
            _ => ["both", "both-per-60s", "both-per-60s-2", "both-per-10s"],
        };
        for _ in 0..bands.len() {
            bands.rotate_left(1);
            let translated = part(&[rule("s", "a", &bands.join(", "))]);
            for (rate, label) in ["3/min", "4/min", "5/min", "2/10s"].into_iter().zip(labels) {
                let said = format!("{{ rate: {rate}, label: {label} }}");
                assert!(translated.contains(&said), "{said}: {translated}");
            }
        }
    }
}
