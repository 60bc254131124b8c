use proptest::prelude::*;
use uturn_model::{Destination, Name, Port, Share};

use super::*;

/// Returns a finding about an Ingress, as a scan finds it.
fn finding(name: &str) -> Finding {
    Finding {
        code: Code::IngressLoopback,
        severity: Severity::Error,
        subject: object(ObjectKind::Ingress, name),
        targets: vec![":80 /".to_owned()],
        clients: Clients::other(Clients::OUTSIDE),
        share_failing: Share::new(0.5),
        outcome: Outcome::Answered { after: Duration::from_secs(4) },
        mechanism: Some(Mechanism::AsymmetricReturn),
        example: walked(),
        failure: None,
        other_evidence: Vec::new(),
        cures: Vec::new(),
        untried: None,
        conditions: Vec::new(),
    }
}

fn object(kind: ObjectKind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: Some(Name::new("shop").unwrap()), name: name.into() }
}

fn walked() -> Example {
    Example::Flow(uturn_model::Flow {
        from: uturn_model::Client::Outside(None),
        to: Destination::Url {
            tls: false,
            host: "shop.example.com".into(),
            port: Port::new(80).unwrap(),
            path: "/".into(),
        },
        protocol: uturn_model::Protocol::Tcp,
    })
}

fn call(service: &str) -> CureTitle {
    CureTitle { name: "call-service", text: format!("call svc/shop/{service}:80") }
}

fn snat(of: &str) -> CureTitle {
    CureTitle { name: "l7-snat", text: format!("SNAT for {of}") }
}

#[test]
fn findings_of_one_cause_are_one_group() {
    let late = Outcome::Answered { after: Duration::from_secs(8) };
    let lost = Outcome::Status { code: 504, after: Duration::from_secs(4) };
    let all = [
        Finding { share_failing: Share::new(0.2), ..finding("a") },
        Finding { severity: Severity::Warning, share_failing: Share::new(1.0), ..finding("b") },
        Finding { outcome: late, ..finding("c") },
        Finding { outcome: lost, ..finding("d") },
        Finding { targets: vec![":80 /".to_owned(), ":80 /x".to_owned()], ..finding("a") },
    ];
    let groups = group(&all);
    assert_eq!(groups.len(), 1);
    let only = &groups[0];
    // Severity first; of equal shares, no answer is worse than a late one.
    assert_eq!(only.members, [3, 2, 4, 0, 1]);
    assert_eq!(only.worst(), 3);
    assert_eq!((only.objects, only.targets, only.clients.len()), (4, 5, 1));
    assert_eq!(only.severity, Severity::Error);
}

#[test]
fn what_has_to_be_changed_distinguishes_groups() {
    let all = [
        finding("a"),
        Finding { code: Code::ReplyUnseen, ..finding("a") },
        Finding { mechanism: None, ..finding("a") },
        Finding { subject: object(ObjectKind::Service, "a"), ..finding("a") },
        Finding { conditions: vec!["kube-proxy mode is ipvs".into()], ..finding("a") },
        Finding { cures: vec![call("a")], ..finding("a") },
    ];
    assert_eq!(group(&all).len(), all.len());
}

/// The condition of a hint names its own port or Service, so it does not belong to the cause.
#[test]
fn conditions_of_findings_that_nothing_walked_do_not() {
    let hint = |name: &str, port: u16| Finding {
        example: Example::Manifests,
        conditions: vec![format!("nothing listens on {port}").into()],
        targets: Vec::new(),
        ..finding(name)
    };
    let groups = group(&[hint("a", 81), hint("b", 8081)]);
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].targets, groups[0].objects), (2, 2));
}

#[test]
fn groups_come_by_severity_then_by_harm() {
    let warning = Finding {
        code: Code::ReplyUnseen,
        severity: Severity::Warning,
        share_failing: Share::new(1.0),
        ..finding("a")
    };
    let small = Finding { subject: object(ObjectKind::Service, "a"), ..finding("a") };
    let groups = group(&[warning, small, finding("a"), finding("b")]);
    let members: Vec<&[usize]> = groups.iter().map(|group| &*group.members).collect();
    assert_eq!(members, [&[2, 3][..], &[1], &[0]]);
}

#[test]
fn a_cure_of_all_is_one_change_or_one_for_each() {
    let cured = |cures: &[&[CureTitle]]| {
        let mut all: Vec<Finding> = (0..cures.len()).map(|at| finding(&format!("{at}"))).collect();
        // Cures are tried once the groups are known.
        let groups = group(&all);
        all.iter_mut().zip(cures).for_each(|(finding, cures)| finding.cures = cures.to_vec());
        assert_eq!(groups.len(), 1);
        groups[0].cure(&all)
    };
    let once = |cure| Some(GroupCure::Once(cure));
    assert_eq!(cured(&[&[call("a"), snat("lb")], &[call("b"), snat("lb")]]), once(snat("lb")));
    assert_eq!(cured(&[&[call("a")]]), once(call("a")));
    assert_eq!(
        cured(&[&[call("a"), snat("x")], &[call("b")]]),
        Some(GroupCure::ForEach(call("a")))
    );
    assert_eq!(cured(&[&[call("a")], &[snat("lb")]]), None);
    assert_eq!(cured(&[&[call("a")], &[]]), None);
    assert_eq!(cured(&[&[], &[call("a")]]), None);
}

