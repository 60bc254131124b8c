//! Writes load balancers as documents in JSON, which is YAML too.

mod process;
mod rule;

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde_json::ser::Formatter;
use uturn_clouds::cloud;
use uturn_lb::config::{self, BalancerConfig, Config, ListenerSettings, RuleSettings};
use uturn_model::{LoadBalancer, lb};

use super::wire::{self, Document, LbFile, List, OrNone, Time};

/// Writes load balancers as one `List`, marked as derived, which [`super::read_load_balancers`]
/// reads back equal.
pub fn write_load_balancers(balancers: &[LoadBalancer]) -> String {
    let config = Config::plain(balancers.to_vec());
    text(&list(config.load_balancers.iter().map(document).collect()))
}

/// Writes the configuration of a data plane as one `List`, which [`super::read_lb_config`] reads
/// back equal, except for the places of security groups.
pub fn write_lb_config(config: &Config) -> String {
    text(&LbFile::from(config))
}

impl From<&Config> for LbFile {
    fn from(config: &Config) -> Self {
        let Config { process, load_balancers, security_groups } = config;
        let mut items = vec![Document::DataPlane(process::data_plane(process))];
        items.extend(
            security_groups.iter().map(|group| Document::SecurityGroup(process::group(group))),
        );
        items.extend(load_balancers.iter().map(document));
        list(items)
    }
}

fn list(items: Vec<Document>) -> LbFile {
    LbFile(Document::List(List { api_version: wire::V1::It, kind: wire::ListKind::It, items }))
}

fn text(file: &LbFile) -> String {
    let mut bytes = Vec::new();
    file.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, YamlToo))
        .expect("memory takes all that is written, and all keys are text");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("it is written from texts")
}

/// A formatter of compact JSON that YAML readers accept too: YAML allows fewer characters
/// unescaped.
struct YamlToo;

impl Formatter for YamlToo {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_refused =
            |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
        for part in fragment.split_inclusive(is_refused) {
            let refused = part.chars().next_back().filter(|c| is_refused(*c));
            let plain = &part[..part.len() - refused.map_or(0, char::len_utf8)];
            writer.write_all(plain.as_bytes())?;
            if let Some(c) = refused {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
        }
        Ok(())
    }
}

/// Returns a time in the largest unit that needs no fraction.
fn time(time: Duration) -> Time {
    Time(match (time.subsec_nanos(), time.subsec_nanos() % 1_000_000) {
        (0, _) => format!("{}s", time.as_secs()),
        (_, 0) => format!("{}ms", time.as_millis()),
        _ => format!("{}ns", time.as_nanos()),
    })
}

fn document(served: &BalancerConfig) -> Document {
    let BalancerConfig { load_balancer, listeners, derived } = served;
    let LoadBalancer { name, vip, scope, zone: _, security_groups, listeners: decided } =
        load_balancer;
    let listeners = decided.iter().zip(listeners);
    Document::LoadBalancer(Box::new(wire::LoadBalancer {
        api_version: wire::Ours::It,
        kind: wire::LoadBalancerKind::It,
        metadata: wire::Metadata { name: name.to_string() },
        spec: wire::LoadBalancerSpec {
            vip: wire::Address(vip.to_string()),
            scope: Some(match scope {
                lb::Scope::Private => wire::Scope::Private,
                lb::Scope::Public => wire::Scope::Public,
            }),
            security_groups: Some(security_groups.iter().map(ToString::to_string).collect()),
            derived: derived.then_some(true),
            listeners: listeners
                .map(|(listener, settings)| self::listener(listener, settings, *derived))
                .collect(),
        },
    }))
}

