//! Derives from the calls which of the unknown facts hold.

use std::net::IpAddr;

use uturn_cli::Failure;
use uturn_clouds::cloud;
use uturn_model::lb::{ListenerFact, LoadBalancerFact, Source};
use uturn_model::proxy::CLUSTER_CIDR;
use uturn_model::{Cluster, Origin, ProxyMode, Verdict};
use uturn_path::{Engine, WalkError, what_if};
use uturn_probe::{CallEnd, Fit, Known, MeasuredCall, judge};
use uturn_report::probe::{Learned, ProbeCase};

use super::plan::Plan;

/// The prefix of conditions of a case that are about kube-proxy.
const KUBE_PROXY: &str = "kube-proxy ";

/// The facts that the calls show.
#[derive(Default)]
pub(super) struct Settled {
    /// The facts that hold.
    pub(super) learned: Vec<Learned>,
    /// The facts that would have to hold for the calls to fit.
    pub(super) would_fit: Vec<Learned>,
}

pub(super) fn settle(
    engine: &Engine<'_>,
    plan: &Plan,
    cases: &[ProbeCase],
    calls: &[MeasuredCall],
    known: &Known,
) -> Result<Settled, Failure> {
    let stands = |case: &&ProbeCase| !case.judgement.fit.is_contradiction();
    let standing: Vec<&ProbeCase> = cases.iter().filter(stands).collect();
    let mut settled = Settled::default();
    if standing.is_empty() && !cases.is_empty() {
        settled.would_fit.extend(other_source(engine, plan, calls, known)?);
    }
    if standing.is_empty() || standing.len() == cases.len() {
        return Ok(settled);
    }
    settled.learned.extend(kube_proxy(engine, plan, calls, known)?);
    if let [only] = standing[..] {
        let others = only.verdict.conditions.iter();
        let others = others.filter(|condition| !condition.starts_with(KUBE_PROXY));
        settled.learned.extend(others.map(|condition| Learned {
            what: condition.to_string(),
            facts: outside_name(plan, engine.cluster(), calls),
        }));
    }
    Ok(settled)
}

/// Returns the ways of running kube-proxy that the calls do not contradict, unless these are all.
fn kube_proxy(
    engine: &Engine<'_>,
    plan: &Plan,
    calls: &[MeasuredCall],
    known: &Known,
) -> Result<Option<Learned>, Failure> {
    let cluster = engine.cluster();
    let others = what_if::others(cluster);
    let readings: Vec<&Cluster> = std::iter::once(cluster).chain(&others).collect();
    let mut standing = Vec::new();
    for (place, reading) in readings.iter().enumerate() {
        if !is_contradicted(&verdict(reading, plan)?, calls, known) {
            standing.push(place);
        }
    }
    if standing.is_empty() || standing.len() == readings.len() {
        return Ok(None);
    }
    let what = what_if::Configurations::of(cluster).conditions(&standing).join(" and ");
    let proxies = || standing.iter().map(|place| &readings[*place].proxy);
    let mode = proxies().next().map(|proxy| proxy.mode.value);
    let mode = mode.filter(|mode| proxies().all(|proxy| proxy.mode.value == *mode));
    let variant = proxies().next().map(|proxy| proxy.variant.value);
    let variant = variant.filter(|variant| {
        mode == Some(ProxyMode::Ipvs)
            && cluster.proxy.variant.is_supposed()
            && cloud::variants().count() > 1
            && proxies().all(|proxy| proxy.variant.value == *variant)
    });
    let mut fields = Vec::new();
    if cluster.proxy.mode.is_supposed() {
        fields.extend(mode.map(|mode| format!("mode: {mode}")));
    }
    fields.extend(variant.map(|variant| format!("variant: {}", variant.word())));
    let facts = (!fields.is_empty()).then(|| format!("{{kubeProxy: {{{}}}}}", fields.join(", ")));
    let is_about_ranges = what.contains("cluster CIDR");
    let stated =
        cluster.supposed.iter().find(|assumption| assumption.subject == CLUSTER_CIDR.into());
    let what = match stated.filter(|_| is_about_ranges) {
        Some(assumption) => format!("{what} ({})", assumption.settle),
        None => what,
    };
    Ok(Some(Learned { what, facts }))
}

