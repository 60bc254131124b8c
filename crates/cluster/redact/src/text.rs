//! Replaces words and addresses in any text.
//!
//! The parts of a text are recognised by their form: addresses, ranges and hardware addresses (also
//! within names, `ip-10-0-0-1` and `1.0.0.10.in-addr.arpa`), names that are the same in every
//! cluster, and words. Everything else (separators) is kept. A word is replaced unless it is known:
//! the same word always gets the same replacement, wherever it occurs, so that equal words stay
//! equal and parts of a name stay parts of a name.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::is_meant;
use crate::links;
use crate::names::Names;
use crate::words::{KNOWN, says_nothing};

/// The additional knowledge about texts of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vocabulary {
    /// The known words of this kind of text.
    pub(crate) words: Option<&'static HashSet<&'static str>>,
    /// Whether numbers of any size are kept.
    pub(crate) keeps_numbers: bool,
    /// Whether numbers of any size are replaced: a telephone number consists of numbers.
    pub(crate) hides_numbers: bool,
    /// Whether words are compared without case.
    pub(crate) ignores_case: bool,
}

/// The vocabulary of texts that only consist of names.
pub(crate) const NAMES: Vocabulary =
    Vocabulary { words: None, keeps_numbers: false, hides_numbers: false, ignores_case: false };
/// The vocabulary of host names.
pub(crate) const HOSTS: Vocabulary = Vocabulary { ignores_case: true, ..NAMES };
/// The vocabulary of protocols, whose names are read in any case.
pub(crate) const PROTOCOLS: Vocabulary = Vocabulary { ignores_case: true, ..NAMES };
/// The vocabulary of remarks on rules.
pub(crate) const REMARKS: Vocabulary = Vocabulary { hides_numbers: true, ..NAMES };

/// Replaces the words and addresses of a text.
pub(crate) fn redact(text: &str, names: &mut Names, vocabulary: Vocabulary) -> String {
    let mut new = String::with_capacity(text.len() + 16);
    let (mut at, mut before) = (0, None::<char>);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let in_word = before.is_some_and(char::is_alphanumeric);
        let taken = match letter {
            '\\' => escaped(rest, &mut new),
            '[' => class(rest, names, &mut new),
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
        // The text after an escape is a word of its own.
        let is_escape = letter == '\\' && taken > 0;
        before = text[at..end].chars().next_back().filter(|_| !is_escape);
        at = end;
    }
    new
}

/// Returns the original of a text, by tables from new to old.
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

/// Returns the original of an IPv6 address in the name of a chain, in which dots stand for colons.
fn dotted_v6(ip: &str, addresses: &BTreeMap<String, String>) -> Option<String> {
    let ip: Ipv6Addr = ip.replace('.', ":").parse().ok()?;
    Some(addresses.get(&ip.to_string())?.replace(':', "."))
}

/// Returns the original of a range's first address, by any address in the range.
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

/// Copies a letter after a backslash, as in regular expressions. Returns the number of bytes read.
fn escaped(rest: &str, new: &mut String) -> usize {
    /// The letters of classes and boundaries: the text after them is a word of its own.
    const CLASSES: &str = "bBdDwWsSAzZ";
    let length = rest.chars().take(2).map(char::len_utf8).sum();
    let is_letter = rest[1..].starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_class = rest[1..].starts_with(|letter| CLASSES.contains(letter))
        || is_letter && !rest[length..].starts_with(char::is_alphanumeric);
    if is_class {
        new.push_str(&rest[..length]);
        length
    } else {
        0
    }
}

