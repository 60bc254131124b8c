//! Properties of a packet or its sender that no dump states, and the values assumed for them.
//!
//! Rules test these properties against ranges. An answer given once on a branch of a walk applies
//! to the rest of that branch: if the sender's user is 1337, it is not in 0 to 999.

use std::fmt;

/// The property that a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactSubject {
    /// The user ID of the sending process.
    User,
    /// The primary group ID of the sending process.
    Group,
    /// Any group ID of the sending process, primary or supplementary.
    AnyGroup,
    /// Whether a local process sends the packet: 1 if so.
    Socket,
    /// The packet's length.
    Length,
    /// The TTL or hop limit on arrival.
    Hops,
    /// The TTL or hop limit after the node has forwarded the packet.
    HopsOnward,
    /// The DSCP that the sender set.
    Class,
    /// The TCP maximum segment size that the sender offers.
    SegmentSize,
    /// The CPU that handles the packet.
    Processor,
}

impl FactSubject {
    /// Whether the property belongs to the sending process.
    pub fn is_sender(self) -> bool {
        matches!(self, Self::User | Self::Group | Self::AnyGroup | Self::Socket)
    }
}

/// A property lies in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketFact {
    /// The property.
    pub subject: FactSubject,
    /// The first value of the range.
    pub first: u32,
    /// The last value of the range.
    pub last: u32,
}

impl PacketFact {
    /// The fact that a property has this value.
    pub fn exactly(subject: FactSubject, number: u32) -> Self {
        Self { subject, first: number, last: number }
    }

    /// The fact or its negation in words: `the sender's user is 1337`, `the sender's user is not
    /// 1337`.
    pub fn describe(self, holds: bool) -> String {
        let Self { subject, first, last } = self;
        let is = match (subject, holds) {
            (FactSubject::Socket, true) => return "a process of the node sends it".to_owned(),
            (FactSubject::Socket, false) => return "no process of the node sends it".to_owned(),
            (FactSubject::AnyGroup, true) => "the sender is in group",
            (FactSubject::AnyGroup, false) => "the sender is not in group",
            (FactSubject::User, true) => "the sender's user is",
            (FactSubject::User, false) => "the sender's user is not",
            (FactSubject::Group, true) => "the sender's group is",
            (FactSubject::Group, false) => "the sender's group is not",
            (FactSubject::Length, true) => "the packet's length is",
            (FactSubject::Length, false) => "the packet's length is not",
            (FactSubject::Hops | FactSubject::HopsOnward, true) => "the hops it has left are",
            (FactSubject::Hops | FactSubject::HopsOnward, false) => "the hops it has left are not",
            (FactSubject::Class, true) => "the packet's class is",
            (FactSubject::Class, false) => "the packet's class is not",
            (FactSubject::SegmentSize, true) => "the segment size it offers is",
            (FactSubject::SegmentSize, false) => "the segment size it offers is not",
            (FactSubject::Processor, true) => "the processor that handles it is",
            (FactSubject::Processor, false) => "the processor that handles it is not",
        };
        match (first, last) {
            _ if first == last => format!("{is} {first}"),
            (0, _) => format!("{is} at most {last}"),
            (_, u32::MAX) => format!("{is} at least {first}"),
            _ => format!("{is} one from {first} to {last}"),
        }
    }

    fn lies_in(self, other: Self) -> bool {
        other.first <= self.first && self.last <= other.last
    }
}

impl fmt::Display for PacketFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(true))
    }
}

/// The facts that a branch of a walk assumes, each true or false.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(Vec<(PacketFact, bool)>);

impl Facts {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn add(&mut self, fact: PacketFact, holds: bool) {
        self.0.push((fact, holds));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the bytes of the list of facts.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<(PacketFact, bool)>()
    }

    /// Drops all facts about a property, because a rule has changed it.
    pub(crate) fn forget(&mut self, subject: FactSubject) {
        self.0.retain(|(fact, _)| fact.subject != subject);
    }

