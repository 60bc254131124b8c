//! Manifests, Facts and Scenarios, YAML and JSON.

use uturn_snapshot::{Fault, Source, read, read_load_balancers, write_load_balancers};

use crate::text;

/// The name that inputs have here, to be found again in faults.
const FILE: &str = "input";

/// What `-f` names: a refusal says what and where, and reading twice is reading the same.
pub fn manifests(data: &[u8]) -> bool {
    let text = text(data);
    let source = || vec![Source { name: FILE.into(), text: text.to_string() }];
    let (first, second) = (read(source()), read(source()));
    match (&first, &second) {
        (Ok(one), Ok(other)) => assert_eq!(one.seen, other.seen),
        (Err(one), Err(other)) => assert_eq!(one, other),
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

/// LoadBalancer documents: what is written is read back the same.
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

fn refused(faults: &[Fault], text: &str) {
    assert!(!faults.is_empty(), "a refusal says why");
    // YAML also breaks lines where `str::lines` does not; an input that ends too early is
    // wrong after its last line.
    let last = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u32 + 1;
    for fault in faults {
        assert!(!fault.message.is_empty(), "a fault says what");
        assert_eq!(&*fault.origin.file, FILE, "{fault}");
        assert!(fault.origin.line <= last, "of {last} lines: {fault}");
    }
}
