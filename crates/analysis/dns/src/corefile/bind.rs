//! The plugin `bind`: the addresses at which a server block listens.

use std::net::IpAddr;

use crate::dispenser::Dispenser;
use crate::fault::Fault;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bind {
    Address(IpAddr),
    /// An interface, or a placeholder that node-local-dns replaces.
    Other(String),
}

/// Parses the tokens of all `bind` directives of a server block. Duplicates are kept.
pub(crate) fn read(words: &mut Dispenser<'_>) -> Result<Vec<Bind>, Fault> {
    let mut binds = Vec::new();
    while words.advance() {
        let listed = words.arguments();
        if listed.is_empty() {
            return words.fault("bind expects at least one address or interface");
        }
        binds.extend(listed);
        while words.next_in_block() {
            let option = words.value();
            let arguments = words.arguments();
            match (option, arguments.as_slice()) {
                ("except", []) => {
                    return words.fault("except expects at least one address or interface");
                }
                // This also excludes addresses of interfaces, which are not known.
                ("except", _) => binds.retain(|bind| !arguments.contains(bind)),
                _ => return words.fault(format!("bind does not know {option}")),
            }
        }
    }
    let bind = |word: String| word.parse().map_or(Bind::Other(word), Bind::Address);
    Ok(binds.into_iter().map(bind).collect())
}
