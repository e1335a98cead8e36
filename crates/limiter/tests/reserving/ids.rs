use crate::{MINUTE, ManualLimiter, config, policy, reserve};
use proptest::prelude::*;
use tidegate::{Limiter, Request, SettleError, SettleState};

const TOKENS: &str = "{ name: tokens, key: user, rate: 100/h }";

fn with_secret(secret: &str) -> Limiter {
    let text = format!(
        "store: {{ url: memory, key_secret: {secret} }}\n{}",
        policy(TOKENS)
    );
    Limiter::from_yaml(&text).unwrap_or_else(|error| panic!("{error}"))
}

async fn is_unknown(limiter: &Limiter, id: &str) -> bool {
    matches!(limiter.commit(id, 1).await, Err(SettleError::Unknown))
}

#[tokio::test]
async fn forged_ids_are_unknown() {
    let limiter = Limiter::builder().config(config(TOKENS)).build().unwrap();
    let id = reserve(&limiter, &Request::new().user("ann").cost(50)).await;
    for made_up in [
        "",
        "r1",
        "r1AAAA",
        "x",
        "r2",
        "réservation",
        &id[2..],
        &id[..id.len() - 1],
    ] {
        assert!(is_unknown(&limiter, made_up).await, "{made_up}");
    }
    assert!(is_unknown(&limiter, &id.replacen("r1", "r2", 1)).await);
    assert!(is_unknown(&limiter, &format!(" {id}")).await);
    assert!(is_unknown(&limiter, &"r1A".repeat(100_000)).await);
    // The reservation itself is still valid.
    assert!(limiter.commit(&id, 1).await.is_ok());
}

proptest! {
    #[test]
    fn an_id_with_any_flipped_bit_is_unknown(at in any::<prop::sample::Index>(), bit in 0..7_u8) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let limiter = Limiter::builder().config(config(TOKENS)).build().unwrap();
            let id = reserve(&limiter, &Request::new().user("ann")).await;
            let mut bytes = id.clone().into_bytes();
            bytes[at.index(id.len())] ^= 1 << bit;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(is_unknown(&limiter, &changed).await);
        });
    }
}

#[tokio::test]
async fn an_instance_with_another_secret_rejects_the_id() {
    let (one, other) = (with_secret("one"), with_secret("other"));
    let id = reserve(&one, &Request::new().user("ann")).await;
    assert!(is_unknown(&other, &id).await);
    assert!(is_unknown(&Limiter::from_yaml(&policy(TOKENS)).unwrap(), &id).await);
    // In-memory buckets belong to one process: another with the same secret recognizes the id, but has
    // nothing to refund.
    let again = with_secret("one");
    assert_eq!(
        again.commit(&id, 0).await.unwrap().state(),
        SettleState::Settled
    );
    let ann = Request::new().user("ann");
    assert_eq!(crate::remaining(&again, &ann).await, 100);
    assert_eq!(crate::remaining(&one, &ann).await, 99);
}

#[tokio::test]
async fn an_id_does_not_reveal_its_client() {
    let here = ManualLimiter::new(TOKENS);
    let request = Request::new().user("ann-of-green-gables").cost(50);
    let reserved = here.limiter.reserve(&request, MINUTE).await.unwrap();
    let id = reserved.id().unwrap();
    assert!(id.is_ascii() && !id.contains("ann") && !id.contains("tokens") && !id.contains("llm"));
    let other = here.limiter.reserve(&request, MINUTE).await.unwrap();
    let same = id
        .bytes()
        .zip(other.id().unwrap().bytes())
        .filter(|(a, b)| a == b);
    assert!(same.count() < id.len() / 8, "alike by chance alone");
    let shown = format!("{reserved:?} {:?}", here.limiter);
    assert!(!shown.contains(id), "{shown}");
    assert!(id.len() < 300, "{}", id.len());
}
