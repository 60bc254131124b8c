//! Explains why a Service has no endpoint that takes calls.

use uturn_model::ingress::{Backend, Ingress};
use uturn_model::pod::{Phase, PodSpec};
use uturn_model::service::{ServiceKind, TargetPort};
use uturn_model::wording::count;
use uturn_model::{
    Cluster, EndpointPort, Evidence, Name, NamespacedName, ObjectRef, Pod, Selector, Service, Text,
    Workload, WorkloadKind,
};

use crate::Observation;
use crate::near_miss::{Maker, makers, near_misses, pods_of};

/// Why a Service has no endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lack {
    /// The reason; `None` if another finding states it.
    pub(crate) because: Option<Observation>,
    /// Whether this may be intended: the workload is scaled to zero, or its pods end.
    pub(crate) may_be_intended: bool,
    /// Whether the objects ask for this: the workload is scaled to zero, or its pods have ended.
    pub(crate) is_asked_for: bool,
    /// Whether pods of the namespace fit but for a slip in a label.
    pub(crate) has_slip: bool,
}

impl Lack {
    /// Says that nothing was looked for, because this many objects would have to be looked at.
    pub(crate) fn unexamined(service: &Service, objects: usize) -> Self {
        let what = format!(
            "why no endpoint is there was not examined: that takes a look at {objects} pods and \
             workloads for each Service"
        );
        Self {
            because: Some(Observation {
                place: None,
                what: what.into(),
                by: Evidence::object(service.object(), service.origin.clone()),
            }),
            ..Self::default()
        }
    }

    /// Explains why a Service has no endpoint. Returns `None` if it has some.
    pub(crate) fn of(cluster: &Cluster, service: &Service) -> Option<Self> {
        if matches!(service.kind, ServiceKind::ExternalName(_)) {
            return None;
        }
        let said = |what: String| Self {
            because: Some(Observation {
                place: None,
                what: what.into(),
                by: Evidence::object(service.object(), service.origin.clone()),
            }),
            ..Self::default()
        };
        if has_endpoint(cluster, service) {
            return misnamed(cluster, service).map(|what| Self { has_slip: true, ..said(what) });
        }
        let Some(selector) = &service.selector else {
            let what =
                "it has no selector, and no EndpointSlice of it has an endpoint that is ready";
            return Some(said(what.to_owned()));
        };
        let home = &service.name.namespace;
        let at_home: Vec<&Pod> = pods_of(cluster, home).collect();
        let is_over = |pod: &Pod| matches!(pod.phase, Phase::Succeeded | Phase::Failed);
        let (over, fitting): (Vec<&Pod>, Vec<&Pod>) = at_home
            .iter()
            .copied()
            .filter(|pod| selector.matches(&pod.spec.labels))
            .partition(|pod| is_over(pod));
        if fitting.is_empty() {
            let made = makers(cluster, service);
            let maker = made.into_iter().find(|maker| selector.matches(&maker.spec().labels));
            if let Some((what, is_asked_for)) = maker.and_then(of_maker) {
                return Some(Self { may_be_intended: true, is_asked_for, ..said(what) });
            }
            if makes_ending(cluster, service, selector) || !over.is_empty() {
                let what = "the pods that it selects run to an end, and none runs now";
                let what = said(what.to_owned());
                return Some(Self { may_be_intended: true, is_asked_for: true, ..what });
            }
            let (what, has_slip) = of_selector(cluster, service, selector, at_home.len());
            return Some(Self { has_slip, ..said(what) });
        }
        let lacks_port = |pod: &&Pod| {
            let mut ports = service.ports.iter();
            ports.all(|port| match &port.target {
                TargetPort::Name(name) => pod.spec.named_port(name, port.protocol).is_none(),
                TargetPort::Number(_) => false,
            })
        };
        if !service.ports.is_empty() && fitting.iter().all(lacks_port) {
            return Some(Self { has_slip: true, ..Self::default() });
        }
        Some(said(of_pods(&fitting)))
    }
}

/// Returns whether an endpoint of a Service takes calls.
pub(crate) fn has_endpoint(cluster: &Cluster, service: &Service) -> bool {
    let slices = cluster.slices(&service.name).iter();
    let mut with_ports = slices.filter(|slice| !slice.ports.is_empty() || service.ports.is_empty());
    with_ports.any(|slice| slice.endpoints.iter().any(|own| own.ready || own.serving))
}

