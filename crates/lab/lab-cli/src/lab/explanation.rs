//! Explanations of connections as JSON: for results, and for the output of the small machine.

use std::time::Duration;

use uturn_lab::{Explanation, Sighting, Subject};
use uturn_model::{Flow, Mechanism};
use uturn_report::schema::lab::{self, Connection, Direction, Packet};

/// Converts an explanation to the form that is printed, and that the small machine sends.
pub(super) fn to_output(explanation: &Explanation) -> lab::Explanation {
    let connection = match &explanation.subject {
        Subject::Flow { flow, of } => {
            Connection::Call { from: flow.from.to_string(), to: flow.to.to_string(), flow: *of }
        }
        Subject::Probe { listener, protocol, target } => Connection::HealthCheck {
            health_check_of: listener.to_string(),
            protocol: protocol.lower().to_owned(),
            to: target.to_string(),
        },
    };
    lab::Explanation {
        outcome: explanation.outcome.map(Into::into),
        connects: explanation.connects,
        packets: explanation.sightings.iter().map(to_packet).collect(),
        notes: explanation.notes.clone(),
        mechanism: explanation.mechanism.map(|mechanism| mechanism.as_str().to_owned()),
        because: explanation.because.clone(),
        connection,
    }
}

fn to_packet(sighting: &Sighting) -> Packet {
    Packet {
        after_us: sighting.after.as_micros() as u64,
        place: sighting.place.clone(),
        link: sighting.link.clone(),
        way: if sighting.leaves { Direction::Out } else { Direction::In },
        packet: sighting.packet.clone(),
        times: sighting.times,
        dropped: sighting.dropped.clone(),
    }
}

/// Converts the output of [`to_output`] back; `flows` are those of the case. Returns `None` if a
/// word or an address in it is invalid, or if the case has no such flow.
pub(super) fn from_output(output: lab::Explanation, flows: &[Flow]) -> Option<Explanation> {
    let subject = match output.connection {
        Connection::HealthCheck { health_check_of, protocol, to } => Subject::Probe {
            listener: health_check_of.parse().ok()?,
            protocol: protocol.parse().ok()?,
            target: to.parse().ok()?,
        },
        Connection::Call { from, flow: of, .. } => {
            let from = from.parse().ok()?;
            Subject::Flow { flow: Flow { from, ..flows.get(of)?.clone() }, of }
        }
    };
    let outcome = output.outcome.map(TryInto::try_into).transpose();
    let mechanism = output.mechanism.map(|name| name.parse::<Mechanism>()).transpose();
    Some(Explanation {
        subject,
        outcome: outcome.ok()?,
        connects: output.connects,
        sightings: output.packets.into_iter().map(from_packet).collect(),
        mechanism: mechanism.ok()?,
        because: output.because,
        notes: output.notes,
    })
}

fn from_packet(packet: Packet) -> Sighting {
    Sighting {
        place: packet.place,
        link: packet.link,
        leaves: packet.way == Direction::Out,
        after: Duration::from_micros(packet.after_us),
        packet: packet.packet,
        times: packet.times,
        dropped: packet.dropped,
    }
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
        for explanation in [called, probed] {
            let sent = serde_json::to_string(&to_output(&explanation)).unwrap();
            let received: lab::Explanation = serde_json::from_str(&sent).unwrap();
            assert_eq!(from_output(received, std::slice::from_ref(&flow)), Some(explanation));
        }
    }

    #[test]
    fn a_flow_that_the_case_does_not_have_is_refused() {
        let call = |of| Explanation {
            subject: Subject::Flow {
                flow: Flow {
                    from: "outside".parse().unwrap(),
                    to: "10.0.0.1:80".parse().unwrap(),
                    protocol: Protocol::Tcp,
                },
                of,
            },
            outcome: None,
            connects: 1,
            sightings: Vec::new(),
            mechanism: None,
            because: String::new(),
            notes: Vec::new(),
        };
        assert_eq!(from_output(to_output(&call(0)), &[]), None);
        let mut unheard_of = to_output(&call(0));
        unheard_of.mechanism = Some("magic".into());
        let Subject::Flow { flow, .. } = call(0).subject else { unreachable!("made above") };
        assert_eq!(from_output(unheard_of, &[flow]), None);
    }
}
