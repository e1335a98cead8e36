//! Subscribing to a channel, on a separate connection: a subscribed connection can do little else.

use super::Connection;
use super::dial::RedisStream;
use super::introduce::ServerLogin;
use super::shared::ConnectionInner;
use crate::address::Address;
use crate::error::{ConnectError, ConnectErrorKind};
use redis::Value;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// The time without a message after which the connection is checked with a ping.
const IDLE: Duration = Duration::from_secs(15);

/// The time limit for the reply to that ping.
const ANSWER: Duration = Duration::from_secs(5);

/// The beginning of a message on the channel, after the number of its parts.
const MESSAGE: &[u8] = b"$7\r\nmessage\r\n";

/// As much as is read at once.
const PIECE: usize = 4 << 10;

/// The longest reply to the commands at the start.
const WELCOME_MAX: usize = 16 << 10;

/// A channel that is listened to.
pub struct Subscription {
    stream: RedisStream,
    /// Bytes that may be the beginning of a message.
    tail: Vec<u8>,
    /// The time at which something was last received, even if only the reply to a ping.
    last: Instant,
    /// The time of a ping that has had no reply yet.
    asked: Option<Instant>,
}

/// The connection was lost. Messages sent since then are lost too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLost;

impl Connection {
    /// Subscribes to `channel` from now on, at a master, on a connection that is opened for it. In a
    /// Cluster every master receives all messages, so the first one that can be reached will do.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut listening = connection.listen(b"policies:changed").await?;
    /// while listening.wait_for_messages().await.is_ok() {
    ///     println!("a message has arrived");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listen(&self, channel: &[u8]) -> Result<Subscription, ConnectError> {
        let shared = self.shared();
        let message = "no Redis is known yet";
        let mut last = ConnectError::new(ConnectErrorKind::NotReady, message);
        // A master that is unreachable does not keep us from subscribing to another.
        for address in self.masters() {
            let begun = begin(shared, &address, channel);
            let begun = timeout(shared.settings.connect_timeout, begun).await;
            match begun.unwrap_or_else(|_| Err(shared.too_slow(&address))) {
                Ok(listening) => return Ok(listening),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Connects to a master, logs in, and subscribes to the channel.
async fn begin(
    shared: &ConnectionInner,
    address: &Address,
    channel: &[u8],
) -> Result<Subscription, ConnectError> {
    let mut stream = shared.dialer.stream(address).await?;
    let login = ServerLogin::node(&shared.settings);
    let mut pipe = redis::pipe();
    let has_auth = login.add_auth(&mut pipe);
    pipe.cmd("SUBSCRIBE").arg(channel);
    let lost = |error: &dyn fmt::Display| {
        let message = format!("Redis at {address} closed the connection: {error}");
        ConnectError::new(ConnectErrorKind::Unreachable, message)
    };
    let sent = stream.write_all(&pipe.get_packed_pipeline()).await;
    sent.map_err(|error| lost(&error))?;
    let mut answers = Vec::new();
    let mut heard = Vec::new();
    while answers.len() < pipe.len() {
        let mut piece = [0; PIECE];
        let length = stream
            .read(&mut piece)
            .await
            .map_err(|error| lost(&error))?;
        if length == 0 || heard.len() > WELCOME_MAX {
            return Err(lost(&"its response was incomplete"));
        }
        heard.extend_from_slice(piece.get(..length).unwrap_or_default());
        answers = whole(&heard);
    }
    let mut answers = answers.into_iter();
    if has_auth
        && let Some(Value::ServerError(error)) = answers.next()
        && let Some(error) = login.unwelcome(&error, address)
    {
        return Err(error);
    }
    if let Some(Value::ServerError(error)) = answers.next() {
        let message = format!("Redis at {address} rejected the subscription: {error}");
        return Err(ConnectError::new(ConnectErrorKind::Refused, message));
    }
    Ok(Subscription {
        stream,
        tail: Vec::new(),
        last: Instant::now(),
        asked: None,
    })
}

/// The answers that have arrived to their end.
fn whole(heard: &[u8]) -> Vec<Value> {
    let mut answers = Vec::new();
    let mut parser = redis::Parser::new();
    let mut rest = heard;
    while let Ok(answer) = parser.parse_value(&mut rest) {
        answers.push(answer);
    }
    answers
}

impl Subscription {
    /// Waits until one or more messages have arrived on the channel.
    ///
    /// It may be dropped and called again: no message that arrives meanwhile is lost.
    pub async fn wait_for_messages(&mut self) -> Result<(), ListenerLost> {
        loop {
            if self.take_message() {
                return Ok(());
            }
            // Counts from the last message or ping, not from now: a caller may call more often than that,
            // and would start each time to wait for a reply that never comes.
            let by = self.asked.map_or(self.last + IDLE, |asked| asked + ANSWER);
            match timeout_at(by, self.read()).await {
                Ok(read) => read?,
                Err(_) if self.asked.is_some() => return Err(ListenerLost),
                Err(_) => self.ask().await?,
            }
        }
    }

    /// Reads bytes into the tail. Keeps no more of them than the beginning of a message takes.
    async fn read(&mut self) -> Result<(), ListenerLost> {
        let mut piece = [0; PIECE];
        let length = self
            .stream
            .read(&mut piece)
            .await
            .map_err(|_| ListenerLost)?;
        if length == 0 {
            return Err(ListenerLost);
        }
        self.tail
            .extend_from_slice(piece.get(..length).unwrap_or_default());
        self.last = Instant::now();
        self.asked = None;
        Ok(())
    }

    /// Sends a ping.
    async fn ask(&mut self) -> Result<(), ListenerLost> {
        let ping = redis::cmd("PING").get_packed_command();
        // Set before the write: a caller that is interrupted here has sent the ping, or cannot send it.
        self.asked = Some(Instant::now());
        let sent = timeout(ANSWER, self.stream.write_all(&ping)).await;
        sent.map_err(|_| ListenerLost)?.map_err(|_| ListenerLost)
    }

    /// Returns true if a message has arrived. Its content does not matter, nor how many there are.
    fn take_message(&mut self) -> bool {
        let has_message = self.tail.windows(MESSAGE.len()).any(|it| it == MESSAGE);
        let kept = if has_message { 0 } else { MESSAGE.len() };
        let gone = self.tail.len().saturating_sub(kept);
        self.tail.drain(..gone);
        has_message
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl fmt::Display for ListenerLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis closed the connection")
    }
}

impl std::error::Error for ListenerLost {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time between frequent checks.
    const OFTEN: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn short_waits_never_detected_a_dead_subscription() {
        let (ours, mut theirs) = tokio::io::duplex(PIECE);
        let mut listening = Subscription {
            stream: Box::new(ours),
            tail: Vec::new(),
            last: Instant::now() - IDLE,
            asked: None,
        };
        for _ in 0..3 {
            let heard = timeout(OFTEN, listening.wait_for_messages()).await;
            assert!(heard.is_err(), "time remains for the reply: {heard:?}");
        }
        let mut received = vec![0; PIECE];
        let length = theirs.read(&mut received).await.expect("a check is sent");
        let ping = redis::cmd("PING").get_packed_command();
        assert_eq!(&received[..length], ping, "once");
        // As if the check had been sent that long ago.
        listening.asked = listening.asked.map(|asked| asked - ANSWER);
        assert_eq!(listening.wait_for_messages().await, Err(ListenerLost));
    }

    #[tokio::test]
    async fn a_reply_that_is_already_there_is_read() {
        let (ours, mut theirs) = tokio::io::duplex(PIECE);
        let mut listening = Subscription {
            stream: Box::new(ours),
            tail: Vec::new(),
            last: Instant::now() - IDLE,
            asked: Some(Instant::now() - ANSWER),
        };
        theirs.write_all(b"+PONG\r\n").await.expect("it is open");
        let heard = timeout(OFTEN, listening.wait_for_messages()).await;
        assert!(
            heard.is_err(),
            "the connection stays, without messages: {heard:?}"
        );
        assert_eq!(listening.asked, None);
    }
}
