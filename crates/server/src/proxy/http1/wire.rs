//! One HTTP/1 connection to an upstream, driven by whoever uses it.
//!
//! The task of the client's connection writes the request, waits for the answer and reads it: nobody is
//! woken but by the network, nothing goes from task to task, and a request that is dropped ends its
//! connection. A request is only looked at while it is written, so that it is still there should it have
//! to be sent again. Nobody drives an idle connection; that it was closed meanwhile is noticed when it is
//! taken up again.

use super::content::{Content, ContentPiece};
use super::deadline::Deadline;
use super::fault::Http1Fault;
use super::framing::BodyExtent;
use super::input::Input;
use super::interim::Interim;
use super::read::ResponseHead;
use super::sending::{SendStop, Sending};
use crate::proxy::outgoing::Outgoing;
use crate::proxy::places::UpstreamPermit;
use crate::proxy::stream::UpstreamStream;
use crate::proxy::target::Manner;
use crate::proxy::trouble::UpstreamError;
use crate::proxy::upload::UploadProgress;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// Interim answers that are passed over before others have their turn, the clock among them.
const INTERIM_STEPS: usize = 8;

/// One HTTP/1 connection to an upstream.
#[derive(Debug)]
pub(crate) struct UpstreamHttp1 {
    stream: UpstreamStream,
    sending: Sending,
    /// Why the request is not sent any further, while its answer may still come.
    broke: Option<Http1Fault>,
    input: Input,
    /// What is to come of the answer.
    content: Content,
    /// Whether the upstream takes another request after this one.
    keeps: bool,
    deadline: Deadline,
}

/// What an answer is to be read by.
#[derive(Debug)]
pub(crate) struct ReadTerms<'a> {
    /// What tells of the request's body.
    pub(crate) upload: &'a UploadProgress,
    /// How long the answer may take, from when the body no longer goes on.
    pub(crate) time_max: Duration,
    pub(crate) manner: Manner,
}

impl UpstreamHttp1 {
    /// Speaks HTTP/1 on `stream`.
    pub(crate) fn new(stream: UpstreamStream) -> Self {
        Self {
            stream,
            sending: Sending::default(),
            broke: None,
            input: Input::default(),
            content: Content::Done,
            keeps: true,
            deadline: Deadline::new(),
        }
    }

