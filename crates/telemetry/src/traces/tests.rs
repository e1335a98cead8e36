//! Recording never waits, and is bounded.

use super::*;
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::traces::{Sample, Traces};

fn spans(sample: Sample) -> (Arc<Tracer>, TraceMetrics) {
    let traces = Traces {
        // Nothing listens there.
        url: "http://127.0.0.1:1/v1/traces".to_owned(),
        headers: Vec::new(),
        sample,
        service: Traces::SERVICE.to_owned(),
        timeout: Duration::from_secs(1),
    };
    let metrics = TraceMetrics::default();
    let spans = Tracer::new(&traces, metrics.clone()).expect("a valid URL");
    (spans, metrics)
}

#[tokio::test]
async fn spans_beyond_the_bound_are_dropped_and_counted() {
    let (spans, metrics) = spans(Sample::ALL);
    let headers = HeaderMap::new();
    for _ in 0..2_050 {
        drop(spans.begin(&headers, || true));
    }
    assert_eq!(metrics.counted(), [0, 0, 0, 2]);
    // Nothing accepts the queued requests: each is tried once, and given up.
    spans.finish().await;
    assert_eq!(metrics.counted(), [0, 0, 2_048, 2]);
}

#[tokio::test]
async fn the_configured_share_of_requests_is_recorded() {
    let (spans, _) = spans(Sample::millionths(100_000));
    let headers = HeaderMap::new();
    let all = (0..10_000).map(|_| spans.begin(&headers, || true));
    let recorded = all.filter(|trace| trace.header(&trace.leg()).is_some());
    let count = recorded.count();
    assert!((700..1_300).contains(&count), "{count} of 10,000");
}

#[tokio::test]
async fn the_sampled_flag_of_any_caller_was_obeyed() {
    let (spans, _) = spans(Sample::millionths(100_000));
    for flag in ["00", "01"] {
        let mut headers = HeaderMap::new();
        let parent = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}");
        headers.insert(TRACEPARENT, parent.parse().unwrap());
        let count = |is_trusted: bool| {
            let all = (0..10_000).map(|_| spans.begin(&headers, || is_trusted));
            let told = all.filter_map(|trace| trace.header(&trace.leg()));
            // The trace is the one named by the caller, trusted or not.
            let of_it = |told: &HeaderValue| told.to_str().unwrap().contains("-0af7651916cd43dd8");
            told.inspect(|told| assert!(of_it(told), "{told:?}"))
                .count()
        };
        let strangers = count(false);
        assert!((700..1_300).contains(&strangers), "{flag}: {strangers}");
        assert_eq!(count(true), if flag == "01" { 10_000 } else { 0 });
    }
}

#[tokio::test]
async fn an_unrecorded_request_sends_no_span() {
    let (spans, metrics) = spans(Sample::ALL);
    let mut headers = HeaderMap::new();
    let unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    headers.insert(TRACEPARENT, HeaderValue::from_static(unsampled));
    let trace = spans.begin(&headers, || true);
    trace.name(|| panic!("nobody reads it"));
    trace.note::<0>(|| panic!("nor this"));
    assert_eq!(trace.header(&trace.leg()), None);
    drop(trace);
    spans.finish().await;
    assert_eq!(metrics.counted(), [0, 0, 0, 0]);
}
