//! Faults that tests inject. Without the feature `conformance` there are none, and nothing of this is compiled in.

use crate::Result;

#[cfg(feature = "conformance")]
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Which faults are still to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    #[cfg(feature = "conformance")]
    commits: Arc<AtomicU32>,
}

impl Faults {
    /// Lets the next commits fail.
    #[cfg(feature = "conformance")]
    pub(super) fn fail_commits(&self, n: u32) {
        self.commits.store(n, Ordering::SeqCst);
    }

    /// Fails if the next commit is to.
    #[cfg_attr(
        not(feature = "conformance"),
        expect(
            clippy::unused_self,
            reason = "without test faults there is nothing to look at"
        )
    )]
    pub(super) fn before_commit(&self) -> Result<()> {
        #[cfg(feature = "conformance")]
        if self
            .commits
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
            .is_ok()
        {
            return Err(crate::Error::Unavailable(
                "the disk refused (a test)".into(),
            ));
        }
        Ok(())
    }
}