fn listener(
    listener: &lb::Listener,
    settings: &ListenerSettings,
    is_derived: bool,
) -> wire::Listener {
    use lb::ListenerProtocol::{Http, Https, Tcp, TcpSsl, Udp};
    let lb::Listener { port, protocol, profile, rules } = listener;
    let ListenerSettings {
        certificates,
        client_certificates,
        proxy_from,
        proxy_to,
        limits,
        timeouts,
        keepalive,
        http2,
        abort_on_close,
        default_host,
        forwarded_for,
        rules: rule_settings,
    } = settings;
    let protocol = *protocol;
    // Only derived documents state fields that belong to listeners of other protocols.
    let is_layer_7 = is_derived || matches!(protocol, Http | Https);
    let connects =
        is_derived || matches!(protocol, Http | Https | TcpSsl) || profile.ends_connections;
    let is_udp = protocol == Udp;
    // Rules without a probe of their own are checked with a connection or an echo request.
    let rules = rules.iter().zip(rule_settings).map(|(rule, settings)| {
        let has_checks = profile.health_check.is_some();
        rule::rule(rule, settings, protocol, is_derived || is_layer_7, has_checks)
    });
    wire::Listener {
        port: port.number(),
        protocol: match protocol {
            Tcp => wire::ListenerProtocol::Tcp,
            Udp => wire::ListenerProtocol::Udp,
            TcpSsl => wire::ListenerProtocol::TcpSsl,
            Http => wire::ListenerProtocol::Http,
            Https => wire::ListenerProtocol::Https,
        },
        profile: Some(wire::NamedProfile {
            name: Some(profile.name.to_string()),
            fields: wire::Profile::default(),
        }),
        fields: fields(profile, connects, is_layer_7),
        certificates: protocol.ends_tls().then(|| {
            let certificate = |files: &config::CertificateFiles| wire::Certificate {
                certificate: files.certificate.to_string_lossy().into_owned(),
                key: files.key.to_string_lossy().into_owned(),
            };
            certificates.iter().map(certificate).collect()
        }),
        client_certificates: client_certificates.as_ref().map(|clients| wire::ClientCertificates {
            authorities: clients.authorities.to_string_lossy().into_owned(),
            optional: Some(clients.optional),
        }),
        proxy_from: (!is_udp)
            .then(|| proxy_from.iter().map(|net| wire::Network(net.to_string())).collect()),
        proxy_to: proxy_to.map(|version| match version {
            config::ProxyVersion::V1 => wire::ProxyVersion::V1,
            config::ProxyVersion::V2 => wire::ProxyVersion::V2,
        }),
        limits: Some(wire::Limits {
            connections: limits.connections,
            connections_per_client: limits.connections_per_client,
            connections_per_second: limits.connections_per_second,
            requests_per_second: limits.requests_per_second,
            header_bytes: is_layer_7.then_some(wire::Size::Bytes(limits.header_bytes as u64)),
            headers: is_layer_7.then_some(limits.headers),
            body_bytes: limits.body_bytes.map(wire::Size::Bytes),
            body_bytes_per_second: is_layer_7.then_some(limits.body_bytes_per_second),
        }),
        timeouts: Some(wire::Timeouts {
            header: is_layer_7.then(|| time(timeouts.header)),
            read: is_layer_7.then(|| time(timeouts.read)),
            idle: Some(time(timeouts.idle)),
            tunnel: is_layer_7.then(|| time(timeouts.tunnel)),
        }),
        keepalive: is_layer_7.then(|| wire::Keepalive {
            connections: Some(keepalive.connections),
            idle: Some(time(keepalive.idle)),
        }),
        http2: is_layer_7.then_some(*http2),
        abort_on_close: is_layer_7.then_some(*abort_on_close),
        default_host: default_host.as_ref().map(|host| wire::Host(host.to_string())),
        forwarded_for: is_layer_7.then_some(match forwarded_for {
            config::ForwardedFor::Append => wire::ForwardedFor::Append,
            config::ForwardedFor::Replace => wire::ForwardedFor::Replace,
        }),
        targets: None,
        rules: Some(rules.collect()),
    }
}

