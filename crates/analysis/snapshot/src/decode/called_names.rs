//! Finds the names that a command line, an environment or a file calls: the hosts of URLs, of `HOST:PORT`,
//! and names below `svc`. Everything else is ignored, so that no word is taken for a name.

use uturn_model::Port;
use uturn_model::pod::CalledName;

/// The maximum number of names that are kept of a container.
const MAX_NAMES: usize = 64;

/// The schemes whose port is known.
const SCHEMES: [(&str, u16); 4] = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];

/// The maximum number of bytes of a file that are looked through.
const MAX_FILE: usize = 1 << 18;

/// Returns the names in some texts, each once.
pub(crate) fn read<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<CalledName> {
    let commands = texts.flat_map(commands).filter(|command| !asks_stated_server(command));
    let mut all: Vec<CalledName> =
        commands.flat_map(words).filter_map(name).take(MAX_NAMES).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Splits a text where a shell's command would end.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '|', '&', '\n'])
}

/// Returns whether a command looks up a name at a server that it states. What the caller's own
/// resolver knows then says nothing about the name.
fn asks_stated_server(command: &str) -> bool {
    let command = command.split(['<', '>']).next().unwrap_or_default();
    let is_tool = |word: &str, tools: &[&str]| {
        let tool = word.rsplit(['/', '=', '(', '"', '\'', '`']).next();
        tool.is_some_and(|tool| tools.contains(&tool))
    };
    let after = |tools: &[&str]| {
        let mut words = command.split_whitespace();
        words.by_ref().find(|word| is_tool(word, tools)).map(|_| words)
    };
    let by_place = after(&["nslookup", "host"])
        .is_some_and(|words| words.filter(|word| !word.starts_with('-')).count() > 1);
    let by_sign = after(&["dig", "kdig", "drill"])
        .is_some_and(|mut words| words.any(|word| word.starts_with('@')));
    by_place || by_sign
}

/// Returns the names in a file without its comments, each once.
pub(crate) fn read_file(text: &str) -> Vec<CalledName> {
    let text = match text.char_indices().map(|(at, _)| at).find(|at| *at > MAX_FILE) {
        Some(end) if text.len() > MAX_FILE => &text[..end],
        _ => text,
    };
    read(text.lines().map(without_comment))
}

/// Returns what a line of a configuration says before a comment.
fn without_comment(line: &str) -> &str {
    let line = line.trim_start();
    if ["#", "//", ";", "--"].iter().any(|sign| line.starts_with(sign)) {
        return "";
    }
    line.split_once(" #").map_or(line, |(said, _)| said)
}

/// Splits a text into words that may be a URL or an address, without the name of an option before
/// them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| letter.is_whitespace() || ",;\"'`|<>[]{}".contains(letter);
    text.split(is_end).map(|word| match word.split_once('=') {
        Some((option, value)) if !option.contains("://") => value,
        _ => word,
    })
}

fn name(word: &str) -> Option<CalledName> {
    let (scheme, rest) = match word.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, word),
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = match (scheme, authority.rsplit_once('@')) {
        (Some(_), Some((_, host))) => host,
        (_, None) => authority,
        (None, Some(_)) => return None,
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port.parse::<Port>().ok()?)),
        None => (authority, None),
    };
    let usual = || {
        let known = SCHEMES.iter().find(|(known, _)| scheme == Some(*known))?;
        Port::new(known.1)
    };
    let is_below_svc = host.ends_with(".svc") || host.contains(".svc.");
    let is_called = scheme.is_some() || port.is_some() || is_below_svc;
    (is_called && is_host(host)).then(|| CalledName {
        host: host.into(),
        port: port.or_else(usual),
        stated_in: None,
        is_supposed: false,
    })
}

/// Returns whether a text is a name as Services have it: in lower case, and no address.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        label.len() <= 63
            && label.bytes().all(|byte| is_letter(byte) || byte == b'-')
            && label.bytes().next().is_some_and(is_letter)
            && !label.ends_with('-')
    };
    text.len() <= 253
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.trim_end_matches('.').split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let port = |port: Option<Port>| port.map_or_else(String::new, |port| format!(":{port}"));
        let all = read([text].into_iter());
        all.iter().map(|name| format!("{}{}", name.host, port(name.port))).collect()
    }

    #[test]
    fn hosts_of_urls_and_addresses_are_names() {
        for (text, expected) in [
            ("http://shop:5000/path?a=b", &["shop:5000"][..]),
            ("http://shop", &["shop:80"]),
            ("--url=https://user:pass@shop.web.svc/x", &["shop.web.svc:443"]),
            ("postgres://app:secret@db.data:5432/app?sslmode=off", &["db.data:5432"]),
            ("URL=redis://cache", &["cache"]),
            ("a-0.a:9092,a-1.a:9092", &["a-0.a:9092", "a-1.a:9092"]),
            ("shop.web.svc.cluster.local", &["shop.web.svc.cluster.local"]),
            ("until nc -z db:5432; do sleep 1; done", &["db:5432"]),
            ("until nslookup db.data.svc; do sleep 1; done", &["db.data.svc"]),
            ("-cmd=nslookup a.svc 127.0.0.1 >/dev/null && curl b:80", &["b:80"]),
            ("nslookup -type=a a.svc > /dev/null", &["a.svc"]),
            ("/usr/bin/dig +short a.svc @10.96.0.10", &[]),
            ("dig +short a.svc", &["a.svc"]),
            ("--listen=0.0.0.0:8080", &[]),
            ("127.0.0.1:80", &[]),
            ("http://[::1]:80/", &[]),
            ("shop", &[]),
            ("shop.web", &[]),
            ("user@shop:22", &[]),
            ("12:30", &[]),
            ("http://$(HOST):80", &[]),
            ("Shop:80", &[]),
            ("key:value", &[]),
            ("nginx:1.27", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_of_a_file_state_no_call() {
        let text = "# http://old:80\nurl: http://shop:80 # or http://other:80\n  // a:1\npeers: [b:2,c:3]\n";
        let all = read_file(text);
        let hosts: Vec<&str> = all.iter().map(|name| &*name.host).collect();
        assert_eq!(hosts, ["b", "c", "shop"]);
    }

    #[test]
    fn the_beginning_of_a_long_file_is_read() {
        let text = format!("a:1 {} b:2", "ö ".repeat(MAX_FILE));
        let all = read_file(&text);
        assert_eq!(all.iter().map(|name| &*name.host).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn names_of_a_container_have_an_end() {
        let text: String = (0..1_000).map(|number| format!("s{number}:80 ")).collect();
        assert_eq!(found(&text).len(), MAX_NAMES);
    }
}
