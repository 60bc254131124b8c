//! Tests of a probe as text and as JSON.

use std::time::Duration;

use uturn_model::{
    Assumption, Client, Destination, Flow, Mechanism, NamespacedName, Outcome, Protocol, Route,
    Share, Verdict,
};
use uturn_probe::{CallEnd, Known, MeasuredCall, Measurement, Stopped, Tool, judge};

use crate::Style;
use crate::json;
use crate::probe::{Learned, ProbeCase, ProbeReport, text};
use crate::schema::probe::Probe;

const LATE: Outcome = Outcome::Answered { after: Duration::from_secs(4) };

fn route(outcome: Outcome, share: Share) -> Route {
    let mechanisms = match outcome {
        Outcome::AT_ONCE => Vec::new(),
        _ => vec![Mechanism::AsymmetricReturn],
    };
    Route {
        share,
        outcome,
        late: Duration::ZERO,
        mechanisms,
        chance: false,
        has_others: false,
        failures: Vec::new(),
        hops: Vec::new(),
    }
}

fn verdict(condition: &[&str], outcomes: &[(Outcome, Share)]) -> Verdict {
    let routes = outcomes.iter().map(|(outcome, share)| route(*outcome, *share)).collect();
    let conditions = condition.iter().map(|condition| (*condition).into()).collect();
    let supposed = Assumption {
        subject: "the weather".into(),
        assumed: "good".into(),
        because: "it is May".into(),
        settle: "look out of the window".into(),
    };
    Verdict::of(routes, conditions, vec![supposed])
}

/// Makes a probe whose calls took these numbers of milliseconds.
fn probe(verdicts: Vec<Verdict>, took: &[u64]) -> ProbeReport {
    let calls: Vec<MeasuredCall> = took
        .iter()
        .map(|milliseconds| MeasuredCall {
            end: CallEnd::Status(200),
            waited: Duration::from_millis(*milliseconds),
            address: None,
        })
        .collect();
    let known = Known {
        limit: Duration::from_secs(20),
        waits: vec![Duration::from_secs(4)],
        rest: None,
        took: Duration::from_secs(8),
        keeps_target: false,
    };
    let cases = verdicts
        .into_iter()
        .map(|verdict| ProbeCase {
            codes: if verdict.can_fail() { vec!["UT101".to_owned()] } else { Vec::new() },
            judgement: judge(&verdict.outcomes, false, &calls, &known),
            verdict,
        })
        .collect();
    let pod: NamespacedName = "shop/web-0".parse().unwrap();
    let to: Destination = "http://10.0.0.100/".parse().unwrap();
    ProbeReport {
        flow: Flow { from: Client::Pod(pod.clone()), to, protocol: Protocol::Tcp },
        pod,
        container: None,
        called: "http://10.0.0.100/".to_owned(),
        sends_requests: true,
        tool: Tool::Curl,
        shows: "whole requests and answers",
        wanted: u32::try_from(took.len()).unwrap(),
        measurement: Measurement { calls, stopped: None, took: Duration::from_millis(8300) },
        cases,
        learned: Vec::new(),
        would_fit: Vec::new(),
    }
}

fn third() -> [(Outcome, Share); 2] {
    [(Outcome::AT_ONCE, Share::of(2, 3)), (LATE, Share::of(1, 3))]
}

#[test]
fn what_agrees() {
    let report = probe(vec![verdict(&[], &third())], &[3, 4010, 4, 5, 4012, 4]);
    assert_eq!(
        text(&report, Style::PLAIN),
        "6 calls from pod/shop/web-0 to http://10.0.0.100/ by curl, in 8.3 s: whole requests and \
         answers\n\
         \n\
         OUTCOME             MEASURED  PREDICTED  TOOK\n\
         answered at once    4 of 6    2 in 3     0.00 to 0.01 s\n\
         answered after 4 s  2 of 6    1 in 3     4.01 s\n\
         \n\
         measurement and prediction agree: exactly as targets in turns give it   UT101 \
         asymmetric-return\n"
    );
    assert_eq!((report.agrees(), report.has_bad_calls()), (Some(true), true));
    let value = serde_json::to_value(Probe::from(&report)).unwrap();
    assert_eq!(value["measured"][1]["after_ms"], 4000);
    assert_eq!(value["measured"][1]["least_ms"], 4010);
    assert_eq!(value["cases"][0]["fit"], "agrees");
    assert_eq!(value["findings"][0], "UT101");
    assert!(json::document(&Probe::from(&report)).contains("\"in_turns\": true"));
}

#[test]
fn what_differs() {
    let always = [(Outcome::AT_ONCE, Share::ALL)];
    let mut report = probe(vec![verdict(&[], &always)], &[3, 4010]);
    report.measurement.stopped = Some(Stopped::Interrupted);
    report.wanted = 12;
    report.would_fit = vec![Learned {
        what: "the load balancer at 10.0.0.100:80 keeps clients' addresses".to_owned(),
        facts: Some("{loadBalancers: []}".to_owned()),
    }];
    let text = text(&report, Style::PLAIN);
    for part in [
        "2 of 12 calls from",
        "no more calls were made: stopped\n",
        "answered after 4 s  1 of 2    never      4.01 s\n",
        "measurement and prediction differ: 1 call answered after 4 s, which is not predicted\n",
        "the calls would fit if the load balancer at 10.0.0.100:80 keeps clients' addresses\n  \
         state it in Facts: spec: {loadBalancers: []}\n",
        "supposed, and perhaps wrong: the weather: good (it is May; look out of the window)\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(report.agrees(), Some(false));
    let value = serde_json::to_value(Probe::from(&report)).unwrap();
    assert_eq!(value["cases"][0]["unpredicted"][0]["count"], 1);
    assert_eq!((&value["stopped"], &value["agrees"]), (&"stopped".into(), &false.into()));
}

#[test]
fn a_case_is_ruled_out() {
    let always = [(Outcome::AT_ONCE, Share::ALL)];
    let (ipvs, other) = (["kube-proxy mode is ipvs"], ["kube-proxy mode is iptables or nftables"]);
    let cases = || vec![verdict(&other, &third()), verdict(&ipvs, &always)];
    let mut report = probe(cases(), &[3, 4010, 4]);
    report.learned = vec![Learned { what: other[0].to_owned(), facts: None }];
    let shown = text(&report, Style::PLAIN);
    for part in [
        "if kube-proxy mode is iptables or nftables: 2 in 3 answered at once, 1 in 3 answered \
         after 4 s\n  measurement and prediction agree",
        "if kube-proxy mode is ipvs: answered at once\n  ruled out: 1 call answered after 4 s",
        "settled: kube-proxy mode is iptables or nftables\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let undecided = probe(cases(), &[3, 4, 4]);
    let shown = text(&undecided, Style::PLAIN);
    assert!(shown.contains("the calls do not distinguish these cases\n"), "{shown}");
    assert!(
        shown.contains("none answered after 4 s, which 3 calls miss by chance 30 times in 100"),
        "{shown}"
    );
}

#[test]
fn calls_whose_end_is_not_known_agree_with_nothing() {
    let mut report = probe(vec![verdict(&[], &third())], &[]);
    let end = CallEnd::Failed("curl: it ended with status 2".to_owned());
    report.measurement.calls = vec![MeasuredCall { end, waited: Duration::ZERO, address: None }; 2];
    report.wanted = 2;
    let shown = text(&report, Style::PLAIN);
    assert_eq!(shown.matches("not known how it ended: curl: it ended").count(), 1, "{shown}");
    assert!(shown.contains("nothing was measured"), "{shown}");
    assert_eq!(report.agrees(), None);
}
