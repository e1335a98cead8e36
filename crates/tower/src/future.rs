//! The future of a response.

use crate::answer::LayerResponse;
use crate::body::ResponseBody;
use crate::permit::offer_permit;
use http::request::Parts;
use http::{Request, Response};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tidegate::Decision;
use tidegate_http::answer;
use tower_service::Service;

/// The future of a decided request.
pub(crate) type DecisionFuture = Pin<Box<dyn Future<Output = DecidedRequest> + Send>>;

/// A request that a store has decided.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once, out of the future that made it"
)]
pub(crate) enum DecidedRequest {
    /// Allowed, with the head of the request.
    Pass(Parts, Decision),
    /// Refused, or nothing could be decided.
    Answer(LayerResponse),
}

pin_project! {
    /// The future of a response: the application's, or a refusal.
    ///
    /// It fails only if the application does. Dropping it drops the request: one that is queued for a limit
    /// releases its place, and its charges are refunded.
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
        /// The store decides across a network, or a limit lets the request wait. Service and body wait for the
        /// decision. Dropped meanwhile, the request releases its place.
        Deciding {
            deciding: DecisionFuture,
            waiting: Option<(Svc, B)>,
        },
        /// The application handles the request.
        Calling {
            #[pin]
            future: F,
            decision: Decision,
        },
        /// The response is known.
        Answered { answer: Option<LayerResponse> },
    }
}

// === impl ResponseFuture ===

impl<Svc, B> ResponseFuture<Svc, B>
where
    Svc: Service<Request<B>>,
{
    pub(crate) fn deciding(deciding: DecisionFuture, ready: Svc, body: B) -> Self {
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
                        DecidedRequest::Pass(mut parts, decision) => {
                            offer_permit(&mut parts.extensions, &decision);
                            State::Calling {
                                future: service.call(Request::from_parts(parts, body)),
                                decision,
                            }
                        }
                        DecidedRequest::Answer(answer) => State::Answered {
                            answer: Some(answer),
                        },
                    }
                }
                StateProj::Calling { future, decision } => {
                    let mut response = ready!(future.poll(cx))?;
                    answer::inform(decision, response.headers_mut());
                    let permit = decision.permit();
                    // The decision holds the permits as well: from here on, the body alone does.
                    state.set(State::Answered { answer: None });
                    let application = |body| ResponseBody::application(body, permit);
                    return Poll::Ready(Ok(response.map(application)));
                }
                StateProj::Answered { answer } => {
                    let answer = answer.take().expect("polled after it was ready");
                    return Poll::Ready(Ok(answer.map(ResponseBody::refusal)));
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
