//! Plans the calls: their target, the pod that makes them, their number and their limits.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_cli::Failure;
use uturn_lb::rules;
use uturn_model::lb::{Layer, Listener, Rule, Scheduler};
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, NamespacedName, Outcome, Port, Protocol, Service,
    Verdict,
};
use uturn_path::{Engine, ResolvedTarget};
use uturn_probe::{Call, HttpRequest, Known, Limits, Rest, Tool};
use uturn_report::words;

use crate::cli::Probe;
use crate::commands::suggest;

/// The number of calls unless the user states one.
const CALLS: u32 = 12;
/// The shortest limit of a call: the first packet is sent again after 1, 3 and 7 s.
const MIN: Duration = Duration::from_secs(10);
/// The margin of a call's limit over the longest predicted wait.
const LONGER: Duration = Duration::from_secs(5);
/// The largest number of consecutive connect timeouts of a load balancer whose total wait is told
/// apart from a slow server.
const MAX_TIMEOUTS: u32 = 3;

/// A target to call, and the pod that calls it.
pub(super) struct Plan {
    /// The flow, with the pod as its client.
    pub(super) flow: Flow,
    pub(super) pod: NamespacedName,
    pub(super) call: Call,
    /// The listener that is called, and the rule that serves the target.
    met: Option<(Listener, Option<Rule>)>,
    /// Whether the client gets the same target each time.
    keeps_target: bool,
}

impl Plan {
    pub(super) fn new(engine: &Engine<'_>, args: &Probe) -> Result<Self, Failure> {
        let cluster = engine.cluster();
        let pod = pod(engine, &args.from)?;
        let from = Client::Pod(pod.clone());
        let flow = Flow { from, to: args.to.clone(), protocol: Protocol::Tcp };
        let target = engine.resolve(&flow).map_err(|why| suggest::with_suggestion(why, cluster))?;
        let met = met(engine, &target, &flow.to);
        let call = call(&flow.to, &target, met.as_ref())?;
        let scheduler = met.as_ref().map(|(listener, _)| listener.profile.scheduler);
        let first = target.addresses().first();
        let keeps_target = first.is_some_and(|first| keeps_target(cluster, *first, scheduler));
        Ok(Self { flow, pod, call, met, keeps_target })
    }

    /// Returns the number of calls and the time limits.
    pub(super) fn limits(&self, verdicts: &[Verdict], args: &Probe) -> Limits {
        let longest = self.waits(verdicts).into_iter().max().unwrap_or_default();
        let call = args.call_timeout.unwrap_or_else(|| MIN.max(longest + LONGER));
        let calls = args.calls.unwrap_or_else(|| self.usual_calls());
        Limits { calls, call, total: args.total_timeout.max(call) }
    }

    /// Returns the number of calls unless the user states one. A load balancer that stops using a
    /// target after consecutive failures gets fewer calls, so that they do not cause that.
    fn usual_calls(&self) -> u32 {
        let Some((listener, Some(rule))) = &self.met else { return CALLS };
        let Some(check) = &listener.profile.passive_check else { return CALLS };
        let turns = u32::try_from(rule.targets.len()).unwrap_or(u32::MAX);
        match turns.saturating_mul(check.failures.saturating_sub(1)) {
            0 => CALLS,
            calls => calls.min(CALLS),
        }
    }

    /// Returns the facts about the calls that the judge needs besides a prediction.
    pub(super) fn known(&self, verdicts: &[Verdict], limits: &Limits, took: Duration) -> Known {
        let profile = self.met.as_ref().map(|(listener, _)| &listener.profile);
        let check = profile.and_then(|profile| profile.passive_check.as_ref());
        Known {
            limit: limits.call,
            waits: self.waits(verdicts),
            rest: check.map(|check| Rest { failures: check.failures, lasts: check.rest }),
            took,
            keeps_target: self.keeps_target,
        }
    }

