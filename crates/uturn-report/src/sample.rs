//! Findings for tests.

use uturn_diagnose::{Clients, Code, CureTitle, Example, Finding, Observation, Severity};
use uturn_model::{Evidence, Kind, Mechanism, Name, ObjectRef, Origin, Outcome, Place};

use crate::ScanReport;

/// A loop at an Ingress of that name.
pub(crate) fn finding(name: &str, targets: &[&str]) -> Finding {
    Finding {
        code: Code::IngressLoopback,
        severity: Severity::Error,
        subject: ObjectRef {
            kind: Kind::Ingress,
            namespace: Some(Name::new("shop").unwrap()),
            name: name.into(),
        },
        targets: targets.iter().map(|one| (*one).to_owned()).collect(),
        clients: Clients::other(Clients::OUTSIDE),
        share_failing: uturn_model::Share::new(0.5),
        outcome: Outcome::Answered { after: std::time::Duration::from_secs(4) },
        mechanism: Some(Mechanism::AsymmetricReturn),
        example: Example::Written,
        written: Vec::new(),
        cures: vec![call("call svc/shop/front")],
        conditions: Vec::new(),
    }
}

fn call(text: &str) -> CureTitle {
    CureTitle { name: "call-service", text: text.to_owned() }
}

/// A report whose every text is this one.
pub(crate) fn report(text: &str) -> ScanReport {
    let mut one = finding(text, &[text, "other"]);
    one.cures = vec![call(text)];
    one.conditions = vec![text.into()];
    let evidence = Observation {
        place: Some(Place::LoadBalancer(text.into())),
        what: text.into(),
        by: Evidence::Iptables {
            chain: text.into(),
            rule: text.into(),
            origin: Origin::at(text, 3, 5),
        },
    };
    let mut report = ScanReport::new(vec![one]);
    report.evidence = vec![vec![evidence]];
    report.origins = vec![Origin::at(text, 7, 1)];
    report.aside = vec![
        crate::scan::Aside {
            finding: finding(text, &[text]),
            origin: Origin::file(text),
            why: crate::scan::Why::Ignored { reason: text.into() },
        },
        crate::scan::Aside {
            finding: finding(text, &[]),
            origin: Origin::line_of(text, 9),
            why: crate::scan::Why::Known { baseline: text.into() },
        },
    ];
    report
}
