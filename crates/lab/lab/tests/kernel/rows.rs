//! The rows, what must come out, and what must not be left.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{catch_unwind, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use uturn_clouds::cloud::tke::profile::snat;
use uturn_lab::{Contention, LabError, MeasuredFlow, Plan};
use uturn_lb::config::Config;
use uturn_model::node::RpFilter;
use uturn_model::{Capture, Cluster, Flow, LoadBalancer, Name, Outcome, Protocol};
use uturn_proxy::{Detail, Observer, Server};
use uturn_snapshot::{Source, read_load_balancers};

use crate::cluster::{cluster, cluster_v6};
use crate::host::{Host, names};

/// Short, so that the test is quick; what 4 s do, 1 s does too.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);

/// How many rows run side by side.
const LANES: usize = 4;

/// How often a row is tried that this machine gives no processor.
const TRIES: usize = 10;

/// How often it is tried beside other rows; after that, alone.
const TRIES_BESIDE_OTHERS: usize = 3;

/// Held by a row that runs, shared by those that may run beside others.
static RUNNING: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread's row is done again. Its connections begin one after another then.
    static IS_DONE_AGAIN: Cell<bool> = const { Cell::new(false) };
}

/// A row's name, and what it does.
type Row = (&'static str, fn());

pub(crate) const LATE: Outcome = Outcome::Answered { after: TIMEOUT };

pub(crate) const INGRESS: &str = "http://10.0.0.100/";
pub(crate) const SERVICE: &str = "http://10.0.0.200/";

pub(crate) fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("lb") => balance(&arguments),
        Some("victim") => victim(),
        Some("beside-ip") => beside_ip(),
        Some("--list") => println!("kernel: test"),
        _ => match uturn_lab::available() {
            Ok(()) => {
                // Rows go before what else this machine does, where that is allowed.
                let _ = rustix::process::nice(-10);
                let only = arguments.iter().find(|argument| !argument.starts_with('-'));
                all(only.map_or("", String::as_str));
            }
            Err(why) => {
                uturn_testing::skip(uturn_testing::Requirement::Kernel, "the rows of the lab", why);
            }
        },
    }
}

/// What `uturn lb run --netns NAME --until-stdin-closes --events -f FILE` does, with
/// `--no-layer-4` where the kernel has no nf_tables.
fn balance(arguments: &[String]) {
    let without = |argument: &&String| *argument == "--no-layer-4";
    let others: Vec<&String> = arguments.iter().filter(|argument| !without(argument)).collect();
    let [_, _, _, space, _, _, _, file] = &others[..] else { panic!("{arguments:?}") };
    let text = fs::read_to_string(file).unwrap();
    let load_balancers = read_load_balancers(Source { name: file.as_str().into(), text }).unwrap();
    uturn_proxy::enter(space).unwrap();
    let requests = uturn_proxy::requests(true).unwrap();
    let observer: Observer = Arc::new(|event| println!("{}", event.to_json()));
    let config = Config::plain(load_balancers);
    let start =
        if others.len() == arguments.len() { Server::start } else { Server::start_without_layer_4 };
    let server = start(&config, observer, Detail::Connections).unwrap();
    let _ = requests.recv();
    server.stop(Duration::ZERO);
}

fn all(only: &str) {
    let rows: &[Row] = &[
        ("l7-loop", l7_loop),
        ("paced", paced),
        ("l7-loop-strict", l7_loop_strict),
        ("l7-snat", l7_snat),
        ("l7-no-rule", l7_no_rule),
        ("l4-iptables", l4_iptables),
        ("l4-not-on-the-node", l4_not_on_the_node),
        ("cluster-ip", cluster_ip),
        ("node-port", node_port),
        ("no-process-listens", no_process_listens),
        ("ipv6", ipv6),
        ("terminated", terminated),
        ("killed", killed),
        ("first-of-ip", first_of_ip),
        ("bad-plan", bad_plan),
    ];
    uturn_lab::sweep().unwrap();
    let before = Host::look();
    let others = crate::fabric::ROWS
        .iter()
        .chain(crate::balancers::ROWS)
        .chain(&crate::networks::ROWS)
        .chain(&crate::nodes::ROWS)
        .chain(&crate::announced::ROWS);
    let asked = |(name, _): &&Row| name.starts_with(only);
    for row in rows.iter().chain(&crate::watched::ROWS).filter(asked) {
        run(row);
        must_be_clean(&before, row.0);
    }
    side_by_side(others.filter(asked).collect());
    must_be_clean(&before, "one of the rows that ran side by side");
}

