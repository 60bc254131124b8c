//! Targets for manifests, Facts and Scenarios, in YAML and JSON.

use uturn_lb::config::Config;
use uturn_model::{Origin, Share};
use uturn_snapshot::scenario::{self, Scenario};
use uturn_snapshot::{
    Fault, Source, read, read_lb_config, read_load_balancers, write_lb_config, write_load_balancers,
};

use crate::text;

/// The file name of the input in error messages.
const FILE: &str = "input";

/// Reads manifests of `-f`. An error has a place and a message, and parsing twice gives the same
/// result.
pub fn manifests(data: &[u8]) -> bool {
    let text = text(data);
    let source = || vec![Source { name: FILE.into(), text: text.to_string() }];
    let (first, second) = (read(source()), read(source()));
    match (&first, &second) {
        (Ok(first), Ok(other)) => assert_eq!(first.seen, other.seen),
        (Err(first), Err(other)) => assert_eq!(first, other),
        _ => panic!("read once and refused once: {first:?}, {second:?}"),
    }
    match first {
        Ok(_) => true,
        Err(faults) => {
            refused(&faults, &text);
            false
        }
    }
}

/// Reads LoadBalancer documents, which are printed and parsed back unchanged.
pub fn load_balancers(data: &[u8]) -> bool {
    let text = text(data);
    let source = |text: String| Source { name: FILE.into(), text };
    let read = match read_load_balancers(source(text.to_string())) {
        Ok(read) => read,
        Err(faults) => {
            refused(&faults, &text);
            return false;
        }
    };
    let written = write_load_balancers(&read);
    match read_load_balancers(source(written.clone())) {
        Ok(again) => assert_eq!(again, read, "written as:\n{written}"),
        Err(faults) => panic!("written as:\n{written}\nand refused: {faults:?}"),
    }
    true
}

/// Reads the file of `uturn lb run`. It is written and read back unchanged, and its load balancers
/// alone too.
pub fn lb_config(data: &[u8]) -> bool {
    let text = text(data);
    let read = |text: String| read_lb_config(vec![Source { name: FILE.into(), text }]);
    let config = match read(text.to_string()) {
        Ok(config) => without_places(config),
        Err(faults) => {
            refused(&faults, &text);
            return false;
        }
    };
    let written = write_lb_config(&config);
    match read(written.clone()) {
        Ok(again) => assert_eq!(without_places(again), config, "written as:\n{written}"),
        Err(faults) => panic!("written as:\n{written}\nand refused: {faults:?}"),
    }
    let balancers: Vec<_> =
        config.load_balancers.into_iter().map(|served| served.load_balancer).collect();
    let written = write_load_balancers(&balancers);
    match read(written.clone()) {
        Ok(again) => {
            let again = again.load_balancers.into_iter().map(|served| served.load_balancer);
            assert_eq!(again.collect::<Vec<_>>(), balancers, "written as:\n{written}");
        }
        Err(faults) => panic!("written as:\n{written}\nand refused: {faults:?}"),
    }
    true
}

/// Returns a configuration without the places where security groups are written.
fn without_places(mut config: Config) -> Config {
    for group in &mut config.security_groups {
        group.origin = Origin::SUPPOSED;
        let rules = group.inbound.iter_mut().chain(&mut group.outbound);
        rules.for_each(|rule| rule.origin = Origin::SUPPOSED);
    }
    config
}

/// Reads Scenarios. The expected shares of a flow sum to 1.
pub fn scenarios(data: &[u8]) -> bool {
    scenarios_of(&text(data)).is_some_and(|read| !read.is_empty())
}

/// Reads shares and durations in fields: a formula over N, `500ms`.
pub fn fields(data: &[u8]) -> bool {
    let text = quoted(&text(data));
    let share = format!("{{outcome: answered, share: {text}}}, {{outcome: hangs, share: rest}}");
    let time = format!("{{outcome: answered, after: {text}}}");
    let taken = [share, time].map(|outcomes| {
        let flow = format!("{{from: outside, to: \"10.0.0.1:80\", expect: [{{outcomes: [{outcomes}]}}]}}");
        let spec = format!("{{shows: all, nodes: [1, 3], flows: [{flow}]}}");
        scenarios_of(&format!(
            "{{apiVersion: uturn.dev/v1alpha1, kind: Scenario, metadata: {{name: x}}, spec: {spec}}}"
        ))
        .is_some()
    });
    taken.contains(&true)
}

fn scenarios_of(text: &str) -> Option<Vec<Scenario>> {
    let read = match scenario::read_all(vec![Source { name: FILE.into(), text: text.to_owned() }]) {
        Ok(read) => read,
        Err(faults) => {
            refused(&faults, text);
            return None;
        }
    };
    for flow in read.iter().flat_map(|scenario| &scenario.cases).flat_map(|case| &case.flows) {
        let adds_up = flow.outcomes.is_empty()
            || Share::add_up_to_all(flow.outcomes.iter().map(|(_, share)| *share));
        assert!(adds_up, "{} adds up to another sum: {:?}", flow.origin, flow.outcomes);
    }
    Some(read)
}

/// Quotes a text for YAML.
fn quoted(text: &str) -> String {
    let escaped: String = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    format!("\"{escaped}\"")
}

fn refused(faults: &[Fault], text: &str) {
    assert!(!faults.is_empty(), "a refusal says why");
    // YAML has more line breaks than `str::lines`; an error at the end of the input is on the
    // line after the last.
    let last = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u32 + 1;
    for fault in faults {
        assert!(!fault.message.is_empty(), "a fault says what");
        assert_eq!(fault.origin.path(), Some(FILE), "{fault}");
        assert!(fault.origin.line() <= last, "of {last} lines: {fault}");
    }
}