/// Explains that ready endpoints of a Service without a selector have a port of another name than the
/// Service, so that none belongs to the Service's port.
fn misnamed(cluster: &Cluster, service: &Service) -> Option<String> {
    if service.selector.is_some() {
        return None;
    }
    let slices = cluster.slices(&service.name).iter();
    let ready = slices.filter(|slice| slice.endpoints.iter().any(|own| own.ready || own.serving));
    let ends: Vec<&EndpointPort> = ready.flat_map(|slice| &slice.ports).collect();
    let name = |name: &Option<Text>| match name.as_deref() {
        None | Some("") => "has no name".to_owned(),
        Some(name) => format!("is called {name}"),
    };
    service.ports.iter().find_map(|port| {
        let is_same = |end: &&&EndpointPort| end.protocol == port.protocol;
        let mut alike = ends.iter().filter(is_same);
        let other = alike.clone().next()?;
        if alike.any(|end| end.name == port.name) {
            return None;
        }
        Some(format!(
            "its endpoints are ready at a port ({}) that {}, and port {} of the Service {}: the \
             names have to be the same",
            other.port,
            name(&other.name),
            port.port,
            name(&port.name)
        ))
    })
}

/// Explains that a workload makes no pods now, and returns whether it is scaled to zero.
fn of_maker(maker: Maker<'_>) -> Option<(String, bool)> {
    let Maker::Workload(workload) = maker else { return None };
    let is_scaled_down = workload.replicas == 0 && workload.kind != WorkloadKind::DaemonSet;
    let object = workload.object();
    let what = if is_scaled_down {
        format!("{object}, which makes the pods that it selects, is scaled to 0")
    } else {
        format!("{object}, which makes the pods that it selects, has none now")
    };
    Some((what, is_scaled_down))
}

fn makes_ending(cluster: &Cluster, service: &Service, selector: &Selector) -> bool {
    cluster.workloads.values().any(|workload| {
        workload.kind.ends()
            && workload.name.namespace == service.name.namespace
            && selector.matches(&workload.template.labels)
    })
}

/// The maximum number of workloads that are named as meant.
const NAMED: usize = 2;

/// Explains that no pod has the labels, and returns whether that is due to a slip.
fn of_selector(
    cluster: &Cluster,
    service: &Service,
    selector: &Selector,
    at_home: usize,
) -> (String, bool) {
    let wanted: Vec<String> =
        selector.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let home = &service.name.namespace;
    let none = match at_home {
        0 => format!("matches nothing, and namespace {home} has no pods"),
        1 => format!("does not match the only pod of namespace {home}"),
        many => format!("matches none of the {many} pods of namespace {home}"),
    };
    let none = format!("its selector {} {none}", wanted.join(","));
    let near = near_misses(cluster, service);
    let mut fitting: Vec<String> = Vec::new();
    for miss in near.iter().take(NAMED) {
        let differences: Vec<String> = miss.differences.iter().map(ToString::to_string).collect();
        let mut own = format!(
            "{} would fit its selector but for {}",
            miss.maker.object(),
            differences.join(" and ")
        );
        if !miss.is_slip {
            own.push_str(", unless something sets that label while it runs");
        }
        fitting.push(own);
        if !miss.is_slip {
            break;
        }
    }
    // What is probably meant comes first.
    let is_slip = near.first().is_some_and(|miss| miss.is_slip);
    let at = if is_slip { fitting.len() } else { 0 };
    fitting.insert(at, none);
    let mut what = fitting.join("; ");
    if near.is_empty() {
        let fits = |workload: &&Workload| {
            workload.name.namespace != service.name.namespace
                && selector.matches(&workload.template.labels)
        };
        if let Some(other) = cluster.workloads.values().find(fits) {
            what.push_str(&format!(
                "; pods of {} have these labels, and a Service selects none of other namespaces",
                other.object()
            ));
        }
    }
    (what, near.first().is_some_and(|miss| miss.is_slip))
}

/// Explains that pods have the labels and none of them is an endpoint.
fn of_pods(fitting: &[&Pod]) -> String {
    let is_placed = |pod: &&&Pod| pod.node.is_some();
    let first = fitting.iter().find(is_placed).unwrap_or(&fitting[0]);
    let ready = fitting.iter().filter(|pod| pod.ready && pod.is_alive() && !pod.terminating);
    let (ready, all) = (ready.count(), fitting.len());
    if ready > 0 {
        return format!(
            "{} that it selects {} ready, but no EndpointSlice of it lists one: whatever writes \
             EndpointSlices lags behind, or the Service's address family is not the pods'",
            count(ready, "pod"),
            if ready == 1 { "is" } else { "are" }
        );
    }
    let of = match (all, &first.owner) {
        (1, Some(owner)) => format!("the only pod that it selects, {} of {owner},", first.name),
        (1, None) => format!("the only pod that it selects, {},", first.name),
        (_, Some(owner)) => {
            format!("none of the {all} pods that it selects is ready: {} of {owner}", first.name)
        }
        (_, None) => format!("none of the {all} pods that it selects is ready: {}", first.name),
    };
    format!("{of} {}", state_of(first))
}

