//! The VIP announced by BGP from two load balancers at once: a router shares clients out among
//! them, by address and port.

use std::fs;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use uturn_testing::Requirement;

use crate::client::{Fates, Open, SILENCE, TRY, Use, ask_anew};
use crate::machine::{Daemon, Machine, await_that};
use crate::pair::{Folder, examples, plug, uncomment};
use crate::space::Space;
use crate::target::{Gate, Target};
use crate::{OPEN, can_run};

const VIP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100));
const WEB: SocketAddr = SocketAddr::new(VIP, 80);
const LINES: SocketAddr = SocketAddr::new(VIP, 5432);

/// The load balancers, as the router sees them.
const BOTH: [&str; 2] = ["10.0.0.2", "10.0.0.3"];
const FIRST: [&str; 1] = ["10.0.0.2"];
const SECOND: [&str; 1] = ["10.0.0.3"];

/// The load balancers, as targets see them.
const SOURCES: [&str; 2] = ["10.1.0.2", "10.1.0.3"];

/// How the first machine fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An administrator stops announcing the VIP; uturn serves on.
    Withdrawn,
    UturnKilled,
    BirdKilled,
    /// Packets are lost in both directions, on both sides, while the links stay up.
    Isolated,
}

struct Anycast {
    // Dropped in this order.
    machines: [Machine; 2],
    router: Machine,
    client: Space,
    _targets: [Target; 2],
    fabric: Space,
    _folder: Folder,
}

impl Anycast {
    /// Two machines that serve, or of which the second is a standby.
    fn start(name: &str, has_standby: bool) -> Self {
        let folder = Folder::new(name);
        let read = |file: &str| fs::read_to_string(examples().join("bgp").join(file)).unwrap();
        let fabric = Space::new();
        for bridge in ["outside", "clients", "targets"] {
            fabric.sh(&format!("ip link add {bridge} type bridge; ip link set {bridge} up"));
        }
        let client = Space::new();
        plug(&fabric, &client, "client", "eth0", "outside", "10.9.0.200/24");
        client.sh("ip route add default via 10.9.0.1");
        let router = Space::new();
        plug(&fabric, &router, "router", "eth0", "clients", "10.0.0.1/24");
        plug(&fabric, &router, "router", "eth1", "outside", "10.9.0.1/24");
        router.sh("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1");
        let conf = read("router.conf").replace("log syslog", "log stderr");
        let mut router = Machine::new("router", router, &folder.0, &[("bird.conf", conf)]);
        router.start(Daemon::Bird);
        let targets = [("t1", "10.1.0.11/24"), ("t2", "10.1.0.12/24")].map(|(name, address)| {
            let space = Space::new();
            plug(&fabric, &space, name, "eth0", "targets", address);
            Target::start(space, name, &Gate::default())
        });
        let machines = [("a", 2), ("b", 3)].map(|(name, number)| {
            let space = Space::new();
            plug(&fabric, &space, name, "eth0", "clients", &format!("10.0.0.{number}/24"));
            plug(&fabric, &space, name, "eth1", "targets", &format!("10.1.0.{number}/24"));
            space.sh("sysctl -qw net.ipv4.ip_forward=1; ip route add default via 10.0.0.1");
            let own = |text: String| {
                let text = text.replace("10.0.0.2", &format!("10.0.0.{number}"));
                text.replace("10.1.0.2", &format!("10.1.0.{number}"))
            };
            let mut bird = own(read("bird.conf")).replace("log syslog", "log stderr");
            if has_standby && name == "b" {
                bird = uncomment(&bird, "bgp_path.prepend");
            }
            let files = [
                ("lb.yaml", own(read("lb.yaml"))),
                ("bird.conf", bird),
                ("announce-while-healthy", read("announce-while-healthy")),
            ];
            let mut machine = Machine::new(name, space, &folder.0, &files);
            for daemon in [Daemon::Uturn, Daemon::Bird, Daemon::Announce] {
                machine.start(daemon);
            }
            machine
        });
        let anycast = Self { machines, router, client, _targets: targets, fabric, _folder: folder };
        anycast.await_ways(if has_standby { &FIRST } else { &BOTH });
        anycast
    }

