//! The rules of both back ends of iptables. A kernel may have rules of both and applies both; the
//! tool of each back end shows only its own.

use uturn_model::{CaptureFile, Family};

use crate::machine::{Machine, ToolFailure};
use crate::manifest::Part;

/// The captured rules of a family.
pub(crate) struct Saved {
    /// The file of the back end that kube-proxy uses, and that of the other, if it has rules.
    pub(crate) files: Vec<(CaptureFile, String)>,
    pub(crate) parts: Vec<Part>,
}

/// Captures the rules of a family.
pub(crate) fn save(machine: &impl Machine, family: Family, counters: bool) -> Saved {
    let (word, file, other) = match family {
        Family::V4 => ("iptables", CaptureFile::Iptables, CaptureFile::OtherIptables),
        Family::V6 => ("ip6tables", CaptureFile::Ip6tables, CaptureFile::OtherIp6tables),
    };
    let arguments: &[&str] = if counters { &["-c"] } else { &[] };
    let command = |program: &str| [&[program], arguments].concat().join(" ");
    let of_back_ends = ["nft", "legacy"].map(|back_end| {
        let program = format!("{word}-{back_end}-save");
        let saved = machine.run(&program, arguments);
        (program, saved)
    });
    if of_back_ends.iter().all(|(_, saved)| saved == &Err(ToolFailure::Missing)) {
        let program = format!("{word}-save");
        return match machine.run(&program, arguments) {
            Ok(text) => Saved {
                files: vec![(file, text)],
                parts: vec![
                    Part::captured(file.file_name(), command(&program))
                        .with("one back end only: the tools of each are missing"),
                ],
            },
            Err(why) => Saved {
                files: Vec::new(),
                parts: vec![Part::failed(file.file_name(), command(&program), &why)],
            },
        };
    }
    let (mut texts, mut failed) = (Vec::new(), Vec::new());
    for (program, saved) in of_back_ends {
        match saved {
            Ok(text) => texts.push((program, text)),
            Err(why) => failed.push((program, why)),
        }
    }
    // The sort is stable: if both weigh the same, the newer back end stays first.
    texts.sort_by_key(|(_, text)| std::cmp::Reverse(weight(text)));
    let mut saved = Saved { files: Vec::new(), parts: Vec::new() };
    for (file, (program, text)) in [file, other].into_iter().zip(texts) {
        if file == other && weight(&text) == (0, 0) {
            let part = Part::captured(other.file_name(), command(&program));
            saved.parts.push(part.with("it has no rules, so there is no file"));
            continue;
        }
        saved.parts.push(Part::captured(file.file_name(), command(&program)));
        saved.files.push((file, text));
    }
    for (program, why) in failed {
        let file = if saved.files.is_empty() { file } else { other };
        saved.parts.push(Part::failed(file.file_name(), command(&program), &why));
    }
    saved
}

/// Returns the number of Kubernetes chains in a dump, and the number of rules, counting a policy
/// that drops as one. kube-proxy uses the back end in which it finds chains of kubelet.
fn weight(text: &str) -> (usize, usize) {
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    let chains = text.lines().filter(|line| line.starts_with(':'));
    let dropping = chains.filter(|line| line.split_whitespace().nth(1) == Some("DROP")).count();
    (count(":KUBE-"), count("-A ") + count("[") + dropping)
}
