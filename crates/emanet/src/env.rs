//! The outside world as values: the clock and the random source. The only module that reads either.

use jiff::Timestamp;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Tells the time.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Draws random numbers.
pub trait Random: Debug + Send + Sync {
    /// Fills the buffer.
    fn fill(&self, buffer: &mut [u8]);

    /// A value in 0 … 1.
    fn unit(&self) -> f64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Clock and random source, handed to everything that needs them.
#[derive(Clone, Debug)]
pub struct Env {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Env {
    /// Of given parts.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random }
    }

    /// The real clock and the operating system's random source.
    pub fn system() -> Self {
        Self::new(Arc::new(SystemClock), Arc::new(SystemRandom))
    }

    /// The real clock and a random source that repeats for the same seed (the demo).
    pub fn seeded(seed: u64) -> Self {
        Self::new(
            Arc::new(SystemClock),
            Arc::new(SeededRandom(Mutex::new(fastrand::Rng::with_seed(seed)))),
        )
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut buffer = [0; N];
        self.random.fill(&mut buffer);
        buffer
    }

    /// A value in 0 … 1.
    pub fn unit(&self) -> f64 {
        self.random.unit()
    }
}

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[derive(Debug)]
struct SystemRandom;

impl Random for SystemRandom {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that draws random numbers"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer)
            .expect("the operating system's random source works; without it nothing here is safe");
    }
}

#[derive(Debug)]
struct SeededRandom(Mutex<fastrand::Rng>);

impl Random for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(buffer);
    }
}
