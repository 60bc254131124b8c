//! Builds a [`NodeState`] from the files captured on a node.

use std::fmt;

use uturn_model::Family;
use uturn_model::capture::{Capture, CaptureFile};

use crate::{
    NodeState, ParseError, addr, ipset, iptables, ipvs, nft, policy_rules, routes, sysctl,
};

impl NodeState {
    /// Parses every file of a capture. If nftables rules are given as text and as JSON, only the
    /// text is parsed.
    ///
    /// # Errors
    ///
    /// Returns the errors of all files, not only the first.
    pub fn from_capture(capture: &Capture) -> Result<Self, Vec<ParseError>> {
        let (mut state, mut errors) = (Self::default(), Vec::new());
        for (file, captured) in &capture.files {
            let (path, text) = (captured.path.clone(), &*captured.text);
            match file {
                CaptureFile::Iptables => {
                    put(&mut state.iptables, iptables::parse(path, text, Family::V4), &mut errors);
                }
                CaptureFile::Ip6tables => {
                    put(&mut state.ip6tables, iptables::parse(path, text, Family::V6), &mut errors);
                }
                CaptureFile::Ipset => put(&mut state.sets, ipset::parse(path, text), &mut errors),
                CaptureFile::Ipvs => put(&mut state.ipvs, ipvs::parse(path, text), &mut errors),
                CaptureFile::Addresses => {
                    put(&mut state.interfaces, addr::parse(path, text), &mut errors);
                }
                CaptureFile::Routes => {
                    put(&mut state.routes, routes::parse(path, text), &mut errors);
                }
                CaptureFile::Rules => {
                    put(&mut state.rules, policy_rules::parse(path, text), &mut errors);
                }
                CaptureFile::Sysctls => {
                    put(&mut state.sysctls, sysctl::parse(path, text), &mut errors);
                }
                // These files say more about the capture, but a walk does not follow them.
                CaptureFile::OtherIptables
                | CaptureFile::OtherIp6tables
                | CaptureFile::Manifest => {}
                // Both describe the same rules; the text is more complete.
                CaptureFile::NftJson if capture.files.contains_key(&CaptureFile::Nft) => {}
                CaptureFile::Nft | CaptureFile::NftJson => {
                    put(&mut state.nft, nft::parse(path, text), &mut errors);
                }
            }
        }
        if errors.is_empty() { Ok(state) } else { Err(errors) }
    }

    /// Returns a warning for each file that parses but states that it is incomplete: rules of the
    /// other iptables back end exist, or `nft` could not print a rule in full.
    pub fn warnings(capture: &Capture) -> Vec<ParseError> {
        let mut warnings = Vec::new();
        for (file, captured) in &capture.files {
            let path = captured.path.clone();
            match file {
                CaptureFile::Iptables | CaptureFile::Ip6tables => {
                    warnings.extend(iptables::warnings(path, &captured.text));
                }
                CaptureFile::Nft => {
                    let lacks = |family: Family| {
                        let file = match family {
                            Family::V4 => CaptureFile::Iptables,
                            Family::V6 => CaptureFile::Ip6tables,
                        };
                        (!capture.files.contains_key(&file)).then(|| file.file_name())
                    };
                    warnings.extend(nft::warnings(path, &captured.text, lacks));
                }
                _ => {}
            }
        }
        warnings
    }
}

fn put<T: fmt::Debug>(
    place: &mut T,
    read: Result<T, Vec<ParseError>>,
    errors: &mut Vec<ParseError>,
) {
    match read {
        Ok(read) => *place = read,
        Err(more) => errors.extend(more),
    }
}
