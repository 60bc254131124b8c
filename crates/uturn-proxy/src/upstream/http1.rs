//! A connection to a target that speaks HTTP/1.1.
//!
//! Most exchanges are small: a request without a body, and an answer of known length that arrives
//! in one piece. [`direct`](super::direct) serves those on the bare stream. All others are left to
//! hyper, for one exchange at a time: an idle connection is a stream and no more.

use std::io;
use std::task::Context;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::net::TcpStream;

use super::direct::{self, Asked};
use super::parsed::Parsed;
use super::{Received, SendError};
use crate::request_body::RequestBody;

/// A connection, idle or in use.
#[derive(Debug)]
pub(crate) enum Http1 {
    /// No exchange is under way.
    Idle(TcpStream),
    /// hyper reads the answer.
    Parsed(Box<Parsed>),
    /// It can be used no more.
    Spent,
}

impl Http1 {
    /// Sends a request and returns the answer. If its body is not there yet, it arrives while
    /// [`Self::poll`] is called.
    ///
    /// # Errors
    /// When the target closes the connection or does not speak HTTP.
    pub(crate) async fn send(
        &mut self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Received>, SendError> {
        let Self::Idle(mut stream) = std::mem::replace(self, Self::Spent) else {
            return Err(SendError { is_unsent: true, why: "the connection is in use".into() });
        };
        // The answer to HEAD has a length, but no body.
        let parsed = if request.body().is_none() && request.method() != Method::HEAD {
            match direct::ask(&mut stream, request).await? {
                Asked::Answered { response, is_reusable } => {
                    if is_reusable {
                        *self = Self::Idle(stream);
                    }
                    return Ok(response.map(Received::Whole));
                }
                Asked::Other(received) => Parsed::of_answer(stream, received).await,
            }
        } else {
            Parsed::new(stream).await
        };
        let mut parsed = parsed.map_err(|error| SendError::new(true, &error))?;
        let response = parsed.send(request).await?;
        *self = Self::Parsed(Box::new(parsed));
        Ok(response.map(Received::Incoming))
    }

    /// Moves bytes in both directions as far as they go.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Self::Parsed(parsed) = self {
            parsed.poll(cx);
        }
    }

    /// The bare stream, if it can take another request at once.
    pub(crate) fn into_idle(self) -> Option<TcpStream> {
        let stream = match self {
            Self::Idle(stream) => stream,
            Self::Parsed(parsed) => parsed.into_idle()?,
            Self::Spent => return None,
        };
        is_quiet(&stream).then_some(stream)
    }

    /// The stream, and what was read from it already, after the target switched protocols.
    pub(crate) fn into_stream(self) -> Option<(TcpStream, Bytes)> {
        match self {
            Self::Parsed(parsed) => Some(parsed.into_stream()),
            Self::Idle(_) | Self::Spent => None,
        }
    }
}

/// Whether the target has neither closed a connection nor sent anything unasked.
pub(super) fn is_quiet(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
