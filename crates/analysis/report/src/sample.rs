//! Findings, cures and flows for tests.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use uturn_diagnose::cure::{Answer, CaseState, Condition, unified};
use uturn_diagnose::{Clients, Code, Cure, CureTitle, Example, Finding, Observation, Severity};
use uturn_model::route::{Direction, Hop, Leg};
use uturn_model::shell::Advice;
use uturn_model::{
    Client, Destination, Evidence, Flow, Mechanism, Name, ObjectKind, ObjectRef, Origin, Outcome,
    Place, Protocol, Route, Share, Step, StepKind, Verdict,
};

use crate::ScanReport;

/// Makes the finding of a loop at an Ingress of that name.
pub(crate) fn finding(name: &str, targets: &[&str]) -> Finding {
    Finding {
        code: Code::IngressLoopback,
        severity: Severity::Error,
        subject: ObjectRef {
            kind: ObjectKind::Ingress,
            namespace: Some(Name::new("shop").unwrap()),
            name: name.into(),
        },
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        clients: Clients::other(Clients::OUTSIDE),
        share_failing: Share::new(0.5),
        outcome: Outcome::Answered { after: Duration::from_secs(4) },
        mechanism: Some(Mechanism::AsymmetricReturn),
        example: Example::Manifests,
        failure: None,
        other_evidence: Vec::new(),
        cures: vec![call("call svc/shop/front")],
        untried: None,
        conditions: Vec::new(),
    }
}

fn call(text: &str) -> CureTitle {
    CureTitle { name: "call-service", text: text.to_owned() }
}

/// Makes a report in which every text is this one.
pub(crate) fn report(text: &str) -> ScanReport {
    let mut finding = finding(text, &[text, "other"]);
    finding.cures = vec![call(text)];
    finding.conditions = vec![text.into()];
    let evidence = Observation {
        place: Some(Place::LoadBalancer(text.into())),
        what: text.into(),
        by: Evidence::Iptables {
            chain: text.into(),
            rule: text.into(),
            origin: Origin::at(text, 3, 5),
        },
    };
    let mut report = ScanReport::new(vec![finding]);
    report.evidence = vec![vec![evidence]];
    report.origins = vec![Origin::at(text, 7, 1)];
    report.aside = vec![
        uturn_diagnose::analysis::Suppressed {
            finding: self::finding(text, &[text]),
            origin: Origin::file(text),
            why: uturn_diagnose::analysis::Suppression::Ignored { reason: text.into() },
        },
        uturn_diagnose::analysis::Suppressed {
            finding: self::finding(text, &[]),
            origin: Origin::line_of(text, 9),
            why: uturn_diagnose::analysis::Suppression::Known { baseline: text.into() },
        },
    ];
    report
}

/// Makes a cure in which every text is this one.
pub(crate) fn cure(text: &str) -> Cure {
    let state = CaseState::Flow {
        flow: flow(),
        outcomes: vec![(Outcome::Hangs, Share::ALL)],
        mechanisms: vec![Mechanism::AsymmetricReturn],
        conditions: vec![text.into()],
        arrived: Share::NONE,
        is_misled: false,
    };
    let condition = |answer| Condition { what: text.to_owned(), answer, because: text.to_owned() };
    Cure {
        name: "call-service",
        title: text.to_owned(),
        rank: 1,
        conditions: [Answer::Holds, Answer::Fails, Answer::Unknown].map(condition).to_vec(),
        effects: vec![text.to_owned()],
        commands: vec![Advice::sentence(text)],
        diffs: vec![unified(text, Some(&format!("{text}\nold\n")), &format!("{text}\nnew\n"))],
        objects: Vec::new(),
        tried: None,
        before: state.clone(),
        after: Some(state),
        unhelped: Vec::new(),
        refused: None,
        is_untried: false,
    }
}

/// Makes a cure that does not work, for this reason.
pub(crate) fn refused_cure(text: &str) -> Cure {
    Cure { refused: Some(text.to_owned()), ..cure(text) }
}

/// Generates markup, quotes, control characters and any other text.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let nasty = "(<script>alert\\(1\\)</script>|</style>|<!--|-->|\\]\\]>|&amp;|&#0;|\"|'|=|\\\\|`|\u{0}|\u{1b}|\u{fffe}|\u{85}|\r|\n|a|shop)";
    prop_oneof![
        proptest::collection::vec(nasty, 0..8).prop_map(|parts| parts.concat()),
        any::<String>()
    ]
}

/// Makes a flow from outside.
pub(crate) fn flow() -> Flow {
    Flow {
        from: Client::Outside(None),
        to: Destination::Address("10.0.0.1:80".parse().unwrap()),
        protocol: Protocol::Tcp,
    }
}

/// Makes a verdict with a route of every kind of step, in which every text is this one.
pub(crate) fn verdicts(text: &str) -> Vec<Verdict> {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let leg = Leg { src: at("10.1.1.10:40000"), dst: at("10.0.0.1:80") };
    let wide = Leg { src: at("[2001:db8:1111:2222:3333:4444:5555:6666]:40000"), dst: leg.dst };
    let by = || Evidence::Iptables {
        chain: text.into(),
        rule: text.into(),
        origin: Origin::at(text, 1, 1),
    };
    let step = |kind| Step::new(kind, text, by());
    let hop = |place, direction, steps| Hop { place, direction, steps };
    let lb = || Place::LoadBalancer(text.into());
    let node = || Place::Node(Name::new("n1").unwrap());
    let route = Route {
        late: Duration::ZERO,
        share: Share::ALL,
        outcome: Outcome::Hangs,
        mechanisms: vec![Mechanism::AsymmetricReturn],
        chance: false,
        has_others: false,
        failures: Vec::new(),
        hops: vec![
            hop(Place::Dns, Direction::Out, vec![step(StepKind::Resolve)]),
            hop(Place::Outside, Direction::Out, vec![step(StepKind::Send).seeing(leg)]),
            hop(lb(), Direction::Out, vec![step(StepKind::Balance).changing(leg, wide)]),
            hop(
                node(),
                Direction::Out,
                vec![step(StepKind::Translate).changing(wide, leg), step(StepKind::Unknown)],
            ),
            hop(lb(), Direction::Back, vec![step(StepKind::Turn).seeing(leg)]),
            hop(Place::Outside, Direction::Back, vec![step(StepKind::Drop).seeing(leg)]),
            hop(lb(), Direction::Out, vec![step(StepKind::Timeout)]),
        ],
    };
    let names = Route {
        late: Duration::ZERO,
        hops: vec![hop(Place::Dns, Direction::Out, vec![step(StepKind::Resolve)])],
        outcome: Outcome::NameNotFound,
        ..route.clone()
    };
    vec![Verdict::of(vec![route, names], vec![text.into()], Vec::new())]
}
