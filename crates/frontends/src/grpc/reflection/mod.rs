//! Server reflection, `grpc.reflection.v1` and `v1alpha`: lists the services and describes their
//! messages, so that tools can call them without further configuration.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the stream: one response to each query |
//! | `files` | the descriptors, by file name and by defined symbol |

mod files;

use super::body::MessageSource;
use super::frame;
use super::limiting::SERVICES;
use super::status::{GrpcCode, GrpcStatus};
use crate::wire::protobuf::read::{ProtobufError, WireFields, WireValue};
use crate::wire::protobuf::write;
use bytes::{Bytes, BytesMut};
use files::Files;
use http_body::Body;
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pub(super) const V1: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
pub(super) const V1_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

/// The maximum length of a query, which contains only a name.
const QUESTION_BYTES: usize = 4 << 10;

/// A stream of queries with a response to each. The two versions differ only in their names.
pub(super) struct ReflectionStream {
    questions: Incoming,
    /// The bytes received and not yet handled.
    rest: Bytes,
}

/// A query.
#[derive(Clone, Copy, Debug)]
enum ReflectionQuery<'a> {
    File(&'a str),
    Symbol(&'a str),
    Services,
    /// An unsupported query.
    Other,
}

impl ReflectionStream {
    pub(super) fn new(questions: Incoming) -> Self {
        Self {
            questions,
            rest: Bytes::new(),
        }
    }

    fn answer(&mut self) -> Result<Option<Bytes>, GrpcStatus> {
        let Some(question) = frame::next(&mut self.rest, QUESTION_BYTES)? else {
            return Ok(None);
        };
        answer(&question).map(Some).map_err(GrpcStatus::from)
    }
}

impl MessageSource for ReflectionStream {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Option<GrpcStatus>>> {
        loop {
            match self.answer() {
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Ok(None) => {}
                Err(status) => return Poll::Ready(Err(Some(status))),
            }
            let more = match ready!(Pin::new(&mut self.questions).poll_frame(context)) {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                // The client has disconnected, or has no more queries.
                Some(Err(_)) => return Poll::Ready(Err(None)),
                None if self.rest.is_empty() => return Poll::Ready(Err(None)),
                None => {
                    let cut = GrpcStatus::new(
                        GrpcCode::InvalidArgument,
                        "the message is \
                        truncated",
                    );
                    return Poll::Ready(Err(Some(cut)));
                }
            };
            if self.rest.is_empty() {
                self.rest = more;
            } else {
                // At most one query, and the bytes that came with its end.
                let mut rest = BytesMut::from(std::mem::take(&mut self.rest));
                rest.extend_from_slice(&more);
                self.rest = rest.freeze();
            }
        }
    }
}

fn answer(message: &[u8]) -> Result<Bytes, ProtobufError> {
    let (host, question) = read(message)?;
    let files = Files::all();
    Ok(frame::frame(1 << 10, |out| {
        write::bytes(out, 1, host.as_bytes());
        write::element(out, 2, message);
        match question {
            ReflectionQuery::File(name) => file(out, files.named(name), "file"),
            ReflectionQuery::Symbol(name) => file(out, files.defining(name), "symbol"),
            ReflectionQuery::Services => write::message(out, 6, |out| {
                for name in SERVICES.iter().chain(&OWN) {
                    write::message(out, 1, |out| write::bytes(out, 1, name.as_bytes()));
                }
            }),
            ReflectionQuery::Other => {
                error(
                    out,
                    GrpcCode::Unimplemented,
                    "this request is not supported",
                );
            }
        }
    }))
}

/// The services of this server in addition to those in `SERVICES`.
const OWN: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

fn read(message: &[u8]) -> Result<(&str, ReflectionQuery<'_>), ProtobufError> {
    let (mut host, mut question) = ("", ReflectionQuery::Other);
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        match (number, value) {
            (1, value) => host = value.text()?,
            (3, value) => question = ReflectionQuery::File(value.text()?),
            (4, value) => question = ReflectionQuery::Symbol(value.text()?),
            (5 | 6, WireValue::Bytes(_)) => question = ReflectionQuery::Other,
            (7, WireValue::Bytes(_)) => question = ReflectionQuery::Services,
            _ => {}
        }
    }
    Ok((host, question))
}

fn file(out: &mut Vec<u8>, found: Option<&[u8]>, what: &str) {
    match found {
        Some(file) => write::message(out, 4, |out| write::element(out, 1, file)),
        None => error(out, GrpcCode::NotFound, &format!("unknown {what}")),
    }
}

fn error(out: &mut Vec<u8>, code: GrpcCode, message: &str) {
    write::message(out, 7, |out| {
        write::number(out, 1, u64::from(code as u8));
        write::bytes(out, 2, message.as_bytes());
    });
}
