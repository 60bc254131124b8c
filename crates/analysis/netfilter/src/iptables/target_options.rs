//! Parses the options of targets.

use std::net::IpAddr;

use uturn_model::Family;

use super::match_options::{Args, Refusal};
use super::value::{address, address_range, addresses, masked, number, port_range, split_once};
use super::*;
use crate::end::RejectWith;

/// Consumes an option of a target, with its values.
pub(super) fn accept_target(
    target: &mut Target,
    option: &str,
    not: bool,
    args: &mut Args<'_, '_>,
) -> Result<(), Refusal> {
    if not {
        return Err(Refusal::NotMine);
    }
    match (target, option) {
        (Target::Reject(with), "--reject-with") => {
            let word = args.value()?;
            let family = args.family;
            *with = reject_with(&word.text, family).ok_or(Refusal::Unmodelled)?;
        }
        (Target::Mark { value, mask }, option) => (*value, *mask) = mark_option(option, args)?,
        (Target::Connmark(op), "--save-mark") => {
            *op = ConnmarkOp::Save { nfmask: u32::MAX, ctmask: u32::MAX };
        }
        (Target::Connmark(op), "--restore-mark") => {
            *op = ConnmarkOp::Restore { nfmask: u32::MAX, ctmask: u32::MAX };
        }
        (
            Target::Connmark(
                ConnmarkOp::Save { nfmask, ctmask } | ConnmarkOp::Restore { nfmask, ctmask },
            ),
            "--nfmask" | "--ctmask" | "--mask",
        ) => {
            let mask = args.read("a mask", |word, _| number(word))?;
            if option != "--ctmask" {
                *nfmask = mask;
            }
            if option != "--nfmask" {
                *ctmask = mask;
            }
        }
        (Target::Connmark(op), option) => {
            let (value, mask) = mark_option(option, args)?;
            *op = ConnmarkOp::Set { value, mask };
        }
        (Target::Dnat(to), "--to-destination") | (Target::Snat(to), "--to-source") => {
            let family = args.family;
            let word = args.value()?;
            if to.addresses.is_some() || to.ports.is_some() {
                let message = format!(
                    "found {option} a second time: a kernel takes one, which may be a range \
                     (10.0.0.1-10.0.0.9)"
                );
                return Err(Refusal::Fault(word.column, message));
            }
            // A base for shifted ports is not modelled.
            if word.text.contains('/') {
                return Err(Refusal::Unmodelled);
            }
            let (addresses, ports) = nat_to(&word.text, family).ok_or_else(|| {
                let message =
                    format!("found {:?}, expected an address, with or without a port", word.text);
                Refusal::Fault(word.column, message)
            })?;
            (to.addresses, to.ports) = (addresses, ports);
        }
        (Target::Dnat(to) | Target::Snat(to), "--random") => to.random = true,
        (Target::Dnat(to) | Target::Snat(to), "--random-fully") => to.random_fully = true,
        (Target::Dnat(to) | Target::Snat(to), "--persistent") => to.persistent = true,
        (Target::Masquerade(to) | Target::Redirect(to), "--to-ports") => {
            let ports = args.read("a port or a range of ports", |word, _| port_range(word, '-'))?;
            to.ports = Some(ports);
        }
        (Target::Masquerade(to) | Target::Redirect(to), "--random") => to.random = true,
        (Target::Netmap(to), "--to") => {
            let net = args.read("a network", addresses)?;
            // A non-contiguous mask is not modelled.
            let Addresses::Net(net) = net else { return Err(Refusal::Unmodelled) };
            *to = net;
        }
        (Target::Tproxy(to), "--on-port") => {
            to.port = args.read("a port", |word, _| word.parse().ok())?;
        }
        (Target::Tproxy(to), "--on-ip") => {
            let ip = args.read("an address", address)?;
            to.address = Some(ip).filter(|ip| !ip.is_unspecified());
        }
        (Target::Tproxy(to), "--tproxy-mark") => {
            (to.value, to.mask) = args.read("a mark: `0x1/0xff`", |word, _| masked(word))?;
        }
        (Target::Masquerade(to), "--random-fully") => to.random_fully = true,
        _ => return Err(Refusal::NotMine),
    }
    Ok(())
}

/// The bits to flip, and the bits to clear before.
fn mark_option(option: &str, args: &mut Args<'_, '_>) -> Result<(u32, u32), Refusal> {
    if !matches!(option, "--set-xmark" | "--set-mark" | "--and-mark" | "--or-mark" | "--xor-mark") {
        return Err(Refusal::NotMine);
    }
    let (value, mask) = args.read("a mark: `0x1/0xff`", |word, _| masked(word))?;
    Ok(match option {
        "--set-mark" => (value, value | mask),
        "--and-mark" => (0, !value),
        "--or-mark" => (value, value),
        "--xor-mark" => (value, 0),
        _ => (value, mask),
    })
}

fn reject_with(word: &str, family: Family) -> Option<RejectWith> {
    let short = match (word, family) {
        ("net-unreach", Family::V4) => "icmp-net-unreachable",
        ("host-unreach", Family::V4) => "icmp-host-unreachable",
        ("proto-unreach", Family::V4) => "icmp-proto-unreachable",
        ("port-unreach", Family::V4) => "icmp-port-unreachable",
        ("net-prohib", Family::V4) => "icmp-net-prohibited",
        ("host-prohib", Family::V4) => "icmp-host-prohibited",
        ("admin-prohib", Family::V4) => "icmp-admin-prohibited",
        ("no-route", Family::V6) => "icmp6-no-route",
        ("adm-prohibited", Family::V6) => "icmp6-adm-prohibited",
        ("addr-unreach", Family::V6) => "icmp6-addr-unreachable",
        ("port-unreach", Family::V6) => "icmp6-port-unreachable",
        ("policy-fail", Family::V6) => "icmp6-policy-fail",
        ("reject-route", Family::V6) => "icmp6-reject-route",
        ("tcp-rst", _) => "tcp-reset",
        (word, _) => word,
    };
    let v6 = short.starts_with("icmp6");
    let fits = short == "tcp-reset" || v6 == (family == Family::V6);
    RejectWith::ALL.into_iter().find(|reply| fits && reply.as_str() == short)
}

type NatTarget = (Option<(IpAddr, IpAddr)>, Option<PortRange>);

/// `10.0.0.1-10.0.0.9:80-90`, `[fd00::1-fd00::9]:80`, `:80`, `fd00::1`.
fn nat_to(word: &str, family: Family) -> Option<NatTarget> {
    let (addresses, ports) = match word.strip_prefix('[') {
        Some(rest) => {
            let (inner, rest) = rest.split_once(']')?;
            (inner, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None if family == Family::V6 && !word.starts_with(':') => (word, None),
        None if family == Family::V6 && word.starts_with("::") => (word, None),
        None => match split_once(word, ':') {
            Some((addresses, ports)) => (addresses, Some(ports)),
            None => (word, None),
        },
    };
    let ports = match ports {
        Some(ports) => Some(port_range(ports, '-')?),
        None => None,
    };
    let addresses = match addresses {
        "" => None,
        _ => Some(address_range(addresses, family)?),
    };
    (addresses.is_some() || ports.is_some()).then_some((addresses, ports))
}
