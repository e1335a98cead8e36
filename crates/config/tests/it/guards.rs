//! The lookups that guards add to policies.

use tidegate_config::Config;
use tidegate_policy::Policy;

#[test]
fn every_policy_including_joined_ones_reads_guard_subjects() {
    let guarded = |guards: &str| {
        let text = format!(
            "
guards: [{guards}]
routes: [{{ name: all, upstreams: [http://127.0.0.1:9], policy: [a, b] }}]
policies:
  - {{ name: a, limits: [{{ name: all, rate: 1/s }}] }}
  - {{ name: b, limits: [{{ name: most, rate: 1/s }}] }}
"
        );
        Config::from_yaml(&text).unwrap().policies
    };
    let of =
        |part: &str, list: &str| guarded(&format!("{{ name: g, deny: '{part}', list: [{list}] }}"));
    let none = guarded("{ name: g, deny: 'attr:x', list: [x] }");
    assert!(
        none.iter()
            .all(|it| !it.reads_address() && it.header_names().next().is_none())
    );
    assert!(
        none.iter()
            .all(|it| !it.identity_needs().user && !it.identity_needs().api_key)
    );
    assert!(of("ip", "10.0.0.0/8").iter().all(Policy::reads_address));
    assert!(of("host", "h").iter().all(Policy::reads_host));
    assert!(of("path", "/p").iter().all(Policy::reads_path));
    assert!(of("method", "TRACE").iter().all(Policy::reads_method));
    assert!(of("user", "u").iter().all(|it| it.identity_needs().user));
    assert!(
        of("api-key", "k")
            .iter()
            .all(|it| it.identity_needs().api_key)
    );
    let named = of("header:X-Bot", "b");
    assert_eq!(named.len(), 3);
    assert!(named.iter().all(|it| it.header_names().eq(["x-bot"])));
}
