//! Whatever comes in, what comes out is a cluster or a reason.

use proptest::prelude::*;
use uturn_snapshot::{Source, read, read_load_balancers, scenario};

fn swallow(text: &str) {
    let source = || Source { name: "any".into(), text: text.to_owned() };
    for faults in [
        read(vec![source()]).err(),
        scenario::read_all(vec![source()]).err(),
        read_load_balancers(source()).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(!faults.is_empty());
        assert!(
            faults
                .iter()
                .all(|fault| !fault.message.is_empty() && fault.origin.path() == Some("any"))
        );
    }
}

const SEED: &str = include_str!("objects/golden.yaml");

/// Bits of manifests, to be put together wrongly.
const BITS: &[&str] = &[
    "apiVersion: v1",
    "kind: Service",
    "kind: Node",
    "kind: Pod",
    "kind: List",
    "kind: ConfigMap",
    "metadata:",
    "metadata: {name: a}",
    "  name: kube-proxy",
    "  namespace: kube-system",
    "spec:",
    "spec: {ports: [{port: 80}]}",
    "items:",
    "- ",
    "  - ",
    "data:",
    "  config.conf: |",
    "    mode: ipvs",
    "apiVersion: uturn.dev/v1alpha1",
    "kind: Facts",
    "kind: Scenario",
    "kind: LoadBalancer",
    "  nodes: [1, 2]",
    "  shows: x",
    "  flows:",
    "  - from: clients",
    "    to: http://1.2.3.4/",
    "    expect:",
    "---",
    "...",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "&a",
    "*a",
    "<<: *a",
    "!!str",
    "\"",
    "'",
    "|",
    ">",
    "#",
    ",",
    ":",
    "?",
    "%YAML 1.2",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "\r",
    "{\"apiVersion\": \"v1\",",
    "\\u12",
    "1e999",
    "0x",
    "~",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text(text in any::<String>()) {
        swallow(&text);
    }

    #[test]
    fn any_text_that_looks_like_documents(text in "[-{}\\[\\]:,&*!|>'\"#% \t\nab10~?\\\\]{0,80}") {
        swallow(&text);
    }

    #[test]
    fn bits_of_manifests(bits in prop::collection::vec((prop::sample::select(BITS), any::<bool>()), 0..30)) {
        let text: String = bits.iter().map(|(bit, line)| format!("{bit}{}", if *line { "\n" } else { " " })).collect();
        swallow(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_manifest_cut_anywhere_and_changed_somewhere(
        from in 0..SEED.len(), length in 0..3000usize, at in 0..3000usize, with in prop::sample::select(BITS),
    ) {
        let mut text = SEED[from..(from + length).min(SEED.len())].to_owned();
        let at = at.min(text.len());
        text.insert_str(at, with);
        swallow(&text);
    }
}
