//! What is found and does not count: what a baseline knows, and what an annotation ignores.

use std::fs;
use std::path::Path;

use uturn_diagnose::{Code, Finding};
use uturn_model::{Cluster, Kind, Labels, ObjectRef, Origin, Text};
use uturn_path::Engine;
use uturn_report::baseline::Baseline;
use uturn_report::scan::{Aside, Why};

use crate::printer::Printer;
use crate::status::Failure;

/// `uturn.dev/ignore: "UT101: reason"`, several with commas or on lines of their own.
const ANNOTATION: &str = "uturn.dev/ignore";

/// All that does not count.
pub(super) struct Known {
    ignores: Vec<Ignore>,
    baseline: Option<(Text, Baseline)>,
}

/// One code that an object's annotation ignores.
#[derive(Debug)]
struct Ignore {
    object: ObjectRef,
    code: Code,
    reason: Text,
}

impl Known {
    /// What the annotations say, and the baseline where there is one.
    pub(super) fn read(cluster: &Cluster, baseline: Option<&Path>) -> Result<Self, Failure> {
        let mut ignores = Vec::new();
        let mut faults = Vec::new();
        for (object, annotations, origin) in annotated(cluster) {
            let Some(text) = annotations.get(ANNOTATION) else { continue };
            for entry in entries(text) {
                match parse(entry) {
                    Ok((code, reason)) => {
                        ignores.push(Ignore {
                            object: object.clone(),
                            code,
                            reason: reason.into(),
                        });
                    }
                    Err(why) => faults.push(format!("{origin}: {object}: {ANNOTATION}: {why}")),
                }
            }
        }
        let baseline = baseline.map(|path| {
            let file = path.display().to_string();
            let text =
                fs::read_to_string(path).map_err(|why| format!("{file}: cannot be read: {why}"))?;
            let baseline = Baseline::parse(&text, &file)?;
            Ok::<_, String>((file.into(), baseline))
        });
        let baseline = match baseline.transpose() {
            Ok(baseline) => baseline,
            Err(fault) => {
                faults.push(fault);
                None
            }
        };
        match faults.is_empty() {
            true => Ok(Self { ignores, baseline }),
            false => Err(Failure::input(faults)),
        }
    }

    /// Takes out what does not count. An annotation that ignores nothing is said.
    pub(super) fn set_aside(
        &self,
        engine: &Engine<'_>,
        found: Vec<(usize, Finding)>,
        printer: &Printer,
    ) -> (Vec<(usize, Finding)>, Vec<Aside>) {
        let mut aside = Vec::new();
        let mut counted = Vec::new();
        for one in &self.ignores {
            let hits = |(_, finding): &(usize, Finding)| one.hits(finding);
            if !found.iter().any(hits) {
                printer
                    .note(&format!("{}: {ANNOTATION}: there is no {} here", one.object, one.code));
            }
        }
        for (at, finding) in found {
            let Some(why) = self.why(&finding) else {
                counted.push((at, finding));
                continue;
            };
            aside.push(Aside { origin: origin(engine, &finding.subject), finding, why });
        }
        (counted, aside)
    }

    fn why(&self, finding: &Finding) -> Option<Why> {
        if let Some(ignore) = self.ignores.iter().find(|one| one.hits(finding)) {
            return Some(Why::Ignored { reason: ignore.reason.clone() });
        }
        let (file, baseline) = self.baseline.as_ref()?;
        baseline.knows(finding).then(|| Why::Known { baseline: file.clone() })
    }

    /// How many findings of the baseline are there no more.
    pub(super) fn gone(&self, found: &[(usize, Finding)]) -> usize {
        let baseline = self.baseline.as_ref();
        baseline.map_or(0, |(_, known)| known.gone(found.iter().map(|(_, one)| one)))
    }

