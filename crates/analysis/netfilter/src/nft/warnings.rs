//! Warnings for nftables dumps with tables that are not printed in full.

use uturn_model::{Family, SourceName};

use crate::ParseError;

/// Warns about tables of `iptables-nft` with extensions whose options `nft` does not print,
/// unless an `iptables-save` dump contains them: `lacks` returns the name of the missing file of
/// a family.
pub(crate) fn warnings(
    source: impl Into<SourceName>,
    text: &str,
    lacks: impl Fn(Family) -> Option<&'static str>,
) -> Vec<ParseError> {
    let source = source.into();
    let mut warnings = Vec::new();
    let mut missing = None;
    for (line, number) in text.lines().zip(1u32..) {
        if let Some(head) = line.strip_prefix("table ") {
            missing = match head.split_ascii_whitespace().next() {
                Some("ip") => lacks(Family::V4).map(|file| (file, head)),
                Some("ip6") => lacks(Family::V6).map(|file| (file, head)),
                _ => None,
            };
        } else if let Some(at) = extension(line)
            && let Some((file, head)) = missing.take()
        {
            let table = head.trim_end_matches(['{', ' ']);
            let message = format!(
                "nft does not print what `xt` is told, here and perhaps further on in table \
                 {table}: these rules are walked both ways; capture {file} too"
            );
            warnings.push(ParseError::new(&source, number, at as u32 + 1, message));
        }
    }
    warnings
}

/// The place of an extension in a line, outside of quotes.
fn extension(line: &str) -> Option<usize> {
    let kinds = ["xt match ", "xt target ", "xt watcher "];
    let at = kinds.into_iter().filter_map(|kind| line.find(kind)).min()?;
    line[..at].matches('"').count().is_multiple_of(2).then_some(at)
}
