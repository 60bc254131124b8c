//! Findings grouped by cause.
//!
//! A large cluster has thousands of findings and a handful of causes. Two findings have the same
//! cause if they agree in their code, their mechanism, the kind of object that has to be changed,
//! the conditions under which they hold, and the cure that is known for them ([`Cause`]). Severity,
//! outcome and share may differ within a group: they state how bad a finding is, not why it exists.
//!
//! The groups, their order and the order of their members depend only on the set of findings,
//! not on the order in which the findings come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use uturn_model::{Mechanism, ObjectKind, ObjectRef, Outcome, Text};

use crate::{Clients, Code, CureTitle, Example, Finding, Severity, Untried};

/// The maximum number of findings of which each one is shown in full.
pub const MAX_IN_FULL: usize = 40;

/// The properties that the findings of a group share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause {
    /// The code.
    pub code: Code,
    /// The mechanism, if calls were seen to fail.
    pub mechanism: Option<Mechanism>,
    /// The kind of object that has to be changed.
    pub object_kind: ObjectKind,
    /// The conditions under which the findings are true. Empty for findings that were read from
    /// manifests and not walked: their conditions name the object itself, so they always differ.
    pub conditions: Vec<Text>,
    /// The first cure of each member, by name.
    pub cure: Option<&'static str>,
}

/// Findings that have the same cause.
#[derive(Clone, Debug)]
pub struct Group {
    /// The cause of all members.
    pub cause: Cause,
    /// The severity of the worst member.
    pub severity: Severity,
    /// The indices of all members in the list that was grouped, the worst first. Never empty.
    pub members: Vec<usize>,
    /// The number of different objects of the members.
    pub objects: usize,
    /// The number of different targets that fail. A finding without targets counts as one.
    pub targets: usize,
    /// All affected clients, each once.
    pub clients: Clients,
}

/// A cure that every member of a group has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupCure {
    /// One change that cures all members.
    Once(CureTitle),
    /// The same cure for all members, made for each object separately. The title is that for the
    /// worst member.
    ForEach(CureTitle),
}

impl GroupCure {
    /// Returns the cure's title for the worst member.
    pub fn title(&self) -> &CureTitle {
        match self {
            Self::Once(title) | Self::ForEach(title) => title,
        }
    }
}