    /// Sends a request, and waits for the head of the answer. If there is none, and
    /// [nothing was sent](Self::has_sent), the request is as it was.
    pub(crate) fn send<'a>(
        &'a mut self,
        request: &'a mut Outgoing,
        asked: ReadTerms<'a>,
    ) -> impl Future<Output = Result<Response<()>, UpstreamError>> + Unpin + 'a {
        let mut is_begun = false;
        poll_fn(move |context| {
            let answer = if is_begun {
                self.poll_answer(context, request, &asked)
            } else {
                is_begun = true;
                self.poll_begin(context, request)
            };
            let answer = match answer {
                Poll::Pending => {
                    let over = self
                        .deadline
                        .poll_over(context, asked.upload, asked.time_max);
                    ready!(over);
                    Err(UpstreamError::ResponseTimeout)
                }
                Poll::Ready(answer) => answer,
            };
            if answer.is_err()
                && !self.sending.has_begun()
                && let Some(body) = self.sending.take_back()
            {
                *request.body_mut() = body;
            }
            Poll::Ready(answer)
        })
    }

    /// Whether any byte of the request was sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.sending.has_begun()
    }

    /// Begins with a request.
    fn poll_begin(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Outgoing,
    ) -> Poll<Result<Response<()>, UpstreamError>> {
        self.sending.forget();
        // An answer that was there before the question is nobody's. From here on whoever waits is woken
        // when something comes, so there is no need to look again.
        if !self.is_silent(context) {
            return Poll::Ready(Err(UpstreamError::Broken(Http1Fault::Stale)));
        }
        self.deadline.begin();
        self.sending.begin(request);
        self.poll_sending(context)?;
        Poll::Pending
    }

    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
        request: &Outgoing,
        asked: &ReadTerms<'_>,
    ) -> Poll<Result<Response<()>, UpstreamError>> {
        let mut head = self.poll_head(context, request.interim());
        if head.is_pending() && !self.sending.is_done() && self.broke.is_none() {
            self.poll_sending(context)?;
            if self.broke.is_some() {
                // Who takes no more may have said why.
                head = self.poll_head(context, request.interim());
            }
        }
        let head = match ready!(head) {
            Ok(head) => head,
            Err(fault) => {
                let fault = self.broke.take().unwrap_or(fault);
                return Poll::Ready(Err(UpstreamError::Broken(fault)));
            }
        };
        if head.extent == BodyExtent::Doubtful {
            let what = "where it ends can be read in two ways";
            return Poll::Ready(Err(UpstreamError::Malformed(what)));
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS && asked.manner != Manner::Upgrade {
            let what = "it changes to something that nobody asked for";
            return Poll::Ready(Err(UpstreamError::Malformed(what)));
        }
        self.content = Content::of(request.method(), head.status, head.extent);
        let is_closed_by_end = matches!(self.content, Content::UntilClose);
        self.keeps = head.keeps && !is_closed_by_end;
        let mut answer = Response::new(());
        *answer.status_mut() = head.status;
        *answer.headers_mut() = head.headers;
        *answer.extensions_mut() = head.extensions;
        Poll::Ready(Ok(answer))
    }

    /// Sends what goes. An error if the request cannot be sent at all, or there is no more of it.
    fn poll_sending(&mut self, context: &mut Context<'_>) -> Result<(), UpstreamError> {
        match self.sending.poll_send(context, &mut self.stream) {
            Poll::Pending | Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(SendStop::Upload(error))) => Err(UpstreamError::Upload(error)),
            Poll::Ready(Err(SendStop::Io(error))) if self.sending.has_begun() => {
                self.broke = Some(Http1Fault::Io(error));
                Ok(())
            }
            Poll::Ready(Err(SendStop::Io(error))) => {
                Err(UpstreamError::Broken(Http1Fault::Io(error)))
            }
        }
    }

    /// The head of the answer, after those that only say that there will be one, which are passed on.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        interim: Option<&Interim>,
    ) -> Poll<Result<ResponseHead, Http1Fault>> {
        let mut steps = 0_usize;
        loop {
            while let Some(head) = self.input.head()? {
                if !head.is_interim() {
                    return Poll::Ready(Ok(head));
                }
                let is_passed = interim.is_some_and(|interim| interim.pass(head));
                steps = steps.saturating_add(1);
                // What is passed on is sent before the answer is known.
                if is_passed || steps == INTERIM_STEPS {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            if ready!(self.input.poll_fill(context, &mut self.stream))? == 0 {
                return Poll::Ready(Err(Http1Fault::Ended));
            }
        }
    }

    /// All of the answer's body, if it came with the head. Otherwise it comes
    /// [piece by piece](Self::poll_frame).
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        self.content.whole(self.input.bytes())
    }

    /// The next piece of the answer's body; meanwhile the request goes on as well.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Fault>>> {
        if !self.sending.is_done() && self.broke.is_none() {
            // An answer is an answer, even if its question never came to an end.
            if let Err(trouble) = self.poll_sending(context) {
                let fault = std::io::Error::other(trouble.to_string());
                self.broke = Some(Http1Fault::Io(fault));
            }
        }
        loop {
            match self.content.next(self.input.bytes())? {
                ContentPiece::Frame(frame) => return Poll::Ready(Some(Ok(frame))),
                ContentPiece::End => return Poll::Ready(None),
                ContentPiece::More => {}
            }
            if ready!(self.input.poll_fill(context, &mut self.stream))? == 0 {
                self.content.end()?;
            }
        }
    }

    /// Whether all of the answer was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.content.is_done()
    }

    /// How much of the answer's body is to come.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }

    /// Takes a place for as long as it is used, or gives back the one that it has.
    pub(crate) fn set_place(&mut self, place: Option<UpstreamPermit>) -> Option<UpstreamPermit> {
        self.stream.set_place(place)
    }

    /// Lets it come to rest after an answer, and tells whether it can take another request: not if its
    /// request is still being sent, either side wants to close it, or more came than was asked for.
    pub(crate) fn rest(&mut self) -> bool {
        let can = self.keeps
            && self.broke.is_none()
            && self.content.is_done()
            && self.sending.is_done()
            && self.input.is_empty();
        self.sending.rest();
        self.input.rest();
        can
    }

    /// Whether an idle one can still take a request, as far as this side knows. It is taken to sleep for
    /// longer, and gives back what memory it has.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.input.sleep();
        self.is_silent(&mut Context::from_waker(Waker::noop()))
    }

    /// Whether nothing came, nor the end.
    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        let came = Pin::new(&mut self.stream).poll_read(context, &mut byte);
        came.is_pending()
    }

    /// What comes after HTTP, once the upstream has agreed to change to something else: the bytes, and
    /// those that were read ahead.
    pub(crate) fn into_upgraded(self) -> (UpstreamStream, Bytes) {
        (self.stream, self.input.into_bytes())
    }
}
