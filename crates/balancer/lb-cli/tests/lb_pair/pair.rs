//! The network of the pair, as the examples have it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::machine::{Daemon, Machine, await_that};
use crate::space::Space;
use crate::target::{Gate, Target};

const VIP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100));
pub(crate) const CLIENT: &str = "10.0.0.200";

/// The example's listeners: HTTP, TCP in turns; and TCP by a hash of the client's address, which
/// the test adds.
pub(crate) const WEB: SocketAddr = SocketAddr::new(VIP, 80);
pub(crate) const TURNS: SocketAddr = SocketAddr::new(VIP, 5432);
pub(crate) const HASHED: SocketAddr = SocketAddr::new(VIP, 5433);

pub(crate) struct Pair {
    // Dropped in this order.
    pub(crate) machines: [Machine; 2],
    pub(crate) client: Space,
    _targets: [Target; 2],
    pub(crate) gate: Gate,
    fabric: Space,
    pub(crate) shares_connections: bool,
    _folder: Folder,
}

/// Files of this test, which are gone when this is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("uturn-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Pair {
    /// Starts a pair with the settings of the examples: the first machine is active, the second one
    /// could take over. A busy machine may move the VIP, which breaks connections.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, false, &|keepalived| keepalived)
    }

    /// Starts a pair whose keepalived waits long enough not to take a busy machine for a dead one.
    pub(crate) fn start_patient(name: &str, shares_connections: bool) -> Self {
        Self::start_with(name, shares_connections, &|keepalived| {
            let (every, timeout) = ("advert_int 0.2", "timeout 1\n");
            assert!(keepalived.contains(every) && keepalived.contains(timeout), "{keepalived}");
            keepalived.replace(every, "advert_int 2").replace(timeout, "timeout 15\n")
        })
    }

    fn start_with(
        name: &str,
        shares_connections: bool,
        keepalived: &dyn Fn(String) -> String,
    ) -> Self {
        let folder = Folder::new(name);
        let fabric = Space::new();
        fabric.sh("for side in clients targets; do ip link add $side type bridge; ip link set $side up; done");
        let client = Space::new();
        plug(&fabric, &client, "client", "eth0", "clients", "10.0.0.200/24");
        let gate = Gate::default();
        let targets = [("t1", "10.1.0.11/24"), ("t2", "10.1.0.12/24")].map(|(name, address)| {
            let space = Space::new();
            plug(&fabric, &space, name, "eth0", "targets", address);
            space.sh("ip route add default via 10.1.0.1");
            Target::start(space, name, &gate)
        });
        let machines = [("a", 2), ("b", 3)].map(|(name, number)| {
            let space = Space::new();
            plug(&fabric, &space, name, "eth0", "clients", &format!("10.0.0.{number}/24"));
            plug(&fabric, &space, name, "eth1", "targets", &format!("10.1.0.{number}/24"));
            let files = files(name, &folder.0, shares_connections, keepalived);
            space.sh(&kernel_settings(shares_connections));
            Machine::new(name, space, &folder.0, &files)
        });
        let mut pair = Self {
            machines,
            client,
            _targets: targets,
            gate,
            fabric,
            shares_connections,
            _folder: folder,
        };
        for at in [0, 1] {
            if shares_connections {
                pair.machines[at].start(Daemon::Conntrackd);
            }
            pair.machines[at].start(Daemon::Uturn);
            pair.start_keepalived(at);
            let [first, second] = &pair.machines;
            await_that("the first is active", || first.is_active(), || pair.logs());
            assert!(!second.is_active());
        }
        pair
    }

    /// The machine that has the VIP, once only one has it.
    pub(crate) fn active(&self) -> usize {
        let mut active = Vec::new();
        let is_one = || {
            active = (0..2).filter(|at| self.machines[*at].is_active()).collect();
            active.len() == 1
        };
        await_that("one machine is active", is_one, || self.logs());
        active[0]
    }

    pub(crate) fn logs(&self) -> String {
        self.machines.iter().map(Machine::logs).collect()
    }

    /// Changes a machine's port of a switch.
    pub(crate) fn set_links(&self, machine: usize, device: &str, change: &str) {
        let port = format!("{}-{device}", self.machines[machine].name);
        match change.strip_prefix("state ") {
            Some(state) => self.fabric.sh(&format!("bridge link set dev {port} state {state}")),
            None => self.fabric.sh(&format!("ip link set {port} {change}")),
        };
    }

    /// Waits until the standby knows so many connections on layer 4.
    pub(crate) fn await_shared(&self, count: usize) {
        if !self.shares_connections {
            return;
        }
        let standby = &self.machines[1 - self.active()];
        let known = || {
            let configuration = standby.path("conntrackd.conf");
            let external = standby.space.sh(&format!("conntrackd -C {configuration} -e"));
            let ours = external.lines().filter(|line| line.contains("ESTABLISHED"));
            ours.filter(|line| line.contains("dport=543")).count()
        };
        await_that("the standby knows the connections", || known() >= count, || self.logs());
    }

    /// Makes a machine that failed the standby.
    pub(crate) fn repair(&mut self, failed: usize, failure: Failure) {
        match failure {
            Failure::HandOver | Failure::KeepalivedKilled => {
                self.machines[failed].await_end(Daemon::Keepalived);
                self.start_keepalived(failed);
            }
            Failure::UturnStopped | Failure::UturnKilled => {
                // It may be waiting for connections whose clients it no longer hears.
                self.machines[failed].signal(Daemon::Uturn, "KILL");
                let before = self.times_standby(failed);
                self.machines[failed].await_end(Daemon::Uturn);
                self.machines[failed].start(Daemon::Uturn);
                self.await_standby(failed, before);
            }
            Failure::LinkDown => {
                let before = self.times_standby(failed);
                self.set_links(failed, "eth0", "up");
                self.await_standby(failed, before);
            }
            Failure::Isolated => {
                for device in ["eth0", "eth1"] {
                    self.set_links(failed, device, "state 3");
                }
                self.active();
            }
        }
    }

    fn start_keepalived(&mut self, at: usize) {
        let before = self.times_standby(at);
        self.machines[at].start(Daemon::Keepalived);
        self.await_standby(at, before);
    }

    fn times_standby(&self, at: usize) -> usize {
        self.machines[at].logged(Daemon::Keepalived, "Entering BACKUP STATE")
    }

    fn await_standby(&self, at: usize, before: usize) {
        let is_standby = || self.times_standby(at) > before;
        await_that("the machine is standby", is_standby, || self.logs());
    }
}

