//! A line of the access log.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Request, Uri, header};
use serde::Serialize;
use uturn_model::visible;

use crate::timestamp::Clock;

/// The most bytes of a path that are logged.
const PATH_AT_MOST: usize = 1024;

/// The most bytes of a host that are logged, which is the longest length of a name.
const HOST_AT_MOST: usize = 255;

/// The most bytes of a method that are logged.
const METHOD_AT_MOST: usize = 32;

/// The entry of a request, or of a connection on layer 4, that has ended.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) began: Instant,
    pub(crate) listener: SocketAddr,
    pub(crate) client: SocketAddr,
    /// The number of the connection within the process.
    pub(crate) connection: u64,
    /// `HTTP/1.1`, `HTTP/2` … or `TCP_SSL`.
    pub(crate) protocol: &'static str,
    /// The head of the request; `None` on layer 4, and for requests that could not be read.
    pub(crate) head: Option<Head>,
    /// The status of the answer; `None` on layer 4, and if the client's connection ended first.
    pub(crate) status: Option<u16>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// The target that was tried last.
    pub(crate) target: Option<SocketAddr>,
    pub(crate) attempts: u32,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) total: Duration,
    /// The reason why no target answered, or why the answer is not complete.
    pub(crate) why: Option<String>,
}

/// The logged parts of a request's head.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Head {
    method: String,
    host: String,
    path: String,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    time: String,
    listener: SocketAddr,
    client: SocketAddr,
    connection: u64,
    protocol: &'static str,
    #[serde(flatten)]
    head: Option<&'a Head>,
    status: Option<u16>,
    received_bytes: u64,
    sent_bytes: u64,
    target: Option<SocketAddr>,
    attempts: u32,
    first_byte_ms: Option<f64>,
    total_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

impl Entry {
    /// Writes the line. Characters that a terminal would obey, or that a reader would not see, are
    /// escaped.
    pub(super) fn write(&self, clock: &Clock, lines: &mut Vec<u8>) {
        let line = Line {
            time: clock.text(self.began),
            listener: self.listener,
            client: self.client,
            connection: self.connection,
            protocol: self.protocol,
            head: self.head.as_ref(),
            status: self.status,
            received_bytes: self.received,
            sent_bytes: self.sent,
            target: self.target,
            attempts: self.attempts,
            first_byte_ms: self.first_byte.map(millis),
            total_ms: millis(self.total),
            why: self.why.as_deref(),
        };
        let begin = lines.len();
        serde_json::to_writer(&mut *lines, &line).expect("strings and numbers only");
        // Most lines consist of these characters only.
        if !lines[begin..].iter().all(|byte| matches!(byte, b' '..=b'~')) {
            let line = String::from_utf8_lossy(&lines[begin..]);
            let shown = visible::json(&line).into_owned();
            lines.splice(begin.., shown.into_bytes());
        }
        lines.push(b'\n');
    }
}

impl Head {
    /// Returns the logged parts of a request's head.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self::new(request.method(), request.uri(), request.headers())
    }

    fn new(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let of_header =
            || headers.get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
        let host = uri.authority().map(|host| host.as_str().into()).or_else(of_header);
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        Self {
            method: shortened(method.as_str(), METHOD_AT_MOST),
            host: shortened(&host.unwrap_or_default(), HOST_AT_MOST),
            path: shortened(path, PATH_AT_MOST),
        }
    }
}

/// Returns the text, or its beginning with an ellipsis.
fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn entry(head: Option<Head>) -> Entry {
        Entry {
            began: Instant::now(),
            listener: "10.0.0.100:80".parse().unwrap(),
            client: "[2001:db8::1]:40000".parse().unwrap(),
            connection: 7,
            protocol: "HTTP/1.1",
            head,
            status: Some(502),
            received: 1,
            sent: 16,
            target: None,
            attempts: 2,
            first_byte: None,
            total: Duration::from_micros(4_000_123),
            why: Some("a \"quoted\"\n\u{1b}[31mreason".into()),
        }
    }

    fn line(entry: &Entry) -> String {
        let mut lines = Vec::new();
        entry.write(&Clock::now(), &mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn an_entry_is_one_line_whatever_the_client_sent() {
        let request = Request::get("/a%0a\"b?c=d").header("host", "a.example.com").body(());
        let text = line(&entry(Some(Head::of(&request.unwrap()))));
        let (time, rest) = text.split_once(",\"listener\"").unwrap();
        assert!(time.starts_with("{\"time\":\"20") && time.ends_with("Z\""), "{time}");
        assert_eq!(
            rest,
            ":\"10.0.0.100:80\",\"client\":\"[2001:db8::1]:40000\",\"connection\":7,\
             \"protocol\":\"HTTP/1.1\",\"method\":\"GET\",\"host\":\"a.example.com\",\
             \"path\":\"/a%0a\\\"b?c=d\",\"status\":502,\"received_bytes\":1,\"sent_bytes\":16,\
             \"target\":null,\"attempts\":2,\"first_byte_ms\":null,\"total_ms\":4000.123,\
             \"why\":\"a \\\"quoted\\\"\\n\\u001b[31mreason\"}\n"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn nothing_of_a_line_is_obeyed_or_hidden() {
        let uri = "/\u{9b}31m\u{202e}txt.\u{2028}\u{200b}é".parse::<Uri>().unwrap();
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_bytes("a\u{2066}b\u{85}\t".as_bytes()).unwrap();
        headers.insert(header::HOST, host);
        let mut logged = entry(Some(Head::new(&Method::GET, &uri, &headers)));
        logged.why = Some("\u{1b}]52;c;eA==\u{7}\r\n{\"status\":200}\u{e0041}".to_owned());
        let text = line(&logged);
        assert_eq!(text.lines().count(), 1);
        assert!(!text.trim_end_matches('\n').contains(visible::is_hidden), "{text:?}");
        // The texts are what they were.
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["path"], "/\u{9b}31m\u{202e}txt.\u{2028}\u{200b}é");
        assert_eq!(value["host"], "a\u{2066}b\u{85}\t");
        assert_eq!(value["why"], logged.why.unwrap());
    }

    #[test]
    fn what_is_long_is_shortened_between_characters() {
        let path = format!("/{}", "é".repeat(4000));
        let uri = Uri::builder().path_and_query(path).build().unwrap();
        let head = Head::new(&Method::GET, &uri, &HeaderMap::new());
        assert_eq!(head.path, format!("/{}…", "é".repeat(511)));
        assert_eq!(head.host, "");
        let missing = line(&entry(None));
        assert!(!missing.contains("\"path\""), "{missing}");
    }
}
