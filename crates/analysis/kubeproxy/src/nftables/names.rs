//! Names of chains and sets: eight letters of a hash, and the hashed text.

use std::net::IpAddr;

use super::{push, push_number};
use crate::names::PortHash;
use crate::plan::{Backend, PortPlan};

/// The parts of the names of one Service port.
pub(super) struct PortNames {
    hash: PortHash,
    /// `namespace/service/protocol/port`, as names show it.
    path: String,
    /// The part of names after `service-`, `local-`, `external-` and `firewall-`.
    pub(super) base: String,
}

/// The length to which kube-proxy cuts the part after the kind of chain.
const LONGEST: usize = 240;

impl PortNames {
    pub(super) fn new(port: &PortPlan<'_>) -> Self {
        // Names of namespaces and Services hold no colon.
        let (service, key) = port.name.split_once(':').unwrap_or((&port.name, ""));
        let path = [service, "/", port.protocol.lower(), "/", key].concat();
        let hash = PortHash::new(&path, "");
        let path = if path.chars().all(may_stand) {
            path
        } else {
            path.chars().map(|it| if may_stand(it) { it } else { '_' }).collect()
        };
        let base = base(&hash.letters(), &path, "");
        Self { hash, path, base }
    }

    /// Returns the part of an endpoint's names after `endpoint-` and `affinity-`. `end` is a
    /// buffer.
    pub(super) fn endpoint(&self, backend: &Backend, end: &mut String) -> String {
        let address = backend.address();
        end.clear();
        end.push_str("__");
        match backend.ip {
            IpAddr::V4(_) => end.push_str(address),
            IpAddr::V6(_) => end.extend(address.chars().map(|it| if it == ':' { '.' } else { it })),
        }
        end.push('/');
        push_number(end, usize::from(backend.port.number()));
        base(&self.hash.endpoint(end), &self.path, end)
    }
}

fn base(letters: &[u8; 16], path: &str, end: &str) -> String {
    let letters = std::str::from_utf8(&letters[..8]).unwrap_or_default();
    let mut name = String::with_capacity(letters.len() + 1 + path.len() + end.len());
    push(&mut name, &[letters, "-", path, end]);
    if name.len() > LONGEST {
        name.truncate(LONGEST - 3);
        name.push_str("...");
    }
    name
}

/// Returns whether a character may be in a name. All characters of valid Kubernetes names may.
fn may_stand(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/-_.".contains(letter)
}