/// Links a namespace's device to a bridge.
pub(crate) fn plug(
    fabric: &Space,
    space: &Space,
    name: &str,
    device: &str,
    bridge: &str,
    address: &str,
) {
    let pid = space.pid();
    fabric.sh(&format!(
        "ip link add {name}-{device} type veth peer name {device} netns {pid}
         ip link set {name}-{device} master {bridge} up"
    ));
    space.sh(&format!("ip addr add {address} dev {device}; ip link set {device} up"));
}

/// The examples' files for a machine. What they name in /etc and /run is in the test's folder.
fn files(
    machine: &str,
    folder: &Path,
    shares_connections: bool,
    settings: &dyn Fn(String) -> String,
) -> Vec<(&'static str, String)> {
    let read = |file: &str| fs::read_to_string(examples().join(file)).unwrap();
    let own = folder.join(machine);
    let hashed = |text: String| {
        let (rest, listener) = text.split_once("  - port: 5432\n").unwrap();
        let second = listener.replacen(
            "    protocol: TCP\n",
            "    protocol: TCP\n    scheduler: IP_HASH\n",
            1,
        );
        format!("{rest}  - port: 5432\n{listener}  - port: 5433\n{second}")
    };
    let mut keepalived = read(&format!("{machine}/keepalived.conf"));
    if shares_connections {
        let notify = own.join("share-connections").display().to_string();
        keepalived = keepalived.replace("/etc/keepalived/share-connections", &notify);
        // Those tell each other by unicast, too.
        keepalived = ["notify", "unicast_src_ip", "unicast_peer", "    10.0.0.", "}"]
            .iter()
            .fold(keepalived, |text, line| uncomment(&text, line));
    }
    let conntrackd = read(&format!("{machine}/conntrackd.conf"))
        .replace("/var/lock/conntrackd.lock", &own.join("conntrackd.lock").display().to_string())
        .replace("/var/run/conntrackd.ctl", &own.join("conntrackd.ctl").display().to_string());
    let call = format!("conntrackd -C {}", own.join("conntrackd.conf").display());
    let share = read("share-connections").replace("    conntrackd -", &format!("    {call} -"));
    vec![
        ("lb.yaml", hashed(read(&format!("{machine}/lb.yaml")))),
        ("keepalived.conf", settings(keepalived)),
        ("conntrackd.conf", conntrackd),
        ("share-connections", share),
    ]
}

/// Takes the `#` from a line that begins so.
pub(crate) fn uncomment(text: &str, line: &str) -> String {
    let commented = format!("# {line}");
    assert_eq!(text.matches(&commented).count(), 1, "{commented}: {text}");
    text.replace(&commented, line)
}

/// The folder of the examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/lb/pair")
}

/// A script that sets up a machine's kernel as the page says.
fn kernel_settings(shares_connections: bool) -> String {
    let folder = examples();
    let rules = fs::read_to_string(folder.join("uturn-pair.nft")).unwrap();
    let (steering, unknown) = rules.split_once("    # Layer 4:").unwrap();
    let rules = if shares_connections {
        rules.replace("5432", "{ 5432, 5433 }")
    } else {
        format!("{steering}}}\n")
    };
    assert!(unknown.contains("invalid"));
    let settings = fs::read_to_string(folder.join("90-uturn-pair.conf")).unwrap();
    // Without conntrackd, the kernel's own way; and a strict filter is in nothing's way.
    let others = if shares_connections {
        ""
    } else {
        "sysctl -qw net.netfilter.nf_conntrack_tcp_loose=1 net.ipv4.conf.all.rp_filter=1"
    };
    format!(
        "sysctl -q -p - <<'END'\n{settings}END\n{others}
         ip rule add fwmark 0x10000/0x10000 lookup 100
         ip route add local default dev lo table 100
         nft -f - <<'END'\n{rules}END"
    )
}
