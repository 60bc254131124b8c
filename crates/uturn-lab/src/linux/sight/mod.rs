//! Eyes on a lab: packet sockets in every namespace, what they see as files or as the story
//! of one connection, and where the kernel dropped what.

mod counted;
mod counters;
mod drops;
mod follow;
mod ground;
mod inside;
mod packet;
mod pcap;
mod raw;
mod recorder;
mod tap;
mod trace;
mod why;

pub(crate) use counters::{Counters, Grown, Growth};
pub(crate) use drops::{Drops, Tracer, forget};
pub(crate) use follow::{Followed, Kind, Story};
pub(crate) use ground::Ground;
pub(crate) use inside::{insides, places};
pub(crate) use recorder::Recorder;
pub(crate) use tap::Frame;
pub(crate) use trace::{Ended, Trace};
pub(crate) use why::Scene;
