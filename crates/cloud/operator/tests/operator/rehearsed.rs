//! What a dry run shows is what is sent.

use serde_json::Value;
use uturn_operator::plan::{self, Plan};
use uturn_operator::{observed, rehearsal, wanted};

use crate::rich;
use crate::stage::{Stage, block_on};

/// The actions of a plan and their parameters, with the ids that the API gave in place of words.
fn rehearsed(plan: &Plan) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for balancer in &plan.balancers {
        let requests = block_on(rehearsal::requests(balancer)).unwrap();
        assert_eq!(requests.len(), balancer.calls.len());
        for (request, call) in requests.iter().zip(&balancer.calls) {
            assert_eq!(request.action, call.action());
        }
        all.extend(
            requests.into_iter().map(|request| (request.action.to_owned(), request.parameters)),
        );
    }
    all
}

/// Whether two parameters are alike but for the ids of what is new.
fn alike(shown: &Value, sent: &Value) -> bool {
    match (shown, sent) {
        (Value::String(shown), Value::String(sent)) => shown == sent || shown.starts_with("<new "),
        (Value::Array(shown), Value::Array(sent)) => {
            shown.len() == sent.len() && shown.iter().zip(sent).all(|(a, b)| alike(a, b))
        }
        (Value::Object(shown), Value::Object(sent)) => {
            shown.len() == sent.len()
                && shown
                    .iter()
                    .all(|(key, value)| sent.get(key).is_some_and(|sent| alike(value, sent)))
        }
        (shown, sent) => shown == sent,
    }
}

#[test]
fn what_is_shown_is_what_is_sent() {
    let stage = Stage::new();
    let (cluster, environment) = rich::cluster_and_environment(&stage);
    let wanted = wanted::wanted(&cluster, &environment).unwrap();
    let observed = block_on(observed::observe(&stage, &environment, &wanted)).unwrap();
    let plan = plan::plan(&wanted, &observed, &environment);
    stage.take_log();
    let shown = rehearsed(&plan);
    assert_eq!(stage.take_log(), Vec::<String>::new(), "nothing is sent");
    stage.settle_wanted(&wanted, &environment);
    let sent = stage.take_log();
    assert_eq!(shown.len(), sent.len());
    for ((action, shown), sent) in shown.iter().zip(&sent) {
        let (sent_action, sent) = sent.split_once(' ').unwrap();
        assert_eq!(action, sent_action);
        let sent: Value = serde_json::from_str(sent).unwrap();
        assert!(alike(shown, &sent), "{action}: {shown} is not {sent}");
    }
}
