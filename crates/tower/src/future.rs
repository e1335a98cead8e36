//! The answer on its way.

use crate::answer::LayerResponse;
use crate::body::ResponseBody;
use http::request::Parts;
use http::{Request, Response};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tidegate::Decision;
use tidegate_http::answer;
use tower_service::Service;

/// What becomes of a request once the store has answered.
pub(crate) type Deciding = Pin<Box<dyn Future<Output = DecidedRequest> + Send>>;

/// A request that a store has decided.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once, out of the future that made it"
)]
pub(crate) enum DecidedRequest {
    /// Allowed; its head is given back.
    Pass(Parts, Decision),
    /// Refused, or nothing could be decided.
    Answer(LayerResponse),
}

pin_project! {
    /// The answer on its way: of the application, or a refusal.
    ///
    /// Never an error of our own. Dropping it drops the request, wherever it is.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<Svc, B>
    where
        Svc: Service<Request<B>>,
    {
        #[pin]
        state: State<Svc, B, Svc::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<Svc, B, F> {
        /// The store is asked, across a network, or a limit lets the request wait; service and body
        /// wait for what comes of it. Dropped meanwhile, the request gives its place back.
        Deciding {
            deciding: Deciding,
            waiting: Option<(Svc, B)>,
        },
        /// The application is at work.
        Calling {
            #[pin]
            future: F,
            decision: Decision,
        },
        /// There is an answer without it.
        Answered { answer: Option<LayerResponse> },
    }
}

// === impl ResponseFuture ===

impl<Svc, B> ResponseFuture<Svc, B>
where
    Svc: Service<Request<B>>,
{
    pub(crate) fn deciding(deciding: Deciding, ready: Svc, body: B) -> Self {
        Self {
            state: State::Deciding {
                deciding,
                waiting: Some((ready, body)),
            },
        }
    }

    pub(crate) fn calling(future: Svc::Future, decision: Decision) -> Self {
        Self {
            state: State::Calling { future, decision },
        }
    }

    pub(crate) fn answered(answer: LayerResponse) -> Self {
        Self {
            state: State::Answered {
                answer: Some(answer),
            },
        }
    }
}

impl<Svc, B, ResB> Future for ResponseFuture<Svc, B>
where
    Svc: Service<Request<B>, Response = Response<ResB>>,
{
    type Output = Result<Response<ResponseBody<ResB>>, Svc::Error>;

    /// # Panics
    ///
    /// If it is polled after it was ready, as futures may.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Deciding { deciding, waiting } => {
                    let decided = ready!(deciding.as_mut().poll(cx));
                    let (mut service, body) = waiting.take().expect("taken once, right here");
                    match decided {
                        DecidedRequest::Pass(parts, decision) => State::Calling {
                            future: service.call(Request::from_parts(parts, body)),
                            decision,
                        },
                        DecidedRequest::Answer(answer) => State::Answered {
                            answer: Some(answer),
                        },
                    }
                }
                StateProj::Calling { future, decision } => {
                    let mut response = ready!(future.poll(cx))?;
                    answer::inform(decision, response.headers_mut());
                    return Poll::Ready(Ok(response.map(ResponseBody::theirs)));
                }
                StateProj::Answered { answer } => {
                    let answer = answer.take().expect("polled after it was ready");
                    return Poll::Ready(Ok(answer.map(ResponseBody::ours)));
                }
            };
            state.set(next);
        }
    }
}

impl<Svc, B> fmt::Debug for ResponseFuture<Svc, B>
where
    Svc: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Deciding { .. } => "waiting for a decision",
            State::Calling { .. } => "calling the application",
            State::Answered { .. } => "answered",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}
