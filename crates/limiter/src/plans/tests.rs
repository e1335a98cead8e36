use crate::{Limiter, Request};
use tidegate_config::Config;

fn text(rate: &str) -> String {
    format!(
        "
plans: [{{ name: shop, inline: {{ subjects: {{ ann: {rate} }} }} }}]
policies:
  - name: api
    limits:
      - {{ name: per-user, key: user, rate: {{ plan: shop, subject: user, default: refuse }} }}
"
    )
}

#[test]
fn plans_in_the_configuration_take_effect_with_it() {
    let limiter = Limiter::from_yaml(&text("100/h")).unwrap();
    let remaining = |user| {
        let decision = limiter.check_now(&Request::new().user(user)).unwrap();
        decision.binding().map(|band| band.remaining())
    };
    // Nothing is loaded first.
    assert_eq!(remaining("ann"), Some(99));
    limiter
        .reload(Config::from_yaml(&text("10/h")).unwrap())
        .unwrap();
    assert_eq!(remaining("ann"), Some(8));
    let state = &limiter.plans()[0];
    assert_eq!((state.kind, state.subjects), ("inline", 1));
    assert!(
        !limiter
            .check_now(&Request::new().user("bob"))
            .unwrap()
            .is_allowed()
    );
}