/// Runs rows that look at their own labs alone. They wait most of the time.
fn side_by_side(rows: Vec<&Row>) {
    let rows = Mutex::new(rows.into_iter());
    let next = || rows.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(row) = next() {
                    run(row);
                }
            });
        }
    });
}

/// Runs a row. What it measures are seconds, so a failure proves nothing if the row had to wait for
/// a processor: then it is done again, at last without other rows.
fn run((name, row): &Row) {
    let began = Instant::now();
    for number in 1.. {
        IS_DONE_AGAIN.set(number > 1);
        let (contention, result) = if number <= TRIES_BESIDE_OTHERS {
            let _beside_others = RUNNING.read().unwrap_or_else(PoisonError::into_inner);
            (Contention::observe(), catch_unwind(row))
        } else {
            let _alone = RUNNING.write().unwrap_or_else(PoisonError::into_inner);
            (Contention::observe(), catch_unwind(row))
        };
        let Err(panic) = result else { break };
        match contention.wait() {
            Some(wait) if number < TRIES => {
                let wait = wait.as_millis();
                println!("{name} again: other work had the processors for {wait} ms");
            }
            _ => {
                println!("{name} failed");
                resume_unwind(panic);
            }
        }
    }
    println!("{name} ok, {:.1} s", began.elapsed().as_secs_f64());
}

fn must_be_clean(before: &Host, after: &str) {
    assert_eq!(labs_of(std::process::id()), [""; 0], "left behind by {after}");
    Host::look().must_be(before, after);
}

/// One request in N waits for the target that is the client's own node; a process on the
/// node itself is recognised by its address, and has nowhere to go if it is the only one.
fn l7_loop() {
    for nodes in [1, 2, 3, 5] {
        for measured in measure(&mut quick(nodes), &clients(nodes), INGRESS) {
            let total: u64 = measured.counts.iter().map(|(_, count)| count).sum();
            let from = measured.flow.from.to_string();
            let expected = match (from.starts_with("pod/shop/web-"), nodes) {
                (true, 1) => vec![(Outcome::Status { code: 504, after: TIMEOUT }, total)],
                (true, _) => {
                    let late = total / u64::from(nodes);
                    vec![(Outcome::AT_ONCE, total - late), (LATE, late)]
                }
                (false, 1) => vec![(Outcome::Status { code: 503, after: Duration::ZERO }, total)],
                (false, _) => vec![(Outcome::AT_ONCE, total)],
            };
            assert_eq!(measured.counts, expected, "{from}, {nodes} nodes: {:?}", measured.evidence);
            if from.starts_with("pod/shop/web-") {
                let picked: Vec<u64> =
                    measured.evidence.picked.iter().map(|measured| measured.1).collect();
                assert_eq!(picked, vec![total / u64::from(nodes); nodes.into()], "{from}");
                assert_eq!(measured.evidence.timed_out.len(), 1, "{from}: only its own node fails");
            }
        }
    }
}

/// Connections that begin one after another end as those that begin at once do.
fn paced() {
    IS_DONE_AGAIN.set(true);
    for measured in measure(&mut quick(2), &clients(1), INGRESS) {
        let from = measured.flow.from.to_string();
        let late = if from.starts_with("pod/shop/web-") { 6 } else { 0 };
        let counts = [(Outcome::AT_ONCE, 12 - late), (LATE, late)];
        let expected = counts.into_iter().filter(|(_, count)| *count > 0);
        assert_eq!(measured.counts, expected.collect::<Vec<_>>(), "{from}");
    }
}

