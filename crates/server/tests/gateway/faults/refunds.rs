//! Requests that reach no upstream are refunded.

use super::kit::{Link, OK, Page, Place, RawUpstream, TestGateway, config};
use crate::kit::Client;
use crate::kit::message::Messages;
use tidegate_net::tasks::Tasks;

const REFUNDED: &str = ", refund: unreached, eject: off";

fn refunds(page: &Page) -> u64 {
    page.sum("tidegate_gateway_refunds_total", &[])
}

/// One request an hour may pass, and none of these reached an upstream.
#[tokio::test]
async fn requests_that_reach_no_upstream_cost_nothing() {
    let place = Place::reserve();
    let stand = TestGateway::start(&config(&[place.address], REFUNDED)).await;
    for nth in 0..5 {
        assert_eq!(stand.get("/").await.status(), 502, "{nth}");
    }
    assert_eq!(refunds(&stand.page().await), 5);
    let _upstream = RawUpstream::at(&place, |mut link: Link| async move {
        link.request().await?;
        link.say(OK).await
    });
    assert_eq!(stand.get("/").await.status(), 200);
    assert_eq!(stand.get("/").await.status(), 429);
}

#[tokio::test]
async fn without_the_setting_the_gateway_refunds_nothing() {
    let place = Place::reserve();
    let stand = TestGateway::start(&config(&[place.address], ", eject: off")).await;
    assert_eq!(stand.get("/").await.status(), 502);
    assert_eq!(stand.get("/").await.status(), 429);
    assert_eq!(refunds(&stand.page().await), 0);
}

#[tokio::test]
async fn a_request_read_by_an_upstream_is_charged() {
    let upstream = RawUpstream::start(|mut link: Link| async move {
        link.request().await?;
        Ok(())
    })
    .await;
    let stand = TestGateway::start(&config(&[upstream.address], REFUNDED)).await;
    assert_eq!(stand.get("/").await.status(), 502);
    assert_eq!(stand.get("/").await.status(), 429);
    assert_eq!(refunds(&stand.page().await), 0);
}

/// The upstream reads a request on an idle connection, and goes down for good. The failed retry
/// does not undo the first attempt.
#[tokio::test]
async fn a_request_read_before_the_upstream_left_is_charged() {
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
    let stand = TestGateway::start(&config).await;
    let mut client = Client::connect(stand.address).await;
    assert_eq!(client.get("/", &[]).await.status(), 200);
    assert_eq!(client.get("/", &[]).await.status(), 502);
    let page = stand.page().await;
    assert_eq!(page.outcomes("refused_connection"), 1, "it was tried again");
    assert_eq!(refunds(&page), 0);
    assert_eq!(client.get("/", &[]).await.status(), 429);
}