#[test]
fn of_a_long_list_the_worst_of_each_group_is_shown_in_full() {
    let other = Finding { mechanism: None, ..finding("other") };
    let list = |count: usize| -> Vec<usize> {
        let many = (0..count).map(|at| finding(&format!("n{at:02}")));
        shown_in_full(&group(&many.chain([other.clone()]).collect::<Vec<_>>()))
    };
    assert_eq!(list(MAX_IN_FULL - 1), (0..MAX_IN_FULL).collect::<Vec<_>>());
    assert_eq!(list(MAX_IN_FULL), [0, MAX_IN_FULL]);
    assert_eq!(shown_in_full(&[]), [0; 0]);
}

fn findings() -> impl Strategy<Value = Vec<Finding>> {
    let code = prop::sample::select(vec![Code::IngressLoopback, Code::ReplyUnseen]);
    let severity = prop::sample::select(vec![Severity::Info, Severity::Warning, Severity::Error]);
    let kind = prop::sample::select(vec![ObjectKind::Ingress, ObjectKind::Service]);
    let outcome = prop::sample::select(vec![
        Outcome::AT_ONCE,
        Outcome::Hangs,
        Outcome::Answered { after: Duration::from_secs(4) },
        Outcome::Status { code: 504, after: Duration::from_secs(9) },
    ]);
    let client = prop::sample::select(vec![Clients::OUTSIDE, Clients::PROBES, Clients::OTHERS]);
    let mechanism = prop::option::of(prop::sample::select(Mechanism::ALL[..3].to_vec()));
    let parts = (code, severity, kind, 0..6_u8, 0..3_usize, 0..=6_u8);
    let more = (outcome, client, mechanism, any::<(bool, bool, bool)>());
    let finding = (parts, more).prop_map(|(parts, (outcome, client, mechanism, flags))| {
        let (code, severity, kind, name, targets, share) = parts;
        let (is_walked, has_cure, is_if) = flags;
        Finding {
            code,
            severity,
            subject: object(kind, &format!("n{name}")),
            targets: (0..targets).map(|at| format!(":{at}")).collect(),
            clients: Clients::other(client),
            share_failing: Share::new(f64::from(share) / 6.0),
            outcome,
            mechanism,
            example: if is_walked { walked() } else { Example::Manifests },
            cures: if has_cure { vec![call(&format!("s{name}"))] } else { Vec::new() },
            untried: None,
            conditions: if is_if { vec!["so".into()] } else { Vec::new() },
            failure: None,
            other_evidence: Vec::new(),
        }
    });
    prop::collection::vec(finding, 0..60)
}

/// Describes a group without the indices of its members.
fn content(group: &Group, findings: &[Finding]) -> String {
    let members: Vec<_> = group
        .members
        .iter()
        .map(|at| {
            let Finding { subject, targets, clients, share_failing, outcome, .. } = &findings[*at];
            (subject, targets, clients.others(), share_failing, outcome, &findings[*at].cures)
        })
        .collect();
    let Group { cause, severity, objects, targets, clients, .. } = group;
    let mut others = clients.others().to_vec();
    others.sort_unstable();
    let cure = group.cure(findings);
    format!("{cause:?} {severity} {objects} {targets} {others:?} {cure:?} {members:?}")
}

proptest! {
    #[test]
    fn each_finding_is_in_one_group(findings in findings()) {
        let groups = group(&findings);
        let mut all: Vec<usize> = groups.iter().flat_map(|group| group.members.clone()).collect();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..findings.len()));
        for group in &groups {
            prop_assert!(!group.members.is_empty());
            for member in &group.members {
                prop_assert_eq!(&Cause::of(&findings[*member]), &group.cause);
            }
        }
        let causes: HashSet<&Cause> = groups.iter().map(|group| &group.cause).collect();
        prop_assert_eq!(causes.len(), groups.len());
    }

    #[test]
    fn counts_are_those_of_the_members(findings in findings()) {
        for group in group(&findings) {
            let all = || group.members.iter().map(|at| &findings[*at]);
            let objects: HashSet<_> = all().map(|finding| &finding.subject).collect();
            prop_assert_eq!(group.objects, objects.len());
            let mut targets = HashSet::new();
            for finding in all() {
                let subject = &finding.subject;
                targets.extend(finding.targets.iter().map(|target| (subject, Some(target))));
                if finding.targets.is_empty() {
                    targets.insert((subject, None));
                }
            }
            prop_assert_eq!(group.targets, targets.len());
            let clients: HashSet<_> = all().flat_map(|finding| finding.clients.others()).collect();
            prop_assert_eq!(group.clients.len(), clients.len());
            prop_assert_eq!(Some(group.severity), all().map(|finding| finding.severity).max());
            let worst = &findings[group.worst()];
            for finding in all().filter(|finding| finding.severity == worst.severity) {
                prop_assert!(!finding.share_failing.is_more_than(worst.share_failing));
            }
        }
    }

    #[test]
    fn the_order_of_the_findings_does_not_matter(
        (findings, shuffled) in findings()
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let (groups, again) = (group(&findings), group(&shuffled));
        let first: Vec<String> = groups.iter().map(|group| content(group, &findings)).collect();
        let second: Vec<String> = again.iter().map(|group| content(group, &shuffled)).collect();
        prop_assert_eq!(first, second);
    }
}
