//! A connection to a target that speaks HTTP/1.1.
//!
//! Most exchanges are small: a request without a body, and an answer of known length that arrives
//! in one piece. [`direct`](super::direct) serves those on the bare stream. All others are left to
//! hyper, which keeps the connection until it has served a small exchange again: targets that send
//! large answers or such of unknown length have their hyper at hand.

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
    /// hyper serves it.
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

    /// Sends a request on a bare stream. Gives the connection to hyper if that is to read the
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

    /// Moves bytes in both directions as far as they go.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Self::Parsed(parsed) = self {
            parsed.poll(cx);
        }
    }

    /// Whether it can take another request at once. Notices that the target has closed it.
    pub(super) fn is_ready(&mut self) -> bool {
        match self {
            Self::Idle(stream) => is_quiet(stream),
            Self::Parsed(parsed) => parsed.is_ready(),
            Self::Spent => false,
        }
    }

    /// The same connection for another request, if it can take one at once.
    pub(super) fn into_ready(mut self) -> Option<Self> {
        if !self.is_ready() {
            return None;
        }
        match self {
            Self::Parsed(parsed) if parsed.is_small() => parsed.into_idle().map(Self::Idle),
            ready => Some(ready),
        }
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
fn is_quiet(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
