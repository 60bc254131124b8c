//! How long a scan takes, beside hashing a million keys, and how it grows: `cargo bench -p uturn-scan --bench scan -- FILE`
//! for each file that `cargo xtask gen-cluster` wrote; of several, exponents are said. Without
//! a file: a small cluster, by classes and one flow after the other.

#![expect(clippy::print_stdout, reason = "a program that talks to people")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use uturn_model::{Client, Flow, NamespacedName, Verdict};
use uturn_path::Engine;
use uturn_scan::{ScanResult, ScanTarget, Scanner};
use uturn_snapshot::{Source, read};
use uturn_testing::yardstick::{Beside, hash_keys};

#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A scan is measured beside hashing so many keys.
const KEYS: usize = 1_000_000;

fn main() {
    let files: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if files.is_empty() {
        return beside_brute_force();
    }
    let mut before: Option<(f64, f64)> = None;
    for file in files {
        let text = fs::read_to_string(&file).expect("a file that can be read");
        let size = text.len() as f64 / 1e6;
        let start = Spent::so_far();
        let cluster =
            read(vec![Source { name: file.as_str().into(), text }]).expect("manifests").cluster;
        let load = start.until_now();
        let hashing = time_of_hashing();
        let start = Spent::so_far();
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let scanner = Scanner::new(&engine);
        let targets = scanner.targets();
        let ready = start.until_now();
        let met = scanner.scan(&targets).expect("verdicts");
        let scan = start.until_now();
        let beside = Beside { work: scan.busy, yardstick: hashing.min(time_of_hashing()) };
        let fine = met.iter().filter(|result| result.verdicts.iter().all(Verdict::is_fine));
        println!(
            "{file}: {} nodes, {} pods, {} targets; load {load} ({:.0} MB/s); scan {scan} \
             (ready after {ready}); {} classes, {} of {} flows fine; {} MB at most",
            cluster.nodes.len(),
            cluster.pods.len(),
            targets.len(),
            size / load.busy,
            met.len(),
            fine.map(ScanResult::flows).sum::<usize>(),
            met.iter().map(ScanResult::flows).sum::<usize>(),
            most_memory(),
        );
        let ways =
            |result: &ScanResult| result.verdicts.iter().map(|verdict| verdict.routes.len()).sum();
        let all: Vec<usize> = met.iter().map(ways).collect();
        println!(
            "  {} ways in all, {} at most of one class",
            all.iter().sum::<usize>(),
            all.iter().max().unwrap_or(&0)
        );
        println!("  scan takes {:.1} times as long as hashing {KEYS} keys", beside.ratio());
        if let Some((size_before, scan_before)) = before {
            let exponent = (scan.busy / scan_before).ln() / (size / size_before).ln();
            println!("  scan grows with the size to the power of {exponent:.2}");
        }
        before = Some((size, scan.busy));
    }
}

/// Time by the clock and on the processor, which others may want too.
struct Spent {
    clock: Instant,
    busy: f64,
}

struct Took {
    clock: f64,
    busy: f64,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} s ({:.2} s by the clock)", self.busy, self.clock)
    }
}

impl Spent {
    fn so_far() -> Self {
        Self { clock: Instant::now(), busy: busy().unwrap_or(0.0) }
    }

    fn until_now(&self) -> Took {
        let clock = self.clock.elapsed().as_secs_f64();
        Took { clock, busy: busy().map_or(clock, |now| now - self.busy) }
    }
}

/// Seconds that all threads of this process were on the processor, where the kernel reports it:
/// the fourteenth and fifteenth word of its line, in hundredths.
fn busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The second word is a name in brackets, which may have spaces.
    let (_, words) = text.rsplit_once(')')?;
    let ticks = words.split_whitespace().skip(11).take(2).map(|word| word.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / 100.0)
}

/// The shortest time on the processor that hashing takes, of a few. It has one thread.
fn time_of_hashing() -> f64 {
    let start = Instant::now();
    let clock = || own_time().unwrap_or_else(|| start.elapsed().as_secs_f64());
    Beside::shortest_of(3, clock, || hash_keys(KEYS), || ()).work
}

/// Seconds that this thread was on the processor, where the kernel reports it.
fn own_time() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// The most memory this process has had, where the kernel reports it.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}

