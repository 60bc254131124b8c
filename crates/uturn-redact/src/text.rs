//! Replaces words and addresses in any text.
//!
//! What a text is made of is found by its form: addresses, ranges and hardware addresses (also
//! within names, `ip-10-0-0-1` and `1.0.0.10.in-addr.arpa`), names that are the same in every
//! cluster, and words. Everything else (separators) stays. A word is replaced unless it is known:
//! the same word always becomes the same other word, wherever it stands, so that what was equal
//! stays equal and what was a part of a name stays one.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::is_meant;
use crate::names::Names;
use crate::words::{KNOWN, says_nothing};

/// What is known besides in texts of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vocabulary {
    /// Words that this kind of text has.
    pub(crate) words: Option<&'static HashSet<&'static str>>,
    /// Whether numbers stay, however large.
    pub(crate) keeps_numbers: bool,
    /// Whether words are compared without case.
    pub(crate) ignores_case: bool,
}

/// Texts of names alone.
pub(crate) const NAMES: Vocabulary =
    Vocabulary { words: None, keeps_numbers: false, ignores_case: false };
/// Names of hosts.
pub(crate) const HOSTS: Vocabulary =
    Vocabulary { words: None, keeps_numbers: false, ignores_case: true };

/// What is between brackets in regular expressions and says nothing.
const CLASSES: [&str; 12] = [
    "[a-z]",
    "[A-Z]",
    "[0-9]",
    "[a-z0-9]",
    "[a-z0-9-]",
    "[a-zA-Z0-9]",
    "[a-zA-Z0-9-]",
    "[a-zA-Z]",
    "[A-Za-z]",
    "[A-Za-z0-9]",
    "[0-9a-f]",
    "[a-zA-Z0-9_-]",
];

/// Replaces what a text says.
pub(crate) fn redact(text: &str, names: &mut Names, vocabulary: Vocabulary) -> String {
    let mut new = String::with_capacity(text.len() + 16);
    let (mut at, mut before) = (0, None::<char>);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let in_word = before.is_some_and(char::is_alphanumeric);
        let taken = match letter {
            '\\' => escaped(rest, &mut new),
            '[' => class(rest, &mut new),
            _ if in_word => 0,
            _ => address(rest, &text[..at], names, &mut new)
                .or_else(|| name(rest, &mut new))
                .or_else(|| word(rest, names, vocabulary, &mut new))
                .unwrap_or(0),
        };
        let end = match taken {
            0 => {
                new.push(letter);
                at + letter.len_utf8()
            }
            _ => at + taken,
        };
        before = text[at..end].chars().next_back();
        at = end;
    }
    new
}

/// The original of a text, by tables from new to old.
pub(crate) fn restored(
    text: &str,
    words: &BTreeMap<String, String>,
    addresses: &BTreeMap<String, String>,
) -> String {
    let of = |letter: char| letter.is_alphanumeric();
    let mut new = String::with_capacity(text.len());
    let (mut rest, mut in_word) = (text, false);
    while let Some(letter) = rest.chars().next() {
        let ip = run(rest, |letter| letter.is_ascii_hexdigit() || ".:".contains(letter));
        let ip = (1..=ip).rev().filter(|end| !in_word && ends(&rest[*end..])).find_map(|end| {
            let old = addresses.get(&rest[..end]).cloned();
            let old = old.or_else(|| range(&rest[..end], &rest[end..], addresses));
            Some((old.or_else(|| dotted_v6(&rest[..end], addresses))?, end))
        });
        let dashed = || {
            let (ip, end) = four(rest, '-').filter(|(_, end)| !in_word && ends(&rest[*end..]))?;
            Some((addresses.get(&ip.to_string())?.replace('.', "-"), end))
        };
        let end = if let Some((old, end)) = ip {
            new.push_str(&old);
            end
        } else if let Some((old, end)) = dashed() {
            new.push_str(&old);
            end
        } else {
            let end = run(rest, of).max(letter.len_utf8());
            new.push_str(words.get(&rest[..end]).map_or(&rest[..end], String::as_str));
            end
        };
        in_word = rest[..end].ends_with(of);
        rest = &rest[end..];
    }
    new
}

/// The original of an address of IPv6 in the name of a chain, in which dots stand for the colons.
fn dotted_v6(ip: &str, addresses: &BTreeMap<String, String>) -> Option<String> {
    let ip: Ipv6Addr = ip.replace('.', ":").parse().ok()?;
    Some(addresses.get(&ip.to_string())?.replace(':', "."))
}

