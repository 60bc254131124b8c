//! A connection to a target that speaks HTTP/2 without TLS, for many requests at a time.

use http::{Request, Response};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Received, SendError};
use crate::local::LocalTasks;
use crate::request_body::RequestBody;

/// A handle to a connection, which a task of its own serves.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    send: SendRequest<RequestBody>,
}

impl Http2 {
    pub(crate) async fn new(stream: TcpStream) -> Result<Self, hyper::Error> {
        let builder = http2::Builder::new(LocalTasks);
        let (send, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::task::spawn_local(async move {
            // A connection that fails also fails its requests, which report the error.
            let _ = connection.await;
        });
        Ok(Self { send })
    }

    /// Sends a request and returns the answer's head.
    ///
    /// # Errors
    /// When the stream or the connection breaks.
    pub(crate) async fn send(
        &mut self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Received>, SendError> {
        let answer = self.send.try_send_request(super::copy_of(request)).await;
        answer.map(|response| response.map(Received::Incoming)).map_err(|mut failed| {
            SendError::new(failed.take_message().is_some(), &failed.into_error())
        })
    }

    /// Returns whether the connection is open.
    pub(crate) fn is_ready(&self) -> bool {
        self.send.is_ready()
    }
}
