//! How long it takes to write a node's rules for 10,000 Services of 10 endpoints, in each
//! mode, beside sorting the same number of lines: `cargo bench -p uturn-kubeproxy`.
//!
//! Prints the best of several runs by the clock and by CPU time, since machines are shared.

#![expect(clippy::print_stdout, reason = "a program that talks to people")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use uturn_kubeproxy::{Program, compile};
use uturn_model::{Cluster, Family, Name, ProxyMode};
use uturn_snapshot::{Source, read};

const SERVICES: u32 = 10_000;
const ENDPOINTS: u32 = 10;
const RUNS: usize = 10;

fn main() {
    // Print no figures when benchmarks are listed or run as tests.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    for mode in ProxyMode::ALL {
        let cluster = cluster(mode);
        let node = Name::new("n1").expect("a name");
        let make = || {
            compile(&cluster, &node, &cluster.proxy, Family::V4).expect("rules for every Service")
        };
        let program = make();
        let (wall, worked) = best(make);
        let lines = lines(&program);
        let count = lines.len();
        let (sorting, _) = best(|| {
            let mut lines = lines.clone();
            lines.sort_unstable();
            lines.len()
        });
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        println!(
            "{:<9} {:7.1} ms{}  {count} lines, {:.1} MB, {:.0} MB/s; {:.1} times as long as \
             sorting them",
            mode.to_string(),
            wall * 1e3,
            worked
                .map_or_else(String::new, |time| format!(" ({:.1} ms of a processor)", time * 1e3)),
            bytes as f64 / 1e6,
            bytes as f64 / 1e6 / wall,
            wall / sorting,
        );
    }
}

/// The shortest of several runs, by the clock and by CPU time.
fn best<T>(run: impl Fn() -> T) -> (f64, Option<f64>) {
    let mut best = (f64::MAX, None::<f64>);
    for _ in 0..RUNS {
        let (start, before) = (Instant::now(), worked());
        black_box(run());
        best.0 = best.0.min(start.elapsed().as_secs_f64());
        let took = worked().zip(before).map(|(after, before)| after - before);
        best.1 = match (best.1, took) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
    }
    best
}

/// The CPU seconds of this process so far, if the system provides them.
fn worked() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn lines(program: &Program) -> Vec<&str> {
    let all = [&program.iptables, &program.ipset, &program.ipvs, &program.nft];
    all.into_iter().flat_map(|text| text.lines()).collect()
}

/// One node, and Services of which every tenth has a NodePort.
fn cluster(mode: ProxyMode) -> Cluster {
    let mut text = format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {{podCIDRs: \
         [10.0.0.0/8]}}\n  kubeProxy: {{mode: {mode}, version: v1.34.4, variant: upstream}}\n\
         ---\n{{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{{\"name\":\"n1\"}},\"spec\":\
         {{\"podCIDR\":\"10.1.1.0/24\"}},\"status\":{{\"addresses\":[{{\"type\":\"InternalIP\",\
         \"address\":\"192.168.0.11\"}}]}}}}\n"
    );
    let mut write_line = |line: String| text.write_str(&line).expect("memory");
    for number in 0..SERVICES {
        let [_, _, high, low] = number.to_be_bytes();
        let node_port = match number % 10 {
            0 => format!(",\"nodePort\":{}", 30_000 + number / 10),
            _ => String::new(),
        };
        let kind = if node_port.is_empty() { "ClusterIP" } else { "NodePort" };
        write_line(format!(
            "---\n{{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{{\"name\":\
             \"s{number}\",\"namespace\":\"b\"}},\"spec\":{{\"type\":\"{kind}\",\"clusterIP\":\
             \"172.16.{high}.{low}\",\"ports\":[{{\"name\":\"http\",\"port\":80,\"targetPort\":\
             8080{node_port}}}]}}}}\n"
        ));
        let endpoints: Vec<String> = (0..ENDPOINTS)
            .map(|endpoint| {
                let ip = 0x0a00_0000 + number * ENDPOINTS + endpoint + 1;
                let ip = std::net::Ipv4Addr::from_bits(ip);
                format!("{{\"addresses\":[\"{ip}\"],\"conditions\":{{\"ready\":true}}}}")
            })
            .collect();
        write_line(format!(
            "---\n{{\"apiVersion\":\"discovery.k8s.io/v1\",\"kind\":\"EndpointSlice\",\
             \"metadata\":{{\"name\":\"s{number}-a\",\"namespace\":\"b\",\"labels\":\
             {{\"kubernetes.io/service-name\":\"s{number}\"}}}},\"addressType\":\"IPv4\",\
             \"ports\":[{{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\"}}],\"endpoints\":\
             [{}]}}\n",
            endpoints.join(",")
        ));
    }
    let source = Source { name: "made.yaml".into(), text: text.as_str().into() };
    read(vec![source]).expect("manifests that are right").cluster
}
