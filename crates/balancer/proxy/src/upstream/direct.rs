//! Serves a small exchange with a target without hyper: one write, one read.
//!
//! An answer is parsed here only if it is complete after one read, and its length is beyond doubt:
//! HTTP/1.1, one `Content-Length`, no transfer coding, no `Connection` other than `keep-alive`. Any
//! other answer is left to hyper, byte for byte.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use httparse::ParserConfig;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use super::SendError;
use crate::request_body::RequestBody;

/// The size of the buffer for an answer.
const ANSWER: usize = 8 * 1024;

/// The initial size of the buffer for a request's head, which grows if needed.
const HEAD: usize = 1024;

/// The most headers of an answer that is parsed here.
const HEADERS: usize = 64;

/// The outcome of a request.
pub(super) enum Asked {
    Answered {
        response: Response<Bytes>,
        /// Whether the connection can be used for another request.
        is_reusable: bool,
    },
    /// An answer that hyper has to read, which begins with these bytes. They are empty if the
    /// target has closed the connection.
    Other(Bytes),
}

/// Sends a request that has no body, and reads the beginning of its answer.
///
/// # Errors
/// When the request cannot be sent.
pub(super) async fn ask(
    stream: &mut TcpStream,
    request: &Request<RequestBody>,
) -> Result<Asked, SendError> {
    let head = head(request);
    let mut sent = 0;
    while sent < head.len() {
        let written = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, &head[sent..])).await;
        match written {
            Ok(written) if written > 0 => sent += written,
            Ok(_) => return Err(SendError::new(sent == 0, &io::ErrorKind::WriteZero)),
            Err(error) => return Err(SendError::new(sent == 0, &error)),
        }
    }
    let mut received = BytesMut::with_capacity(ANSWER);
    // hyper meets the same error at its next read.
    let _ = stream.read_buf(&mut received).await;
    let received = received.freeze();
    Ok(match answer(&received) {
        Some((response, length)) => {
            Asked::Answered { response, is_reusable: length == received.len() }
        }
        None => Asked::Other(received),
    })
}

/// Writes the head of a request as hyper does.
fn head(request: &Request<RequestBody>) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    let uri = request.uri();
    for part in [request.method().as_str(), " ", uri.path()] {
        head.extend_from_slice(part.as_bytes());
    }
    if let Some(query) = uri.query() {
        head.push(b'?');
        head.extend_from_slice(query.as_bytes());
    }
    head.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Parses a complete answer, and returns its length in bytes too. Returns `None` if hyper has to
/// parse the answer.
fn answer(received: &Bytes) -> Option<(Response<Bytes>, usize)> {
    let mut parsed = httparse::Response::new(&mut []);
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS];
    let parsing = ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        received,
        &mut headers,
    );
    let Ok(httparse::Status::Complete(head)) = parsing else { return None };
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let has_body = !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED;
    // hyper forwards unusual reason phrases.
    if parsed.version != Some(1) || !has_body || parsed.reason != status.canonical_reason() {
        return None;
    }
    // The extra room is for headers that are added on the way to the client.
    let mut map = HeaderMap::with_capacity(parsed.headers.len() + 4);
    let mut length = None;
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        if name == CONTENT_LENGTH {
            if length.is_some() {
                return None;
            }
            length = Some(number(header.value)?);
        } else if name == TRANSFER_ENCODING
            || (name == CONNECTION && !header.value.eq_ignore_ascii_case(b"keep-alive"))
        {
            return None;
        }
        let value = HeaderValue::from_maybe_shared(received.slice_ref(header.value)).ok()?;
        map.append(name, value);
    }
    let end = head.checked_add(length?)?;
    if end > received.len() {
        return None;
    }
    let mut response = Response::new(received.slice(head..end));
    *response.status_mut() = status;
    *response.headers_mut() = map;
    Some((response, end))
}

/// Reads a number that consists of digits only.
fn number(text: &[u8]) -> Option<usize> {
    let is_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &'static str) -> Option<(Response<Bytes>, usize)> {
        answer(&Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_whole_answer_is_taken_apart() {
        let text = "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nA: 1\r\nA: 2\r\n\r\nabcd";
        let (response, end) = answered(text).unwrap();
        assert_eq!((response.status(), end), (StatusCode::NOT_FOUND, text.len() - 1));
        assert_eq!(response.headers().get_all("a").iter().count(), 2);
        assert_eq!(response.headers()[CONTENT_LENGTH], "3");
        assert_eq!(response.body(), "abc");
    }

    #[test]
    fn answers_whose_end_may_be_elsewhere_are_not() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 Fine\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "",
        ] {
            assert!(answered(text).is_none(), "{text}");
        }
    }
}
