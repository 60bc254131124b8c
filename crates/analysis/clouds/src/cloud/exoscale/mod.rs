//! Exoscale: network load balancers, which forward packets to node ports of an instance pool.

use uturn_model::lb::{BehaviourAssumption, HealthCheck, Scheduler, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, Targets, ValueKind};
use crate::cloud::product::{check, passing, plain_protocol, question_by_policy};

const NAME: &str = "Exoscale NLB";

/// The description of Exoscale.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    ..CloudEntry::recognised(
        "exoscale",
        "Exoscale",
        Markers {
            provider_ids: &["exoscale://"],
            service_keys: &["service.beta.kubernetes.io/exoscale-"],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of Exoscale.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        let mut profile = passing(NAME, Source::Kept);
        profile.panic_threshold = None;
        let check = check(question_by_policy(service), (10, 5));
        profile.health_check = Some(HealthCheck { rise: 1, fall: 1, ..check });
        if service.annotations.get(STRATEGY).map(str::trim) == Some("source-hash") {
            profile.scheduler = Scheduler::SourceHash;
        }
        profile.assumption = Some(BehaviourAssumption::new(
            "it keeps the client's address, also where a node is its own target",
            "its pages say only that under policy Local pods see the client's address",
        ));
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

/// The annotation for the choice of a target: `round-robin`, or by the client's address.
const STRATEGY: &str = "service.beta.kubernetes.io/exoscale-loadbalancer-service-strategy";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] =
    &[Annotation::new(STRATEGY, ValueKind::Words(&["round-robin", "maglev-hash", "source-hash"]))];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn the_strategy_is_read() {
        let of = |word| plan_of(&Balancer, &service(&[(STRATEGY, word)], &[80]), 80).profile;
        assert_eq!(of("source-hash").scheduler, Scheduler::SourceHash);
        assert_eq!(of("round-robin").scheduler, Scheduler::WeightedRoundRobin);
    }
}
