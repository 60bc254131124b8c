//! What annotations make a load balancer do otherwise where calls fail: as data, stated in the
//! cloud's folder. `uturn-diagnose` tries them on a copy of the cluster before it offers them.

use uturn_model::Service;

/// What users may want of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Targets see an address of the load balancer instead of the client's.
    ReplacedSource,
    /// The same, with the client's address in a PROXY header.
    SourceInHeader,
    /// Pods are the targets, not ports of nodes.
    PodTargets,
    /// Nodes leave its address alone: calls from inside the cluster reach it.
    CallsFromInside,
    /// Packets come to ports of nodes, not with the load balancer's own address.
    NodePorts,
    /// Health checks ask what a target answers.
    AnswerableChecks,
    /// Targets are probed at all.
    HealthChecks,
    /// What it sends to nodes comes from an address that they do not take for their own.
    ForeignAddress,
}

/// Annotations of a Service that bring about what is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The keys with their values.
    pub annotations: Vec<(String, String)>,
    /// What the controller then writes into the Service's status.
    pub status: NewStatus,
    /// What has to hold for it.
    pub needs: Vec<Need>,
    /// What else it does.
    pub costs: Vec<&'static str>,
}

impl Remedy {
    /// An annotation.
    pub(crate) fn annotation(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { annotations: vec![(key.into(), value.into())], ..Self::default() }
    }

    /// An annotation that has a name of the user's own stand in the status in place of the addresses.
    /// What has to be filled in for the one that is shown is a condition.
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

    /// The same with what the controller then writes into the status.
    pub(crate) fn with_status(self, status: NewStatus) -> Self {
        Self { status, ..self }
    }

    /// The same with something that has to hold. `holds` is `None` where the Service does not say
    /// whether it does.
    pub(crate) fn needs(mut self, what: &'static str, holds: Option<bool>, because: &str) -> Self {
        self.needs.push(Need { what, holds, because: because.to_owned() });
        self
    }

    /// The same with something else that it does.
    pub(crate) fn costs(mut self, effect: &'static str) -> Self {
        self.costs.push(effect);
        self
    }
}

/// What a controller writes into a Service's status after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewStatus {
    /// What it has.
    #[default]
    Same,
    /// Its addresses with `ipMode: Proxy`.
    ModeProxy,
    /// A name in place of the addresses.
    OnlyName,
    /// Its public addresses.
    OnlyPublic,
}

/// Something that has to hold for a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What.
    pub what: &'static str,
    /// Whether it does. `None` where the Service does not say it.
    pub holds: Option<bool>,
    /// What shows it, or how to find out.
    pub because: String,
}

/// What brings about something that is wanted of a Service's load balancer, the best first.
/// `name` is a name of the user's own that leads to the load balancer.
pub type Remedies = fn(service: &Service, want: Want, name: &str) -> Vec<Remedy>;

/// What a name of the user's own in place of the address costs, wherever one is asked for.
pub(super) const NAME_COSTS: &str =
    "the status shows the name: what reads an address there (external-dns, scripts) has to take it";
