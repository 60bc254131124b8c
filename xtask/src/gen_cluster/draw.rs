//! Random numbers of a cluster.

use uturn_dice::Dice;

/// Random numbers of a cluster.
pub(super) struct Draw(pub(super) Dice);

impl Draw {
    /// Returns a number below `limit`, or 0.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        self.0.below(limit.max(1) as usize) as u32
    }

    /// Returns `true` with this probability in percent.
    pub(super) fn percent(&mut self, share: u32) -> bool {
        self.below(100) < share
    }

    /// Draws the replicas of a workload: usually few, sometimes many.
    pub(super) fn replicas(&mut self) -> u32 {
        match self.below(100) {
            0..50 => 1 + self.below(4),
            50..85 => 3 + self.below(12),
            85..98 => 10 + self.below(40),
            _ => 50 + self.below(200),
        }
    }
}
