//! As much of HTTP/1.1 as a proxy needs: heads, and where bodies end.
//!
//! Strict where leniency would let two readers disagree about where a message ends.

use std::collections::HashSet;
use std::io::{self, BufRead, Read, Write};

/// The most that a head may take.
const HEAD_LIMIT: u64 = 64 * 1024;

/// A start line and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What was asked, or the status of the answer.
    pub start: String,
    fields: Vec<(String, Vec<u8>)>,
}

/// Why no head could be read.
#[derive(Debug)]
pub enum BadHead {
    /// The other side closed before it sent anything.
    Nothing,
    /// It is not HTTP/1.1.
    Malformed(&'static str),
    /// It exceeds the limit.
    TooLong,
    /// The connection failed.
    Io(io::Error),
}

impl Head {
    /// Reads a head and leaves what comes after it.
    ///
    /// # Errors
    /// When there is none, or none that all readers would read alike.
    pub fn read(from: &mut impl BufRead) -> Result<Self, BadHead> {
        let mut from = from.take(HEAD_LIMIT);
        let start = match line(&mut from)? {
            None => return Err(BadHead::Nothing),
            Some(start) => {
                String::from_utf8(start).map_err(|_| BadHead::Malformed("bad start line"))?
            }
        };
        let mut fields = Vec::new();
        loop {
            let text = line(&mut from)?.ok_or(BadHead::Malformed("cut off"))?;
            if text.is_empty() {
                return Ok(Self { start, fields });
            }
            let colon = text.iter().position(|b| *b == b':');
            let (name, value) = text.split_at(colon.ok_or(BadHead::Malformed("no colon"))?);
            let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
            if name.is_empty() || !name.iter().all(token) {
                return Err(BadHead::Malformed("bad field name"));
            }
            let name = String::from_utf8_lossy(name).into_owned();
            fields.push((name, value[1..].trim_ascii().to_vec()));
        }
    }

    /// Every value of a field, in order.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| &**value)
    }

    /// Drops the fields that concern a single connection, and announces that this one closes.
    pub fn closing(&mut self) {
        let mut dropped: HashSet<String> =
            ["connection", "keep-alive", "proxy-connection", "upgrade"].map(String::from).into();
        for value in self.values("connection") {
            let value = String::from_utf8_lossy(value);
            dropped.extend(value.split(',').map(|name| name.trim().to_ascii_lowercase()));
        }
        // Where a body ends is not up to the Connection field.
        dropped.retain(|name| name != "transfer-encoding" && name != "content-length");
        self.fields.retain(|(name, _)| !dropped.contains(&name.to_ascii_lowercase()));
        self.fields.push(("Connection".into(), b"close".into()));
    }

    /// Adds to a list, such as `X-Forwarded-For`.
    pub fn append(&mut self, name: &str, value: &str) {
        let all: Vec<&[u8]> = self.values(name).chain([value.as_bytes()]).collect();
        let joined = all.join(&b", "[..]);
        self.fields.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        self.fields.push((name.into(), joined));
    }

    /// Writes it, with the blank line after it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(self.start.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        for (name, value) in &self.fields {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        to.write_all(&bytes)
    }

    /// The host and path of a request.
    ///
    /// # Errors
    /// When it is none, or names no host or several.
    pub fn request(&self) -> Result<Request<'_>, &'static str> {
        let mut words = self.start.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("bad request line");
        };
        if method.is_empty() || !version.starts_with("HTTP/1.") {
            return Err("not HTTP/1.1");
        }
        let mut hosts = self.values("host").map(std::str::from_utf8);
        let stated = hosts.next().transpose().map_err(|_| "bad Host")?;
        if hosts.next().is_some() {
            return Err("more than one Host");
        }
        let (host, path) = match target.strip_prefix("http://") {
            Some(rest) => match rest.find('/') {
                Some(at) => (rest[..at].into(), &rest[at..]),
                None => (rest.into(), "/"),
            },
            None => (stated, target),
        };
        match host {
            Some(host) => Ok(Request { method, host, path }),
            None if version == "HTTP/1.0" => Ok(Request { method, host: "", path }),
            None => Err("no Host"),
        }
    }

    /// The status of an answer.
    pub fn status(&self) -> Option<u16> {
        let mut words = self.start.splitn(3, ' ');
        words.next().filter(|version| version.starts_with("HTTP/1."))?;
        words.next().filter(|code| code.len() == 3)?.parse().ok()
    }

    /// How the end of the body is marked; `unmarked` if nothing marks it.
    ///
    /// # Errors
    /// Returns an error if it is marked twice, or in an unknown way.
    pub fn body(&self, unmarked: Body) -> Result<Body, &'static str> {
        let mut lengths = self.values("content-length");
        let length = lengths.next();
        if lengths.any(|other| Some(other) != length) {
            return Err("two lengths");
        }
        let mut codings = self.values("transfer-encoding");
        match (codings.next(), length) {
            (None, None) => Ok(unmarked),
            (Some(_), Some(_)) => Err("a length and a coding"),
            (None, Some(length)) => std::str::from_utf8(length)
                .ok()
                .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|text| text.parse().ok())
                .map(Body::Length)
                .ok_or("bad length"),
            (Some(coding), None) => {
                let only = coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
                if only { Ok(Body::Chunked) } else { Err("unknown coding") }
            }
        }
    }
}

/// What a rule is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub method: &'a str,
    /// The host, with its port; empty where an old request names none.
    pub host: &'a str,
    /// With what.
    pub path: &'a str,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// After so many bytes.
    Length(u64),
    /// After the last chunk and its trailer.
    Chunked,
    /// With the connection.
    UntilClose,
}

