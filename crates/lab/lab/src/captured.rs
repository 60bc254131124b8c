//! Selects the parts of a capture that are loaded: `nft list ruleset` also lists the tables of
//! iptables-nft.

use uturn_model::{Capture, CaptureFile};

/// The tables of iptables-nft, which `iptables.save` contains as well.
const TABLES: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];

/// Returns a captured file's text, or an empty text if it was not captured.
pub(crate) fn text(capture: &Capture, file: CaptureFile) -> &str {
    capture.files.get(&file).map_or("", |captured| &captured.text)
}

/// Returns the tables of `nft list ruleset` that no other file of the capture has.
pub(crate) fn own_tables(capture: &Capture) -> String {
    let mut own = String::new();
    let mut is_own = true;
    for line in text(capture, CaptureFile::Nft).lines() {
        if let Some(table) = line.strip_prefix("table ") {
            is_own = !is_of_iptables(capture, table);
        }
        if is_own && !line.starts_with('#') {
            own.push_str(line);
            own.push('\n');
        }
    }
    own
}

/// Returns whether a table (`ip nat {`) is one that iptables keeps and another file contains.
fn is_of_iptables(capture: &Capture, table: &str) -> bool {
    let mut words = table.split_ascii_whitespace();
    let file = match words.next() {
        Some("ip") => CaptureFile::Iptables,
        Some("ip6") => CaptureFile::Ip6tables,
        _ => return false,
    };
    capture.files.contains_key(&file) && words.next().is_some_and(|name| TABLES.contains(&name))
}

#[cfg(test)]
mod tests {
    use uturn_model::capture::CapturedText;

    use super::*;

    #[test]
    fn what_iptables_shows_is_not_loaded_twice() {
        let nft = "# Warning: table ip nat is managed by iptables-nft, do not touch!\n\
                   table ip nat {\n\tchain A {\n\t}\n}\n\
                   table ip kube-proxy {\n\tchain B {\n\t}\n}\n\
                   table ip6 nat {\n}\n";
        let captured = |text: &str| CapturedText { path: "x".into(), text: text.into() };
        let mut capture = Capture { node: "n1".parse().unwrap(), files: [].into_iter().collect() };
        capture.files.insert(CaptureFile::Nft, captured(nft));
        assert!(own_tables(&capture).contains("table ip nat {"));
        capture.files.insert(CaptureFile::Iptables, captured("*nat\nCOMMIT\n"));
        assert_eq!(
            own_tables(&capture),
            "table ip kube-proxy {\n\tchain B {\n\t}\n}\ntable ip6 nat {\n}\n"
        );
    }
}
