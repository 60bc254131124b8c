//! Domain names as CoreDNS compares them: fully qualified, with a trailing dot.

/// Converts a name to lower case, with a trailing dot.
pub(crate) fn normal(name: &str) -> String {
    qualified(&name.to_lowercase())
}

/// Adds a trailing dot if the name has none.
pub(crate) fn qualified(name: &str) -> String {
    if name.ends_with('.') { name.to_owned() } else { format!("{name}.") }
}

/// Returns whether a fully qualified name is in a zone.
pub(crate) fn is_within(zone: &str, name: &str) -> bool {
    if zone == "." {
        return true;
    }
    let Some(at) = name.len().checked_sub(zone.len()) else { return false };
    name.is_char_boundary(at)
        && name[at..].eq_ignore_ascii_case(zone)
        && (at == 0 || name[..at].ends_with('.'))
}

/// Returns the longest of the zones that contain a name.
pub(crate) fn zone_of<'z>(zones: &'z [String], name: &str) -> Option<&'z str> {
    let mut longest: Option<&str> = None;
    for zone in zones.iter().filter(|zone| is_within(zone, name)) {
        if longest.is_none_or(|known| zone.len() > known.len()) {
            longest = Some(zone);
        }
    }
    longest
}

/// Returns the labels before the zone, without the separating dot; empty for the zone itself.
pub(crate) fn below<'n>(name: &'n str, zone: &str) -> &'n str {
    if zone == "." {
        return name.strip_suffix('.').unwrap_or(name);
    }
    name[..name.len() - zone.len()].trim_end_matches('.')
}

/// Returns whether a name is valid on the wire: labels of 1 to 63 bytes, 255 bytes in total.
pub(crate) fn is_domain_name(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name);
    if labels.is_empty() {
        return name == ".";
    }
    labels.len() + 2 <= 255 && labels.split('.').all(|label| (1..=63).contains(&label.len()))
}

/// Parses a zone in a Corefile, without scheme and port. Returns `None` for an address range, whose
/// reverse names are never queried here.
pub(crate) fn zone_word(word: &str) -> Option<String> {
    let (_, rest) = scheme(word);
    let (host, _) = split_port(rest)?;
    (!host.contains('/')).then(|| normal(host))
}

/// Splits an address in a Corefile into its scheme and the rest.
pub(crate) fn scheme(word: &str) -> (&str, &str) {
    for scheme in ["tls", "dns", "quic", "grpc", "https", "unix"] {
        if let Some(rest) = word.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) {
            return (scheme, rest);
        }
    }
    ("dns", word)
}

/// Splits `zone:port`. Returns `None` if there is nothing after the colon.
pub(crate) fn split_port(word: &str) -> Option<(&str, Option<u16>)> {
    match word.rsplit_once(':') {
        Some((_, "")) => None,
        Some((zone, port)) => match port.parse() {
            Ok(port) => Some((zone, Some(port))),
            Err(_) => Some((word, None)),
        },
        None => Some((word, None)),
    }
}

/// Returns the zones given to a plugin, or else those of its server block.
pub(crate) fn zones(words: &[String], of_block: &[String]) -> Vec<String> {
    match words {
        [] => of_block.to_vec(),
        _ => words.iter().filter_map(|word| zone_word(word)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_holds_whole_labels() {
        assert!(is_within(".", "a."));
        assert!(is_within("b.c.", "b.c."));
        assert!(is_within("b.c.", "a.B.c."));
        assert!(!is_within("b.c.", "ab.c."));
        assert!(!is_within("a.b.c.", "b.c."));
        assert_eq!(below("a.b.c.", "c."), "a.b");
        assert_eq!(below("c.", "c."), "");
        assert_eq!(below("a.b.", "."), "a.b");
        let zones = ["c.".to_owned(), "b.c.".to_owned()];
        assert_eq!(zone_of(&zones, "a.b.c."), Some("b.c."));
        assert_eq!(zone_of(&zones, "a."), None);
    }

    #[test]
    fn names_have_limits() {
        assert!(is_domain_name("a.b.") && is_domain_name("."));
        assert!(!is_domain_name("a..b.") && !is_domain_name("") && !is_domain_name(".a."));
        assert!(!is_domain_name(&format!("{}.", "a".repeat(64))));
        assert!(!is_domain_name(&"abcdefg.".repeat(33)));
    }
}
