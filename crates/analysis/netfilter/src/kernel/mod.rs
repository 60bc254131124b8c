//! Walks packets through one node's kernel.
//!
//! [`Kernel::new`] compiles rules and routes once. [`Kernel::walk`] then moves a packet from
//! stage to stage (`stages`): iptables tables (`xtables`, `matching`), nftables chains (`nft`),
//! connection tracking and NAT (`nat`), IPVS (`ipvs`), route lookups (`route`, over `fib`).
//! `sets` evaluates IP sets. If more than one outcome is possible, the walk is copied, and each
//! branch continues with its share.

mod branches;
mod chain_order;
mod compile;
mod fib;
mod incomplete_capture;
mod index;
mod interface_name;
mod ipvs;
mod ipvs_state;
mod list_bytes;
mod matching;
mod merge;
mod nat;
mod nft;
mod notes;
mod partial_matches;
mod route;
mod sets;
mod source;
mod stages;
mod step_log;
mod turns;
mod unknown_condition;
mod walk;
mod walk_state;
mod xtables;

use uturn_model::{Family, Text};

pub use self::branches::Budget;
use self::compile::Programs;
use self::fib::Fib;
use self::ipvs::VirtualServerIndex;
use self::stages::Followed;
use self::walk::{OpenBranches, Walk};
use crate::hash::FastMap;
use crate::ipset::Lookup;
use crate::iptables::Ruleset;
use crate::{Assumptions, Connection, End, Entry, LoadError, NodeState, Packet, Sysctls};

/// A walk with more ends than this that only repeat the one before is followed anew, with its branches
/// merged where they meet.
const MAX_REPEATED: usize = 32;

/// One node's kernel, compiled for walks.
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
    /// Compiles a node's state.
    ///
    /// # Errors
    ///
    /// Returns every error that the kernel would report when it loads the rules: a jump to a
    /// chain that does not exist, a loop of chains, a match on a set that does not exist, a
    /// target in a table that does not allow it.
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
            .map(|interface| {
                (interface.name.clone(), DeviceSwitches::of(&interface.name, &state.sysctls))
            })
            .collect();
        let servers = VirtualServerIndex::new(&state.ipvs);
        let plan = stages::Plan::new(&nft);
        Ok(Self { state, v4, v6, fib, sets, servers, nft, plan, devices })
    }

    /// Returns every possible end of a packet, with its share. `known` lists the conntrack
    /// entries at the start; a packet that belongs to one of them does not traverse the table
    /// `nat`.
    pub fn walk(&self, packet: &Packet, entry: &Entry, known: &[Connection]) -> Vec<End> {
        self.walk_assuming(packet, entry, known, &Assumptions::default())
    }

    /// Like [`Kernel::walk`], under assumptions about rules that are not modelled.
    pub fn walk_assuming(
        &self,
        packet: &Packet,
        entry: &Entry,
        known: &[Connection],
        assumed: &Assumptions,
    ) -> Vec<End> {
        self.walk_within(packet, entry, known, assumed, &Budget::default())
    }

    /// Like [`Kernel::walk_assuming`], with no more work than is left of a budget, and than one walk may
    /// do. Where that ends it, the rest of the shares is of one end [`EndKind::Unsettled`], whose last
    /// step names the rule.
    ///
    /// [`EndKind::Unsettled`]: crate::EndKind::Unsettled
    pub fn walk_within(
        &self,
        packet: &Packet,
        entry: &Entry,
        known: &[Connection],
        assumed: &Assumptions,
        budget: &Budget,
    ) -> Vec<End> {
        let first = || Box::new(Walk::new(packet, entry, assumed));
        let mut open = OpenBranches::new(budget, false);
        let ends = self.follow_in_turn(first(), known, &mut open);
        budget.take(open.work());
        ends.unwrap_or_else(|| {
            let mut open = OpenBranches::new(budget, true);
            let ends = merge::follow(self, first(), known, &mut open);
            budget.take(open.work());
            ends
        })
    }

    /// Follows branch after branch to its end. `None` if they become so many or take so long that
    /// those which meet should be merged.
    fn follow_in_turn(
        &self,
        first: Box<Walk>,
        known: &[Connection],
        open: &mut OpenBranches,
    ) -> Option<Vec<End>> {
        let mut ends: Vec<End> = Vec::new();
        let mut repeated = 0;
        let mut next = Some(first);
        while let Some(walk) = next {
            let at_limit = open.is_full(ends.len());
            let end = match stages::follow(self, walk, known, open, at_limit) {
                Followed::Ended(walk, kind) => {
                    if !open.count_end(walk.log.len(), walk.notes.bytes_of_end()) {
                        return None;
                    }
                    if open.is_used_up() && open.splits() > 0 {
                        return None;
                    }
                    walk.end(kind)
                }
                Followed::LimitReached(mut walk, by) if open.splits() == 0 => {
                    walk.note_unknown(merge::TOO_MUCH, by);
                    merge::end_of_given_up(walk)
                }
                Followed::LimitReached(..) | Followed::Paused(_) => return None,
            };
            repeated += usize::from(ends.last().is_some_and(|last| merge::is_same(last, &end)));
            if repeated > MAX_REPEATED || open.splits_too_often() {
                return None;
            }
            // By default, a list reserves more capacity than most walks need.
            ends.reserve_exact(if ends.is_empty() { 1 + open.len() } else { 0 });
            ends.push(end);
            next = open.pop();
        }
        Some(ends)
    }

    /// The state that the kernel was compiled from.
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

/// The IPv4 parameters of one interface.
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
