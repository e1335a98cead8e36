//! Characters that literal keys may have.

use tidegate_config::{Config, NoEnvironment};
use tidegate_policy::literal::literal_characters;

/// Returns the characters of each of these limits, in the order of their names.
fn of(limits: &str) -> Vec<String> {
    let text = format!(
        "
store: {{ url: 'redis://127.0.0.1', redis: {{ layout: open, key_names: literal }} }}
policies: [{{ name: api, limits: [{limits}] }}]"
    );
    let config = Config::parse(&text, "x", &NoEnvironment);
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    literal_characters(&config.policies).into_values().collect()
}

#[test]
fn a_single_literal_value_may_contain_all_but_braces_and_escapes() {
    let template = "template: 'fluxgate:{policy}:{limit}:{key}:{band}'";
    let found = of(&format!(
        "{{ name: a, key: api-key, rate: 1/s, {template} }}, {{ name: b, key: api-key, {template},
         bands: [{{ rate: 1/s, label: s }}, {{ rate: 9/h, label: h }}] }}"
    ));
    for characters in found {
        assert_eq!(characters.len(), 94 - 3);
        assert!(!characters.contains(['%', '{', '}']));
    }
}

#[test]
fn literal_values_of_one_key_exclude_its_separators() {
    let [characters] =
        &of("{ name: a, key: [api-key, user], rate: 1/s, template: 'x:{api-key}/{user}' }")[..]
    else {
        panic!("one limit");
    };
    assert!(!characters.contains([':', ',', '/', '%', '{', '}']));
    assert!(characters.contains('=') && characters.contains('+'));
}

#[test]
fn limits_with_ambiguous_keys_have_no_literal_values() {
    for limits in [
        // Key `b:c` of the first limit, and key `c` of the second.
        "{ name: a, key: api-key, rate: 1/s, template: 'x:{key}' },
         { name: b, key: ip, rate: 1/s, template: 'x:b:{key}' }",
        "{ name: a, key: api-key, rate: 1/s, template: 'x:{key}' },
         { name: b, key: user, rate: 1/s, template: 'x:{key}:b' }",
    ] {
        assert_eq!(of(limits), ["", ""], "{limits}");
    }
    let apart = "{ name: a, key: api-key, rate: 1/s, template: 'x:{key}:a' },
         { name: b, key: api-key, rate: 1/s, template: 'x:{key}:b' }";
    assert!(of(apart).iter().all(|characters| characters.contains(':')));
}