fn state_of(pod: &Pod) -> String {
    if pod.terminating {
        return "is being deleted".to_owned();
    }
    if pod.node.is_none() {
        return "is on no node yet".to_owned();
    }
    if !pod.deciding_gates.is_empty() && !pod.ready {
        let gates: Vec<&str> = pod.deciding_gates.iter().map(|gate| &**gate).collect();
        return format!("waits for its readiness gate {}", gates.join(", "));
    }
    let mut probes =
        pod.spec.containers.iter().filter_map(|own| Some((own, own.readiness.as_ref()?)));
    match (pod.phase, probes.next()) {
        (Phase::Pending, _) => "has not started".to_owned(),
        (_, Some((container, asked))) => format!(
            "is not ready; the readiness probe of its container {} asks {asked}",
            container.name
        ),
        (_, None) => {
            "is not ready, and has no readiness probe: a container does not run".to_owned()
        }
    }
}

/// Returns an object that states that a Service is called: an Ingress or a route that leads to it,
/// its load balancer, or a workload whose command line names it.
pub(crate) fn caller(cluster: &Cluster, service: &Service) -> Option<ObjectRef> {
    let has_address = service
        .load_balancer
        .iter()
        .any(|address| address.ip.is_some() || address.hostname.is_some());
    if service.kind == ServiceKind::LoadBalancer && has_address {
        return Some(service.object());
    }
    let leads = |ingress: &&Ingress| !is_canary(ingress) && leads_to(ingress, &service.name);
    if let Some(ingress) = cluster.ingresses.values().find(leads) {
        return Some(ingress.object());
    }
    let names = |home: &Name, spec: &PodSpec| {
        let mut arguments = spec.containers.iter().flat_map(|container| &container.arguments);
        arguments.any(|word| is_named(word, home, service))
    };
    let mut workloads = cluster.workloads.values();
    let workload = workloads.find(|own| names(&own.name.namespace, &own.template));
    let mut pods = cluster.pods.values().filter(|pod| pod.owner.is_none() && pod.is_alive());
    let pod = || pods.find(|pod| names(&pod.name.namespace, &pod.spec)).map(Pod::object);
    workload.map(Workload::object).or_else(pod)
}

/// Returns whether an Ingress is the part of another that has no traffic most of the time.
fn is_canary(ingress: &Ingress) -> bool {
    let mut all = ingress.annotations.iter();
    all.any(|(key, value)| key.ends_with("/canary") && value == "true")
}

fn leads_to(ingress: &Ingress, service: &NamespacedName) -> bool {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut backends = paths.chain(&ingress.default_backend);
    backends.any(|backend| match backend {
        Backend::Service { name, .. } => {
            !backend.is_action()
                && *name == service.name
                && ingress.name.namespace == service.namespace
        }
        Backend::Services(all) => matches!(all.as_slice(), [only] if only.service == *service),
        Backend::Resource(_) | Backend::Redirect(_) => false,
    })
}

/// Returns whether a word of a pod's command line has the address of a Service by name.
fn is_named(word: &str, home: &Name, service: &Service) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let NamespacedName { namespace, name } = &service.name;
    let (full, below) = (format!("{name}.{namespace}"), format!("{name}.{namespace}.svc"));
    let mut rest = word;
    while let Some(start) = rest.find(is_of_name) {
        let length = rest[start..].find(|c: char| !is_of_name(c)).unwrap_or(rest.len() - start);
        let (host, after) = rest[start..].split_at(length);
        let port = after.strip_prefix(':').map(|after| {
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            &after[..end]
        });
        let is_url = rest[..start].ends_with("://");
        let has_port =
            port.is_some_and(|port| service.ports.iter().any(|own| own.port.to_string() == port));
        let is_short = home == namespace && host == name.as_str();
        let is_long = host == full || host == below || host.starts_with(&format!("{below}."));
        if is_long && (is_url || has_port) || is_short && (is_url && port.is_none() || has_port) {
            return true;
        }
        rest = after;
    }
    false
}
