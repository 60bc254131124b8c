//! Accepts the API server's calls.

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use super::Site;
use crate::linux::cluster::record;

/// The channel protocols, the preferred one first. With the first, a caller can close the input.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// The connection of a call.
pub(super) type Stream = WebSocketStream<TlsStream<TcpStream>>;

/// A command to run in a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The name of the place in `lab exec`: `pod/shop/web-0`.
    pub(super) place: String,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// Whether the caller has input for the command.
    pub(super) has_input: bool,
}

/// Reads a call and upgrades its connection to a WebSocket. Returns `None` if the call is refused.
pub(super) async fn accept(stream: TlsStream<TcpStream>, site: &Site) -> Option<(Call, Stream)> {
    let mut call = None;
    #[expect(clippy::result_large_err, reason = "the type of the callback is the library's")]
    let answer = |request: &Request, mut response: Response| {
        let read = read(request.uri().path(), request.uri().query().unwrap_or_default());
        let read = read.ok_or_else(|| refusal(404, "only /exec is served"))?;
        let has_place = record::places(&site.folder)
            .is_ok_and(|places| places.iter().any(|place| place.name == read.place));
        if !has_place {
            return Err(refusal(404, "pod does not exist"));
        }
        let offered = request.headers().get_all("sec-websocket-protocol").iter();
        let offered: Vec<&str> = offered.filter_map(|value| value.to_str().ok()).collect();
        let offers = |protocol: &&&str| {
            offered.iter().any(|line| line.split(',').any(|own| own.trim() == **protocol))
        };
        let protocol = PROTOCOLS.iter().find(offers);
        let protocol = protocol.ok_or_else(|| refusal(403, "no protocol of channels in common"))?;
        let protocol = protocol.parse().expect("the name of a protocol is a value of a header");
        response.headers_mut().insert("sec-websocket-protocol", protocol);
        call = Some(read);
        Ok(response)
    };
    let stream = accept_hdr_async(stream, answer).await.ok()?;
    Some((call?, stream))
}

fn refusal(code: u16, why: &str) -> ErrorResponse {
    let mut response = ErrorResponse::new(Some(why.to_owned()));
    *response.status_mut() = code.try_into().expect("the code is one of HTTP");
    response
}

/// Parses the path and the query of a call. Returns `None` if they are not a call.
fn read(path: &str, query: &str) -> Option<Call> {
    let ["", "exec", namespace, pod, _] = path.split('/').collect::<Vec<_>>()[..] else {
        return None;
    };
    let pairs: Vec<(&str, String)> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name, decoded(value)))
        .collect();
    let has = |name: &str| pairs.iter().any(|(own, value)| *own == name && value == "1");
    let command = pairs.iter().filter(|(name, _)| *name == "command");
    let command: Vec<String> = command.map(|(_, word)| word.clone()).collect();
    let place = format!("pod/{namespace}/{pod}");
    (!command.is_empty()).then(|| Call { place, command, has_input: has("input") })
}

/// Decodes a value of a query.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let escaped = match byte {
            b'+' => Some(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                let digits = [ahead.next(), ahead.next()]
                    .map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
                match digits {
                    [Some(high), Some(low)] => {
                        rest = ahead;
                        u8::try_from(high * 16 + low).ok()
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_a_place_and_a_command() {
        let query = "command=sh&command=-c&command=echo+%22a%2Bb%22%20%25+%zz&error=1&output=1";
        let call = read("/exec/shop/web-0/web", query).unwrap();
        assert_eq!(call.place, "pod/shop/web-0");
        assert_eq!(call.command, ["sh", "-c", "echo \"a+b\" % %zz"]);
        assert!(!call.has_input);
        assert!(read("/exec/shop/web-0/web", "command=cat&input=1").unwrap().has_input);
        assert_eq!(read("/exec/shop/web-0/web", "input=1"), None);
        assert_eq!(read("/containerLogs/shop/web-0/web", "command=cat"), None);
        assert_eq!(read("/exec/shop/web-0", "command=cat"), None);
    }
}
