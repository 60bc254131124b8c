//! The load balancer's data plane: listeners that terminate connections, and health checks.
//!
//! **Owns** the handling of real connections: layer 7 (HTTP/1.1 and HTTP/2, upgrades), TLS
//! termination, connections to targets and which of them are kept, retries where they are safe,
//! time limits, probes, reload and draining; the programming of the kernel, which forwards layer 4;
//! and the observation of all this: metrics, the state of targets and the access log.
//!
//! **Out of scope:** decisions. `uturn-lb` decides which target is picked, avoided and tried next,
//! when a target is alive, and which rule serves a request; the prediction uses the same code.
//!
//! **Start reading** at [`Server`], then `worker_thread` (a worker), `client` (a connection),
//! `exchange` (a request) and `upstream` (connections to targets), and for layer 4 at `l4`.
//!
//! # Caveats
//! - VIPs, the addresses of replaced sources (`uturn_lb::source`) and the source addresses of
//!   probes must be bound where the load balancer runs; for a kept source `uturn_lb::steer` has the
//!   settings that the kernel needs.
//! - TCP and UDP listeners need `nft`, the capability `CAP_NET_ADMIN` (ambient, so that `nft`
//!   inherits it) and a kernel that forwards packets. One process in a network namespace serves
//!   them. Where clients' addresses are kept, targets must answer through the load balancer.
#![cfg(target_os = "linux")]

mod access_log;
mod admin;
mod backlog;
mod by_client;
mod capability;
mod client;
mod deadline;
mod descriptors;
mod dial;
mod error;
mod exchange;
mod fields;
mod joined;
mod l4;
mod local;
mod local_error;
mod lock;
mod metrics;
mod namespace;
mod own_addresses;
mod pace;
mod pass_on;
mod peer;
mod phase;
mod prefixed;
mod probe;
mod process;
mod request_body;
mod requests;
mod server;
mod service_manager;
mod state;
mod takeover;
mod timestamp;
mod tls;
mod upstream;
mod watch;
mod worker;
mod worker_thread;

pub use admin::{Control, Form};
pub use capability::take_capabilities;
pub use descriptors::raise_file_limit;
pub use error::StartError;
pub use namespace::enter;
pub use own_addresses::own_addresses;
pub use process::{Detail, Observer};
pub use requests::{
    Answer, Changed, Refusal, Replacement, Request, Requests, Scope, Step, requests,
};
pub use server::{Options, Server, Stopper};
pub use service_manager::ServiceManager;
pub use takeover::{Offer, offer};
pub use watch::{Seen, Watch};
