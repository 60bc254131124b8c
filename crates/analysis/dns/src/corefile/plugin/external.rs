//! Plugins that are not modelled: those of CoreDNS, those of earlier releases, and those of custom
//! builds. The arguments that state which names a plugin answers are read; the rest is unknown.

use super::{ORDER, Plugin, Setup};
use crate::dispenser::Dispenser;
use crate::name;

/// The first minor release without `proxy`.
pub(crate) const WITHOUT_PROXY: u16 = 5;

/// The names that a plugin may answer.
enum Answered {
    /// The names in the zones that are the plugin's arguments, or else in those of the block.
    Zones,
    /// The names in the zone that is the plugin's first argument: it forwards them to other
    /// servers.
    From,
    /// The names in the zone that is the part of each argument with this number, between colons.
    ZoneIn(usize),
    /// The names for which other plugins have no record.
    Failures,
    /// No names: the plugin counts, limits, reports or reloads.
    Nothing,
    /// All names.
    All,
}

fn answered(plugin: &str) -> Answered {
    match plugin {
        "multicluster" | "k8s_gateway" | "kubernetai" | "lighthouse" | "kubenodes"
        | "federation" | "gslb" | "mdns" | "netbox" | "pdsql" | "records" | "redis" | "wgsd" => {
            Answered::Zones
        }
        "fanout" | "proxy" | "unbound" | "grpc" => Answered::From,
        "route53" | "clouddns" => Answered::ZoneIn(0),
        "azure" => Answered::ZoneIn(1),
        "alternate" => Answered::Failures,
        "rrl" | "k8s_event" | "dump" | "git" | "gravwell" => Answered::Nothing,
        "erratic" => Answered::All,
        known if ORDER.contains(&known) => Answered::Nothing,
        _ => Answered::All,
    }
}

/// Returns the plugin whose place in the order another plugin has. A plugin that forwards all names
/// to other servers is built in next to `forward`, after the plugins that have names of their own;
/// one that handles the failures of these is built in before it.
pub(crate) fn stands_at(plugin: &str) -> &str {
    match plugin {
        "proxy" | "fanout" | "unbound" => "forward",
        "alternate" => "loop",
        _ => plugin,
    }
}

/// Reads a plugin that is not modelled. Returns `None` for one that never answers.
pub(crate) fn read(plugin: &str, words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Option<Plugin> {
    if plugin == "tsig" {
        return tsig(words, setup);
    }
    let answered = answered(plugin);
    let mut zones = Vec::new();
    while words.advance() {
        let arguments = words.arguments();
        let part = |number: usize| {
            let parts = arguments.iter().filter_map(move |word| word.split(':').nth(number));
            parts.filter_map(name::zone_word).collect::<Vec<_>>()
        };
        let of_stanza = match answered {
            Answered::Zones => name::zones(&arguments, setup.zones),
            Answered::From => name::zones(arguments.get(..1).unwrap_or(&[]), setup.zones),
            Answered::ZoneIn(number) => part(number),
            Answered::Failures => return Some(Plugin::AfterFailure),
            Answered::Nothing => return None,
            Answered::All => return Some(Plugin::Unmodelled(vec![".".to_owned()])),
        };
        zones.extend(of_stanza);
        while words.next_in_block() {
            words.arguments();
        }
    }
    Some(Plugin::Unmodelled(zones))
}

/// Reads `tsig`, which refuses unsigned queries if it is configured to.
fn tsig(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Option<Plugin> {
    let mut zones = Vec::new();
    while words.advance() {
        let own = name::zones(&words.arguments(), setup.zones);
        let mut requires = false;
        while words.next_in_block() {
            let option = words.value();
            let arguments = words.arguments();
            requires |= option.starts_with("require") && !arguments.iter().all(|of| of == "none");
        }
        if requires {
            zones.extend(own);
        }
    }
    (!zones.is_empty()).then_some(Plugin::Unmodelled(zones))
}