/// Source validation changes why it fails, not that it fails.
fn l7_loop_strict() {
    let mut set = quick(2);
    for node in set.0.nodes.values_mut() {
        node.rp_filter = Some(RpFilter::Strict);
    }
    let measured = measure(&mut set, &["pod/shop/web-1".into()], INGRESS);
    assert_eq!(measured[0].counts, [(Outcome::AT_ONCE, 6), (LATE, 6)]);
}

fn l7_snat() {
    let mut set = quick(2);
    set.1[0].listeners[0].profile.source = snat();
    for measured in measure(&mut set, &clients(2), INGRESS) {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
    }
    let measured = measure(&mut set, &["pod/shop/web-1".into()], INGRESS);
    assert_eq!(measured[0].evidence.forwarded_for, [("10.1.1.10".into(), 12)]);
}

fn l7_no_rule() {
    let mut set = quick(1);
    set.1[0].listeners[0].rules[0].host = Some("shop.example.com".into());
    let not_found = Outcome::Status { code: 404, after: Duration::ZERO };
    let measured = measure(&mut set, &["pod/shop/web-1".into()], INGRESS);
    assert_eq!(measured[0].counts, [(not_found, 12)]);
    let measured = measure(&mut set, &["pod/shop/host-1".into()], "http://shop.example.com/");
    assert_eq!(measured[0].counts[0].0, Outcome::Status { code: 503, after: Duration::ZERO });
}

/// The node serves the load balancer's address by itself.
fn l4_iptables() {
    for nodes in [1, 2, 3, 5] {
        for measured in measure(&mut quick(nodes), &clients(nodes), SERVICE) {
            let total = measured.counts.iter().map(|(_, count)| count).sum();
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, total)], "{}", measured.flow.from);
            assert_eq!(measured.evidence.reached_load_balancer, 0, "{}", measured.flow.from);
        }
    }
}

/// If the node has no rule for the address, layer 4 loops too, and does not retry.
fn l4_not_on_the_node() {
    for nodes in [1, 2, 4] {
        let mut set = quick(nodes);
        for service in set.0.services.values_mut() {
            service.load_balancer.clear();
        }
        for measured in measure(&mut set, &clients(nodes), SERVICE) {
            let total: u64 = measured.counts.iter().map(|(_, count)| count).sum();
            let from = measured.flow.from.to_string();
            let hangs = match (from.starts_with("pod/shop/web-"), nodes) {
                (true, _) => total / u64::from(nodes),
                // No target is left to be picked.
                (false, 1) => total,
                (false, _) => 0,
            };
            let mut expected = vec![(Outcome::AT_ONCE, total - hangs), (Outcome::Hangs, hangs)];
            expected.retain(|(_, count)| *count > 0);
            assert_eq!(measured.counts, expected, "{from}, {nodes} nodes");
            assert!(measured.evidence.reached_load_balancer >= total, "{from}, {nodes} nodes");
        }
    }
}

/// From another node, from the same node, and from the server itself.
fn cluster_ip() {
    let flows = ["pod/shop/web-1", "pod/shop/web-2", "pod/shop/front", "node/n1"].map(String::from);
    let seen = ["10.1.1.10", "10.1.2.10", "10.1.2.1", "10.0.0.11"];
    for (measured, source) in measure(&mut quick(2), &flows, "svc/shop/front").iter().zip(seen) {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
        assert_eq!(measured.evidence.sources_seen, [(source.parse().unwrap(), 12)]);
        assert_eq!(measured.evidence.answered_by, [("pod shop/front".into(), 12)]);
    }
}

fn node_port() {
    for measured in measure(&mut quick(2), &clients(2), "10.0.0.11:30080") {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
    }
}