    /// Returns the waits that are predicted, and those that load balancer timeouts would add.
    fn waits(&self, verdicts: &[Verdict]) -> Vec<Duration> {
        let outcomes = verdicts.iter().flat_map(|verdict| &verdict.outcomes);
        let predicted = outcomes.filter_map(|(outcome, _)| match outcome {
            Outcome::Answered { after } | Outcome::Status { after, .. } => Some(*after),
            _ => None,
        });
        let mut waits: Vec<Duration> = predicted.filter(|wait| !wait.is_zero()).collect();
        if let Some((listener, _)) = &self.met
            && listener.protocol.layer() == Layer::L7
        {
            let timeout = listener.profile.connect_timeout;
            waits.extend((1..=MAX_TIMEOUTS).map(|times| timeout * times));
        }
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    /// Returns the longest time that all calls and the work for them take.
    pub(super) fn longest(limits: &Limits) -> Duration {
        limits.total.min((limits.call + MIN) * limits.calls)
    }

    /// Returns the listener that is called.
    pub(super) fn listener(&self) -> Option<&Listener> {
        self.met.as_ref().map(|(listener, _)| listener)
    }

    /// Describes the calls to the user before they are made.
    pub(super) fn announcement(
        &self,
        args: &Probe,
        verdicts: &[Verdict],
        limits: &Limits,
    ) -> String {
        let what = match self.call.request() {
            Some(request) if request.follows => {
                "a GET request each, and one more to follow its redirect"
            }
            Some(_) => "a GET request each",
            None => "a connection each, on which nothing is sent",
        };
        let place = match (&args.image, &args.container) {
            (Some(image), _) => format!(
                "adds a container of the image {image} to the pod, which CANNOT BE REMOVED from it \
                 again (it ends by itself), and there runs, as kubectl exec does,"
            ),
            (None, Some(container)) => {
                format!("runs in container {container}, as kubectl exec does,")
            }
            (None, None) => "runs in the pod's default container, as kubectl exec does,".to_owned(),
        };
        let programs: Vec<&str> = match &args.with {
            Some(word) => vec![word],
            None => {
                Tool::ALL.into_iter().filter(|tool| tool.can(&self.call)).map(Tool::word).collect()
            }
        };
        let mut text = format!(
            "{} from pod/{} to {}, one at a time: {what}.\nuturn {place} the first of {} that is \
             there.\nA call takes {} s at most, all together {} s at most.\n",
            words::count(limits.calls as usize, "call"),
            self.pod,
            self.call,
            programs.join(", "),
            limits.call.as_secs(),
            Self::longest(limits).as_secs(),
        );
        for verdict in verdicts {
            let conditions = if verdict.conditions.is_empty() {
                String::new()
            } else {
                format!("if {}: ", verdict.conditions.join(" and "))
            };
            text.push_str(&format!("predicted: {conditions}{}\n", words::verdict(verdict, 12)));
        }
        text
    }
}

/// Returns the pod that makes the calls. Of a workload, the first pod is used.
fn pod(engine: &Engine<'_>, from: &Client) -> Result<NamespacedName, Failure> {
    let cluster: &Cluster = engine.cluster();
    match from {
        Client::Pod(name) => Ok(name.clone()),
        Client::Workload(kind, name) => {
            let unknown = || Failure::usage(format!("there is no {from} in this cluster"));
            let workload = cluster.workloads.get(&(*kind, name.clone())).ok_or_else(unknown)?;
            let mut pods = cluster.pods.values().filter(|pod| {
                pod.name.namespace == name.namespace
                    && pod.is_alive()
                    && pod.node.is_some()
                    && workload.selector.matches(&pod.spec.labels)
            });
            let first = pods.next().map(|pod| pod.name.clone());
            first.ok_or_else(|| Failure::usage(format!("{from} has no pod that runs")))
        }
        Client::Node(_) | Client::Outside(_) => {
            Err(Failure::usage(format!("{from} is not a pod, and calls are made in pods")))
        }
    }
}

/// Returns the load balancer's listener that serves a target, and the rule for the target.
fn met(
    engine: &Engine<'_>,
    target: &ResolvedTarget,
    to: &Destination,
) -> Option<(Listener, Option<Rule>)> {
    let address = *target.addresses().first()?;
    let balancer = engine.balancers().iter().find(|balancer| balancer.vip == address.ip())?;
    let listener = balancer.listeners.iter().find(|listener| {
        listener.port.number() == address.port() && listener.protocol.transport() == Protocol::Tcp
    })?;
    let rule = match (listener.protocol.layer(), &target.request().http) {
        (Layer::L4, _) => listener.rules.first(),
        (Layer::L7, Some((host, path))) => rules::find(listener, host, path),
        (Layer::L7, None) => rules::find(listener, &host(to, address), "/"),
    };
    Some((listener.clone(), rule.cloned()))
}

/// Returns whether a client gets the same target each time: by the affinity of the Service that
/// kube-proxy serves at the address, or because the load balancer picks by a hash of the client's
/// address.
fn keeps_target(cluster: &Cluster, address: SocketAddr, met: Option<Scheduler>) -> bool {
    let ip = address.ip();
    let is_served = |service: &&Service| {
        let has_ip = service.cluster_ips.contains(&ip)
            || service.external_ips.contains(&ip)
            || service.vips(Family::of(ip)).any(|vip| vip == ip);
        has_ip && service.ports.iter().any(|port| port.port.number() == address.port())
    };
    match cluster.services.values().find(is_served) {
        Some(service) => service.affinity_seconds.is_some(),
        None => met == Some(Scheduler::SourceHash),
    }
}

fn host(to: &Destination, address: SocketAddr) -> String {
    match to {
        Destination::Host(host, _) => host.to_string(),
        _ => address.ip().to_string(),
    }
}

fn call(
    to: &Destination,
    target: &ResolvedTarget,
    met: Option<&(Listener, Option<Rule>)>,
) -> Result<Call, Failure> {
    let first = target.addresses().first();
    let listener = met.map(|(listener, _)| listener);
    // The listener accepts connections itself, so an accepted connection says nothing of its
    // targets.
    let ends_connections = listener.is_some_and(|listener| {
        listener.protocol.layer() == Layer::L7 || listener.protocol.ends_tls()
    });
    let follows =
        met.is_some_and(|(_, rule)| rule.as_ref().is_some_and(|rule| rule.redirect.is_some()));
    let request = |path: &str, tls: bool| HttpRequest { tls, path: path.to_owned(), follows };
    let (host, port, address, request) = match (to, &target.request().http) {
        (Destination::Url { tls, host, port, path }, _) => {
            (host.to_string(), *port, None, Some(request(path, *tls)))
        }
        (Destination::Ingress { .. }, Some((host, path))) => {
            let address = addressed(to, first)?;
            let tls = target.request().tls.unwrap_or_default();
            (host.clone(), port_of(address)?, Some(address.ip()), Some(request(path, tls)))
        }
        _ => {
            let (name, port, address) = match to {
                Destination::Host(host, port) => (host.to_string(), *port, None),
                _ => {
                    let address = addressed(to, first)?;
                    (address.ip().to_string(), port_of(address)?, None)
                }
            };
            let sent = match listener.filter(|_| ends_connections) {
                None => None,
                Some(listener) if listener.protocol.layer() == Layer::L7 => {
                    Some(request("/", listener.protocol.ends_tls()))
                }
                Some(listener) => {
                    return Err(Failure::usage(format!(
                        "{to} is a {} listener, which accepts connections whatever its targets do: \
                         name it as a URL (https://…) if its servers speak HTTP",
                        listener.protocol
                    )));
                }
            };
            (name, port, address, sent)
        }
    };
    Call::new(&host, port, address, request).map_err(|why| Failure::usage(why.to_string()))
}

fn addressed(to: &Destination, address: Option<&SocketAddr>) -> Result<SocketAddr, Failure> {
    address.copied().ok_or_else(|| Failure::usage(format!("{to} has no address")))
}

fn port_of(address: SocketAddr) -> Result<Port, Failure> {
    Port::new(address.port()).ok_or_else(|| Failure::usage(format!("{address} has no port")))
}

#[cfg(test)]
mod tests {
    use uturn_snapshot::{Source, read};

