//! Checks that a program for Linux is static: it loads nothing of the machine that it runs on.

/// The kind of header that names a loader.
const INTERPRETER: u32 = 3;

/// Checks that a program of 64 bits names no loader.
pub(super) fn check_static(program: &[u8]) -> Result<(), String> {
    let cut = || "the program's headers are cut off".to_owned();
    if program.get(..5) != Some(b"\x7fELF\x02") {
        return Err("not a program of 64 bits for Linux".to_owned());
    }
    let number = |at: usize, bytes: usize| {
        let bytes = program.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let table = number(32, 8).ok_or_else(cut)?;
    let (size, count) = (number(54, 2).ok_or_else(cut)?, number(56, 2).ok_or_else(cut)?);
    for index in 0..count {
        let at = index.checked_mul(size).and_then(|offset| offset.checked_add(table));
        let at = at.and_then(|at| usize::try_from(at).ok()).ok_or_else(cut)?;
        if number(at, 4).ok_or_else(cut)? == u64::from(INTERPRETER) {
            return Err("not static: it names a loader".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a program with headers of these kinds.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_loader_is_found() {
        assert_eq!(check_static(&program(&[1, 2])), Ok(()));
        assert!(check_static(&program(&[1, INTERPRETER])).unwrap_err().contains("loader"));
        assert!(check_static(b"#!/bin/sh").is_err());
        let whole = program(&[1, 1]);
        for length in 0..whole.len() - 52 {
            assert!(check_static(&whole[..length]).is_err(), "{length}");
        }
    }
}