fn no_process_listens() {
    let flows = ["pod/shop/web-1".into(), "node/n2".into()];
    for to in ["pod/shop/front:81", "10.0.0.11:81"] {
        for measured in measure(&mut quick(2), &flows, to) {
            assert_eq!(measured.counts, [(Outcome::Refused, 12)], "{} → {to}", measured.flow.from);
        }
    }
    let (mut cluster, load_balancers) = quick(1);
    for slice in cluster.endpoints.values_mut().flatten() {
        slice.endpoints.clear();
    }
    let flows = ["pod/shop/web-1".into(), "node/n1".into()];
    for measured in measure(&mut (cluster, load_balancers), &flows, "svc/shop/front") {
        assert_eq!(measured.counts, [(Outcome::Refused, 12)], "{}", measured.flow.from);
    }
}

fn ipv6() {
    let mut set = quick_set(cluster_v6(2));
    let flows = ["pod/shop/web-1".into(), "pod/shop/web-2".into(), "node/n1".into()];
    let half = vec![(Outcome::AT_ONCE, 6), (LATE, 6)];
    let all = vec![(Outcome::AT_ONCE, 12)];
    for (to, pods) in [
        ("http://[fd00::100]/", half),
        ("http://[fd00::200]/", all.clone()),
        ("svc/shop/front", all.clone()),
    ] {
        let measured = measure(&mut set, &flows, to);
        for (flow, expected) in measured.iter().zip([&pods, &pods, &all]) {
            assert_eq!(flow.counts, *expected, "{} → {to}", flow.flow.from);
        }
    }
}

/// SIGTERM: the run itself takes everything down.
fn terminated() {
    let (mut child, _) = start_victim();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(output.last().unwrap().contains("interrupted"));
    assert!(child.wait().unwrap().success());
    assert_eq!(labs_of(child.id()), [""; 0]);
}

/// After SIGKILL, only the next lab command takes the lab down.
fn killed() {
    let (mut child, balancer) = start_victim();
    let stands = labs_of(child.id());
    assert!(stands.iter().any(|name| name.ends_with("-fabric")), "{stands:?}");
    uturn_lab::sweep().unwrap();
    assert_eq!(labs_of(child.id()), stands, "what lives is not swept");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // Another test may run such a command, and take it down first.
    uturn_lab::sweep().unwrap();
    assert_eq!(labs_of(child.id()), [""; 0]);
    let limit = Instant::now() + Duration::from_secs(600);
    while fs::exists(format!("/proc/{balancer}/exe")).unwrap() {
        assert!(Instant::now() < limit, "the load balancer lives on");
    }
}

/// The first `ip netns add` of a machine makes the folder of names a mount of its own, with a copy
/// of each mount in it. A lab that stands then has to go all the same.
fn first_of_ip() {
    let script = "mount -t tmpfs none /run && exec \"$0\" beside-ip";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
    assert!(command.status().unwrap().success());
}

/// Measures while `ip` makes a namespace.
fn beside_ip() {
    let (cluster, load_balancers) = quick(1);
    let flows = [flow("pod/shop/web-1", INGRESS)];
    let plan = plan(&cluster, &load_balancers, &flows);
    let mut add_and_delete = |text: &str| {
        for what in ["add", "delete"].iter().filter(|_| text.starts_with("measuring")) {
            let status = Command::new("ip").args(["netns", what, "other"]).status().unwrap();
            assert!(status.success(), "ip netns {what}: {status}");
        }
    };
    uturn_lab::measure(&plan, &mut add_and_delete).unwrap();
    let left = names("/run/netns");
    assert!(left.is_empty(), "{left:?}");
}

