//! Annotations that change the behaviour of a load balancer where calls fail: as data, stated in
//! the cloud's folder. `uturn-diagnose` tries them on a copy of the cluster before it offers them.

use uturn_model::Service;

/// A change of a load balancer's behaviour that users may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Targets see an address of the load balancer instead of the client's.
    ReplacedSource,
    /// Targets see an address of the load balancer, and the client's address in a PROXY header.
    SourceInHeader,
    /// Pods are the targets, not ports of nodes.
    PodTargets,
    /// Nodes have no rules for the load balancer's address: calls from inside the cluster reach the
    /// load balancer.
    CallsFromInside,
    /// Packets arrive at ports of nodes, not with the load balancer's own address or at pods.
    NodePorts,
    /// Health checks make requests that a target answers.
    AnswerableChecks,
    /// Targets are probed at all.
    HealthChecks,
    /// The load balancer's packets to nodes come from an address that the nodes do not take for
    /// their own.
    ForeignAddress,
}

/// Annotations of a Service that bring about a [`Want`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The keys of the annotations with their values.
    pub annotations: Vec<(String, String)>,
    /// The change of the Service's status that the controller then makes.
    pub status: NewStatus,
    /// The conditions that must hold for the remedy to work.
    pub needs: Vec<Need>,
    /// The side effects of the remedy.
    pub costs: Vec<&'static str>,
}

impl Remedy {
    /// Makes a remedy of one annotation.
    pub(crate) fn annotation(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { annotations: vec![(key.into(), value.into())], ..Self::default() }
    }

    /// Makes a remedy of one annotation, with which the controller writes a name of the user's own
    /// into the status in place of the addresses. `shown` is a made-up name; the remedy has the
    /// condition that users replace it.
    pub(crate) fn own_name(key: impl Into<String>, shown: &str) -> Self {
        let because = format!(
            "{shown} is made up; write a name there that your DNS leads to the load balancer's address, \
             so that clients inside the cluster resolve it and reach the load balancer"
        );
        Self::annotation(key, shown)
            .with_status(NewStatus::OnlyName)
            .needs("a name of yours stands in place of the one shown", None, &because)
            .costs(NAME_COSTS)
    }

    /// Returns the remedy with the change that the controller then makes to the status.
    pub(crate) fn with_status(self, status: NewStatus) -> Self {
        Self { status, ..self }
    }

    /// Adds a condition that must hold. `holds` is `None` if the Service does not state whether it
    /// does.
    pub(crate) fn needs(mut self, what: &'static str, holds: Option<bool>, because: &str) -> Self {
        self.needs.push(Need { what, holds, because: because.to_owned() });
        self
    }

    /// Adds a side effect.
    pub(crate) fn costs(mut self, effect: &'static str) -> Self {
        self.costs.push(effect);
        self
    }
}

/// The change of a Service's status after a remedy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewStatus {
    /// No change.
    #[default]
    Same,
    /// The addresses of the Service with `ipMode: Proxy`.
    ModeProxy,
    /// A name in place of the addresses.
    OnlyName,
    /// Only the public addresses of the Service.
    OnlyPublic,
}

/// A condition that must hold for a remedy to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The condition.
    pub what: &'static str,
    /// Whether the condition holds. `None` if the Service does not state it.
    pub holds: Option<bool>,
    /// The reason why it holds or not, or how to find out.
    pub because: String,
}

/// A function that returns the remedies that bring about a [`Want`] for a Service's load balancer,
/// the best first. `name` is a name of the user's own that resolves to the load balancer.
pub type Remedies = fn(service: &Service, want: Want, name: &str) -> Vec<Remedy>;

/// The side effect of every remedy that puts a name of the user's own in place of the address.
pub(super) const NAME_COSTS: &str =
    "the status shows the name: what reads an address there (external-dns, scripts) has to take it";
