//! What a user learns of losses.

use std::collections::BTreeSet;

use uturn_diagnose::{Severity, workload_of, workload_word};
use uturn_model::{Name, NamespacedName, ObjectRef, Text};

use super::Unit;
use super::end::Ends;
use super::walk::{Base, Broken};

/// Which calls break when a node or a zone is lost.
#[derive(Clone, Debug)]
pub struct Survival {
    /// What is lost at a time.
    pub unit: Unit,
    /// The number of losses, each by itself.
    pub count: usize,
    /// The losses that break calls, the worst first.
    pub losses: Vec<LossClass>,
    /// What is assumed of losses.
    pub assumed: Vec<Text>,
}

/// Losses that break the same calls.
#[derive(Clone, Debug)]
pub struct LossClass {
    /// The zone that is lost; `None` if single nodes are.
    pub zone: Option<Text>,
    /// The nodes: of a zone all at a time, else each by itself.
    pub nodes: Vec<Name>,
    /// The calls that are worse off, the worst first. Of several nodes, those of the first.
    pub breaks: Vec<Break>,
}

/// Calls of an object that end alike.
#[derive(Clone, Debug)]
pub struct Break {
    /// The object that is called.
    pub subject: ObjectRef,
    /// Its ports, hosts and paths.
    pub targets: Vec<String>,
    /// The pods that call, without those that are lost.
    pub pods: Vec<NamespacedName>,
    /// Whether clients outside of the cluster call.
    pub outside: bool,
    /// The workloads of the pods, as the command line names them.
    pub workloads: Vec<String>,
    /// How the calls end.
    pub ends: Ends,
    /// How bad it is.
    pub severity: Severity,
}

/// A loss: the zone, its nodes, and what breaks.
pub(super) type Lost = (Option<Text>, Vec<Name>, Vec<Broken>);

pub(super) fn of(base: &Base<'_, '_>, unit: Unit, count: usize, all: Vec<Lost>) -> Survival {
    let walked = all.len();
    let mut losses: Vec<LossClass> = all
        .into_iter()
        .map(|(zone, nodes, broken)| LossClass { zone, nodes, breaks: breaks(base, &broken) })
        .filter(|class| !class.breaks.is_empty())
        .collect();
    losses.sort_by_key(|class| {
        let lasting = class.breaks.iter().filter(|own| own.severity > Severity::Info).count();
        std::cmp::Reverse((class.severity(), lasting, class.breaks.len()))
    });
    let mut assumed: Vec<Text> = vec![
        "at once: endpoints and load balancers still have what was lost".into(),
        "after notice: endpoints of lost pods are gone, health checks have failed, and the pods run \
         nowhere else yet"
            .into(),
    ];
    if !base.cluster.captures.is_empty() {
        assumed.push("after notice, nodes have the rules that kube-proxy writes then".into());
    }
    if !base.outside.are_walked(walked) {
        assumed
            .push("clients outside of the cluster are not walked: there are too many calls".into());
    }
    Survival { unit, count, losses, assumed }
}

impl LossClass {
    /// Returns the worst severity of what breaks.
    pub fn severity(&self) -> Severity {
        self.breaks.iter().map(|own| own.severity).max().unwrap_or(Severity::Info)
    }
}

impl Survival {
    /// Returns the number of losses that break nothing.
    pub fn harmless(&self) -> usize {
        let harmful = self.losses.iter().map(|class| match class.zone {
            Some(_) => 1,
            None => class.nodes.len(),
        });
        self.count.saturating_sub(harmful.sum())
    }

    /// Returns the worst severity; `None` if nothing breaks.
    pub fn severity(&self) -> Option<Severity> {
        self.losses.iter().map(LossClass::severity).max()
    }
}

fn breaks(base: &Base<'_, '_>, broken: &[Broken]) -> Vec<Break> {
    let mut all: Vec<Break> = Vec::new();
    for own in broken {
        let target = &base.targets[own.target];
        let pods: Vec<NamespacedName> =
            own.pods.iter().map(|number| base.pods[*number as usize].clone()).collect();
        let same = all.iter_mut().find(|known| {
            known.subject == target.object
                && known.outside == own.outside
                && known.ends == own.ends
                && known.pods == pods
        });
        if let Some(known) = same {
            known.targets.push(target.label.clone());
            continue;
        }
        let owners: BTreeSet<String> =
            pods.iter().map(|name| workload_word(&workload_of(&base.cluster.pods[name]))).collect();
        let is_grave = own.ends.is_lasting() || own.ends.is_all_lost_at_once();
        all.push(Break {
            subject: target.object.clone(),
            targets: vec![target.label.clone()],
            pods,
            outside: own.outside,
            workloads: owners.into_iter().collect(),
            ends: own.ends.clone(),
            severity: if is_grave { Severity::Warning } else { Severity::Info },
        });
    }
    all.sort_by(|a, b| {
        let key = |own: &Break| {
            let share = own.ends.noticed.unanswered().get() - own.ends.before.unanswered().get();
            (own.severity, share)
        };
        let ((severity, share), (other, others)) = (key(a), key(b));
        let by_share = others.total_cmp(&share);
        other.cmp(&severity).then(by_share).then_with(|| a.subject.cmp(&b.subject))
    });
    all
}