/// Returns a correction for a listener that was assumed to keep the source and replaces it, or the
/// other way round, if the calls fit that.
fn other_source(
    engine: &Engine<'_>,
    plan: &Plan,
    calls: &[MeasuredCall],
    known: &Known,
) -> Result<Option<Learned>, Failure> {
    let Some(listener) = plan.listener() else { return Ok(None) };
    let address = engine.resolve(&plan.flow)?.addresses().first().copied();
    let Some(address) = address else { return Ok(None) };
    let snat = matches!(listener.profile.source, Source::Kept);
    let mut cluster = engine.cluster().clone();
    state_source(&mut cluster, address.ip(), listener, snat);
    let verdict = verdict(&cluster, plan)?;
    let fit = judge(&verdict.outcomes, verdict.is_by_chance(), calls, known).fit;
    Ok(fit.agrees().then(|| Learned {
        what: format!(
            "the load balancer at {address} {} clients' addresses",
            if snat { "replaces" } else { "keeps" }
        ),
        facts: Some(format!(
            "{{loadBalancers: [{{vip: {}, listeners: [{{port: {}, protocol: {}, snat: {snat}}}]}}]}}",
            address.ip(),
            listener.port,
            listener.protocol
        )),
    }))
}

/// States in a cluster whether a listener replaces the addresses of clients.
fn state_source(
    cluster: &mut Cluster,
    vip: IpAddr,
    listener: &uturn_model::lb::Listener,
    snat: bool,
) {
    let origin = Origin::Derived(uturn_model::DerivedFrom::Cloud);
    let stated = cluster.load_balancers.iter().position(|fact| fact.vip == vip);
    let place = stated.unwrap_or_else(|| {
        cluster.load_balancers.push(LoadBalancerFact::new(vip, origin.clone()));
        cluster.load_balancers.len() - 1
    });
    let listeners = &mut cluster.load_balancers[place].listeners;
    match listeners.iter_mut().find(|fact| fact.port == listener.port) {
        Some(fact) => fact.snat = Some(snat),
        None => listeners.push(ListenerFact {
            protocol: Some(listener.protocol),
            snat: Some(snat),
            ..ListenerFact::new(listener.port, origin)
        }),
    }
}

fn verdict(cluster: &Cluster, plan: &Plan) -> Result<Verdict, Failure> {
    let engine = Engine::new(cluster).map_err(|mut faults: Vec<WalkError>| faults.remove(0))?;
    Ok(engine.verdict(&plan.flow)?)
}

/// Returns whether the calls contradict all of these verdicts.
fn is_contradicted(verdict: &Verdict, calls: &[MeasuredCall], known: &Known) -> bool {
    let fit = judge(&verdict.outcomes, verdict.is_by_chance(), calls, known).fit;
    matches!(fit, Fit::Unpredicted(_) | Fit::Unlikely { .. })
}

/// Returns a fact with the outside address of the called name, if all answered calls went there.
fn outside_name(plan: &Plan, cluster: &Cluster, calls: &[MeasuredCall]) -> Option<String> {
    let host = plan.flow.to.host()?;
    if host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let is_inside = |address: IpAddr| {
        cluster.services.values().any(|service| service.cluster_ips.contains(&address))
    };
    let reached = calls.iter().filter(|call| matches!(call.end, CallEnd::Status(_)));
    let mut addresses = reached.filter_map(|call| call.address);
    let first = addresses.next()?;
    let is_one = addresses.all(|address| address == first);
    (is_one && !is_inside(first)).then(|| format!("{{dns: {{outside: {{{host}: \"{first}\"}}}}}}"))
}
