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
use std::path::PathBuf;

use clap::Args;
use uturn_dice::Dice;

use self::draw::Draw;
use self::writer::Writer;
use crate::Outcome;
use crate::shell::Failure;

/// The size of the cluster, and the file to write.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Nodes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5000,
        value_parser = clap::value_parser!(u32).range(1..=MAX_NODES)
    )]
    pub(crate) nodes: u32,
    /// Pods, at most 60 for each node
    #[arg(long, value_name = "N", default_value_t = 150_000)]
    pub(crate) pods: u32,
    /// Services and Ingresses
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) targets: u32,
    /// Seed of all that varies
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// File to write
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// The largest number of nodes, which have one range of addresses.
pub(crate) const MAX_NODES: i64 = 65_000;

/// The largest number of pods on a node, whose range is a /26.
const MAX_ON_NODE: u32 = 60;

/// Writes the cluster.
pub(crate) fn run(size: &Size) -> Result<Outcome, Failure> {
    if size.pods > size.nodes * MAX_ON_NODE {
        let fault = format!("{} pods on {} nodes", size.pods, size.nodes);
        return Err(Failure(format!("{fault}: at most {MAX_ON_NODE} pods a node have addresses")));
    }
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
    let written = write().map_err(|why| Failure(format!("{}: {why}", size.file.display())))?;
    println!("{}: {} MB", size.file.display(), written / 1_000_000);
    Ok(Outcome::Complete)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        size: Size,
    }

    fn of(line: &str) -> Result<Size, clap::Error> {
        let words = ["gen-cluster"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.size)
    }

    #[test]
    fn sizes_are_read() {
        let size = of("--nodes 5 --pods 40 -o x").unwrap();
        assert_eq!((size.nodes, size.pods, size.targets, size.seed), (5, 40, 10_000, 1));
        assert!(of("--nodes 5").is_err(), "no file");
        assert!(of("--nodes 0 -o x").is_err());
        let many = of("--nodes 1 --pods 61 -o no/such/folder/x").unwrap();
        assert!(run(&many).unwrap_err().0.contains("at most 60 pods"));
    }
}
