//! The site under attack: a load balancer with a listener of each kind, healthy targets, and the
//! network between them and their clients.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::metrics::{self, Metrics};
use crate::arguments::HostileArguments;
use crate::contestant::write;
use crate::failure::Failure;
use crate::network::{Addresses, Forwarding, Middle, Space};
use crate::ports::{ADMIN, HTTP, HTTPS, PROXIED, TCP, TCP_SSL, UDP};
use crate::process::Running;

/// The longest time until the load balancer serves.
const START: Duration = Duration::from_secs(60);

/// The ports of layer 7 targets, then of layer 4 targets.
const HTTP_TARGETS: [u16; 2] = [8101, 8102];
const LAYER_4_TARGETS: [u16; 2] = [8201, 8202];

/// The IPv6 addresses: that of the load balancer, that of the honest clients, and the numbers of
/// the networks of hostile clients and of targets.
const VIP_6: Ipv6Addr = Ipv6Addr::new(0xfd53, 1, 0, 0, 0, 0, 0, 1);
const HONEST_6: Ipv6Addr = Ipv6Addr::new(0xfd53, 1, 0, 0, 0, 0, 0, 2);
const HOSTILE_NET: u16 = 2;
const TARGETS_NET: u16 = 3;

/// The numbers of IPv4 addresses of honest clients, of hostile clients that hold connections, and
/// of other hostile clients.
const HONEST: usize = 4;
const HOLDING: usize = 4;
const PASSING: usize = 7;

/// The number of IPv6 addresses of hostile clients that hold connections, all in one network.
const HOLDING_6: u16 = 8;

/// The niceness of programs: honest clients and what they call run before hostile clients.
const HONEST_NICENESS: i32 = 0;
const HOSTILE_NICENESS: i32 = 5;

/// The running site. Everything ends when the site is dropped.
pub(super) struct Site {
    pub(super) balancer: Running,
    _targets: [Running; 2],
    pub(super) addresses: Addresses,
    clients: Space,
    _target_space: Space,
    _middle: Middle,
    pub(super) access_log: PathBuf,
    log: PathBuf,
}

impl Site {
    /// Starts the namespaces, the targets and the load balancer.
    ///
    /// # Errors
    /// When a namespace cannot be made, or a program cannot be started.
    pub(super) fn start(arguments: &HostileArguments, folder: &Path) -> Result<Self, Failure> {
        let (clients, target_space) = (Space::make()?, Space::make()?);
        // Clients that open many connections need many ports.
        clients.set(&["net.ipv4.ip_local_port_range=10000 65535"])?;
        let middle = Middle::make(0, Forwarding::Routes, &clients, &target_space)?;
        add_ipv6(&clients, &middle.space, &target_space)?;
        let addresses = middle.addresses();
        let targets = [("http-target", HTTP_TARGETS), ("target", LAYER_4_TARGETS)];
        let targets = targets.map(|(word, ports)| {
            let mut command = this(&target_space, HONEST_NICENESS)?;
            command.arg(word);
            for port in ports {
                // Both families.
                let address = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
                command.args(["--listen", &address.to_string()]);
            }
            Running::start(&mut command, &folder.join("targets.log"))
        });
        let [http, layer_4] = targets;
        let (file, access_log) = (folder.join("lb.yaml"), folder.join("access.log"));
        write(&file, &configuration(arguments, &addresses, middle.gateway(), &access_log))?;
        let mut command = middle.space.command(HONEST_NICENESS);
        command.args(["prlimit", &format!("--nofile={0}:{0}", arguments.files)]);
        command.arg(&arguments.uturn).args(["lb", "run", "-f"]).arg(&file);
        let log = folder.join("uturn.log");
        Ok(Self {
            balancer: Running::start(&mut command, &log)?,
            _targets: [http?, layer_4?],
            addresses,
            clients,
            _target_space: target_space,
            _middle: middle,
            access_log,
            log,
        })
    }

