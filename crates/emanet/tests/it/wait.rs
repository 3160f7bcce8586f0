//! Waiting for a condition, never for time to pass.

use std::time::{Duration, Instant};

/// Far beyond what any condition takes, a lapsed lease (30 s) included; only a failing test gets here.
const DEADLINE: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(15);

/// Looks until there is something to see; fails the test, saying what it waited for, if there never is.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Waits until it is true.
pub(crate) fn until_true(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}