/// Groups findings by cause: each finding is in exactly one group, and no group is empty.
///
/// Groups come by severity, then by harm (the sum of failing share times clients over all
/// members), then by cause. Members come by severity, failing share, lateness (no answer is later
/// than any answer) and number of clients, then by name.
///
/// All findings must come from one scan: clients of different scans cannot be counted together.
pub fn group<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<Group> {
    let findings: Vec<&Finding> = findings.into_iter().collect();
    let mut by_cause: BTreeMap<Cause, Vec<usize>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate() {
        by_cause.entry(Cause::of(finding)).or_default().push(index);
    }
    let mut groups: Vec<(u64, Group)> = by_cause
        .into_iter()
        .map(|(cause, mut members)| {
            members.sort_by_cached_key(|index| FindingRank::of(findings[*index]));
            let harm = members.iter().map(|index| harm(findings[*index])).sum();
            (harm, Group::of(cause, members, &findings))
        })
        .collect();
    // The sort is stable: groups of equal harm stay in the order of their causes.
    groups.sort_by_key(|(harm, group)| (Reverse(group.severity), Reverse(*harm)));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Returns the findings on which cures are tried and which are drawn: all of a short list, or the
/// worst of each group of a long one. The result has indices in the list that was grouped, in the
/// order of the groups.
pub fn shown_in_full(groups: &[Group]) -> Vec<usize> {
    let count: usize = groups.iter().map(|group| group.members.len()).sum();
    let most = if count <= MAX_IN_FULL { count } else { 1 };
    groups.iter().flat_map(|group| group.members.iter().take(most).copied()).collect()
}

impl Cause {
    /// Returns the cause of a finding.
    pub fn of(finding: &Finding) -> Self {
        let is_walked = !matches!(finding.example, Example::Manifests);
        Self {
            code: finding.code,
            mechanism: finding.mechanism,
            object_kind: finding.subject.kind,
            conditions: if is_walked { finding.conditions.clone() } else { Vec::new() },
            cure: finding.cures.first().map(|cure| cure.name),
        }
    }
}

impl Group {
    fn of(cause: Cause, members: Vec<usize>, findings: &[&Finding]) -> Self {
        let all = || members.iter().map(|index| findings[*index]);
        let objects: HashSet<&ObjectRef> = all().map(|finding| &finding.subject).collect();
        let targets: HashSet<(&ObjectRef, &str)> = all().flat_map(targets_of).collect();
        Self {
            cause,
            severity: all().map(|finding| finding.severity).max().unwrap_or(Severity::Info),
            objects: objects.len(),
            targets: targets.len(),
            clients: Clients::union(all().map(|finding| &finding.clients)),
            members,
        }
    }

    /// Returns the index of the worst member.
    pub fn worst(&self) -> usize {
        self.members[0]
    }

    /// Returns the least intrusive cure that all members have. One change for all members is
    /// preferred to one change for each. Returns `None` if there is no such cure.
    ///
    /// `findings` is the list that was grouped; cures may have been added to its findings since.
    pub fn cure(&self, findings: &[Finding]) -> Option<GroupCure> {
        let of = |index: &usize| &findings[*index].cures;
        let (worst, others) = self.members.split_first()?;
        let in_all = |is_same: &dyn Fn(&CureTitle) -> bool| {
            others.iter().all(|index| of(index).iter().any(is_same))
        };
        let once = of(worst).iter().find(|cure| in_all(&|other| other == *cure));
        let each = || of(worst).iter().find(|cure| in_all(&|other| other.name == cure.name));
        once.cloned().map(GroupCure::Once).or_else(|| each().cloned().map(GroupCure::ForEach))
    }

    /// Returns the untried cures of the first member that has any; `None` if all cures were tried
    /// on all members. `findings` is the list that was grouped.
    pub fn untried<'f>(&self, findings: &'f [Finding]) -> Option<&'f Untried> {
        self.members.iter().find_map(|index| findings[*index].untried.as_ref())
    }
}

/// Iterates over the targets of a finding, or returns the object itself if it has none.
fn targets_of(finding: &Finding) -> impl Iterator<Item = (&ObjectRef, &str)> {
    let itself = finding.targets.is_empty().then_some("");
    let named = finding.targets.iter().map(String::as_str);
    named.chain(itself).map(|target| (&finding.subject, target))
}

/// The sort key of findings, the worst first. `identity` makes the order total.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FindingRank {
    severity: Reverse<Severity>,
    share: Reverse<u64>,
    lateness: Reverse<(bool, Duration)>,
    clients: Reverse<usize>,
    identity: (Code, ObjectRef, Vec<String>, Vec<Text>, Outcome, Vec<&'static str>),
}

impl FindingRank {
    fn of(finding: &Finding) -> Self {
        let (outcome, subject) = (finding.outcome, finding.subject.clone());
        let after = outcome.after().unwrap_or(Duration::MAX);
        Self {
            severity: Reverse(finding.severity),
            share: Reverse(finding.share_failing.rounded()),
            lateness: Reverse((!outcome.is_answered(), after)),
            clients: Reverse(finding.clients.len()),
            identity: (
                finding.code,
                subject,
                finding.targets.clone(),
                finding.conditions.clone(),
                outcome,
                finding.clients.others().to_vec(),
            ),
        }
    }
}

/// Returns the failing share times the number of clients. The result is an integer, so that sums do
/// not depend on the order of their parts.
fn harm(finding: &Finding) -> u64 {
    finding.share_failing.rounded() * finding.clients.len() as u64
}

#[cfg(test)]
#[path = "group/tests.rs"]
mod tests;
