//! Writes DataPlane and SecurityGroup documents.

use std::net::SocketAddr;

use uturn_lb::config::{AccessLog, ProcessSettings};
use uturn_model::network::{SecurityGroup, SecurityRule};

use crate::load_balancer::wire;

use super::time;

pub(super) fn data_plane(settings: &ProcessSettings) -> wire::DataPlane {
    let ProcessSettings {
        workers,
        admin,
        admin_token: _,
        admin_hosts: _,
        local_targets: _,
        access_log,
        drain,
        connections,
    } = settings;
    let place = |text: String| wire::AccessLog::Place(wire::LogPlace(text));
    wire::DataPlane {
        api_version: wire::Ours::It,
        kind: wire::DataPlaneKind::It,
        metadata: None,
        spec: wire::DataPlaneSpec {
            workers: *workers,
            admin: admin.map(|address| self::admin(address, settings)),
            access_log: Some(match access_log {
                AccessLog::Off => place("off".to_owned()),
                AccessLog::Stdout => place("stdout".to_owned()),
                AccessLog::File(path) => place(path.to_string_lossy().into_owned()),
            }),
            drain: Some(time(*drain)),
            connections: *connections,
        },
    }
}

fn admin(address: SocketAddr, settings: &ProcessSettings) -> wire::Admin {
    let ProcessSettings { admin_token, admin_hosts, local_targets, .. } = settings;
    let address = wire::Socket(address.to_string());
    if admin_token.is_none() && admin_hosts.is_empty() && !local_targets {
        return wire::Admin::Address(address);
    }
    wire::Admin::Access(wire::AdminAccess {
        address,
        token_file: admin_token.as_ref().map(|path| path.to_string_lossy().into_owned()),
        hosts: Some(admin_hosts.iter().map(ToString::to_string).collect()),
        local_targets: Some(*local_targets),
    })
}

pub(super) fn group(group: &SecurityGroup) -> wire::SecurityGroup {
    let SecurityGroup { name, inbound, outbound, origin: _ } = group;
    wire::SecurityGroup {
        api_version: wire::Ours::It,
        kind: wire::SecurityGroupKind::It,
        metadata: wire::Metadata { name: name.to_string() },
        spec: wire::SecurityGroupSpec {
            inbound: Some(inbound.iter().map(rule).collect()),
            outbound: Some(outbound.iter().map(rule).collect()),
        },
    }
}

fn rule(rule: &SecurityRule) -> wire::SecurityRule {
    let SecurityRule { accept, protocol, ports, peer, origin: _ } = rule;
    let all = || "all".to_owned();
    wire::SecurityRule {
        action: if *accept { wire::Action::Accept } else { wire::Action::Drop },
        protocol: Some(wire::ProtocolWord(
            protocol.map_or_else(all, |protocol| protocol.lower().to_owned()),
        )),
        ports: Some(wire::Ports::Range(wire::PortRange(
            ports.map_or_else(all, |(first, last)| format!("{first}-{last}")),
        ))),
        peer: Some(wire::Peer(peer.map_or_else(all, |peer| peer.to_string()))),
    }
}