/// Copies a class of a regular expression: ranges (`a-z`), signs, and no more than two letters in a
/// row, which do not form a word.
fn class(rest: &str, names: &mut Names, new: &mut String) -> usize {
    let Some(end) = rest.find(']') else { return 0 };
    let inner = &rest.as_bytes()[1..end];
    let (mut at, mut in_a_row) = (0, 0);
    while let Some(byte) = inner.get(at) {
        let is_range = inner.get(at + 1) == Some(&b'-')
            && inner.get(at + 2).is_some_and(u8::is_ascii_alphanumeric);
        match byte {
            _ if byte.is_ascii_alphanumeric() && is_range => (at, in_a_row) = (at + 3, 0),
            _ if byte.is_ascii_alphanumeric() && in_a_row < 2 => {
                (at, in_a_row) = (at + 1, in_a_row + 1);
            }
            b'\\' => (at, in_a_row) = (at + 2, 0),
            b'^' | b'.' | b'_' | b'~' | b'%' | b'+' | b'@' | b'$' | b'!' | b'*' | b'-' | b'/' => {
                (at, in_a_row) = (at + 1, 0);
            }
            _ => return 0,
        }
    }
    if inner.is_empty() || at > inner.len() {
        return 0;
    }
    if inner.iter().any(u8::is_ascii_alphabetic) {
        names.note_letters();
    }
    new.push_str(&rest[..=end]);
    end + 1
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
    let stays = |word: &str| KNOWN.has(word) || names.is_usual(word);
    let is_known = says_nothing(word) && !(vocabulary.hides_numbers && is_number())
        || stays(word)
        || (vocabulary.ignores_case && stays(&word.to_lowercase()))
        || vocabulary.words.is_some_and(|words| words.contains(word))
        || (vocabulary.keeps_numbers && is_number());
    if is_known {
        new.push_str(word);
        return Some(end);
    }
    let other = links::of_word(word, names).unwrap_or_else(|| {
        if vocabulary.ignores_case { names.word(&word.to_lowercase()) } else { names.word(word) }
    });
    new.push_str(&other);
    Some(end)
}

/// Replaces an address at the beginning of a text. Returns the number of bytes read.
fn address(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let first = rest.chars().next()?;
    if !(first.is_ascii_hexdigit() || first == ':') {
        return None;
    }
    reverse(rest, names, new)
        .or_else(|| with_colons(rest, before, names, new))
        .or_else(|| hexadecimal(rest, names, new))
        .or_else(|| hardware(rest, before, names, new))
        .or_else(|| dashed_v6(rest, before, names, new))
        .or_else(|| {
            ['.', '-', '_']
                .into_iter()
                .find_map(|separator| numbers(rest, before, separator, names, new))
        })
}

/// Returns the length in bytes of the beginning of a text whose characters all match.
fn run(text: &str, is_of: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_of(letter)).unwrap_or(text.len())
}

/// Reads the prefix length of a range after an address: `/24`.
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

/// Notes an address or a range, and writes its replacement.
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
        if text.ends_with([':', '.']) { end -= 1 } else { return None }
    }
    None
}

/// Returns whether a text is a hardware address.
fn is_hardware(text: &str) -> bool {
    let mut parts = text.split(':');
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|own| own.is_ascii_hexdigit());
    // Hardware addresses of InfiniBand have 20 bytes.
    matches!(parts.clone().count(), 6 | 20) && parts.all(is_byte)
}

/// Replaces an IPv4 address of four numbers with this separator: as such, or in a name
/// (`ip-10-0-0-1`). A longer row of numbers is searched for four that look like an address.
fn numbers(
    rest: &str,
    before: &str,
    separator: char,
    names: &mut Names,
    new: &mut String,
) -> Option<usize> {
    if follows_number(before, separator) {
        return None;
    }
    let mut ends = Vec::new();
    let mut at = 0;
    loop {
        let digits = run(&rest[at..], |letter| letter.is_ascii_digit());
        let is_whole = !rest[at + digits..].starts_with(char::is_alphanumeric);
        if digits == 0 || !is_whole {
            break;
        }
        ends.push((at, at + digits));
        at += digits;
        match rest[at..].strip_prefix(separator) {
            Some(_) => at += separator.len_utf8(),
            None => break,
        }
    }
    let found: Vec<(Ipv4Addr, usize, usize)> = ends
        .windows(4)
        .filter_map(|four| {
            let (start, end) = (four[0].0, four[3].1);
            let (ip, length) = self::four(&rest[start..], separator)?;
            // Dates have zeros before their digits.
            let is_padded =
                |(from, to): &(usize, usize)| to - from > 1 && rest[*from..].starts_with('0');
            let is_plain = separator == '.' || !four.iter().any(is_padded);
            (is_plain && start + length == end).then_some((ip, start, end))
        })
        .collect();
    let private = found.iter().find(|(ip, ..)| is_inner(*ip));
    let (ip, start, end) = *private.or(found.first())?;
    new.push_str(&rest[..start]);
    if separator == '.' {
        return Some(end + put(ip.into(), &rest[end..], names, new));
    }
    let other = names.address(ip.into()).to_string();
    new.push_str(&other.replace('.', separator.encode_utf8(&mut [0; 4])));
    Some(end)
}

