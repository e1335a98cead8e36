//! A tunnel for WebSocket with a decision on each message of the client.
//!
//! It begins after the handshake. Frames pass unchanged, control frames and extensions included; but a
//! message is held at its first head until the gate has decided, and meanwhile nothing is read from its
//! client, which has to wait. The other direction continues.

use super::super::tunnel::{Ending, Side};
use super::close::Close;
use super::closing::ClosingDirection;
use super::gate::{Gate, MessageAdmission};
use super::lane::{RelayDirection, RelayStop};
use super::relay_end::{RelayEnd, RelayReport};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidegate_policy::route::MessageBounds;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::consume_budget;

/// The time for both sides to reply after the end was decided, and for a frame that had begun to complete.
const PATIENCE: Duration = Duration::from_secs(2);

/// Carries frames between `client` and `upstream`, with a decision of `gate` on each message of the client,
/// until both have finished, one of them is gone or violates the protocol, a message is refused, the client
/// exceeds `bounds`, nothing has moved for `idle` (or up to a fifth longer), or `going_away` is ready.
///
/// The idle time does not count while the gate decides. Dropping the future closes both connections
/// immediately.
pub async fn relay<C, U, G>(
    client: C,
    upstream: U,
    (mut gate, bounds): (G, MessageBounds),
    idle: Duration,
    going_away: impl Future<Output = ()>,
) -> RelayReport
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
    G: Gate,
{
    let mut relay = WebSocketRelay {
        client,
        upstream,
        up: RelayDirection::of_client(&bounds),
        down: RelayDirection::of_upstream(),
        ending: Ending::new(idle),
        messages: 0,
    };
    let why = relay.run(&mut gate, pin!(going_away)).await;
    if let Some((to_client, to_upstream)) = why.close_frames() {
        relay.part(why, &to_client, &to_upstream).await;
    }
    RelayReport {
        to_upstream: relay.up.pipe.written(),
        to_client: relay.down.pipe.written(),
        messages: relay.messages,
        why,
    }
}

#[derive(Debug)]
struct WebSocketRelay<C, U> {
    client: C,
    upstream: U,
    /// From the client to the upstream.
    up: RelayDirection,
    /// From the upstream to the client.
    down: RelayDirection,
    ending: Ending,
    messages: u64,
}

impl<C, U> WebSocketRelay<C, U>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    async fn run<G, F>(&mut self, gate: &mut G, mut going_away: Pin<&mut F>) -> RelayEnd
    where
        G: Gate,
        F: Future<Output = ()>,
    {
        loop {
            let next = poll_fn(|context| self.poll(context, going_away.as_mut()));
            if let Err(why) = next.await {
                return why;
            }
            match self.ask(gate, going_away.as_mut()).await {
                Ok(MessageAdmission::Pass) => self.up.admit(),
                Ok(MessageAdmission::Refuse { retry_after }) => {
                    return RelayEnd::Refused { retry_after };
                }
                Err(why) => return why,
            }
            self.messages = self.messages.saturating_add(1);
            // One read may contain thousands of messages, and other tasks wait, too.
            consume_budget().await;
        }
    }

    /// Returns ready with the next message of the client, or with the end.
    fn poll<F: Future<Output = ()>>(
        &mut self,
        context: &mut Context<'_>,
        going_away: Pin<&mut F>,
    ) -> Poll<Result<(), RelayEnd>> {
        if let Poll::Ready(why) = self.poll_down(context, going_away) {
            return Poll::Ready(Err(why));
        }
        let up = self.up.poll(context, &mut self.client, &mut self.upstream);
        if let Poll::Ready(found) = up {
            let side = Side::Client;
            return Poll::Ready(match found {
                Ok(RelayStop::Message) => Ok(()),
                Ok(RelayStop::Excess(excess)) => Err(excess.into()),
                Err(violation) => Err(RelayEnd::Violated { side, violation }),
            });
        }
        self.poll_ending(context).map(Err)
    }

    /// Requests the decision on a message. Meanwhile admitted messages are sent to the upstream, and the
    /// upstream's data to the client.
    async fn ask<G, F>(
        &mut self,
        gate: &mut G,
        mut going_away: Pin<&mut F>,
    ) -> Result<MessageAdmission, RelayEnd>
    where
        G: Gate,
        F: Future<Output = ()>,
    {
        let mut admit = pin!(gate.admit());
        poll_fn(|context| {
            if let Poll::Ready(admit) = admit.as_mut().poll(context) {
                return Poll::Ready(Ok(admit));
            }
            if let Poll::Ready(why) = self.poll_down(context, going_away.as_mut()) {
                return Poll::Ready(Err(why));
            }
            // Finished or not, nothing needs to be done here.
            let _sent = self.up.pipe.poll_send(context, &mut self.upstream);
            self.ending.excuse();
            self.poll_ending(context).map(Err)
        })
        .await
    }

    /// Returns ready if the relay is to end for a reason other than the client.
    fn poll_down<F: Future<Output = ()>>(
        &mut self,
        context: &mut Context<'_>,
        going_away: Pin<&mut F>,
    ) -> Poll<RelayEnd> {
        if going_away.poll(context).is_ready() {
            return Poll::Ready(RelayEnd::GoingAway);
        }
        let found = self
            .down
            .poll(context, &mut self.upstream, &mut self.client);
        match ready!(found) {
            Err(violation) => Poll::Ready(RelayEnd::Violated {
                side: Side::Upstream,
                violation,
            }),
            // Upstreams may send anything.
            Ok(_) => Poll::Pending,
        }
    }

    fn poll_ending(&mut self, context: &mut Context<'_>) -> Poll<RelayEnd> {
        let ended = self.ending.poll(context, &self.up.pipe, &self.down.pipe);
        ended.map(RelayEnd::from)
    }

    /// Sends Close frames to both sides, waits for their replies, and closes.
    async fn part(&mut self, why: RelayEnd, to_client: &Close, to_upstream: &Close) {
        let Self {
            client,
            upstream,
            ending,
            ..
        } = self;
        let mut up = ClosingDirection::new(
            &mut self.up,
            to_upstream.frame(Side::Upstream),
            why.is_violation_of(Side::Client),
        );
        let mut down = ClosingDirection::new(
            &mut self.down,
            to_client.frame(Side::Client),
            why.is_violation_of(Side::Upstream),
        );
        ending.set_timer(PATIENCE);
        poll_fn(|context| {
            up.poll(context, client, upstream);
            down.poll(context, upstream, client);
            // A side is closed once it has got the Close frame and replied; or at once, if its reply could
            // not be parsed.
            let is_upstream_shut =
                up.is_said() && down.has_heard() && up.poll_shut(context, upstream).is_ready();
            let is_client_shut =
                down.is_said() && up.has_heard() && down.poll_shut(context, client).is_ready();
            if is_upstream_shut && is_client_shut && up.expects_no_data() && down.expects_no_data()
            {
                return Poll::Ready(());
            }
            ending.poll_timer(context)
        })
        .await;
    }
}
