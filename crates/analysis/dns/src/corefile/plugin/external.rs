//! Plugins that are not modelled: CoreDNS's own, those that it had once, and those that others build
//! into it. What their arguments say of the names that they answer is read; the rest is unknown.

use super::{ORDER, Plugin, Setup};
use crate::dispenser::Dispenser;
use crate::name;

/// The first minor release without `proxy`.
pub(crate) const WITHOUT_PROXY: u16 = 5;

/// The names that a plugin may answer.
enum Answered {
    /// Those in the zones that are its arguments, else in those of the block.
    Zones,
    /// Those in the zone that is its first argument: it hands them to other servers.
    From,
    /// Those in the zone that is the part of each argument with this number, between colons.
    ZoneIn(usize),
    /// Those that other plugins have no record of.
    Failures,
    /// None: it counts, limits, tells or reloads.
    Nothing,
    /// Any.
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

/// The plugin in whose place another one stands. One that hands all names to other servers is built in
/// beside `forward`, behind the plugins that have names of their own, and one that mends their
/// failures before it.
pub(crate) fn stands_at(plugin: &str) -> &str {
    match plugin {
        "proxy" | "fanout" | "unbound" => "forward",
        "alternate" => "loop",
        _ => plugin,
    }
}

/// Reads a plugin that is not modelled; `None` for one that never answers.
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

/// `tsig` refuses what is not signed, if it is told to.
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
