//! Requests that reach nobody, where they cost nothing.

use super::kit::{Link, OK, Page, Place, Stand, Wild, config};
use crate::kit::Client;
use crate::kit::message::Messages;
use tidegate_server::tasks::Tasks;

const REFUNDED: &str = ", refund: unreached, eject: off";

fn refunds(page: &Page) -> u64 {
    page.sum("tidegate_gateway_refunds_total", &[])
}

/// One request an hour may pass, and none of these has.
#[tokio::test]
async fn requests_that_reach_nobody_cost_nothing() {
    let place = Place::reserve();
    let stand = Stand::start(&config(&[place.address], REFUNDED)).await;
    for nth in 0..5 {
        assert_eq!(stand.get("/").await.status(), 502, "{nth}");
    }
    assert_eq!(refunds(&stand.page().await), 5);
    let _upstream = Wild::at(&place, |mut link: Link| async move {
        link.request().await?;
        link.say(OK).await
    });
    assert_eq!(stand.get("/").await.status(), 200);
    assert_eq!(stand.get("/").await.status(), 429);
}

#[tokio::test]
async fn without_being_told_so_the_gateway_gives_nothing_back() {
    let place = Place::reserve();
    let stand = Stand::start(&config(&[place.address], ", eject: off")).await;
    assert_eq!(stand.get("/").await.status(), 502);
    assert_eq!(stand.get("/").await.status(), 429);
    assert_eq!(refunds(&stand.page().await), 0);
}

#[tokio::test]
async fn a_request_that_an_upstream_has_seen_has_its_cost() {
    let upstream = Wild::start(|mut link: Link| async move {
        link.request().await?;
        Ok(())
    })
    .await;
    let stand = Stand::start(&config(&[upstream.address], REFUNDED)).await;
    assert_eq!(stand.get("/").await.status(), 502);
    assert_eq!(stand.get("/").await.status(), 429);
    assert_eq!(refunds(&stand.page().await), 0);
}

/// The upstream reads a request on a connection that was kept, and goes for good. That nobody could be
/// reached with the second try does not undo the first.
#[tokio::test]
async fn a_request_that_was_seen_before_the_upstream_went_has_its_cost() {
    let place = Place::reserve();
    let listener = place.listen();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut link = Link {
            messages: Messages::new(stream),
            nth: 0,
        };
        link.request().await.unwrap();
        link.say(OK).await.unwrap();
        link.request().await.unwrap();
    });
    let config = config(&[place.address], REFUNDED).replace("1/h", "1/h burst 2");
    let stand = Stand::start(&config).await;
    let mut client = Client::connect(stand.address).await;
    assert_eq!(client.get("/", &[]).await.status(), 200);
    assert_eq!(client.get("/", &[]).await.status(), 502);
    let page = stand.page().await;
    assert_eq!(page.outcomes("refused_connection"), 1, "it was tried again");
    assert_eq!(refunds(&page), 0);
    assert_eq!(client.get("/", &[]).await.status(), 429);
}
