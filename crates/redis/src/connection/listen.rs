//! Listening to a channel, on a connection of its own: whoever listens can do little else.

use super::Connection;
use super::dial::RedisStream;
use super::introduce::ServerLogin;
use super::shared::ConnectionInner;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::Address;
use redis::Value;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// A connection over which nothing came for this long is asked whether it still stands.
const IDLE: Duration = Duration::from_secs(15);

/// How long that answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How a message begins that was said on the channel, after the number of its parts.
const MESSAGE: &[u8] = b"$7\r\nmessage\r\n";

/// As much as is read at once.
const PIECE: usize = 4 << 10;

/// The longest answer to what is said at the beginning.
const WELCOME_MAX: usize = 16 << 10;

/// A channel that is listened to.
pub struct Listening {
    stream: RedisStream,
    /// What may be the beginning of a message.
    tail: Vec<u8>,
    /// When something was last heard, be it only that it still stands.
    last: Instant,
    /// When it was asked whether it still stands, and has not answered since.
    asked: Option<Instant>,
}

/// Nobody is there to listen to any more: whatever was said since is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLost;

impl Connection {
    /// Listens to `channel` from here on: to a master, on a connection that is made for it. In a Cluster
    /// all of them hear what any of them is told, and the first that can be reached will do.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut listening = connection.listen(b"policies:changed").await?;
    /// while listening.heard().await.is_ok() {
    ///     println!("somebody said something");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listen(&self, channel: &[u8]) -> Result<Listening, ConnectError> {
        let shared = self.shared();
        let message = "no Redis is known yet";
        let mut last = ConnectError::new(ConnectErrorKind::NotReady, message);
        // One that is away keeps nobody from listening to another.
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

async fn begin(
    shared: &ConnectionInner,
    address: &Address,
    channel: &[u8],
) -> Result<Listening, ConnectError> {
    let mut stream = shared.dialer.stream(address).await?;
    let login = ServerLogin::node(&shared.settings);
    let mut pipe = redis::pipe();
    let has_auth = login.add_auth(&mut pipe);
    pipe.cmd("SUBSCRIBE").arg(channel);
    let lost = |error: &dyn fmt::Display| {
        let message = format!("Redis at {address} hung up: {error}");
        ConnectError::new(ConnectErrorKind::Unreachable, message)
    };
    let said = stream.write_all(&pipe.get_packed_pipeline()).await;
    said.map_err(|error| lost(&error))?;
    let mut answers = Vec::new();
    let mut heard = Vec::new();
    while answers.len() < pipe.len() {
        let mut piece = [0; PIECE];
        let length = stream
            .read(&mut piece)
            .await
            .map_err(|error| lost(&error))?;
        if length == 0 || heard.len() > WELCOME_MAX {
            return Err(lost(&"it did not answer to the end"));
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
        let message = format!("Redis at {address} does not let us listen: {error}");
        return Err(ConnectError::new(ConnectErrorKind::Refused, message));
    }
    Ok(Listening {
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

impl Listening {
    /// Comes to an end when something was said on the channel, or several things.
    ///
    /// It may be dropped and called again: nothing that was said meanwhile is lost.
    pub async fn heard(&mut self) -> Result<(), ListenerLost> {
        loop {
            if self.take_message() {
                return Ok(());
            }
            // By when it was last heard or asked, not by now: whoever calls may do so more often than
            // that, and would wait anew each time for an answer that never comes.
            let by = self.asked.map_or(self.last + IDLE, |asked| asked + ANSWER);
            match timeout_at(by, self.read()).await {
                Ok(read) => read?,
                Err(_) if self.asked.is_some() => return Err(ListenerLost),
                Err(_) => self.ask().await?,
            }
        }
    }

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

    /// Asks whether it still stands.
    async fn ask(&mut self) -> Result<(), ListenerLost> {
        let ping = redis::cmd("PING").get_packed_command();
        // Before it is written: whoever is interrupted here has asked, or cannot.
        self.asked = Some(Instant::now());
        let said = timeout(ANSWER, self.stream.write_all(&ping)).await;
        said.map_err(|_| ListenerLost)?.map_err(|_| ListenerLost)
    }

    /// Whether a message has arrived. What it says does not matter, nor how many there are.
    fn take_message(&mut self) -> bool {
        let has_message = self.tail.windows(MESSAGE.len()).any(|it| it == MESSAGE);
        let kept = if has_message { 0 } else { MESSAGE.len() };
        let gone = self.tail.len().saturating_sub(kept);
        self.tail.drain(..gone);
        has_message
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

impl fmt::Display for ListenerLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis hung up")
    }
}

impl std::error::Error for ListenerLost {}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long somebody listens who looks often.
    const OFTEN: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn a_dead_channel_was_never_noticed_by_whoever_listened_in_short_turns() {
        let (ours, mut theirs) = tokio::io::duplex(PIECE);
        let mut listening = Listening {
            stream: Box::new(ours),
            tail: Vec::new(),
            last: Instant::now() - IDLE,
            asked: None,
        };
        for _ in 0..3 {
            let heard = timeout(OFTEN, listening.heard()).await;
            assert!(heard.is_err(), "it has time to answer still: {heard:?}");
        }
        let mut said = vec![0; PIECE];
        let length = theirs.read(&mut said).await.expect("it is asked");
        let ping = redis::cmd("PING").get_packed_command();
        assert_eq!(&said[..length], ping, "once");
        // As if that had been as long ago as it may take.
        listening.asked = listening.asked.map(|asked| asked - ANSWER);
        assert_eq!(listening.heard().await, Err(ListenerLost));
    }

    #[tokio::test]
    async fn an_answer_that_was_there_all_the_while_is_heard() {
        let (ours, mut theirs) = tokio::io::duplex(PIECE);
        let mut listening = Listening {
            stream: Box::new(ours),
            tail: Vec::new(),
            last: Instant::now() - IDLE,
            asked: Some(Instant::now() - ANSWER),
        };
        theirs.write_all(b"+PONG\r\n").await.expect("it is open");
        let heard = timeout(OFTEN, listening.heard()).await;
        assert!(heard.is_err(), "it stands, and nothing was said: {heard:?}");
        assert_eq!(listening.asked, None);
    }
}
