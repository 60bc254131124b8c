//! Whatever a manifest has for a name, a label or a reason: every form stays what it is.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use uturn_diagnose::Finding;
use uturn_diagnose::alike::alike;
use uturn_model::route::{Hop, Leg, Way};
use uturn_model::{
    By, Client, Destination, Flow, Mechanism, Name, Origin, Outcome, Place, Protocol, Route, Step,
    StepKind, Verdict,
};

use crate::html::Shown;
use crate::{html, junit, sample, sarif, svg};

proptest! {
    #[test]
    fn every_form_holds_any_text(text in any_text()) {
        let report = sample::report(&text);
        well_formed(&junit::scan(&report))?;
        let shown = Shown { flow: Some(flow()), verdicts: verdicts(&text), cures: Vec::new() };
        let alike = alike(report.findings.iter());
        well_formed(&html::scan(&report, &alike, &[shown]))?;
        well_formed(&svg::trace(&flow(), &verdicts(&text), std::slice::from_ref(&text)))?;
        let sarif = sarif::scan(&report);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&sarif).is_ok());
    }

    #[test]
    fn nothing_in_a_picture_meets(text in any_text()) {
        let drawn = svg::trace(&flow(), &verdicts(&text), &[]);
        let boxes: Vec<[f64; 4]> = drawn
            .split("<rect ")
            .skip(2)
            .map(|one| ["x", "y", "width", "height"].map(|name| number(one, name)))
            .collect();
        prop_assert!(boxes.len() > 8);
        for (at, one) in boxes.iter().enumerate() {
            for other in &boxes[at + 1..] {
                let apart = |i: usize| one[i] + one[i + 2] <= other[i] || other[i] + other[i + 2] <= one[i];
                prop_assert!(apart(0) || apart(1), "{one:?} {other:?}");
            }
            let width = number(drawn.split("<svg").nth(1).unwrap(), "width");
            prop_assert!(one[0] >= 0.0 && one[0] + one[2] <= width, "{one:?} of {width}");
        }
    }
}

/// Twenty targets that refuse one after the other are drawn once.
#[test]
fn tries_that_go_alike_are_drawn_once() {
    let mut all = verdicts("x");
    let route = &mut all[0].routes[0];
    let tried = |i: usize| {
        let name = Name::new(format!("t{i}")).unwrap();
        let by = || By::kernel("x");
        let lb = Place::LoadBalancer("x".into());
        [
            (lb, Step::new(StepKind::Balance, "picks", by())),
            (Place::Node(name), Step::new(StepKind::Reject, "refuses", by())),
        ]
        .map(|(place, step)| Hop { place, way: Way::Out, steps: vec![step] })
    };
    let ends = route.hops.split_off(2);
    route.hops.extend((0..20).flat_map(tried).chain(ends));
    let drawn = svg::trace(&flow(), &all, &[]);
    assert!(drawn.contains("the same with 19 more targets"), "{drawn}");
    assert!(drawn.contains(">t0<") && !drawn.contains(">t1<"));
}

