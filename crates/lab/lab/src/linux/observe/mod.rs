//! Observes a lab: records frames in every namespace, writes them to capture files, follows one
//! connection, and finds out where and why the kernel dropped its packets.

mod counter_diagnosis;
mod counters;
mod diagnosis;
mod drops;
mod follow;
mod frame_metadata;
mod kernel_state;
mod packet;
mod pcap;
mod places;
mod recorder;
mod tap;
mod trace;

pub(crate) use counters::{Counters, Grown, Growth};
pub(crate) use diagnosis::Observations;
pub(crate) use drops::{Drops, Tracer, forget};
pub(crate) use follow::{ConnectionFilter, ConnectionKind, Followed};
pub(crate) use kernel_state::KernelState;
pub(crate) use places::{lab_namespaces, places};
pub(crate) use recorder::Recorder;
pub(crate) use tap::Frame;
pub(crate) use trace::{EndedPacket, Trace};