/// Returns whether an address is one of private networks.
fn is_inner(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    ip.is_private() || (first == 100 && (64..128).contains(&second))
}

/// Returns whether a text ends with a number, which is not a part of a word, and this separator.
fn follows_number(text: &str, separator: char) -> bool {
    let Some(text) = text.strip_suffix(separator) else { return false };
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    number.len() < text.len() && !number.ends_with(char::is_alphanumeric)
}

/// Replaces an IPv6 address in which dashes stand for colons: `2001-db8--11`.
fn dashed_v6(rest: &str, before: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let end = run(rest, |letter| letter.is_ascii_hexdigit() || letter == '-');
    let text = rest[..end].trim_end_matches('-');
    let is_long = text.split('-').filter(|group| !group.is_empty()).count() >= 4
        && text.split('-').next().is_some_and(|first| first.len() >= 3);
    if !is_long || before.ends_with('-') || !ends(&rest[text.len()..]) {
        return None;
    }
    let ip: Ipv6Addr = text.replace('-', ":").parse().ok()?;
    let IpAddr::V6(other) = names.address(ip.into()) else { return None };
    let short = other.to_string();
    let groups = other.segments().map(|group| format!("{group:x}"));
    let other = if short.ends_with(':') { groups.join("-") } else { short.replace(':', "-") };
    new.push_str(&other);
    Some(text.len())
}

/// Replaces a hardware address with other separators: `00-50-56-12-34-56`, `0050.5612.3456`.
fn hardware(rest: &str, before: &str, names: &Names, new: &mut String) -> Option<usize> {
    let form = |separator: char, count: usize, digits: usize| {
        let end = run(rest, |letter| letter.is_ascii_hexdigit() || letter == separator);
        let text = &rest[..end];
        let mut parts = text.split(separator);
        let is_it = parts.clone().count() == count
            && parts.all(|part| part.len() == digits)
            && !before.ends_with(separator)
            && ends(&rest[end..]);
        is_it.then_some((text, separator, digits))
    };
    let (text, separator, digits) = form('-', 6, 2).or_else(|| form('.', 3, 4))?;
    let plain: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let pairs: Vec<&str> = (0..6).map(|at| &plain[2 * at..2 * at + 2]).collect();
    let other = names.hardware(&pairs.join(":")).replace(':', "");
    let parts: Vec<&str> =
        (0..12 / digits).map(|at| &other[digits * at..digits * (at + 1)]).collect();
    new.push_str(&parts.join(separator.encode_utf8(&mut [0; 4])));
    Some(text.len())
}

/// Replaces an address that is written as a hexadecimal number: `0x0a000001`.
fn hexadecimal(rest: &str, names: &Names, new: &mut String) -> Option<usize> {
    let digits = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    let end = run(digits, |letter| letter.is_ascii_hexdigit());
    if !(7..=8).contains(&end) || !ends(&digits[end..]) {
        return None;
    }
    let ip = Ipv4Addr::from_bits(u32::from_str_radix(&digits[..end], 16).ok()?);
    let IpAddr::V4(other) = names.known_address(ip.into())? else { return None };
    new.push_str(&format!("{}{:0end$x}", &rest[..2], other.to_bits()));
    Some(2 + end)
}

/// Reads four numbers below 256 with a separator between them. Returns them with their length.
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

/// Returns whether a text begins with another, ignoring case.
fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// Replaces a zone of reverse names: `0.10.in-addr.arpa`, `8.b.d.0.1.0.0.2.ip6.arpa`.
fn reverse(rest: &str, names: &mut Names, new: &mut String) -> Option<usize> {
    let end = run(rest, |letter| letter.is_ascii_hexdigit() || letter == '.');
    let (parts, is_v6) = match (rest.get(..end)?, &rest[end..]) {
        (parts, after) if begins(after, "in-addr.arpa") => (parts, false),
        (parts, after) if begins(after, "ip6.arpa") => (parts, true),
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
    let ip: IpAddr = if is_v6 {
        Ipv6Addr::from_bits(value).into()
    } else {
        Ipv4Addr::from_bits((value >> 96) as u32).into()
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
