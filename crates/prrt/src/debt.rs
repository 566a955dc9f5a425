//! Packet debt: how many more messages have missed their deadline than the target allows, and by how much the planner
//! should therefore overstate the loss it sees. Closes the loop around estimators that err; never asks for more than a
//! bounded overstatement.

/// Share of messages that may miss their deadline.
pub(crate) const TARGET: f64 = 1e-3;
/// More debt than this does not accumulate: an outage must not be paid for long after it.
const MAX_DEBT: f64 = 3.0;

/// Integrator of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Debt {
    owed: f64,
}

impl Debt {
    /// The fate of a message is known. `helpless`: more repairs could not have been sent (the cap is reached or
    /// nothing gets through); such misses are not owed.
    pub(crate) fn on_fate(&mut self, missed: bool, helpless: bool) {
        let change = if missed { 1.0 - TARGET } else { -TARGET };
        if missed && helpless {
            return;
        }
        self.owed = (self.owed + change).clamp(0.0, MAX_DEBT);
    }

    /// Messages owed, 0 to 3.
    pub(crate) const fn owed(&self) -> f64 {
        self.owed
    }

    /// The loss to plan for where `loss` is seen.
    pub(crate) fn inflate(&self, loss: f64) -> f64 {
        (loss * (1.0 + self.owed)).min(loss.max(0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(fates: impl Iterator<Item = (bool, bool)>) -> Debt {
        let mut debt = Debt::default();
        fates.for_each(|(missed, helpless)| debt.on_fate(missed, helpless));
        debt
    }

    #[test]
    fn misses_within_the_target_leave_no_debt_and_more_of_them_do() {
        let within = after((0..100_000).map(|n| (n % 2000 == 0, false)));
        assert!(within.owed() < 1.0);
        let beyond = after((0..100_000).map(|n| (n % 200 == 0, false)));
        assert!(beyond.owed() > 2.5);
        assert!((0.15..=0.2).contains(&beyond.inflate(0.05)));
    }

    #[test]
    fn an_outage_winds_nothing_up() {
        let outage = after((0..10_000).map(|_| (true, false)));
        assert_eq!(outage.owed(), MAX_DEBT);
        let paid = after((0..14_000).map(|n| (n < 10_000, false)));
        assert!(paid.owed() < 1e-9, "{}", paid.owed());
        assert_eq!(after((0..100).map(|_| (true, true))).owed(), 0.0);
        assert_eq!(outage.inflate(0.9), 0.9);
    }
}
