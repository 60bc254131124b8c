//! Decides where a case is measured: on this kernel, or in the small machine.

use std::fs;

use uturn_cli::Failure;
use uturn_lab::{KernelPart, Unavailable};
use uturn_machine::Machine;
use uturn_model::ProxyMode;
use uturn_snapshot::scenario::Case;

/// The kernels that are available.
pub(super) struct Kernels {
    /// The reason why no case is measured on this kernel. Empty if the user chose the machine.
    why_not_native: Option<String>,
    /// Features that cases need and this kernel lacks.
    lacks: Vec<KernelPart>,
    /// The machine, or the reason why there is none. It is looked for when it is first needed.
    machine: Option<Result<Machine, uturn_machine::Unavailable>>,
}

/// Whether a case is measured on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Native {
    Yes,
    No,
}

impl Kernels {
    /// Finds the available kernels, or only the machine if `machine_only` is set.
    pub(super) fn find(machine_only: bool) -> Result<Self, Failure> {
        let mut kernels = Self { why_not_native: None, lacks: Vec::new(), machine: None };
        if machine_only {
            kernels.why_not_native = Some(String::new());
            return match kernels.find_machine() {
                Ok(_) => Ok(kernels),
                Err(why) => Err(Failure::unavailable(why.to_string())),
            };
        }
        let Err(why) = uturn_lab::available() else { return Ok(kernels) };
        kernels.why_not_native = Some(why.to_string());
        match kernels.find_machine() {
            Ok(_) => Ok(kernels),
            // One reason is enough if both are the same.
            Err(_) if why == Unavailable::NotLinux => Err(Failure::unavailable(why.to_string())),
            Err(no_machine) => Err(Failure::unavailable(format!("{why}; {no_machine}"))),
        }
    }

    /// Returns whether a case is measured on this kernel.
    pub(super) fn native(&self, case: &Case) -> Native {
        let lacks = needs(case).any(|part| self.lacks.contains(&part));
        if lacks || self.why_not_native.is_some() { Native::No } else { Native::Yes }
    }

    /// Records that this kernel lacks a feature.
    pub(super) fn lacks(&mut self, part: KernelPart) {
        self.lacks.push(part);
    }

    /// Checks whether the machine can measure a case. The error says why not.
    pub(super) fn machine(&mut self, case: &Case) -> Result<(), String> {
        let here = self.why_not_native.clone().filter(|why| !why.is_empty());
        if !in_any_machine(case) {
            let machine = "the small machine's kernel has no nf_tables for IP";
            return Err(match here {
                Some(why) => format!("{why}; {machine}"),
                None if self.why_not_native.is_some() => {
                    format!("{machine}: run it without --vm")
                }
                None => Unavailable::Part(KernelPart::NfTables).to_string(),
            });
        }
        let lacks = needs(case).find(|part| self.lacks.contains(part));
        let lacks = lacks.map(|part| Unavailable::Part(part).to_string());
        match self.find_machine() {
            Ok(_) => Ok(()),
            Err(why) => Err(match here.or(lacks) {
                Some(here) => format!("{here}; {why}"),
                None => why.to_string(),
            }),
        }
    }

    /// Returns the machine, if it was looked for and found.
    pub(super) fn found(&self) -> Option<&Machine> {
        self.machine.as_ref()?.as_ref().ok()
    }

    fn find_machine(&mut self) -> Result<&Machine, uturn_machine::Unavailable> {
        self.machine.get_or_insert_with(Machine::find).as_ref().map_err(Clone::clone)
    }
}

/// Returns the name in reports of this kernel: `kernel 6.18 here`.
pub(super) fn here() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("kernel {} here", short(release.trim()))
}

/// Returns the name in reports of the machine's kernel: `User Mode Linux 6.1`.
pub(super) fn in_machine(machine: &Machine) -> String {
    let kernel = machine.kernel();
    let (name, release) = kernel.rsplit_once(' ').unwrap_or((&kernel, ""));
    format!("{name} {}", short(release))
}

/// Returns the first two numbers of a release.
fn short(release: &str) -> &str {
    let is_end = |(_, c): &(usize, char)| !c.is_ascii_digit();
    let mut ends = release.char_indices().filter(is_end).map(|(at, _)| at);
    &release[..ends.nth(1).unwrap_or(release.len())]
}

/// Returns whether the machine's kernel can run a case.
pub(super) fn in_any_machine(case: &Case) -> bool {
    !needs(case).any(|part| part == KernelPart::NfTables)
}

/// Returns the kernel features that a case needs.
fn needs(case: &Case) -> impl Iterator<Item = KernelPart> {
    let mode = match case.cluster.proxy.mode.value {
        ProxyMode::Ipvs => Some(KernelPart::IpVs),
        ProxyMode::Nftables => Some(KernelPart::NfTables),
        ProxyMode::Iptables => None,
    };
    let is_wrapped = case.cluster.network.has_tunnels();
    mode.into_iter().chain(is_wrapped.then_some(KernelPart::Vxlan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_shortened() {
        for (release, text) in [
            ("6.18.5-1-amd64", "6.18"),
            ("6.1.176", "6.1"),
            ("7", "7"),
            ("6.1-rc2", "6.1"),
            ("", ""),
        ] {
            assert_eq!(short(release), text);
        }
    }
}