    /// Waits until health checks have decided about every target.
    ///
    /// # Errors
    /// When that takes too long, or the run is stopped.
    pub(super) fn wait(&self, stopped: &AtomicBool) -> Result<(), Failure> {
        let end = Instant::now() + START;
        loop {
            let is_ready = self.get("/readyz").is_ok_and(|(status, _)| status == 200);
            if is_ready {
                return Ok(());
            }
            if Instant::now() > end || stopped.load(Ordering::Relaxed) {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                return Err(Failure(format!("uturn does not serve:\n{log}")));
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Reads the load balancer's metrics.
    pub(super) fn metrics(&self) -> Result<Metrics, Failure> {
        let (_, text) = self.get("/metrics")?;
        Ok(Metrics::read(&text))
    }

    /// Counts the times that health checks found a target dead, from the log.
    pub(super) fn deaths(&self) -> Result<u64, Failure> {
        let doing = format!("read {}", self.log.display());
        let log = std::fs::read_to_string(&self.log).map_err(Failure::of(doing))?;
        Ok(log.lines().filter(|line| is_death(line)).count() as u64)
    }

    fn get(&self, path: &str) -> Result<(u16, String), Failure> {
        let admin = SocketAddr::new(self.addresses.vip, ADMIN);
        metrics::get(&self.clients.path(), admin, path)
    }

    /// Returns the load balancer's address of the family.
    pub(super) fn vip(&self, is_ipv6: bool) -> IpAddr {
        if is_ipv6 { VIP_6.into() } else { self.addresses.vip }
    }

    /// Returns the addresses of honest clients.
    pub(super) fn honest(&self, is_ipv6: bool) -> Vec<IpAddr> {
        if is_ipv6 { vec![HONEST_6.into()] } else { self.addresses.clients[..HONEST].to_vec() }
    }

    /// Returns the command of an honest client.
    pub(super) fn honest_command(&self) -> Result<Command, Failure> {
        this(&self.clients, HONEST_NICENESS)
    }

    /// Returns the command of the hostile clients.
    pub(super) fn attack_command(&self) -> Result<Command, Failure> {
        let mut command = this(&self.clients, HOSTILE_NICENESS)?;
        command.arg("attack");
        command.args(["--vip", &self.vip(false).to_string(), "--vip", &VIP_6.to_string()]);
        let ipv4 = &self.addresses.clients[HONEST..];
        let (holding, passing) = ipv4[..HOLDING + PASSING].split_at(HOLDING);
        // The families take turns, so that each has half of the connections.
        let both = holding.iter().copied().cycle().zip(hostile_6());
        for address in both.flat_map(|(v4, v6)| [v4, v6.into()]) {
            command.args(["--holding", &address.to_string()]);
        }
        for address in passing {
            command.args(["--passing", &address.to_string()]);
        }
        command.args(["--refused", &refused(&self.addresses).to_string()]);
        Ok(command)
    }
}

/// Returns whether a line of the load balancer's log reports a dead target.
fn is_death(line: &str) -> bool {
    let event = serde_json::from_str::<serde_json::Value>(line).unwrap_or_default();
    event["event"] == "health" && event["alive"] == false
}

/// Returns a command that runs this program in a namespace.
fn this(space: &Space, niceness: i32) -> Result<Command, Failure> {
    let mut command = space.command(niceness);
    command.arg(std::env::current_exe().map_err(Failure::of("find this program"))?);
    Ok(command)
}

/// Returns the address of the client that a security group refuses.
fn refused(addresses: &Addresses) -> IpAddr {
    addresses.clients[HONEST + HOLDING + PASSING]
}

fn hostile_6() -> impl Iterator<Item = Ipv6Addr> {
    (2..2 + HOLDING_6).map(|last| Ipv6Addr::new(0xfd53, HOSTILE_NET, 0, 0, 0, 0, 0, last))
}

fn in_net(net: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd53, net, 0, 0, 0, 0, 0, last)
}

/// Adds IPv6 addresses to the links of the middle.
fn add_ipv6(clients: &Space, middle: &Space, targets: &Space) -> Result<(), Failure> {
    let add = |space: &Space, device: &str, address: Ipv6Addr| {
        let address = format!("{address}/64");
        space.run(&["ip", "address", "add", &address, "dev", device, "nodad"])
    };
    add(middle, "clients", VIP_6)?;
    add(middle, "clients", in_net(HOSTILE_NET, 1))?;
    add(middle, "targets", in_net(TARGETS_NET, 1))?;
    add(clients, "c0", HONEST_6)?;
    for address in hostile_6() {
        add(clients, "c0", address)?;
    }
    add(targets, "t0", in_net(TARGETS_NET, 2))?;
    let (net, via) = (format!("{VIP_6}/64"), in_net(TARGETS_NET, 1).to_string());
    targets.run(&["ip", "-6", "route", "add", &net, "via", &via])
}

/// Returns the load balancer's configuration. Settings that are not in it have their defaults.
fn configuration(
    arguments: &HostileArguments,
    addresses: &Addresses,
    gateway: IpAddr,
    access_log: &Path,
) -> String {
    let vip = addresses.vip;
    let limits = match arguments.connections_per_client {
        None => String::new(),
        Some(most) => format!(", limits: {{connectionsPerClient: {most}}}"),
    };
    let http = "healthCheck: {interval: 2s, probe: {http: {path: /}}}";
    let tcp = "healthCheck: {interval: 2s}";
    let listener = |port: u16, protocol: &str, target: IpAddr, more: &str| {
        let (source, ports) = match protocol {
            "TCP" | "UDP" => (format!("{gateway}/32"), LAYER_4_TARGETS),
            _ if target.is_ipv6() => (format!("{}/128", in_net(TARGETS_NET, 1)), HTTP_TARGETS),
            _ => (format!("{gateway}/32"), HTTP_TARGETS),
        };
        let targets = ports.map(|port| format!("\"{}\"", SocketAddr::new(target, port)));
        format!(
            "  - {{port: {port}, protocol: {protocol}, source: {source}, {more}, targets: [{}]}}\n",
            targets.join(", ")
        )
    };
    let balancer = |name: &str, vip: IpAddr| {
        format!(
            "---\napiVersion: uturn.dev/v1alpha1\nkind: LoadBalancer\nmetadata: {{name: {name}}}\n\
             spec:\n  vip: {vip}\n  securityGroups: [clients]\n  listeners:\n"
        )
    };
    let mut text = format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\nspec:\n  admin: {vip}:{ADMIN}\n\
         \x20 accessLog: {}\n---\n\
         apiVersion: uturn.dev/v1alpha1\nkind: SecurityGroup\nmetadata: {{name: clients}}\n\
         spec:\n  inbound:\n  - {{action: drop, peer: {}/32}}\n  - {{action: accept}}\n",
        access_log.display(),
        refused(addresses),
    );
    let of_http = format!("{http}{limits}");
    let proxied = format!("{of_http}, proxyFrom: [10.253.0.0/16, \"fd53::/16\"]");
    let of_ssl = format!("{tcp}{limits}");
    text += &balancer("site", vip);
    for (port, protocol, more) in [
        (HTTP, "HTTP", of_http.as_str()),
        (HTTPS, "HTTPS", &of_http),
        (TCP_SSL, "TCP_SSL", &of_ssl),
        (PROXIED, "HTTP", &proxied),
        (TCP, "TCP", tcp),
        (UDP, "UDP", tcp),
    ] {
        let _ = write!(text, "{}", listener(port, protocol, addresses.target, more));
    }
    text += &balancer("site6", VIP_6.into());
    let target = in_net(TARGETS_NET, 2).into();
    for (port, protocol, more) in [
        (HTTP, "HTTP", of_http.as_str()),
        (HTTPS, "HTTPS", &of_http),
        (TCP_SSL, "TCP_SSL", &of_ssl),
        (PROXIED, "HTTP", &proxied),
    ] {
        let _ = write!(text, "{}", listener(port, protocol, target, more));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_told_from_other_events() {
        let health = |alive| format!("{{\"event\":\"health\",\"rule\":0,\"alive\":{alive}}}");
        assert!(is_death(&health(false)));
        assert!(!is_death(&health(true)));
        assert!(!is_death("{\"event\":\"resting\"}") && !is_death("alive: false"));
    }

    #[test]
    fn hostile_addresses_of_ipv6_are_in_one_network() {
        let all: Vec<_> = hostile_6().collect();
        assert!(all.iter().all(|address| address.segments()[..4] == all[0].segments()[..4]));
        assert_ne!(all[0].segments()[..4], HONEST_6.segments()[..4]);
    }
}
