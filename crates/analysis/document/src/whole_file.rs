//! Reads files whole, up to a limit: the named file may not be what the user thinks, and some
//! devices have no end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The maximum size of a file with settings, a certificate or a credential, in bytes.
pub const SETTINGS: u64 = 16 << 20;

/// Returns the bytes of a file that has at most `most` of them.
///
/// # Errors
/// Returns an error if the file cannot be read or has more bytes.
pub fn bytes_of(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        Err(io::Error::other(format!("it has more than {} MiB", most >> 20)))
    } else {
        Ok(bytes)
    }
}

/// Returns the text of a file that has at most `most` bytes.
///
/// # Errors
/// Returns an error if the file cannot be read, has more bytes or is not UTF-8.
pub fn text_of(file: &Path, most: u64) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(bytes_of(file, most)?).map_err(not_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_more_is_refused() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let size = std::fs::metadata(file).unwrap().len();
        assert_eq!(text_of(file, size).unwrap().len() as u64, size);
        assert!(text_of(file, size - 1).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_end_is_refused() {
        let why = bytes_of(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert_eq!(why, "it has more than 1 MiB");
    }
}