    /// Writes everything that was found, but what is ignored; the file is whole or not there.
    pub(super) fn write(
        &self,
        file: &Path,
        found: &[(usize, Finding)],
        printer: &Printer,
    ) -> Result<(), Failure> {
        let counts = |one: &&Finding| !self.ignores.iter().any(|ignore| ignore.hits(one));
        let baseline = Baseline::of(found.iter().map(|(_, one)| one).filter(counts));
        let mut half = file.as_os_str().to_owned();
        half.push(".part");
        fs::write(&half, baseline.text()).and_then(|()| fs::rename(&half, file)).map_err(
            |why| {
                // What could not be written may be half there.
                let _ = fs::remove_file(&half);
                Failure::usage(format!("{}: cannot be written: {why}", file.display()))
            },
        )?;
        let count = baseline.len();
        printer.note(&format!("{}: {count} known from now on", file.display()));
        Ok(())
    }
}

impl Ignore {
    fn hits(&self, finding: &Finding) -> bool {
        finding.code == self.code && finding.subject == self.object
    }
}

/// Everything that findings are about and that has annotations.
fn annotated(cluster: &Cluster) -> impl Iterator<Item = (ObjectRef, &Labels, &Origin)> {
    let services = cluster.services.values();
    let services = services.map(|one| (one.object(), &one.annotations, &one.origin));
    let ingresses = cluster.ingresses.values();
    let ingresses = ingresses.map(|one| (one.object(), &one.annotations, &one.origin));
    let nodes = cluster.nodes.values().map(|one| {
        (ObjectRef::global(Kind::Node, one.name.as_str()), &one.annotations, &one.origin)
    });
    services.chain(ingresses).chain(nodes)
}

/// Where an object is written.
pub(super) fn origin(engine: &Engine<'_>, object: &ObjectRef) -> Origin {
    let cluster = engine.cluster();
    let found = match object.kind {
        Kind::Node => cluster.nodes.get(&*object.name).map(|one| &one.origin),
        Kind::SecurityGroup => cluster.security_groups.get(&object.name).map(|one| &one.origin),
        _ => None,
    };
    found.cloned().unwrap_or_else(|| engine.origin_of(object))
}

/// Each line, and each part of it after a comma that a code follows: reasons have commas too.
fn entries(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        let mut from = 0;
        while let Some(at) = rest[from..].find(',').map(|at| at + from) {
            if starts_with_code(rest[at + 1..].trim_start()) {
                all.push(&rest[..at]);
                rest = &rest[at + 1..];
                from = 0;
            } else {
                from = at + 1;
            }
        }
        all.push(rest);
    }
    all.retain(|one| !one.trim().is_empty());
    all
}

fn starts_with_code(text: &str) -> bool {
    let digits = text.strip_prefix("UT").unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn parse(entry: &str) -> Result<(Code, &str), String> {
    let (code, reason) = entry.split_once(':').unwrap_or((entry, ""));
    let (code, reason) = (code.trim(), reason.trim());
    let known = code.parse::<Code>().map_err(|_| {
        format!("found {code:?}, expected CODE: reason, with a code that uturn explain lists")
    })?;
    match reason {
        "" => Err(format!("{code} has no reason: expected \"{code}: why it may stay\"")),
        reason => Ok((known, reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_at_lines_and_before_codes() {
        let text = "UT101: by name, always, UT102:x,UT103 : y\n\n  UT105: z\n";
        let all: Vec<_> = entries(text).into_iter().map(|one| parse(one).unwrap()).collect();
        let said: Vec<String> = all.iter().map(|(code, why)| format!("{code}={why}")).collect();
        assert_eq!(said, ["UT101=by name, always", "UT102=x", "UT103=y", "UT105=z"]);
        assert!(entries(" \n").is_empty());
    }

    #[test]
    fn a_reason_is_needed() {
        for (entry, said) in [
            ("UT101", "UT101 has no reason"),
            ("UT101:  ", "UT101 has no reason"),
            ("UT999: x", "found \"UT999\""),
            ("all: x", "found \"all\""),
        ] {
            assert!(parse(entry).unwrap_err().contains(said), "{entry}");
        }
    }
}
