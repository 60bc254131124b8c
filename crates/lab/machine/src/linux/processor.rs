//! The processor's extended state, which is too large for some kernels of User Mode Linux.

/// The number of bytes of the state that User Mode Linux keeps before version 6.13, which asks the
/// host for the size (HOST_FP_SIZE in `arch/x86/um/user-offsets.c`: x87, SSE, AVX, MPX, AVX-512 and
/// PKRU).
pub(super) const KEPT: u32 = 2696;

/// The first version that keeps the whole state.
const KEEPS_ALL: (u32, u32) = (6, 13);

/// The CPUID leaf of the extended state.
const XSTATE_LEAF: u32 = 0xD;

/// The flag OSXSAVE in the third register of leaf 1: the system has enabled extended states.
const OSXSAVE: u32 = 1 << 27;

/// Returns the size of the extended state in bytes if a kernel of this release keeps less.
pub(super) fn too_large(release: &str) -> Option<u32> {
    extended_state().filter(|&state| !fits(state, release))
}

fn fits(state: u32, release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let version = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        // An unknown release is taken to keep all: the boot will show whether it does.
        _ => KEEPS_ALL,
    };
    state <= KEPT || version >= KEEPS_ALL
}

/// Returns the size that the host's kernel demands when the state of a process is set: the size of
/// all components that the host has enabled.
#[cfg(target_arch = "x86_64")]
fn extended_state() -> Option<u32> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let is_there = __cpuid(0).eax >= XSTATE_LEAF && __cpuid(1).ecx & OSXSAVE != 0;
    is_there.then(|| __cpuid_count(XSTATE_LEAF, 0).ebx)
}

/// Returns `None`: User Mode Linux is for x86.
#[cfg(not(target_arch = "x86_64"))]
fn extended_state() -> Option<u32> {
    let _ = (XSTATE_LEAF, OSXSAVE);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_from_6_13_keep_any_state() {
        for (state, release, expected) in [
            (2432, "6.1.176", true),
            (KEPT, "6.1.176", true),
            (KEPT + 8, "6.1.176", false),
            (11_008, "6.12.43-um", false),
            (11_008, "5.10", false),
            (11_008, "6.13", true),
            (11_008, "7.0.1", true),
            (11_008, "unreadable", true),
        ] {
            assert_eq!(fits(state, release), expected, "{state} {release}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn this_processor_says_how_large_it_is() {
        // x87, SSE and the header are always part of the state.
        assert!(extended_state().is_none_or(|state| state >= 576));
    }
}
