//! One function a parser: whatever bytes it is given, the parser keeps its promises.
//!
//! **Owns** the [`TARGETS`] and what each of them asserts, a small deterministic [`mutate`]
//! so that the same functions run as ordinary tests over the seeds in `fuzz/corpus`, and
//! [`shape`], inputs of any length to see that time grows with it (the program
//! `uturn-growth`). `fuzz/` hands the same functions to libFuzzer.
//!
//! **Refuses** to know more of a parser than its public functions.
//!
//! **Start reading** at [`TARGETS`]. To add a parser: a function in [`words`] or a file of
//! its own, a line in [`TARGETS`], a folder of seeds, and a file in `fuzz/targets`; a test
//! names whichever of these is missing.

pub mod capture;
pub mod corefile;
pub mod corpus;
pub mod documents;
pub mod http;
pub mod mutate;
pub mod node;
pub mod shape;
pub mod walk;
pub mod words;

/// A parser with its promises: panics when one is broken, says whether it took the input.
pub type Target = fn(&[u8]) -> bool;

/// Every target by name; the name is also its folder of seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("addr", node::addr),
    ("capture", capture::capture),
    ("client", words::client),
    ("conntrack", node::conntrack),
    ("corefile", corefile::corefile),
    ("destination", words::destination),
    ("fields", documents::fields),
    ("http", http::http),
    ("ipset", node::ipset),
    ("iptables", node::iptables),
    ("iptables_fragment", node::iptables_fragment),
    ("ipvs", node::ipvs),
    ("load_balancers", documents::load_balancers),
    ("manifests", documents::manifests),
    ("names", words::names),
    ("nft", node::nft),
    ("routes", node::routes),
    ("rules", node::rules),
    ("scenarios", documents::scenarios),
    ("sysctl", node::sysctl),
    ("terms", words::terms),
    ("version", words::version),
    ("walk", walk::walk),
];

/// Bytes as text, as a reader of files would see them: all of the input is tried, also
/// around what is no UTF-8.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}
