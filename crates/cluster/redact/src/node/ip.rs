//! Redacts the output of `ip addr`, `ip route`, `ip rule` and `sysctl`.

use super::iptables::tokens;
use super::printed;
use crate::links::link;
use crate::names::Names;
use crate::text::{REMARKS, redact};

/// The words that the name of an interface follows.
const BEFORE_LINKS: [&str; 6] = ["dev", "iif", "oif", "master", "altname", "label"];

/// Redacts a line of `ip addr`, `ip route` or `ip rule`.
pub(super) fn line(line: &str, names: &mut Names) -> String {
    let all: Vec<(&str, &str)> = tokens(line).collect();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // `2: eth0@if5: <BROADCAST,UP> mtu 1500`
    let declares = |at: usize| match all.get(..at) {
        Some([(number, _)]) => {
            let number = number.strip_suffix(':');
            number.is_some_and(|number| !number.is_empty() && is_number(number))
                && all[at].0.ends_with(':')
        }
        _ => false,
    };
    // `inet 10.0.0.11/24 brd 10.0.0.255 scope global eth0`
    let words: Vec<&str> =
        all.iter().map(|(token, _)| *token).filter(|own| !own.is_empty()).collect();
    let has_label = words.first() == Some(&"inet") && words.len() > 2;
    let last = all.iter().rposition(|(token, _)| !token.is_empty());
    let mut new = String::with_capacity(line.len());
    let mut before = "";
    for (at, (token, space)) in all.iter().enumerate() {
        if declares(at) {
            let own = token.trim_end_matches(':');
            let (own, peer) =
                own.split_once('@').map_or((own, None), |(own, peer)| (own, Some(peer)));
            new.push_str(&noted(own, names));
            if let Some(peer) = peer {
                new.push_str(&format!("@{}", noted(peer, names)));
            }
            new.push(':');
        } else if BEFORE_LINKS.contains(&before) || (has_label && Some(at) == last) {
            new.push_str(&noted(token, names));
        } else if before == "alias" {
            new.push_str(&redact(token, names, REMARKS));
            new.push_str(space);
            continue;
        } else {
            new.push_str(&redact(token, names, printed()));
        }
        new.push_str(space);
        before = token;
    }
    new
}

/// Redacts a line of `sysctl`. Some settings belong to an interface, in whose name a slash stands
/// for a dot.
pub(super) fn setting(line: &str, names: &mut Names) -> String {
    let (key, value) = line.split_once(" = ").unwrap_or((line, ""));
    let of_link = [".conf.", ".neigh."].into_iter().find_map(|part| {
        let (before, rest) = key.split_once(part)?;
        let (own, setting) = rest.rsplit_once('.')?;
        Some((format!("{before}{part}"), own, setting))
    });
    match of_link {
        Some((before, own, setting)) if own != "all" && own != "default" => {
            let own = noted(own, names);
            let value = redact(value, names, printed());
            format!("{before}{own}.{} = {value}", redact(setting, names, printed()))
        }
        _ => redact(line, names, printed()),
    }
}

/// Returns the replacement of an interface's name, and notes the name, as other files may contain
/// it.
fn noted(text: &str, names: &mut Names) -> String {
    names.note_link(text);
    link(text, names)
}
