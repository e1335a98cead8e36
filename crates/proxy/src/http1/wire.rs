//! One HTTP/1 connection to an upstream, driven by the task that uses it.
//!
//! The task of the client's connection writes the request, waits for the response and reads it. So only the
//! network wakes a task, nothing passes from task to task, and dropping a request ends its connection. A
//! request is only borrowed while it is written, so that it is still there for a retry. No task drives an
//! idle connection; a close meanwhile is noticed when the connection is used again.

use super::content::{Content, ContentPiece};
use super::deadline::Deadline;
use super::framing::BodyExtent;
use super::input::Input;
use super::read::ResponseHead;
use super::sending::{RequestSender, SendStop};
use crate::connection_kind::ConnectionKind;
use crate::error::UpstreamError;
use crate::fault::Http1Fault;
use crate::interim::InterimForwarder;
use crate::outgoing::OutgoingRequest;
use crate::places::UpstreamPermit;
use crate::stream::UpstreamStream;
use crate::upload::UploadProgress;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Frame, SizeHint};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// The number of interim responses that are handled before yielding to other work, the clock among it.
const INTERIM_STEPS: usize = 8;

/// One HTTP/1 connection to an upstream.
#[derive(Debug)]
pub struct UpstreamHttp1 {
    stream: UpstreamStream,
    sending: RequestSender,
    /// The reason why the request is not sent any further, while its response may still come.
    broke: Option<Http1Fault>,
    input: Input,
    /// The response head, until it is taken. It stays in this place, because it is large.
    head: ResponseHead,
    /// The rest of the response body.
    content: Content,
    /// True if the upstream accepts another request after this one.
    keeps: bool,
    deadline: Deadline,
}

/// The conditions for reading a response.
#[derive(Debug)]
pub(crate) struct ReadTerms<'a> {
    /// The progress of the request's body.
    pub(crate) upload: &'a UploadProgress,
    /// The maximum time for the response, from the last progress of the body.
    pub(crate) time_max: Duration,
    pub(crate) manner: ConnectionKind,
}

impl UpstreamHttp1 {
    /// Creates a connection that speaks HTTP/1 on `stream`.
    pub(crate) fn new(stream: UpstreamStream) -> Self {
        Self {
            stream,
            sending: RequestSender::default(),
            broke: None,
            input: Input::default(),
            head: ResponseHead::default(),
            content: Content::Done,
            keeps: true,
            deadline: Deadline::new(),
        }
    }

    /// Sends a request, and waits for the response head, which is then [here](Self::take_head). After an
    /// error, if [nothing was sent](Self::has_sent), the request is unchanged.
    pub(crate) fn send<'a>(
        &'a mut self,
        request: &'a mut OutgoingRequest,
        asked: ReadTerms<'a>,
    ) -> impl Future<Output = Result<(), UpstreamError>> + Unpin + 'a {
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

    /// Returns true if any byte of the request was sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.sending.has_begun()
    }

    /// Starts a request.
    fn poll_begin(
        &mut self,
        context: &mut Context<'_>,
        request: &mut OutgoingRequest,
    ) -> Poll<Result<(), UpstreamError>> {
        self.sending.forget();
        // A response that came before the request belongs to no request. From here on the task is woken when
        // data comes, so there is no need to check again.
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
        request: &OutgoingRequest,
        asked: &ReadTerms<'_>,
    ) -> Poll<Result<(), UpstreamError>> {
        let mut head = self.poll_head(context, request.interim());
        if head.is_pending() && !self.sending.is_done() && self.broke.is_none() {
            self.poll_sending(context)?;
            if self.broke.is_some() {
                // An upstream that stops reading may have sent the reason.
                head = self.poll_head(context, request.interim());
            }
        }
        if let Err(fault) = ready!(head) {
            let fault = self.broke.take().unwrap_or(fault);
            return Poll::Ready(Err(UpstreamError::Broken(fault)));
        }
        let head = &self.head;
        if head.extent == BodyExtent::Doubtful {
            let what = "its length is ambiguous";
            return Poll::Ready(Err(UpstreamError::Malformed(what)));
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS && asked.manner != ConnectionKind::Upgrade
        {
            let what = "it upgrades to a protocol that was not requested";
            return Poll::Ready(Err(UpstreamError::Malformed(what)));
        }
        self.content = Content::of(request.method(), head.status, head.extent);
        let is_closed_by_end = matches!(self.content, Content::UntilClose);
        self.keeps = head.keeps && !is_closed_by_end;
        Poll::Ready(Ok(()))
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the headers of the response.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Takes the head of the response.
    pub(crate) fn take_head(&mut self) -> Response<()> {
        let mut head = Response::new(());
        *head.status_mut() = self.head.status;
        // Swapped, because to replace a value drops the one before.
        mem::swap(head.headers_mut(), &mut self.head.headers);
        mem::swap(head.extensions_mut(), &mut self.head.extensions);
        head
    }

    /// Sends as much as possible. Returns an error if the request cannot be sent at all, or if its body
    /// fails.
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

    /// Reads the final response head. Interim responses before it are forwarded.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        interim: Option<&InterimForwarder>,
    ) -> Poll<Result<(), Http1Fault>> {
        let mut steps = 0_usize;
        loop {
            while self.input.take_head(&mut self.head)? {
                if !self.head.is_interim() {
                    return Poll::Ready(Ok(()));
                }
                let headers = mem::take(&mut self.head.headers);
                let status = self.head.status;
                let is_passed = interim.is_some_and(|interim| interim.pass(status, headers));
                steps = steps.saturating_add(1);
                // A forwarded interim response must be sent before the final one is known.
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

    /// Returns the whole body of the response, if it came with the head. Otherwise it comes [piece by
    /// piece](Self::poll_frame).
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        self.content.whole(self.input.bytes())
    }

    /// Reads the next piece of the response body; meanwhile the request is sent further as well.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Fault>>> {
        if !self.sending.is_done() && self.broke.is_none() {
            // The response is valid, even if its request was never completed.
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

    /// Returns true if all of the response was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.content.is_done()
    }

    /// Returns the size of the rest of the response body.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }

    /// Replaces the permit that is held while the connection is used, and returns the previous one.
    pub(crate) fn set_place(&mut self, place: Option<UpstreamPermit>) -> Option<UpstreamPermit> {
        self.stream.set_place(place)
    }

    /// Prepares for another request after a response. Returns false if the connection cannot take one: its
    /// request is still being sent, either side wants to close it, or there is excess data.
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

    /// Returns true if an idle connection can still take a request, as far as known. Releases its memory,
    /// because it may be idle for longer.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.input.sleep();
        self.is_silent(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns true if neither data nor the end has come.
    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        let came = Pin::new(&mut self.stream).poll_read(context, &mut byte);
        came.is_pending()
    }

    /// Returns the stream after an upgrade, and the bytes that were read ahead.
    pub(crate) fn into_upgraded(self) -> (UpstreamStream, Bytes) {
        (self.stream, self.input.into_bytes())
    }
}
