//! Parses the target of a rule, and checks that it has what it needs.

use uturn_model::Family;

use super::{Reader, Stop, fault, stop};
use crate::end::RejectWith;
use crate::iptables::match_options::is_complete;
use crate::iptables::token::{self, Token};
use crate::iptables::{ConnmarkOp, IpNet, NatPorts, NatTo, Target, Tproxy};

impl Reader<'_, '_> {
    pub(super) fn target(&mut self, goto: bool) -> Result<(), Stop> {
        let word = self.args.value().map_err(stop)?;
        let name = &*word.text;
        let next = self.args.words.get(self.args.at).map_or("", Token::bare);
        let is_chain = name.len() > MAX_TARGET_NAME && !goto && !next.starts_with("--");
        if is_chain
            && token::is_plain(name)
            && let Some(written) = word.as_written()
        {
            self.jump = Some(written);
            return Ok(());
        }
        let modelled = !self.as_written.iter().any(|written| written == name);
        let chain = self.chains.find(name).and_then(|at| self.chains.name(at));
        if chain.is_none() && !token::is_plain(name) {
            return Err(fault(word, "expected a chain or a target"));
        }
        let target = match (chain, goto) {
            (Some(chain), false) => Target::Jump(chain.clone()),
            (Some(chain), true) => Target::Goto(chain.clone()),
            (None, true) => Target::Goto(name.into()),
            (None, false) => match name {
                "ACCEPT" => Target::Accept,
                "DROP" => Target::Drop,
                "RETURN" => Target::Return,
                "REJECT" if modelled => Target::Reject(RejectWith::default_for(self.args.family)),
                "MARK" if modelled => Target::Mark { value: 0, mask: 0 },
                "CONNMARK" if modelled => Target::Connmark(ConnmarkOp::Set { value: 0, mask: 0 }),
                "DNAT" if modelled => Target::Dnat(NAT_TO_NOTHING),
                "SNAT" if modelled => Target::Snat(NAT_TO_NOTHING),
                "MASQUERADE" if modelled => Target::Masquerade(NatPorts::default()),
                "REDIRECT" if modelled => Target::Redirect(NatPorts::default()),
                "NETMAP" if modelled => Target::Netmap(all_addresses(self.args.family)),
                "TPROXY" if modelled => Target::Tproxy(Tproxy::default()),
                "TRACE" => Target::Trace,
                "NOTRACK" => Target::Notrack { ct: false },
                "CT" if modelled && next == "--notrack" => {
                    self.args.at += 1;
                    Target::Notrack { ct: true }
                }
                "LOG" | "NFLOG" | "ULOG" => Target::Log(self.extension(name)),
                _ if EXTENSIONS.contains(&name) || next.starts_with("--") => {
                    Target::Other(self.extension(name))
                }
                _ if name.starts_with(['-', '!']) => {
                    return Err(fault(word, "expected a chain or a target"));
                }
                _ => Target::Jump(name.into()),
            },
        };
        self.rule.target = Some(target);
        Ok(())
    }

    pub(super) fn check(&self, target_at: Option<u32>) -> Result<(), Stop> {
        for (item, (count, column)) in self.rule.matches.iter().zip(&self.open) {
            if !is_complete(item, *count) {
                return Err(Stop::Fault(*column, "found a match without what it asks for".into()));
            }
        }
        let lacks = match &self.rule.target {
            Some(Target::Mark { .. }) if self.count == 0 => "--set-xmark",
            Some(Target::Connmark(_)) if self.count == 0 => {
                "--set-xmark, --save-mark or --restore-mark"
            }
            Some(Target::Netmap(_)) if self.count == 0 => "--to",
            Some(Target::Tproxy(_)) if self.count == 0 => "--on-port",
            Some(Target::Dnat(NatTo { addresses: None, ports: None, .. })) => "--to-destination",
            Some(Target::Snat(NatTo { addresses: None, ports: None, .. })) => "--to-source",
            _ => return Ok(()),
        };
        Err(Stop::Fault(target_at.unwrap_or(1), format!("found a target without {lacks}")))
    }
}

const NAT_TO_NOTHING: NatTo =
    NatTo { addresses: None, ports: None, random: false, random_fully: false, persistent: false };

/// The network of all addresses of a family.
fn all_addresses(family: Family) -> IpNet {
    match family {
        Family::V4 => ipnet::Ipv4Net::default().into(),
        Family::V6 => ipnet::Ipv6Net::default().into(),
    }
}

/// The longest name of a target that is modelled or is valid without an option.
const MAX_TARGET_NAME: usize = "CONNSECMARK".len();

/// Unmodelled targets that are valid without an option.
const EXTENSIONS: [&str; 28] = [
    "AUDIT",
    "CHECKSUM",
    "CLASSIFY",
    "CLUSTERIP",
    "CONNSECMARK",
    "CT",
    "DNPT",
    "DSCP",
    "ECN",
    "HL",
    "HMARK",
    "IDLETIMER",
    "LED",
    "MIRROR",
    "NETMAP",
    "NFQUEUE",
    "QUEUE",
    "RATEEST",
    "SECMARK",
    "SET",
    "SNPT",
    "SYNPROXY",
    "TARPIT",
    "TCPMSS",
    "TEE",
    "TOS",
    "TPROXY",
    "TTL",
];

/// Whether an unknown option may belong to the target, so that the target is kept as written.
pub(super) fn takes_options(target: &Target) -> bool {
    matches!(
        target,
        Target::Reject(_)
            | Target::Mark { .. }
            | Target::Connmark(_)
            | Target::Dnat(_)
            | Target::Snat(_)
            | Target::Masquerade(_)
            | Target::Redirect(_)
            | Target::Netmap(_)
            | Target::Tproxy(_)
            | Target::Notrack { ct: true }
    )
}

pub(super) fn target_name(target: &Target) -> &str {
    match target {
        Target::Accept => "ACCEPT",
        Target::Drop => "DROP",
        Target::Return => "RETURN",
        Target::Reject(_) => "REJECT",
        Target::Jump(chain) | Target::Goto(chain) => chain,
        Target::Mark { .. } => "MARK",
        Target::Connmark(_) => "CONNMARK",
        Target::Dnat(_) => "DNAT",
        Target::Snat(_) => "SNAT",
        Target::Masquerade(_) => "MASQUERADE",
        Target::Redirect(_) => "REDIRECT",
        Target::Netmap(_) => "NETMAP",
        Target::Tproxy(_) => "TPROXY",
        Target::Trace => "TRACE",
        Target::Notrack { ct: false } => "NOTRACK",
        Target::Notrack { ct: true } => "CT",
        Target::Log(extension) | Target::Other(extension) => &extension.name,
    }
}
