//! Writes a large cluster as manifests, to measure how the work of uturn grows: nodes, pods with
//! owners, Services of all kinds with their slices, Ingresses, as `kubectl get -o json` prints
//! them.
//!
//! Everything is derived from a seed, and is written as it is generated: the file may be larger
//! than memory.

mod addresses;
mod cloud;
mod draw;
mod pod;
mod writer;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use uturn_dice::Dice;

use self::draw::Draw;
use self::writer::Writer;
use crate::Outcome;
use crate::shell::Failure;

/// The size of the cluster, and the file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: u32,
    pub(crate) pods: u32,
    pub(crate) targets: u32,
    pub(crate) seed: u64,
    pub(crate) file: String,
}

impl Size {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut size =
            Self { nodes: 5000, pods: 150_000, targets: 10_000, seed: 1, file: String::new() };
        for pair in words.chunks(2) {
            let [key, value] = pair else {
                return Err(format!("{}: expected a value after it", pair[0]));
            };
            let number = || {
                let number: Result<u32, _> = value.parse();
                number.map_err(|_| format!("{key} {value}: expected a number"))
            };
            match *key {
                "--nodes" => size.nodes = number()?.clamp(1, 65_000),
                "--pods" => size.pods = number()?,
                "--targets" => size.targets = number()?,
                "--seed" => size.seed = number()?.into(),
                "-o" => (*value).clone_into(&mut size.file),
                _ => return Err(format!("gen-cluster takes no {key:?}")),
            }
        }
        if size.file.is_empty() {
            return Err("gen-cluster: expected -o FILE".to_owned());
        }
        if size.pods > size.nodes * MAX_ON_NODE {
            return Err(format!("gen-cluster: at most {MAX_ON_NODE} pods a node have addresses"));
        }
        Ok(size)
    }
}

/// The largest number of pods on a node, whose range is a /26.
const MAX_ON_NODE: u32 = 60;
pub(crate) fn run(size: &Size) -> Result<Outcome, Failure> {
    let write = || -> io::Result<u64> {
        let mut out = Writer {
            out: BufWriter::with_capacity(1 << 20, File::create(&size.file)?),
            draw: Draw(Dice::new(size.seed)),
            first: true,
            written: 0,
            on_node: vec![0; size.nodes as usize],
        };
        out.cluster(size)?;
        out.out.flush()?;
        Ok(out.written)
    };
    let written = write().map_err(|why| Failure(format!("{}: {why}", size.file)))?;
    println!("{}: {} MB", size.file, written / 1_000_000);
    Ok(Outcome::Complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let size = Size::parse(&["--nodes", "5", "--pods", "40", "-o", "x"]).unwrap();
        assert_eq!((size.nodes, size.pods, size.targets), (5, 40, 10_000));
        assert!(Size::parse(&["--nodes"]).is_err());
        assert!(Size::parse(&["--nodes", "5"]).is_err(), "no file");
        assert!(Size::parse(&["--nodes", "1", "--pods", "61", "-o", "x"]).is_err());
    }
}
