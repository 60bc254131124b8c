//! Eyes on a lab: packet sockets in every namespace, what they see as files or as the story
//! of one connection, and where the kernel dropped what.

mod counters;
mod drops;
mod follow;
mod inside;
mod packet;
mod pcap;
mod raw;
mod recorder;
mod tap;
mod why;

pub(crate) use counters::{Counters, Grown};
pub(crate) use drops::{Drops, Tracer, forget};
pub(crate) use follow::{Followed, Story};
pub(crate) use inside::{insides, places};
pub(crate) use recorder::Recorder;
pub(crate) use why::Scene;
