//! A target for whole captures: files that refer to each other are loaded and walked.

use std::collections::BTreeMap;

use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Name, Share};
use uturn_netfilter::{Entry, Kernel, NodeState, Packet, Transport};

use crate::files::files;
use crate::text;

/// The length of the longest capture through which packets are walked: the number of branches of a
/// walk is not a property of the parsers.
const WALKED: usize = 1 << 14;

/// Loads a capture. It is parsed or refused with a reason; a parsed capture is compiled or refused
/// with a reason; a compiled one can be walked.
pub fn capture(data: &[u8]) -> bool {
    let text = text(data);
    let node = Name::new("n1").expect("a constant name");
    let state = match NodeState::from_capture(&Capture { node, files: files_of(&text) }) {
        Ok(state) => state,
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal says why");
            for error in &errors {
                assert!(error.origin.line() > 0 && !error.message.is_empty(), "{error:?}");
            }
            return false;
        }
    };
    let kernel = match Kernel::new(state) {
        Ok(kernel) => kernel,
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal says why");
            return false;
        }
    };
    if text.len() <= WALKED {
        walk(&kernel);
    }
    true
}

fn files_of(text: &str) -> BTreeMap<CaptureFile, CapturedText> {
    let named = |name: &str| CaptureFile::ALL.into_iter().find(|file| file.file_name() == name);
    let files = files(text).into_iter().filter_map(|(name, text)| {
        Some((named(name)?, CapturedText { path: name.into(), text: text.into() }))
    });
    files.collect()
}

/// Walks a pod's calls to a Service, a NodePort and a load balancer, and a call of the node, in
/// both families.
fn walk(kernel: &Kernel) {
    let from = |name: &str| Entry::Interface(name.into());
    for (src, dst, port, entry) in [
        ("10.1.1.10", "172.16.12.7", 80, from("cbr0")),
        ("10.0.0.1", "10.0.0.11", 30080, from("eth0")),
        ("0.0.0.0", "10.0.0.100", 80, Entry::Local),
        ("fd00::10", "fd00::1", 80, from("eth0")),
    ] {
        let (src, dst) = (src.parse().expect("an address"), dst.parse().expect("an address"));
        let transport = Transport::Tcp { src_port: 40000, dst_port: port, syn: true, ack: false };
        let packet = Packet { src, dst, transport, mark: 0 };
        let ends = kernel.walk(&packet, &entry, &[]);
        let shares = ends.iter().map(|end| end.share);
        assert!(Share::add_up_to_all(shares), "{} ends of {packet:?}: {ends:?}", ends.len());
    }
}
