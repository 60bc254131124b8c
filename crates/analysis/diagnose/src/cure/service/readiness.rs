//! Cures of pods that run and do not become ready: the readiness probe asks what another probe of the
//! container asks, or asks at a port that the container has.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Pod, Service};

use super::super::template::Template;
use super::super::{Case, Proposal, endpoints, way};

/// The kinds of probes that a container passes while it runs and is not ready.
const OTHERS: [&str; 2] = ["livenessProbe", "startupProbe"];

/// The kinds of questions that have a port.
const QUESTIONS: [&str; 2] = ["httpGet", "tcpSocket"];

pub(super) fn propose(case: &Case<'_>, service: &Service) -> Vec<Proposal> {
    let pods = case.cluster().selected(service);
    let waits = |pod: &&&Pod| {
        pod.is_alive() && !pod.ready && !pod.terminating && pod.deciding_gates.is_empty()
    };
    if pods.iter().any(|pod| pod.ready) {
        return Vec::new();
    }
    let Some(pod) = pods.iter().find(waits) else { return Vec::new() };
    let Some(template) = Template::of_pod(case, pod) else { return Vec::new() };
    let Some(written) = case.manifests.object(&template.object) else { return Vec::new() };
    let Some(spec) = template.spec(&written) else { return Vec::new() };
    let containers = spec.items_below(&["containers"]).iter().enumerate();
    let made = containers.flat_map(|(at, container)| {
        let of = Waiting { case, service, template: &template, pods: &pods, at, container };
        of.path().into_iter().chain(of.port())
    });
    made.collect()
}

/// What a probe asks over the network.
#[derive(Clone, PartialEq)]
struct Question<'t> {
    kind: &'static str,
    path: Option<&'t str>,
    port: &'t Tree,
}

impl<'t> Question<'t> {
    fn of(container: &'t Tree, probe: &str) -> Option<Self> {
        let probe = container.get(probe)?;
        QUESTIONS.into_iter().find_map(|kind| {
            let own = probe.get(kind)?;
            let path = own.get("path").and_then(Tree::as_str);
            Some(Self { kind, path, port: own.get("port")? })
        })
    }

    fn in_words(&self) -> String {
        let port = self.port.as_str().unwrap_or_default();
        match self.kind {
            "httpGet" => format!("GET {} at {port}", self.path.unwrap_or("/")),
            _ => format!("TCP at {port}"),
        }
    }
}

/// A container that runs and is not ready.
struct Waiting<'a, 'c, 't> {
    case: &'a Case<'c>,
    service: &'a Service,
    template: &'a Template,
    pods: &'a [&'a Pod],
    at: usize,
    container: &'t Tree,
}

impl<'t> Waiting<'_, '_, 't> {
    fn name(&self) -> &'t str {
        self.container.get("name").and_then(Tree::as_str).unwrap_or_default()
    }

    /// Proposes the path and the port of another probe.
    fn path(&self) -> Option<Proposal> {
        let asked = Question::of(self.container, "readinessProbe")?;
        let mut others = OTHERS.into_iter().filter_map(|probe| {
            let own = Question::of(self.container, probe)?;
            (own.kind == asked.kind && own != asked).then_some((probe, own))
        });
        let (probe, other) = others.next()?;
        self.instead(&asked, &other, &format!("its {probe} asks that, and the container runs"))
    }

    /// Proposes the only port that the container has.
    fn port(&self) -> Option<Proposal> {
        let asked = Question::of(self.container, "readinessProbe")?;
        let ports = self.container.items_below(&["ports"]);
        let [only] = ports else { return None };
        let fields = [only.get("containerPort"), only.get("name")];
        let is_its = |own: &&Tree| own.as_str() == asked.port.as_str();
        if fields.into_iter().flatten().any(|own| is_its(&own)) {
            return None;
        }
        let other = Question { port: only.get("containerPort")?, ..asked.clone() };
        let because = format!("it is the only port that container {} declares", self.name());
        self.instead(&asked, &other, &because)
    }

    fn instead(
        &self,
        asked: &Question<'_>,
        other: &Question<'_>,
        because: &str,
    ) -> Option<Proposal> {
        // A container that has ended is not ready whatever is asked.
        let runs = |pod: &&Pod| {
            let named = At::Where("name".to_owned(), self.name().to_owned());
            let path = way!["status", "containerStatuses", named, "state", "running", "startedAt"];
            self.case.manifests.text_at(&pod.object(), &path).is_some()
        };
        if !self.pods.iter().any(runs) {
            return None;
        }
        let (old, new) = (asked.in_words(), other.in_words());
        let object = &self.template.object;
        let title = format!(
            "readiness probe of container {} in {object} asks {new} instead of {old}",
            self.name()
        );
        let mut made = Proposal::new("readiness", 16, title)
            .ask(
                format!("{old} fails although the program works, and {new} does not"),
                format!("{because}; the events of the pod say what the probe gets"),
            )
            .costs(self.template.cost())
            .costs("a pod that is not ready for another reason gets calls too")
            .trial();
        let mut fields = Vec::new();
        if asked.path != other.path {
            fields.push(("path", Tree::text(other.path.unwrap_or("/"))));
        }
        if asked.port != other.port {
            fields.push(("port", other.port.clone()));
        }
        for (field, value) in fields {
            let path = way!["spec", "containers", self.at, "readinessProbe", asked.kind, field];
            made = self.template.edit(self.case, made, &path, &Change::Set(value))?;
        }
        Some(self.becoming_ready(made))
    }

    /// Adds that the pods become ready.
    fn becoming_ready(&self, mut made: Proposal) -> Proposal {
        let is_edited = |pod: &Pod| {
            let object = &self.template.object;
            pod.owner.as_ref() == Some(object) || pod.object() == *object
        };
        let mut after: Vec<Pod> = Vec::new();
        for pod in self.pods {
            let becomes = is_edited(pod) && pod.is_alive() && !pod.terminating;
            if becomes && !pod.ready && self.case.manifests.has(&pod.object()) {
                let ready = At::Where("type".to_owned(), "Ready".to_owned());
                let path = way!["status", "conditions", ready, "status"];
                made = made.follow(pod.object(), path, Change::Set(Tree::text("True")));
            }
            after.push(Pod { ready: pod.ready || becomes, ..Pod::clone(pod) });
        }
        let after: Vec<&Pod> = after.iter().collect();
        endpoints::follow(self.case, made, self.service, &after)
    }
}
