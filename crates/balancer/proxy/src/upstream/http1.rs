//! A connection to a target that speaks HTTP/1.1.
//!
//! Most exchanges are small: a request without a body, and an answer of known length that arrives
//! in one piece. [`direct`](super::direct) serves those on the bare stream. hyper serves all
//! others, and keeps the connection until it has served a small exchange again, as a target that
//! sends large answers or answers of unknown length will often do so again.

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
    /// hyper serves the connection.
    Parsed(Box<Parsed>),
    /// The connection can no longer be used.
    Spent,
}

impl Http1 {
    /// Sends a request and returns the answer. If the body has not arrived yet, it arrives while
    /// [`Self::poll`] is called.
    ///
    /// # Errors
    /// When the target closes the connection or does not speak HTTP.
    pub(crate) async fn send(
        &mut self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Received>, SendError> {
        let mut parsed = match std::mem::replace(self, Self::Spent) {
            Self::Idle(stream) => match self.send_directly(stream, request).await? {
                Ok(response) => return Ok(response),
                Err(parsed) => parsed,
            },
            Self::Parsed(parsed) => parsed,
            Self::Spent => return Err(SendError::new(true, &"the connection is spent")),
        };
        let response = parsed.send(request).await?;
        *self = Self::Parsed(parsed);
        Ok(response.map(Received::Incoming))
    }

    /// Sends a request on a bare stream. Hands the connection to hyper if hyper has to read the
    /// answer.
    async fn send_directly(
        &mut self,
        mut stream: TcpStream,
        request: &Request<RequestBody>,
    ) -> Result<Result<Response<Received>, Box<Parsed>>, SendError> {
        // The answer to HEAD has a length, but no body.
        let parsed = if request.body().is_none() && request.method() != Method::HEAD {
            match direct::ask(&mut stream, request).await? {
                Asked::Answered { response, is_reusable } => {
                    if is_reusable {
                        *self = Self::Idle(stream);
                    }
                    return Ok(Ok(response.map(Received::Whole)));
                }
                Asked::Other(received) => Parsed::of_answer(stream, received).await,
            }
        } else {
            Parsed::new(stream).await
        };
        let parsed = parsed.map_err(|error| SendError::new(true, &error))?;
        Ok(Err(Box::new(parsed)))
    }

    /// Moves bytes in both directions as far as possible.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Self::Parsed(parsed) = self {
            parsed.poll(cx);
        }
    }

    /// Returns whether another request can be sent at once. Notices that the target has closed the
    /// connection.
    pub(super) fn is_ready(&mut self) -> bool {
        match self {
            Self::Idle(stream) => is_quiet(stream),
            Self::Parsed(parsed) => parsed.is_ready(),
            Self::Spent => false,
        }
    }

    /// Returns the connection for another request, if it can be used at once.
    pub(super) fn into_ready(mut self) -> Option<Self> {
        if !self.is_ready() {
            return None;
        }
        match self {
            Self::Parsed(parsed) if parsed.is_small() => parsed.into_idle().map(Self::Idle),
            ready => Some(ready),
        }
    }

    /// Returns the stream after the target switched protocols, and what was read from it already.
    pub(crate) fn into_stream(self) -> Option<(TcpStream, Bytes)> {
        match self {
            Self::Parsed(parsed) => Some(parsed.into_stream()),
            Self::Idle(_) | Self::Spent => None,
        }
    }
}

/// Returns whether the target has neither closed the connection nor sent anything unasked.
fn is_quiet(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
