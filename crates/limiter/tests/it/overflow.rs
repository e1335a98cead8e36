use crate::failure::{clock, config};
use std::time::Duration;
use tidegate::{Limiter, MemoryStore, Request};

/// The store has room for 1,600 keys at least; all others share 64 overflow buckets of four units each.
const ALLOWED_MAX: usize = 3_000;

#[test]
fn literal_api_keys_each_had_a_separate_overflow_bucket() {
    for key_names in ["hashed", "literal"] {
        let clock = clock();
        let store = MemoryStore::builder().clock(clock).max_keys(100).build();
        let limiter = Limiter::builder()
            .config(config(&format!(
                "
store:
  url: redis://127.0.0.1
  redis:
    layout: open
    template: 'fluxgate:{{policy}}:{{limit}}:{{key}}:{{band}}'
    key_names: {key_names}
policies: [{{ name: p, limits: [{{ name: l, key: api-key, rate: 4/h }}] }}]"
            )))
            .build_with(store)
            .unwrap();
        let allowed = (0..20_000).filter(|nth| {
            let key = format!("secret-{nth}");
            let request = Request::new().api_key(&key);
            limiter.check_now(&request).unwrap().is_allowed()
        });
        let allowed = allowed.count();
        assert!(allowed <= ALLOWED_MAX, "{key_names}: {allowed}");
        let overflowed = limiter.store().overflowed(Duration::from_secs(1));
        assert_eq!(overflowed.unwrap().limit, "p/l/", "{key_names}");
    }
}
