//! Capture files in the classic pcap format, with nanoseconds.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The magic number of pcap files with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;

/// The link type of frames with an Ethernet header.
const ETHERNET: u32 = 1;

/// The longest frame that is kept whole.
pub(super) const LONGEST: u32 = 0x4_0000;

/// A folder with a file for each link.
#[derive(Debug)]
pub(super) struct Captures {
    folder: PathBuf,
    files: HashMap<String, BufWriter<File>>,
}

impl Captures {
    pub(super) fn new(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, files: HashMap::new() })
    }

    /// Adds a frame to the file of its link.
    pub(super) fn add(&mut self, link: &str, at: Duration, bytes: &[u8]) -> io::Result<()> {
        let file = match self.files.get_mut(link) {
            Some(file) => file,
            None => {
                let file = File::create(self.folder.join(format!("{link}.pcap")))?;
                let mut file = BufWriter::new(file);
                file.write_all(&header())?;
                self.files.entry(link.to_owned()).or_insert(file)
            }
        };
        file.write_all(&record(at, bytes))?;
        file.write_all(bytes)
    }

    /// Flushes all files.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.files.values_mut().try_for_each(Write::flush)
    }
}

fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend(4_u16.to_ne_bytes());
    for word in [0, 0, LONGEST, ETHERNET] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

fn record(at: Duration, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u32;
    // The format has 32 bits for the seconds.
    let words = [at.as_secs() as u32, at.subsec_nanos(), length, length];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