fn bad_plan() {
    let (cluster, load_balancers) = quick(1);
    for (from, to) in [
        ("pod/shop/none", INGRESS),
        ("deploy/shop/web", INGRESS),
        ("pod/shop/web-1", "http://nowhere.example.com/"),
        ("pod/shop/web-1", "svc/shop/none"),
    ] {
        let flows = [flow(from, to)];
        let plan = plan(&cluster, &load_balancers, &flows);
        let error = uturn_lab::measure(&plan, &mut |_| {}).unwrap_err();
        assert!(matches!(error, LabError::Plan(_)), "{from} → {to}: {error}");
    }
    let flows = [flow("pod/shop/web-1", INGRESS)];
    let plan = Plan { program: "/nonexistent".into(), ..plan(&cluster, &load_balancers, &flows) };
    let error = uturn_lab::measure(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("start the load balancer"), "{error}");
}

/// A run that waits long enough to be ended in the middle.
fn victim() {
    // Tunnels are to be gone afterwards too. What pods send comes back to none: it takes long.
    let (mut cluster, load_balancers) = crate::networks::wrapped(cluster(2));
    cluster.network.masquerades.value = false;
    let flows = [flow("pod/shop/web-1", INGRESS)];
    let plan = plan(&cluster, &load_balancers, &flows);
    let error = uturn_lab::measure(&plan, &mut |text| println!("{text}")).unwrap_err();
    println!("{error}");
}

/// The victim once it measures, and its load balancer's process.
pub(crate) fn start_victim() -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("victim")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
    let mut line = String::new();
    while !line.starts_with("measuring") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the victim ended by itself");
    }
    let run = names("/run/uturn-lab")
        .into_iter()
        .find(|run| run.starts_with(&format!("{}-", child.id())))
        .unwrap();
    let record = fs::read_to_string(format!("/run/uturn-lab/{run}/processes")).unwrap();
    (child, record.split(' ').next().unwrap().to_owned())
}

/// What stands, or still stands, of the labs of a process.
pub(crate) fn labs_of(process: u32) -> Vec<String> {
    let spaces = names("/run/netns").into_iter();
    let spaces = spaces.filter(|name| name.starts_with(&format!("uturn-{process}-")));
    let states = names("/run/uturn-lab").into_iter();
    let states = states.filter(|name| name.starts_with(&format!("{process}-")));
    spaces.chain(states).collect()
}

pub(crate) fn quick(nodes: u8) -> (Cluster, Vec<LoadBalancer>) {
    quick_set(cluster(nodes))
}

pub(crate) fn quick_set(
    (cluster, mut load_balancers): (Cluster, Vec<LoadBalancer>),
) -> (Cluster, Vec<LoadBalancer>) {
    for listener in load_balancers.iter_mut().flat_map(|lb| &mut lb.listeners) {
        listener.profile.connect_timeout = TIMEOUT;
    }
    (cluster, load_balancers)
}

pub(crate) fn clients(nodes: u8) -> Vec<String> {
    let of = |i| [format!("pod/shop/web-{i}"), format!("pod/shop/host-{i}"), format!("node/n{i}")];
    (1..=nodes).flat_map(of).collect()
}

pub(crate) fn flow(from: &str, to: &str) -> Flow {
    Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp }
}

pub(crate) fn plan<'a>(
    cluster: &'a Cluster,
    lbs: &'a [LoadBalancer],
    flows: &'a [Flow],
) -> Plan<'a> {
    let program = std::env::current_exe().unwrap();
    static NONE: BTreeMap<Name, Capture> = BTreeMap::new();
    let coredns = None;
    Plan {
        cluster,
        load_balancers: lbs,
        flows,
        connects: 12,
        paced: IS_DONE_AGAIN.get(),
        program,
        rules: &NONE,
        coredns,
    }
}

pub(crate) fn measure(
    (cluster, load_balancers): &mut (Cluster, Vec<LoadBalancer>),
    clients: &[String],
    to: &str,
) -> Vec<MeasuredFlow> {
    let flows: Vec<Flow> = clients.iter().map(|from| flow(from, to)).collect();
    let plan = plan(cluster, load_balancers, &flows);
    uturn_lab::measure(&plan, &mut |_| {}).unwrap()
}
