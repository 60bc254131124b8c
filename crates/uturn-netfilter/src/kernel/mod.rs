//! Walks packets through one node's kernel.
//!
//! [`Kernel::new`] compiles rules and routes once. [`Kernel::walk`] then leads a packet
//! from stage to stage (`stage`): tables (`tables`, `matching`), connection tracking and
//! translation (`nat`), IPVS (`ipvs`), route look-ups (`route`, over `fib`). What rules ask
//! of sets is in `sets`. Where a rule leaves more than one way open, the walk is copied and
//! each copy goes its own way with its share.

mod compile;
mod fib;
mod incomplete_capture;
mod index;
mod ipvs;
mod matching;
mod nat;
mod nft;
mod partial_matches;
mod route;
mod sets;
mod stages;
mod step_log;
mod unknown_condition;
mod walk;
mod xtables;

use uturn_model::{Family, Text};

use self::compile::Programs;
use self::fib::Fib;
use self::ipvs::VirtualServerIndex;
use self::walk::{OpenBranches, Walk};
use crate::hash::FastMap;
use crate::ipset::Lookup;
use crate::iptables::Ruleset;
use crate::{Assumptions, Connection, End, Entry, LoadError, NodeState, Packet, Sysctls};

/// More ways than this are not followed: a walk that meets so many rules that nobody
/// models ends [`EndKind::Unsettled`](crate::EndKind::Unsettled).
const MAX_BRANCHES: usize = 4096;

/// A walk that asks more rules than this is given up likewise: chains that lead to each
/// other twice, over many levels, would keep it busy for ever.
const MAX_RULES: u32 = 2_000_000;

/// One node's kernel, ready to walk packets through.
#[derive(Debug)]
pub struct Kernel {
    state: NodeState,
    v4: Programs,
    v6: Programs,
    fib: Fib,
    sets: Lookup,
    servers: VirtualServerIndex,
    nft: nft::Rules,
    plan: stages::Plan,
    devices: FastMap<Text, DeviceSwitches>,
}

impl Kernel {
    /// Compiles a node's state. A jump to a chain that is not there, a loop of chains, a
    /// set that is not there and a target in a table where the kernel does not take it are
    /// errors, as they are for the kernel.
    pub fn new(state: NodeState) -> Result<Self, Vec<LoadError>> {
        let mut errors = Vec::new();
        let v4 = compile::programs(&state.iptables, &mut errors);
        let v6 = compile::programs(&state.ip6tables, &mut errors);
        let sets = Lookup::new(&state.sets);
        sets::check(&state, |name| sets.has(name), &mut errors);
        let nft = nft::compile(&state.nft, |table| state.is_walked(table), &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let fib = Fib::new(&state);
        let devices = state
            .interfaces
            .iter()
            .map(|one| (one.name.clone(), DeviceSwitches::of(&one.name, &state.sysctls)))
            .collect();
        let servers = VirtualServerIndex::new(&state.ipvs);
        let plan = stages::Plan::new(&nft);
        Ok(Self { state, v4, v6, fib, sets, servers, nft, plan, devices })
    }

    /// Every way that a packet can take, with its share. `known` is what connection
    /// tracking remembers from before; a packet of such a connection meets no rule of the
    /// table `nat`.
    pub fn walk(&self, packet: &Packet, entry: &Entry, known: &[Connection]) -> Vec<End> {
        self.walk_assuming(packet, entry, known, &Assumptions::default())
    }

    /// The same, where something is taken for true of rules that nobody models.
    pub fn walk_assuming(
        &self,
        packet: &Packet,
        entry: &Entry,
        known: &[Connection],
        assumed: &Assumptions,
    ) -> Vec<End> {
        let mut open: OpenBranches = vec![Box::new(Walk::new(packet, entry, assumed))];
        let mut ends = Vec::new();
        while let Some(walk) = open.pop() {
            let at_limit = ends.len() + open.len() >= MAX_BRANCHES;
            let end = stages::follow(self, walk, known, &mut open, at_limit);
            // Of itself, a list begins with more room than most walks need.
            ends.reserve_exact(if ends.is_empty() { 1 + open.len() } else { 0 });
            ends.push(end);
        }
        ends
    }

    /// What it was made from.
    pub fn state(&self) -> &NodeState {
        &self.state
    }

    fn rules(&self, family: Family) -> (&Programs, &Ruleset) {
        match family {
            Family::V4 => (&self.v4, &self.state.iptables),
            Family::V6 => (&self.v6, &self.state.ip6tables),
        }
    }

    fn switches(&self, device: &str) -> DeviceSwitches {
        let known = self.devices.get(device).copied();
        known.unwrap_or_else(|| DeviceSwitches::of(device, &self.state.sysctls))
    }
}

/// One interface's switches for IPv4.
#[derive(Clone, Copy, Debug)]
struct DeviceSwitches {
    forwards: bool,
    rp_filter: u8,
    accept_local: bool,
    route_localnet: bool,
    src_valid_mark: bool,
}

impl DeviceSwitches {
    fn of(device: &str, sysctls: &Sysctls) -> Self {
        Self {
            forwards: sysctls.forwards_from(device),
            rp_filter: sysctls.rp_filter(device),
            accept_local: sysctls.accept_local(device),
            route_localnet: sysctls.route_localnet(device),
            src_valid_mark: sysctls.src_valid_mark(device),
        }
    }
}