    /// Whether a fact holds; `None` if the known facts do not decide it.
    pub(crate) fn answer(&self, asked: PacketFact) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        let socket = if asked.subject.is_sender() { self.socket() } else { Some(true) };
        if asked.subject == FactSubject::Socket || socket == Some(false) {
            return socket;
        }
        if asked.subject == FactSubject::AnyGroup {
            return self.any_group(asked);
        }
        let possible = self.possible(asked.subject);
        let within = |(first, last): &(u32, u32)| asked.first <= *first && *last <= asked.last;
        let outside = |(first, last): &(u32, u32)| *last < asked.first || asked.last < *first;
        match () {
            () if possible.iter().all(outside) => Some(false),
            () if socket == Some(true) && possible.iter().all(within) => Some(true),
            () => None,
        }
    }

    /// Whether a process sends the packet: stated directly, or implied by a known user or group.
    fn socket(&self) -> Option<bool> {
        let stated = self.0.iter().find(|(fact, _)| fact.subject == FactSubject::Socket);
        let has_sender = self.0.iter().any(|(fact, holds)| *holds && fact.subject.is_sender());
        stated.map(|(_, holds)| *holds).or(has_sender.then_some(true))
    }

    fn any_group(&self, asked: PacketFact) -> Option<bool> {
        let groups = self
            .0
            .iter()
            .filter(|(fact, _)| matches!(fact.subject, FactSubject::Group | FactSubject::AnyGroup));
        for (fact, holds) in groups {
            match holds {
                true if fact.lies_in(asked) => return Some(true),
                false if fact.subject == FactSubject::AnyGroup && asked.lies_in(*fact) => {
                    return Some(false);
                }
                _ => {}
            }
        }
        None
    }

    /// The values that are still possible, as ranges in their order.
    fn possible(&self, subject: FactSubject) -> Vec<(u32, u32)> {
        let (mut first, mut last) = (0, u32::MAX);
        let mut excluded: Vec<(u32, u32)> = Vec::new();
        for (fact, holds) in &self.0 {
            // A process that is in none of these groups does not have any of them as its primary
            // group.
            let none =
                fact.subject == FactSubject::AnyGroup && subject == FactSubject::Group && !holds;
            match holds {
                _ if fact.subject != subject && !none => {}
                true => (first, last) = (first.max(fact.first), last.min(fact.last)),
                false => excluded.push((fact.first, fact.last)),
            }
        }
        excluded.retain(|(from, to)| *to >= first && *from <= last);
        excluded.sort_unstable();
        let mut left = Vec::new();
        let mut next = (first <= last).then_some(first);
        for (from, to) in excluded.into_iter().filter(|(from, to)| from <= to) {
            let Some(at) = next else { break };
            if at < from {
                left.push((at, from - 1));
            }
            next = to.checked_add(1).map(|after| after.max(at)).filter(|at| *at <= last);
        }
        left.extend(next.map(|at| (at, last)));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(first: u32, last: u32) -> PacketFact {
        PacketFact { subject: FactSubject::User, first, last }
    }

    fn known(all: &[(PacketFact, bool)]) -> Facts {
        Facts(all.to_vec())
    }

    #[test]
    fn a_user_says_what_every_range_is() {
        let facts = known(&[(users(1337, 1337), true)]);
        assert_eq!(facts.answer(users(1000, 2000)), Some(true));
        assert_eq!(facts.answer(users(0, 999)), Some(false));
        assert_eq!(facts.answer(PacketFact::exactly(FactSubject::Socket, 1)), Some(true));
        assert_eq!(
            facts.answer(PacketFact::exactly(FactSubject::Group, 1337)),
            None,
            "a group is no user"
        );
        let other = known(&[(users(1337, 1337), false)]);
        assert_eq!(other.answer(users(1337, 1337)), Some(false));
        assert_eq!(other.answer(users(1336, 1338)), None);
        assert_eq!(other.answer(users(0, u32::MAX)), None, "no process may send it");
    }

    #[test]
    fn ranges_narrow_each_other() {
        let two = known(&[(users(5, 7), true), (users(6, 6), false)]);
        assert_eq!(two.answer(users(6, 6)), Some(false));
        assert_eq!(two.answer(users(5, 5)), None);
        let left = known(&[(users(5, 6), true), (users(6, 9), false)]);
        assert_eq!(left.answer(users(5, 5)), Some(true));
        assert_eq!(left.answer(users(0, 4)), Some(false));
    }

    #[test]
    fn what_no_process_sends_has_no_user_and_no_group() {
        let none = known(&[(PacketFact::exactly(FactSubject::Socket, 1), false)]);
        for subject in
            [FactSubject::User, FactSubject::Group, FactSubject::AnyGroup, FactSubject::Socket]
        {
            assert_eq!(none.answer(PacketFact { subject, first: 0, last: u32::MAX }), Some(false));
        }
        assert_eq!(none.answer(PacketFact::exactly(FactSubject::Length, 60)), None);
    }

    #[test]
    fn the_group_is_one_of_several() {
        let (group, any) = (
            PacketFact::exactly(FactSubject::Group, 7),
            PacketFact::exactly(FactSubject::AnyGroup, 7),
        );
        assert_eq!(known(&[(group, true)]).answer(any), Some(true));
        assert_eq!(known(&[(group, false)]).answer(any), None);
        assert_eq!(known(&[(any, false)]).answer(group), Some(false));
        let two = known(&[(any, true)]);
        assert_eq!(
            two.answer(PacketFact::exactly(FactSubject::AnyGroup, 8)),
            None,
            "it may be in both"
        );
        assert_eq!(two.answer(group), None);
    }

    #[test]
    fn what_holds_is_described_in_words() {
        assert_eq!(users(1337, 1337).describe(true), "the sender's user is 1337");
        assert_eq!(users(0, 999).describe(false), "the sender's user is not at most 999");
        assert_eq!(users(1000, 1999).to_string(), "the sender's user is one from 1000 to 1999");
    }
}