impl Body {
    /// No body at all.
    pub const NONE: Self = Self::Length(0);

    /// Passes a body on as it is.
    ///
    /// # Errors
    /// When either side fails, or the body does not end where it says.
    pub fn copy(self, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::UntilClose => io::copy(from, to).map(drop),
            Self::Length(length) => copy_exactly(length, from, to),
            Self::Chunked => {
                loop {
                    let size = framing_line(from)?;
                    to.write_all(&size)?;
                    to.write_all(b"\r\n")?;
                    match chunk_size(&size)? {
                        0 => break,
                        // With the line's end after it.
                        size => copy_exactly(size + 2, from, to)?,
                    }
                }
                loop {
                    let trailer = framing_line(from)?;
                    to.write_all(&trailer)?;
                    to.write_all(b"\r\n")?;
                    if trailer.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn copy_exactly(length: u64, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let copied = io::copy(&mut from.take(length), to)?;
    if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|b| *b == b';').next().unwrap_or(line).trim_ascii();
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()) && text.len() <= 15)
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "bad chunk size"))
}

fn framing_line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    match line(&mut from.take(HEAD_LIMIT)) {
        Ok(Some(line)) => Ok(line),
        Err(BadHead::Io(error)) => Err(error),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "bad chunk")),
    }
}

/// A line without its end; none at the end of the stream.
fn line<R: BufRead>(from: &mut io::Take<R>) -> Result<Option<Vec<u8>>, BadHead> {
    let mut text = Vec::new();
    from.read_until(b'\n', &mut text).map_err(BadHead::Io)?;
    match text.strip_suffix(b"\r\n") {
        Some(line) if line.iter().any(|b| matches!(b, b'\r' | 0)) => {
            Err(BadHead::Malformed("a control character"))
        }
        Some(line) => Ok(Some(line.to_vec())),
        None if from.limit() == 0 => Err(BadHead::TooLong),
        None if text.is_empty() => Ok(None),
        None => Err(BadHead::Malformed("a line without its end")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str) -> Result<Head, BadHead> {
        Head::read(&mut text.as_bytes())
    }

    #[test]
    fn a_request_has_a_host_and_a_path() {
        for (text, host, path) in [
            ("GET /a?b HTTP/1.1\r\nHost: x.y:80\r\n\r\n", "x.y:80", "/a?b"),
            ("GET http://z/p HTTP/1.1\r\nhost: x\r\n\r\n", "z", "/p"),
            ("GET http://z HTTP/1.1\r\nhost: x\r\n\r\n", "z", "/"),
            ("GET / HTTP/1.0\r\n\r\n", "", "/"),
        ] {
            let head = head(text).unwrap();
            let request = head.request().unwrap();
            assert_eq!((request.host, request.path), (host, path), "{text}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            "GET / HTTP/1.1\nHost: x\n\n",
            "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n",
        ] {
            assert!(matches!(head(text), Err(BadHead::Malformed(_))), "{text:?}");
        }
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET /  HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/2\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        ] {
            assert!(head(text).unwrap().request().is_err(), "{text:?}");
        }
        for fields in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Content-Length: +1",
            "Content-Length: 99999999999999999999999",
        ] {
            let head = head(&format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n")).unwrap();
            assert!(head.body(Body::NONE).is_err(), "{fields}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(70_000));
        assert!(matches!(head(&long), Err(BadHead::TooLong)));
    }

    #[test]
    fn a_passed_head_closes_and_names_every_client() {
        let mut head = head(
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n\
             x-forwarded-for: 1.2.3.4\r\nUpgrade: h2c\r\n\r\n",
        )
        .unwrap();
        head.closing();
        head.append("X-Forwarded-For", "10.1.1.10");
        let mut text = Vec::new();
        head.write(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             X-Forwarded-For: 1.2.3.4, 10.1.1.10\r\n\r\n"
        );
    }

    #[test]
    fn bodies_end_where_they_say() {
        let copied = |body: Body, text: &str| {
            let mut from = text.as_bytes();
            let mut to = Vec::new();
            body.copy(&mut from, &mut to).map(|()| (to.len(), from.len()))
        };
        assert_eq!(copied(Body::Length(3), "abcd").unwrap(), (3, 1));
        assert!(copied(Body::Length(5), "abcd").is_err());
        let chunks = "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n";
        assert_eq!(copied(Body::Chunked, &format!("{chunks}rest")).unwrap(), (chunks.len(), 4));
        for bad in ["g\r\n", "-1\r\n", "3\r\nab", "fffffffffffffffff\r\n", "\u{fc}\r\n", ""] {
            assert!(copied(Body::Chunked, bad).is_err(), "{bad:?}");
        }
        assert_eq!(copied(Body::UntilClose, "abc").unwrap(), (3, 0));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(head) = Head::read(&mut &*bytes) {
                let _ = (head.request(), head.status(), head.body(Body::NONE));
            }
            let _ = Body::Chunked.copy(&mut &*bytes, &mut Vec::new());
        }

        #[test]
        fn what_is_written_is_what_was_read(
            fields in prop::collection::vec(("[A-Za-z-]{1,9}", "[ -~]{0,9}"), 0..6),
        ) {
            let lines: String = fields.iter().map(|(n, v)| format!("{n}:{v}\r\n")).collect();
            let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
            let head = Head::read(&mut text.as_bytes()).unwrap();
            let mut written = Vec::new();
            head.write(&mut written).unwrap();
            prop_assert_eq!(Head::read(&mut &*written).unwrap(), head);
        }
    }
}