fn beside_brute_force() {
    for nodes in [10, 20, 40] {
        let source = Source { name: "small.yaml".into(), text: small(nodes) };
        let cluster = read(vec![source]).expect("manifests").cluster;
        let fresh = || Engine::new(&cluster).expect("rules that can be walked");
        let targets = Scanner::new(&fresh()).targets();
        let met = Scanner::new(&fresh()).scan(&targets).expect("verdicts");
        let (classes, _) = per_second(|| {
            Scanner::new(&fresh()).scan(&targets).expect("verdicts");
            1
        });
        let flow = |pod: &NamespacedName, target: &ScanTarget| Flow {
            from: Client::Pod(pod.clone()),
            to: target.to.clone(),
            protocol: target.protocol,
        };
        let (each, flows) = per_second(|| {
            let engine = fresh();
            for target in &targets {
                for pod in cluster.pods.keys() {
                    engine.verdict(&flow(pod, target)).expect("a verdict");
                }
            }
            cluster.pods.len() * targets.len()
        });
        let beside = Beside { work: 1.0 / classes, yardstick: time_of_hashing() };
        println!(
            "{nodes} nodes, {} pods, {} targets: {} classes, {:.1} times as fast as {flows} flows \
             one by one, {:.3} times as long as hashing {KEYS} keys",
            cluster.pods.len(),
            targets.len(),
            met.len(),
            classes * flows as f64 / each,
            beside.ratio(),
        );
    }
}

/// How many of something a second on the processor, and how many at once.
fn per_second(mut make: impl FnMut() -> usize) -> (f64, usize) {
    let start = Spent::so_far();
    let (mut all, mut rounds) = (0, 0);
    loop {
        all += make();
        rounds += 1;
        let busy = start.until_now().busy;
        if busy > 0.3 {
            return (all as f64 / busy, all / rounds);
        }
    }
}

/// A cluster with as many Services as nodes, half of them behind an Ingress.
fn small(nodes: usize) -> String {
    let mut text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {mode: iptables, version: v1.30.0, variant: upstream}
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}
"
    .to_owned();
    for node in 1..=nodes {
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}}}, spec: {{podCIDR: 10.1.{node}.0/24}}, \
             status: {{addresses: [{{type: InternalIP, address: 10.0.0.{}}}]}}}}",
            10 + node
        );
    }
    for service in 0..nodes {
        let policy = if service % 3 == 0 { "Local" } else { "Cluster" };
        let mut endpoints = Vec::new();
        for replica in 0..4 {
            let node = 1 + (service * 7 + replica * 3) % nodes;
            let ip = format!("10.1.{node}.{}", 10 + service * 4 + replica);
            let _ = writeln!(
                text,
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: s{service}-{replica}, namespace: shop}}, \
                 spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}, \
                 status: {{phase: Running, podIP: {ip}, conditions: [{{type: Ready, status: \"True\"}}]}}}}"
            );
            endpoints.push(format!(
                "{{addresses: [{ip}], nodeName: n{node}, conditions: {{ready: true}}}}"
            ));
        }
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{service}, namespace: shop}}, \
             spec: {{type: NodePort, clusterIP: 172.16.0.{}, externalTrafficPolicy: {policy}, \
             ports: [{{name: p, port: 80, targetPort: 8080, nodePort: {}}}]}}}}\n\
             ---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, \
             metadata: {{name: s{service}-x, namespace: shop, labels: {{kubernetes.io/service-name: s{service}}}}}, \
             ports: [{{name: p, port: 8080, protocol: TCP}}], endpoints: [{}]}}",
            10 + service,
            30_000 + service,
            endpoints.join(", ")
        );
        if service % 2 == 0 {
            let _ = writeln!(
                text,
                "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: i{service}, \
                 namespace: shop, annotations: {{kubernetes.io/ingress.subnetId: subnet}}}}, \
                 spec: {{rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: \
                 {{service: {{name: s{service}, port: {{number: 80}}}}}}}}]}}}}]}}, \
                 status: {{loadBalancer: {{ingress: [{{ip: 10.0.1.{}}}]}}}}}}",
                10 + service
            );
        }
    }
    text
}
