//! The reasons that distinguish ways of requests.

use std::time::Duration;

use uturn_model::Mechanism;

/// Where the seconds begin, and the most that there is room for.
const LATE: u32 = 24;
const LATEST: u64 = 255;
const MECHANISMS: u32 = (1 << LATE) - 1;
const _: () = assert!(Mechanism::ALL.len() <= LATE as usize, "each mechanism has a bit");

/// Mechanisms, a bit for each, and above them how many seconds targets took that did not time
/// out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReasonSet(u32);

impl ReasonSet {
    /// These mechanisms, and no delay.
    pub fn of(mechanisms: &[Mechanism]) -> Self {
        Self(mechanisms.iter().fold(0, |all, mechanism| all | 1 << *mechanism as u32))
    }

    /// The reasons of both, and the sum of both delays.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mechanisms = (self.0 | other.0) & MECHANISMS;
        let late = (self.0 >> LATE) + (other.0 >> LATE);
        Self(mechanisms | late.min(LATEST as u32) << LATE)
    }

    /// The same reasons of a target that took so long to answer or to refuse.
    #[must_use]
    pub fn after(self, late: Duration) -> Self {
        Self(self.0 & MECHANISMS | (late.as_secs().min(LATEST) as u32) << LATE)
    }

    /// How long targets took that did not time out.
    pub fn late(self) -> Duration {
        Duration::from_secs((self.0 >> LATE).into())
    }

    /// The same reasons without the delay.
    #[must_use]
    pub fn on_time(self) -> Self {
        Self(self.0 & MECHANISMS)
    }

    /// The mechanisms, in their order.
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
