//! Fuzz targets: a function for each parser that asserts what the parser promises for arbitrary
//! input.
//!
//! **Owns** the [`TARGETS`] and their assertions, a small deterministic [`mutate`], which lets
//! the same functions run as ordinary tests over the seeds in `fuzz/corpus`, and [`shape`],
//! inputs of any length to check that time grows linearly (the program `uturn-growth`). `fuzz/`
//! passes the same functions to libFuzzer. [`mod@commands`] runs whole commands.
//!
//! **Out of scope:** private functions of a parser: only its public ones are called.
//!
//! **Start reading** at [`TARGETS`]. To add a parser: a function in [`words`] or a file of its
//! own, a line in [`TARGETS`], a folder of seeds, and a file in `fuzz/targets`; a test reports
//! whichever of these is missing.

pub mod bundle;
pub mod capture;
pub mod cloud;
#[cfg(feature = "commands")]
pub mod commands;
pub mod corefile;
pub mod corpus;
pub mod documents;
pub mod families;
mod files;
pub mod limits;
pub mod mutate;
pub mod node;
pub mod operator;
pub mod program;
pub mod proxy;
pub mod run;
pub mod shape;
mod small_node;
pub mod walk;
pub mod watched;
pub mod words;

/// A fuzz target: panics if a promise is broken; returns whether the parser accepted the input.
pub type Target = fn(&[u8]) -> bool;

/// All targets by name, which is also the name of the seed folder.
pub const TARGETS: &[(&str, Target)] = &[
    ("addr", node::addr),
    ("bundle", bundle::bundle),
    ("capture", capture::capture),
    ("client", words::client),
    ("cloud_answer", cloud::cloud_answer),
    ("cloud_authorization", cloud::cloud_authorization),
    ("cloud_credentials", cloud::cloud_credentials),
    ("cloud_inventory", cloud::cloud_inventory),
    ("cloud_query", cloud::cloud_query),
    ("cloud_requests", cloud::cloud_requests),
    ("conntrack", node::conntrack),
    ("corefile", corefile::corefile),
    ("destination", words::destination),
    ("fields", documents::fields),
    ("ipset", node::ipset),
    ("iptables", node::iptables),
    ("iptables_fragment", node::iptables_fragment),
    ("ipvs", node::ipvs),
    ("lb_config", documents::lb_config),
    ("load_balancers", documents::load_balancers),
    ("manifests", documents::manifests),
    ("names", words::names),
    ("nft", node::nft),
    ("operator_plan", operator::operator_plan),
    ("proxy_header", proxy::proxy_header),
    ("proxy_request", proxy::proxy_request),
    ("redaction", bundle::redaction),
    ("routes", node::routes),
    ("rules", node::rules),
    ("scenarios", documents::scenarios),
    ("sysctl", node::sysctl),
    ("terms", words::terms),
    ("version", words::version),
    ("walk", walk::walk),
];

/// Returns the input as text, as file readers decode it: invalid UTF-8 is replaced.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}