fn fields(profile: &lb::Profile, connects: bool, is_layer_7: bool) -> wire::Profile {
    use lb::PathNormalization::{Merge, Off, Reject};
    let lb::Profile {
        name: _,
        // Fields that no file sets: packets are sent to the target with one source, the settings
        // have the PROXY header, and security groups decide who is let in.
        delivery: _,
        proxy_header: _,
        hairpin_source: _,
        source_of_other_family: _,
        target_tls: _,
        statuses: _,
        allowed_sources: _,
        assumption: _,
        source,
        avoids_client,
        ends_connections,
        connect_timeout,
        next_target,
        scheduler,
        panic_threshold,
        health_check,
        passive_check,
        path_normalization,
    } = profile;
    let passive_check = match passive_check {
        Some(check) => OrNone::Some(wire::PassiveCheck {
            failures: Some(check.failures),
            rest: Some(time(check.rest)),
        }),
        None => OrNone::None(wire::NoneWord::None),
    };
    wire::Profile {
        source: Some(wire::Seen(match source {
            lb::Source::Kept => "kept".to_owned(),
            lb::Source::Replaced(range) => range.to_string(),
        })),
        avoids_client: Some(*avoids_client),
        ends_connections: ends_connections.then_some(true),
        connect_timeout: connects.then(|| time(*connect_timeout)),
        next_target: connects.then_some(*next_target),
        scheduler: Some(match scheduler {
            lb::Scheduler::WeightedRoundRobin => wire::Scheduler::Wrr,
            lb::Scheduler::LeastConnections => wire::Scheduler::LeastConn,
            lb::Scheduler::SourceHash => wire::Scheduler::IpHash,
        }),
        all_dead_all_alive: Some(panic_threshold.is_some()),
        panic_threshold: *panic_threshold,
        health_check: Some(match health_check {
            Some(check) => OrNone::Some(self::health_check(check)),
            None => OrNone::None(wire::NoneWord::None),
        }),
        passive_check: connects.then_some(passive_check),
        path_normalization: is_layer_7.then_some(wire::PathNormalization::Word(
            match path_normalization {
                Off => wire::PathNormalizationWord::Off,
                Merge => wire::PathNormalizationWord::Merge,
                Reject => wire::PathNormalizationWord::Reject,
            },
        )),
    }
}

fn health_check(check: &lb::HealthCheck) -> wire::HealthCheck {
    // With a file, health checks always ask the target itself.
    let lb::HealthCheck { source, interval, timeout, rise, fall, question: _, keeps_address: _ } =
        check;
    wire::HealthCheck {
        source: Some(probe_source(*source)),
        interval: Some(time(*interval)),
        timeout: Some(time(*timeout)),
        rise: Some(*rise),
        fall: Some(*fall),
        probe: None,
    }
}

fn probe_source(source: lb::ProbeSource) -> wire::ProbeFrom {
    let usual = cloud::USUAL_PROBE_RANGES;
    wire::ProbeFrom::Word(wire::ProbeWord(match source {
        lb::ProbeSource::Vip => "vip".to_owned(),
        lb::ProbeSource::Reserved(ranges) if ranges == usual => "reserved".to_owned(),
        lb::ProbeSource::Reserved(ranges) if ranges.v6 == usual.v6 => ranges.v4.to_string(),
        lb::ProbeSource::Reserved(ranges) if ranges.v4 == usual.v4 => ranges.v6.to_string(),
        lb::ProbeSource::Reserved(lb::ProbeRanges { v4, v6 }) => {
            let ranges = wire::ProbeRanges {
                v4: wire::Network(v4.to_string()),
                v6: wire::Network(v6.to_string()),
            };
            return wire::ProbeFrom::Ranges(ranges);
        }
    }))
}

/// Returns the probe of a rule.
fn probe(settings: &RuleSettings, protocol: lb::ListenerProtocol) -> wire::Probe {
    match &settings.probe {
        None if protocol == lb::ListenerProtocol::Udp => {
            wire::Probe::Transport(wire::TransportWord::Udp)
        }
        None => wire::Probe::Transport(wire::TransportWord::Tcp),
        Some(config::Probe::Http { method, path, host, classes }) => {
            let codes = classes.iter().map(|c| wire::CodeClass::Number(wire::CodeNumber(*c)));
            let http = wire::HttpRequest {
                method: Some(match method {
                    config::HttpMethod::Head => wire::Method::Head,
                    config::HttpMethod::Get => wire::Method::Get,
                }),
                path: Some(wire::HttpPath(path.to_string())),
                host: host.as_ref().map(ToString::to_string),
                codes: Some(codes.collect()),
            };
            wire::Probe::Http(wire::HttpProbe { http })
        }
        Some(config::Probe::Exchange { send, expect }) => {
            let exchange = wire::Exchange { send: Some(bytes(send)), expect: Some(bytes(expect)) };
            wire::Probe::Exchange(wire::ExchangeProbe { exchange })
        }
    }
}

fn bytes(bytes: &[u8]) -> wire::Bytes {
    match std::str::from_utf8(bytes) {
        Ok(text) => wire::Bytes::Text(text.to_owned()),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            wire::Bytes::Hex(wire::Hex { hex: wire::Digits(digits) })
        }
    }
}
