//! The reasons that distinguish ways of requests.

use std::time::Duration;

use uturn_model::Mechanism;

/// The lowest bit of the seconds, and their largest value.
const LATE: u32 = 32;
const LATEST: u64 = 255;
const MECHANISMS: u64 = (1 << LATE) - 1;
const _: () = assert!(Mechanism::ALL.len() <= LATE as usize, "each mechanism has a bit");

/// A set of mechanisms, one bit each, and above them the number of seconds that targets took which
/// did not time out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReasonSet(u64);

impl ReasonSet {
    /// Makes a set of mechanisms without a delay.
    pub fn of(mechanisms: &[Mechanism]) -> Self {
        Self(mechanisms.iter().fold(0, |all, mechanism| all | 1 << *mechanism as u32))
    }

    /// Returns the reasons of both sets, and the sum of both delays.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mechanisms = (self.0 | other.0) & MECHANISMS;
        let late = (self.0 >> LATE) + (other.0 >> LATE);
        Self(mechanisms | late.min(LATEST) << LATE)
    }

    /// Returns the same reasons with the time that a target took to answer or to refuse.
    #[must_use]
    pub fn after(self, late: Duration) -> Self {
        Self(self.0 & MECHANISMS | late.as_secs().min(LATEST) << LATE)
    }

    /// Returns the time that targets took which did not time out.
    pub fn late(self) -> Duration {
        Duration::from_secs(self.0 >> LATE)
    }

    /// Returns the same reasons without the delay.
    #[must_use]
    pub fn on_time(self) -> Self {
        Self(self.0 & MECHANISMS)
    }

    /// Returns the mechanisms, in their order.
    pub fn mechanisms(self) -> Vec<Mechanism> {
        if self.on_time() == Self::default() {
            return Vec::new();
        }
        let has = |mechanism: &Mechanism| self.0 & (1 << *mechanism as u32) != 0;
        let mut all: Vec<Mechanism> = Mechanism::ALL.into_iter().filter(has).collect();
        all.sort_unstable();
        all
    }
}
