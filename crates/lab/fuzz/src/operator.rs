//! A target for the operator's plan for any manifests.

use uturn_operator::environment::Environment;
use uturn_operator::observed::Observed;
use uturn_operator::plan::plan;
use uturn_operator::wanted::wanted;
use uturn_snapshot::{Source, read};

use crate::text;

/// Makes a plan for the manifests. Every cluster has a plan, which is the same each time, and
/// contains all calls for the load balancers that have to be created.
pub fn operator_plan(data: &[u8]) -> bool {
    let text = text(data);
    let Ok(loaded) = read(vec![Source { name: "input".into(), text: text.into_owned() }]) else {
        return false;
    };
    let environment = Environment {
        cluster: "cls-00000001".into(),
        network: "vpc-00000001".into(),
        ..Environment::default()
    };
    let Ok(wanted) = wanted(&loaded.cluster, &environment) else { return false };
    let observed = Observed::default();
    let planned = plan(&wanted, &observed, &environment);
    assert_eq!(planned, plan(&wanted, &observed, &environment));
    for balancer in &planned.balancers {
        assert!(!balancer.owners.is_empty(), "calls for nobody: {balancer:?}");
        assert!(!balancer.calls.is_empty(), "a load balancer without calls: {balancer:?}");
        // No load balancer exists yet, so none that exists is changed.
        assert!(balancer.id.is_none(), "calls on what is not there: {balancer:?}");
    }
    !planned.is_empty()
}
