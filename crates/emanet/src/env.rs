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
        Self::new(Arc::new(SystemClock), Arc::new(SystemRandom::default()))
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

/// The operating system's random source. Ids and the like, drawn several times for each request, come from a stock that is drawn
/// in one call; every byte is given out once, and wiped. Keys are larger and drawn for themselves.
#[derive(Default)]
struct SystemRandom(Mutex<Stock>);

/// Random bytes not given out yet: the last `left` ones.
struct Stock {
    bytes: [u8; Self::SIZE],
    left: usize,
}

impl Stock {
    const SIZE: usize = 2_048;
    /// The largest draw that is served from it.
    const DRAW_MAX: usize = 16;

    fn fill(&mut self, buffer: &mut [u8]) {
        if self.left < buffer.len() {
            draw(&mut self.bytes);
            self.left = Self::SIZE;
        }
        let first = Self::SIZE - self.left;
        let given = &mut self.bytes[first..first + buffer.len()];
        buffer.copy_from_slice(given);
        given.fill(0);
        self.left -= buffer.len();
    }
}

impl Default for Stock {
    fn default() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            left: 0,
        }
    }
}

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > Stock::DRAW_MAX {
            return draw(buffer);
        }
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(buffer);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that draws random numbers"
)]
fn draw(buffer: &mut [u8]) {
    getrandom::fill(buffer)
        .expect("the operating system's random source works; without it nothing here is safe");
}

impl Debug for SystemRandom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SystemRandom")
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_draw_is_given_out_twice_or_kept() {
        let random = SystemRandom::default();
        let mut seen = HashSet::new();
        for _ in 0..1_000 {
            let mut id = [0; 10];
            random.fill(&mut id);
            assert!(seen.insert(id));
            let stock = random.0.lock().unwrap();
            let given_out = &stock.bytes[..Stock::SIZE - stock.left];
            assert!(given_out.iter().all(|byte| *byte == 0));
        }
    }
}