    use super::*;

    const SERVICES: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Service
metadata: {name: sticky, namespace: shop}
spec:
  type: LoadBalancer
  sessionAffinity: ClientIP
  clusterIP: 172.16.1.1
  externalIPs: [10.0.0.50]
  ports: [{port: 80, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 10.0.0.100, ipMode: VIP}, {ip: 10.0.0.101, ipMode: Proxy}]}}
---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: shop}
spec: {clusterIP: 172.16.1.2, externalIPs: [10.0.0.50], ports: [{port: 81}]}
";

    #[test]
    fn affinity_counts_where_kube_proxy_serves_the_service() {
        let source = Source { name: "services.yaml".into(), text: SERVICES.into() };
        let cluster = read(vec![source]).unwrap().cluster;
        let (hash, turns) = (Some(Scheduler::SourceHash), Some(Scheduler::WeightedRoundRobin));
        for (address, met, keeps) in [
            ("172.16.1.1:80", None, true),
            ("172.16.1.1:81", None, false),
            ("172.16.1.2:81", None, false),
            ("10.0.0.50:80", None, true),
            ("10.0.0.50:81", None, false),
            ("10.0.0.100:80", turns, true),
            // The load balancer serves these addresses, for pods too.
            ("10.0.0.101:80", turns, false),
            ("10.0.0.101:80", hash, true),
            ("10.0.0.102:443", hash, true),
            ("10.0.0.102:443", None, false),
        ] {
            let known = keeps_target(&cluster, address.parse().unwrap(), met);
            assert_eq!(known, keeps, "{address} {met:?}");
        }
    }
}
