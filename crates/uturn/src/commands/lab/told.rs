//! What was followed, as JSON: for whoever reads results, and on its way out of the small
//! machine.

use std::time::Duration;

use serde_json::{Value, json};
use uturn_lab::{Explanation, Sighting, Subject};
use uturn_model::{Flow, Mechanism};
use uturn_report::json as form;

use super::order::{list, outcome};

pub(super) fn to_json(one: &Explanation) -> Value {
    let sightings: Vec<Value> = one
        .sightings
        .iter()
        .map(|one| {
            json!({
                "after_us": one.after.as_micros() as u64,
                "place": one.place,
                "link": one.link,
                "way": if one.leaves { "out" } else { "in" },
                "packet": one.packet,
                "times": one.times,
                "dropped": one.dropped,
            })
        })
        .collect();
    let mut value = json!({
        "outcome": one.outcome.map(form::outcome),
        "connects": one.connects,
        "packets": sightings,
        "notes": one.notes,
        "mechanism": one.mechanism.map(Mechanism::as_str),
        "because": one.because,
    });
    match &one.subject {
        Subject::Flow { flow, of } => {
            value["from"] = flow.from.to_string().into();
            value["to"] = flow.to.to_string().into();
            value["flow"] = (*of).into();
        }
        Subject::Probe { listener, protocol, target } => {
            value["health_check_of"] = listener.to_string().into();
            value["protocol"] = protocol.lower().into();
            value["to"] = target.to_string().into();
        }
    }
    value
}

/// `flows` are those of the case.
pub(super) fn from_json(value: &Value, flows: &[Flow]) -> Option<Explanation> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let sighting = |one: &Value| {
        Some(Sighting {
            place: text(&one["place"])?,
            link: text(&one["link"])?,
            leaves: one["way"] == "out",
            after: Duration::from_micros(one["after_us"].as_u64()?),
            packet: text(&one["packet"])?,
            times: one["times"].as_u64()?,
            dropped: text(&one["dropped"]),
        })
    };
    let subject = match value["health_check_of"].as_str() {
        Some(listener) => Subject::Probe {
            listener: listener.parse().ok()?,
            protocol: value["protocol"].as_str()?.parse().ok()?,
            target: value["to"].as_str()?.parse().ok()?,
        },
        None => {
            let of = value["flow"].as_u64()? as usize;
            let from = value["from"].as_str()?.parse().ok()?;
            Subject::Flow { flow: Flow { from, ..flows.get(of)?.clone() }, of }
        }
    };
    Some(Explanation {
        subject,
        outcome: match &value["outcome"] {
            Value::Null => None,
            told => Some(outcome(told)?),
        },
        connects: value["connects"].as_u64()?,
        sightings: list(&value["packets"], sighting)?,
        mechanism: match &value["mechanism"] {
            Value::Null => None,
            told => Some(told.as_str()?.parse().ok()?),
        },
        because: text(&value["because"])?,
        notes: list(&value["notes"], text)?,
    })
}

#[cfg(test)]
mod tests {
    use uturn_model::{Outcome, Protocol};

    use super::*;

    #[test]
    fn an_explanation_comes_back() {
        let flow = Flow {
            from: "deploy/shop/web".parse().unwrap(),
            to: "http://10.0.0.1/".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        let sighting = Sighting {
            place: "node n1".into(),
            link: "eth0".into(),
            leaves: true,
            after: Duration::from_micros(7),
            packet: "a → b SYN".into(),
            times: 2,
            dropped: Some("X in f".into()),
        };
        let called = Explanation {
            subject: Subject::Flow {
                flow: Flow { from: "pod/shop/web-1".parse().unwrap(), ..flow.clone() },
                of: 0,
            },
            outcome: Some(Outcome::Hangs),
            connects: 3,
            sightings: vec![
                sighting.clone(),
                Sighting { leaves: false, dropped: None, ..sighting },
            ],
            mechanism: Some(Mechanism::LocalSourceDrop),
            because: "so".into(),
            notes: vec!["n".into()],
        };
        let probed = Explanation {
            subject: Subject::Probe {
                listener: "10.0.0.1:80".parse().unwrap(),
                protocol: Protocol::Udp,
                target: "[fd00::1]:80".parse().unwrap(),
            },
            outcome: None,
            mechanism: None,
            ..called.clone()
        };
        for one in [called, probed] {
            let there = to_json(&one).to_string();
            let there: Value = serde_json::from_str(&there).unwrap();
            assert_eq!(from_json(&there, std::slice::from_ref(&flow)), Some(one));
        }
        assert_eq!(from_json(&json!({}), &[flow]), None);
    }
}