/// A large cluster: the page stays small, those that are alike are told together, and what
/// is folded is counted.
#[test]
fn many_findings_are_folded_and_counted() {
    let hosts: Vec<String> = (0..100).map(|i| format!(":80 host-{i}.example.com/")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mut findings: Vec<Finding> =
        (0..30_000).map(|i| sample::finding(&format!("front-{i}"), &hosts)).collect();
    // And some of which each is like no other.
    for (at, one) in findings.iter_mut().take(400).enumerate() {
        one.conditions = vec![format!("the moon is {at}").into()];
    }
    let report = crate::ScanReport::new(findings);
    let alike = alike(report.findings.iter());
    assert_eq!(alike.len(), 401);
    assert_eq!(alike.last().unwrap().all.len(), 29_600);
    let shown = |at: usize| {
        let from = Client::Node(Name::new(format!("n{at}")).unwrap());
        let flow = Flow { from, ..flow() };
        Shown { flow: Some(flow), verdicts: verdicts("x"), cures: Vec::new() }
    };
    let mut all: Vec<Shown> = (0..401).map(shown).collect();
    // The same way is drawn once.
    all[1] = all[0].clone();
    let page = html::scan(&report, &alike, &all);
    assert!(page.len() < 5_000_000, "{}", page.len());
    well_formed(&page).unwrap();
    let drawn = page.matches("<svg ").count();
    let told = page.matches("<article ").count();
    assert!(drawn > 20 && told == 401, "{drawn} {told}");
    assert_eq!(page.matches("way is drawn at <a href=\"#f1\">UT101").count(), 1);
    let short = page.matches("Folded: there is no room").count();
    assert!(short > 20, "{short}");
    assert_eq!(page.matches("-o svg</code>").count(), told - drawn - 1 - short);
    let lines = page.matches("<li><b>1 in 2").count();
    assert!(lines > 10_000, "{lines}");
    assert!(page.contains("<summary>All 29600 findings</summary>"));
    let left = format!("<p class=\"folded\">and {} more", 29_600 - lines);
    assert!(page.contains(&left), "{left}");
}

/// More that are told in full than there is room for.
#[test]
fn what_has_no_room_is_counted() {
    let mut findings: Vec<Finding> =
        (0..5000).map(|i| sample::finding(&format!("front-{i}"), &[":80"])).collect();
    for (at, one) in findings.iter_mut().enumerate() {
        one.conditions = vec![format!("the moon is {at}").into()];
    }
    let report = crate::ScanReport::new(findings);
    let page = html::scan(&report, &alike(report.findings.iter()), &[]);
    assert!(page.len() < 5_000_000, "{}", page.len());
    let told = page.matches("<article ").count();
    assert!((1000..5000).contains(&told), "{told}");
    let left = format!("{} more are folded here", crate::words::count(5000 - told, "finding"));
    assert!(page.contains(&left), "{left}");
}

#[test]
fn the_judge_sees_what_is_broken() {
    for broken in [
        "<a>",
        "<a></b>",
        "<a b=c></a>",
        "<a b=\"<\"></a>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a>\u{1}</a>",
        "<a/><b/>x<",
        "</a>",
        "<a b=\"1\" b=\"2\"/>",
    ] {
        assert!(well_formed(broken).is_err(), "{broken}");
    }
    assert!(well_formed("<?xml version=\"1.0\"?>\n<a b=\"&lt;\"><c/>x &amp; y</a>").is_ok());
}

/// Markup, quotes, controls, and anything else.
fn any_text() -> impl Strategy<Value = String> {
    let nasty = "(<script>alert\\(1\\)</script>|</style>|<!--|-->|\\]\\]>|&amp;|&#0;|\"|'|=|\\\\|`|\u{0}|\u{1b}|\u{fffe}|\u{85}|\r|\n|a|shop)";
    prop_oneof![
        proptest::collection::vec(nasty, 0..8).prop_map(|parts| parts.concat()),
        any::<String>()
    ]
}

fn flow() -> Flow {
    Flow {
        from: Client::Outside(None),
        to: Destination::Address("10.0.0.1:80".parse().unwrap()),
        protocol: Protocol::Tcp,
    }
}

fn verdicts(text: &str) -> Vec<Verdict> {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let leg = Leg { src: at("10.1.1.10:40000"), dst: at("10.0.0.1:80") };
    let wide = Leg { src: at("[2001:db8:1111:2222:3333:4444:5555:6666]:40000"), dst: leg.dst };
    let by = || By::new(text, Origin { file: text.into(), line: 1, column: 1 });
    let step = |kind| Step::new(kind, text, by());
    let hop = |place, way, steps| Hop { place, way, steps };
    let lb = || Place::LoadBalancer(text.into());
    let node = || Place::Node(Name::new("n1").unwrap());
    let route = Route {
        late: Duration::ZERO,
        share: 1.0,
        outcome: Outcome::Hangs,
        mechanisms: vec![Mechanism::AsymmetricReturn],
        chance: false,
        hops: vec![
            hop(Place::Dns, Way::Out, vec![step(StepKind::Resolve)]),
            hop(Place::Outside, Way::Out, vec![step(StepKind::Send).seeing(leg)]),
            hop(lb(), Way::Out, vec![step(StepKind::Balance).changing(leg, wide)]),
            hop(
                node(),
                Way::Out,
                vec![step(StepKind::Translate).changing(wide, leg), step(StepKind::Unknown)],
            ),
            hop(lb(), Way::Back, vec![step(StepKind::Turn).seeing(leg)]),
            hop(Place::Outside, Way::Back, vec![step(StepKind::Drop).seeing(leg)]),
            hop(lb(), Way::Out, vec![step(StepKind::Timeout)]),
        ],
    };
    let names = Route {
        late: Duration::ZERO,
        hops: vec![hop(Place::Dns, Way::Out, vec![step(StepKind::Resolve)])],
        outcome: Outcome::NameNotFound,
        ..route.clone()
    };
    vec![Verdict::of(vec![route, names], vec![text.into()], Vec::new())]
}

fn number(tag: &str, name: &str) -> f64 {
    let from = tag.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
    tag[from..].split('"').next().unwrap().parse().unwrap()
}

/// XML as far as we write it: tags that close, quoted attributes, each once, known entities,
/// no control characters. What is inside a script or a style is not looked at.
fn well_formed(text: &str) -> Result<(), TestCaseError> {
    let fault = |what: &str, rest: &str| {
        let near: String = rest.chars().take(60).collect();
        Err(TestCaseError::fail(format!("{what}: {near}")))
    };
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain(&rest[..at])?;
        rest = &rest[at..];
        if rest.starts_with("<?") || rest.starts_with("<!DOCTYPE") {
            rest = rest.split_once('>').map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = rest.find('>') else { return fault("an open tag", rest) };
        let tag = &rest[1..end];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return fault("a tag that closes nothing", rest);
            }
        } else {
            let is_empty = tag.ends_with('/');
            let tag = tag.trim_end_matches('/');
            let name = tag.split_whitespace().next().unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
                return fault("no name of a tag", rest);
            }
            attributes(&tag[name.len()..])?;
            if !is_empty {
                open.push(name);
            }
            if matches!(name, "script" | "style") {
                let close = rest.find(&format!("</{name}>")).unwrap_or(rest.len());
                rest = &rest[close..];
                continue;
            }
        }
        rest = &rest[end + 1..];
    }
    plain(rest)?;
    match open.pop() {
        None => Ok(()),
        Some(name) => fault("never closed", name),
    }
}

fn attributes(text: &str) -> Result<(), TestCaseError> {
    let mut seen = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let whole = rest.split_once("=\"").and_then(|(name, after)| {
            let (value, after) = after.split_once('"')?;
            Some((name, value, after))
        });
        let Some((name, value, after)) = whole else {
            return Err(TestCaseError::fail(format!("no attribute: {rest}")));
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b':';
        if name.is_empty() || !name.bytes().all(is_name) || seen.contains(&name) {
            return Err(TestCaseError::fail(format!("no name of an attribute: {name}")));
        }
        plain(value)?;
        seen.push(name);
        rest = after.trim_start();
    }
    Ok(())
}

fn plain(text: &str) -> Result<(), TestCaseError> {
    let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    for after in text.split('&').skip(1) {
        prop_assert!(known.iter().any(|one| after.starts_with(one)), "entity: &{after}");
    }
    let bad = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '<' | '\u{fffe}' | '\u{ffff}')
    };
    prop_assert!(!text.contains(bad), "a character that may not be: {text:?}");
    Ok(())
}
