//! DataPlane and SecurityGroup documents.

use std::net::SocketAddr;
use std::path::Path;

use uturn_lb::config::{AccessLog, ProcessSettings};
use uturn_model::network::{SecurityGroup, SecurityRule};

use crate::load_balancer::wire;

use super::time;

pub(super) fn data_plane(settings: &ProcessSettings) -> wire::DataPlane {
    let ProcessSettings { workers, admin, admin_token, access_log, drain, connections } = settings;
    let place = |text: String| wire::AccessLog::Place(wire::LogPlace(text));
    wire::DataPlane {
        api_version: wire::Ours::It,
        kind: wire::DataPlaneKind::It,
        metadata: None,
        spec: wire::DataPlaneSpec {
            workers: *workers,
            admin: admin.map(|address| self::admin(address, admin_token.as_deref())),
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

fn admin(address: SocketAddr, token: Option<&Path>) -> wire::Admin {
    let address = wire::Socket(address.to_string());
    match token {
        None => wire::Admin::Address(address),
        Some(path) => {
            let token_file = path.to_string_lossy().into_owned();
            wire::Admin::Access(wire::AdminAccess { address, token_file })
        }
    }
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
