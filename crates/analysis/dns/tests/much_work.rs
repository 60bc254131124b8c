//! Corefiles that ask for much work with few words.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_dns::Corefile;
use uturn_model::{Origin, dns};

/// The first fault of a Corefile with other files beside it.
fn fault(text: &str, beside: &[(&str, &str)]) -> Option<String> {
    let file = |(name, text): &(&str, &str)| dns::CorefileFile {
        path: format!("{}/{name}", dns::COREFILE_FOLDER).into(),
        text: (*text).into(),
        origin: Origin::file(*name),
    };
    let corefile = dns::Corefile {
        text: text.into(),
        origin: Origin::file("Corefile"),
        beside: beside.iter().map(file).collect(),
        release: None,
    };
    Corefile::read("coredns", &corefile).err().map(|faults| faults.first().unwrap().message.clone())
}

#[test]
fn imports_have_an_end() {
    let long = "x".repeat(100_000);
    let comment = format!("# {long}\n");
    let snippet = format!("(s) {{\nlog {long}\n}}\n.:53 {{\n{}}}\n", "import s\n".repeat(1000));
    let many = |count: usize| format!(".:53 {{\n{}whoami\n}}\n", "import x\n".repeat(count));
    for (text, beside, expected) in [
        (many(1), vec![("x", "import x\n")], Some("imports itself endlessly")),
        (many(1), vec![("x", "import y\n"), ("y", "import x\n")], Some("imports itself endlessly")),
        (many(1), vec![("x", "log\nimport x\n")], Some("imports itself endlessly")),
        (many(1000), vec![("x", &*comment)], Some("imports more than 16 MiB")),
        (snippet, vec![], Some("imports more than 16 MiB")),
        (many(100), vec![("x", &*comment)], None),
        (many(100), vec![("x", "log\n")], None),
    ] {
        let found = fault(&text, &beside);
        match expected {
            None => assert_eq!(found, None),
            Some(expected) => {
                let found = found.unwrap();
                assert!(found.contains(expected), "{expected}: {found}");
            }
        }
    }
}
