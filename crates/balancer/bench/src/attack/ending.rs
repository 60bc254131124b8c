//! Describes how a connection of a hostile client ended.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The part of an answer that is kept to describe it. Bytes beyond it are read and dropped.
const KEPT: usize = 64 * 1024;

/// The frame type of HTTP/2's GOAWAY.
const GOAWAY: u8 = 7;

/// The frame type of HTTP/2's RST_STREAM.
const RST_STREAM: u8 = 3;

/// Reads to the end of a connection, and describes how it ended.
pub(super) async fn of(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut received = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part).await {
            Ok(0) => return of_bytes(&received),
            Ok(count) => {
                let room = KEPT.saturating_sub(received.len());
                received.extend_from_slice(&part[..count.min(room)]);
            }
            Err(_) if !received.is_empty() => return of_bytes(&received),
            Err(error) => return of_error(&error),
        }
    }
}

/// Describes an error of a connection.
pub(super) fn of_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset".to_owned(),
        io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        io::ErrorKind::UnexpectedEof => "closed".to_owned(),
        _ => error.to_string(),
    }
}

/// Describes what was received before the connection ended.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "closed".to_owned();
    }
    if let Some(status) = bytes.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3)) {
        return format!("answered {}", String::from_utf8_lossy(status));
    }
    let mut seen = None;
    let mut rest = bytes;
    while let [a, b, c, kind, _, _, _, _, _, payload @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some((payload, next)) = payload.split_at_checked(length) else { break };
        match (*kind, payload) {
            (GOAWAY, [_, _, _, _, _, _, _, code, ..]) => return format!("GOAWAY {code}"),
            (RST_STREAM, [_, _, _, code]) => seen = Some(format!("RST_STREAM {code}")),
            _ => {}
        }
        rest = next;
    }
    seen.unwrap_or_else(|| "answered something and closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_apart() {
        assert_eq!(of_bytes(b""), "closed");
        assert_eq!(of_bytes(b"HTTP/1.1 408 Request Timeout\r\n\r\n"), "answered 408");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let goaway = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11];
        assert_eq!(of_bytes(&[&settings[..], &goaway].concat()), "GOAWAY 11");
        let reset = [0, 0, 4, RST_STREAM, 0, 0, 0, 0, 1, 0, 0, 0, 8];
        assert_eq!(of_bytes(&[&settings[..], &reset].concat()), "RST_STREAM 8");
        assert_eq!(of_bytes(&settings), "answered something and closed");
        assert_eq!(of_bytes(&goaway[..12]), "answered something and closed");
    }
}
