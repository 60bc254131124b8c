//! Runs the statements that rewrite addresses and ports, with and without conntrack.

use uturn_model::{Family, StepKind};

use super::super::Kernel;
use super::super::walk::{OpenBranches, Walk};
use super::compile_value::ip_of;
use super::eval::{NoValue, find};
use super::lookup::Data;
use super::run::Done;
use super::value::{Field, Nat, NatAddress};
use crate::end::EndKind;
use crate::iptables::{NatPorts, NatTo, PortRange, Target};
use crate::nft::NatKind;

impl Kernel {
    /// Rewrites an address or port without connection tracking.
    pub(super) fn rewrite(
        &self,
        field: Field,
        number: u128,
        at: (usize, usize),
        walk: &mut Walk,
    ) -> Done {
        let before = walk.packet.leg();
        let (mut after, v6) = (before, walk.packet.family() == Family::V6);
        match field {
            Field::Source { v6: wanted } if wanted == v6 => after.src.set_ip(ip_of(number, v6)),
            Field::Destination { v6: wanted } if wanted == v6 => {
                after.dst.set_ip(ip_of(number, v6));
            }
            Field::SourcePort(_) => after.src.set_port(number as u16),
            Field::DestinationPort(_) => after.dst.set_port(number as u16),
            _ => return Done::Next,
        }
        walk.packet = walk.packet.with_leg(after);
        let why = self.nft_why(at, walk, "rewritten");
        let step = uturn_model::Step::new(StepKind::Translate, why, self.nft_by(at.0, at.1));
        walk.log.add(step.changing(before, walk.packet.leg()));
        Done::On
    }

    pub(super) fn translate_nft(
        &self,
        nat: &Nat,
        at: (usize, usize),
        walk: &mut Walk,
        open: &mut OpenBranches,
    ) -> Result<Done, NoValue> {
        let v6 = walk.packet.family() == Family::V6;
        if nat.v6.is_some_and(|wanted| wanted != v6) {
            return Err(NoValue::Break);
        }
        let mut port = nat.port;
        let addresses = match &nat.address {
            NatAddress::Unknown => return Err(NoValue::Unknown),
            NatAddress::None => None,
            NatAddress::Range(first, last) => Some((*first, *last)),
            NatAddress::Map { key, map } => {
                let key = self.key(key, walk)?;
                let lookup = &self.nft.lookups[*map];
                if lookup.unmodelled {
                    return Err(NoValue::Unknown);
                }
                let given = find(lookup, *map, &key, walk).ok_or(NoValue::Break)?;
                let Data::Value(parts) = &given.data else { return Err(NoValue::Unknown) };
                if let Some((first, last)) = parts.get(1) {
                    port = Some((*first as u16, *last as u16));
                }
                parts.first().map(|(first, last)| (ip_of(*first, v6), ip_of(*last, v6)))
            }
        };
        let addresses = match addresses {
            // Only the network part is replaced; the host bits stay.
            Some((first, last)) if nat.prefix => {
                let (first, last) = (super::encode::address(first), super::encode::address(last));
                let old = match nat.kind {
                    NatKind::Snat => walk.packet.src,
                    _ => walk.packet.dst,
                };
                let ip = ip_of(first | (super::encode::address(old) & (first ^ last)), v6);
                Some((ip, ip))
            }
            other => other,
        };
        let ports = port.map(|(first, last)| PortRange { first, last });
        let to =
            NatTo { addresses, ports, random: nat.random, random_fully: false, persistent: false };
        let plain = NatPorts { ports, random: nat.random, random_fully: false };
        let target = match nat.kind {
            NatKind::Dnat => Target::Dnat(to),
            NatKind::Snat => Target::Snat(to),
            NatKind::Masquerade => Target::Masquerade(plain),
            NatKind::Redirect => Target::Redirect(plain),
        };
        let why = self.nft_why(at, walk, "translated");
        walk.nft.generated = None;
        Ok(match self.bind(&target, &why, self.nft_by(at.0, at.1), walk, open) {
            Ok(()) => Done::Accept,
            Err(reason) => Done::End(EndKind::Drop(reason)),
        })
    }
}