/// The original of a range's first address, by one that is in it.
fn range(ip: &str, rest: &str, addresses: &BTreeMap<String, String>) -> Option<String> {
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let (length, _) = length(rest, most).filter(|(length, _)| *length > 0)?;
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let first = |ip: IpAddr| bits(ip) >> (128 - u32::from(length)) << (128 - u32::from(length));
    let mut known = addresses
        .iter()
        .filter_map(|(new, old)| Some((new.parse::<IpAddr>().ok()?, old.parse::<IpAddr>().ok()?)));
    let (_, old) =
        known.find(|(new, _)| new.is_ipv4() == ip.is_ipv4() && first(*new) == bits(ip))?;
    Some(match old {
        IpAddr::V4(_) => Ipv4Addr::from_bits((first(old) >> 96) as u32).to_string(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(first(old)).to_string(),
    })
}

/// A letter after a backslash, as in regular expressions.
fn escaped(rest: &str, new: &mut String) -> usize {
    let length = rest.chars().take(2).map(char::len_utf8).sum();
    let is_letter = rest[1..].starts_with(|letter: char| letter.is_ascii_alphabetic());
    // What follows is a word of its own only after a class such as \d.
    let is_class = is_letter && !rest[length..].starts_with(char::is_alphanumeric);
    match is_class {
        true => {
            new.push_str(&rest[..length]);
            length
        }
        false => 0,
    }
}

fn class(rest: &str, new: &mut String) -> usize {
    let Some(found) = CLASSES.iter().find(|class| rest.starts_with(**class)) else { return 0 };
    new.push_str(found);
    found.len()
}

fn name(rest: &str, new: &mut String) -> Option<usize> {
    let found = KNOWN.name_at(rest)?;
    new.push_str(found);
    Some(found.len())
}

fn word(rest: &str, names: &mut Names, vocabulary: Vocabulary, new: &mut String) -> Option<usize> {
    let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
    let word = rest.get(..end).filter(|word| !word.is_empty())?;
    let is_number = || word.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = says_nothing(word)
        || KNOWN.has(word)
        || vocabulary.words.is_some_and(|words| words.contains(word))
        || (vocabulary.keeps_numbers && is_number());
    if is_known {
        new.push_str(word);
        return Some(end);
    }
    let other = interface(word, names).unwrap_or_else(|| match vocabulary.ignores_case {
        true => names.word(&word.to_lowercase()),
        false => names.word(word),
    });
    new.push_str(&other);
    Some(end)
}

/// The names of network interfaces, of which the beginning says who made them.
fn interface(word: &str, names: &mut Names) -> Option<String> {
    const NUMBERED: [&str; 12] =
        ["eth", "ens", "eno", "bond", "dummy", "tun", "tap", "tunl", "wlan", "sit", "gre", "if"];
    const HASHED: [&str; 9] =
        ["cali", "veth", "lxc", "eni", "azv", "gke", "vnet", "nic", "tapcali"];
    let is_numbered = NUMBERED.iter().any(|begins| {
        word.strip_prefix(begins).is_some_and(|rest| {
            (1..=3).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    if is_numbered {
        return Some(word.to_owned());
    }
    let (begins, rest) =
        HASHED.iter().find_map(|begins| Some((begins, word.strip_prefix(begins)?)))?;
    let is_hash = rest.len() >= 6 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| format!("{begins}{}", names.word(rest)))
}

/// An address at the beginning of a text. Returns how long it is.
fn address(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let first = rest.chars().next()?;
    if !(first.is_ascii_hexdigit() || first == ':') {
        return None;
    }
    reverse(rest, names, new)
        .or_else(|| with_colons(rest, before, names, new))
        .or_else(|| dotted(rest, before, names, new))
        .or_else(|| dashed(rest, before, names, new))
}

/// How many characters from the beginning are of these.
fn run(text: &str, is_of: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_of(letter)).unwrap_or(text.len())
}

/// A range's length after an address: `/24`.
fn length(rest: &str, most: u8) -> Option<(u8, usize)> {
    let digits = rest.strip_prefix('/')?;
    let end = run(digits, |letter| letter.is_ascii_digit());
    let length: u8 = digits[..end].parse().ok()?;
    let ends = !digits[end..].starts_with(char::is_alphanumeric);
    (length <= most && ends && end <= 3).then_some((length, end + 1))
}

fn ends(rest: &str) -> bool {
    !rest.starts_with(|letter: char| letter.is_alphanumeric())
}

/// Notes an address or a range, and writes what stands for it.
fn put(ip: IpAddr, rest: &str, names: &mut Names, new: &mut String) -> usize {
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let length = length(rest, most);
    if length.is_some_and(|(length, _)| is_meant(ip, length)) {
        new.push_str(&ip.to_string());
    } else {
        new.push_str(&names.address(ip).to_string());
        length.inspect(|(length, _)| names.range(ip, *length));
    }
    let long = length.map_or(0, |(_, long)| long);
    new.push_str(&rest[..long]);
    long
}

fn with_colons(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let of = |letter: char| letter.is_ascii_hexdigit() || letter == ':' || letter == '.';
    let mut end = run(rest, of);
    let colons = rest[..end].matches(':').count();
    if colons < 2 || before.ends_with(':') {
        return None;
    }
    while let Some(text) = rest.get(..end).filter(|text| text.matches(':').count() >= 2) {
        if let Ok(ip) = text.parse::<Ipv6Addr>()
            && ends(&rest[end..])
        {
            return Some(end + put(ip.into(), &rest[end..], names, new));
        }
        if is_hardware(text) && ends(&rest[end..]) {
            new.push_str(&names.hardware(text));
            return Some(end);
        }
        match text.ends_with([':', '.']) {
            true => end -= 1,
            false => return None,
        }
    }
    None
}

/// Whether this is a hardware address.
fn is_hardware(text: &str) -> bool {
    let mut parts = text.split(':');
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|own| own.is_ascii_hexdigit());
    parts.clone().count() == 6 && parts.all(is_byte)
}

fn dotted(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let (ip, end) = four(rest, '.')?;
    // `v1.2.3.4` is a version.
    let goes_on = rest[end..].starts_with(char::is_alphanumeric) || after_number(before, '.');
    if goes_on {
        return None;
    }
    Some(end + put(ip.into(), &rest[end..], names, new))
}

fn dashed(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let (ip, end) = four(rest, '-')?;
    let follows = rest[end..].strip_prefix('-').unwrap_or(&rest[end..]);
    let is_longer = follows.starts_with(|letter: char| letter.is_ascii_digit());
    let precedes = after_number(before, '-');
    if is_longer || precedes || !ends(&rest[end..]) {
        return None;
    }
    new.push_str(&names.address(ip.into()).to_string().replace('.', "-"));
    Some(end)
}

/// Whether a text ends with a digit and this separator.
fn after_number(text: &str, separator: char) -> bool {
    let text = text.strip_suffix(separator);
    text.is_some_and(|text| text.ends_with(|letter: char| letter.is_ascii_digit()))
}

/// Four numbers below 256 with a separator between them, and how long they are.
fn four(rest: &str, separator: char) -> Option<(Ipv4Addr, usize)> {
    let (mut octets, mut at) = ([0; 4], 0);
    for (place, octet) in octets.iter_mut().enumerate() {
        if place > 0 {
            rest[at..].strip_prefix(separator)?;
            at += 1;
        }
        let digits = run(&rest[at..], |letter| letter.is_ascii_digit());
        let text = &rest[at..at + digits];
        *octet = text.parse().ok().filter(|_| digits <= 3)?;
        at += digits;
    }
    Some((octets.into(), at))
}

/// A zone of reverse names: `0.10.in-addr.arpa`, `8.b.d.0.1.0.0.2.ip6.arpa`.
fn reverse(rest: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let end = run(rest, |letter| letter.is_ascii_hexdigit() || letter == '.');
    let (parts, is_v6) = match (rest.get(..end)?, &rest[end..]) {
        (parts, after) if after.starts_with("in-addr.arpa") => (parts, false),
        (parts, after) if after.starts_with("ip6.arpa") => (parts, true),
        _ => return None,
    };
    let parts: Vec<&str> = parts.strip_suffix('.')?.split('.').rev().collect();
    let bits = if is_v6 { 4 } else { 8 };
    let most = if is_v6 { 32 } else { 4 };
    if parts.len() > most {
        return None;
    }
    let base = if is_v6 { 16 } else { 10 };
    let mut value = 0_u128;
    for (place, part) in parts.iter().enumerate() {
        let part = u8::from_str_radix(part, base).ok().filter(|part| !is_v6 || *part < 16)?;
        value |= u128::from(part) << (128 - bits * (place + 1));
    }
    let ip: IpAddr = match is_v6 {
        true => Ipv6Addr::from_bits(value).into(),
        false => Ipv4Addr::from_bits((value >> 96) as u32).into(),
    };
    let length = u8::try_from(bits * parts.len()).ok()?;
    if is_meant(ip, length) {
        new.push_str(&rest[..end]);
        return Some(end);
    }
    if parts.len() < most {
        names.range(ip, length);
    }
    let mapped = match names.address(ip) {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let part = |place: usize| {
        let part = mapped >> (128 - bits * (place + 1)) & ((1 << bits) - 1);
        if is_v6 { format!("{part:x}") } else { part.to_string() }
    };
    for place in (0..parts.len()).rev() {
        new.push_str(&part(place));
        new.push('.');
    }
    Some(end)
}