    /// Waits until the router sends clients to these machines.
    fn await_ways(&self, wanted: &[&str]) {
        let ways = || {
            let route = self.router.space.sh("ip route show 10.0.0.100");
            let has = |machine: &str| route.contains(&format!("via {machine} "));
            BOTH.iter().all(|machine| has(machine) == wanted.contains(machine))
        };
        await_that("the router has its routes", ways, || self.logs());
    }

    fn logs(&self) -> String {
        let all = self.machines.iter().chain([&self.router]);
        all.map(Machine::logs).collect()
    }

    fn isolate(&self, isolated: bool) {
        let state = if isolated { 0 } else { 3 };
        for device in ["eth0", "eth1"] {
            self.fabric.sh(&format!("bridge link set dev a-{device} state {state}"));
        }
    }

    /// Connections of every use.
    fn open(&self) -> [Open; 2] {
        [(WEB, Use::Idle), (LINES, Use::ClientSpeaks)]
            .map(|(address, used)| Open::new(&self.client, address, used, 2 * OPEN, SILENCE))
    }

    fn use_again(&self, open: [Open; 2]) -> [Fates; 2] {
        open.map(|open| open.use_again(&self.client).fates())
    }
}

#[test]
fn the_vip_is_announced_only_while_uturn_serves() {
    if !can_run("two load balancers announced by BGP", &[Requirement::Bird]) {
        return;
    }
    let mut anycast = Anycast::start("anycast", false);
    for failure in
        [Failure::Withdrawn, Failure::UturnKilled, Failure::BirdKilled, Failure::Isolated]
    {
        fail_over(&mut anycast, failure);
    }
}

#[test]
fn a_longer_path_makes_a_standby() {
    if can_run("a standby by BGP", &[Requirement::Bird]) {
        let anycast = Anycast::start("standby", true);
        anycast.machines[0].signal(Daemon::Uturn, "KILL");
        anycast.await_ways(&SECOND);
    }
}

fn fail_over(anycast: &mut Anycast, failure: Failure) {
    let open = anycast.open();
    let begin = Instant::now();
    let first = &anycast.machines[0];
    match failure {
        Failure::Withdrawn => first.signal(Daemon::Announce, "TERM"),
        Failure::UturnKilled => first.signal(Daemon::Uturn, "KILL"),
        Failure::BirdKilled => first.signal(Daemon::Bird, "KILL"),
        Failure::Isolated => anycast.isolate(true),
    }
    anycast.await_ways(&SECOND);
    let moved = begin.elapsed();
    for address in [WEB, LINES] {
        let mut answer = None;
        let answers = || {
            answer = anycast.client.run(|| ask_anew(address, TRY)).ok();
            answer.is_some()
        };
        await_that("the second answers", answers, || anycast.logs());
        let answer = answer.unwrap_or_default();
        assert!(answer.ends_with(SOURCES[1]), "{address}: {answer}");
        assert!(address != WEB || answer.contains(" 10.9.0.200 "), "{answer}");
    }
    let fates = anycast.use_again(open);
    let moved = moved.as_millis();
    // With the first one back, the router shares connections out anew.
    let open = anycast.open();
    let first = &mut anycast.machines[0];
    match failure {
        Failure::Withdrawn => first.restart(Daemon::Announce),
        Failure::UturnKilled => first.restart(Daemon::Uturn),
        Failure::BirdKilled => first.restart(Daemon::Bird),
        Failure::Isolated => anycast.isolate(false),
    }
    anycast.await_ways(&BOTH);
    let back = anycast.use_again(open);
    println!(
        "{failure:?}: withdrawn after {moved} ms\n  layer 7 and 4: {fates:?}\n  when it is back: {back:?}"
    );
}
