//! Benchmarks: `bench/run [--quick] [NAME…]` prints one JSON line per figure, `{"name","value","unit","baseline","ratio"}`, each
//! ratio against a baseline measured in the same run on the same machine. Speed is measured here and asserted nowhere.

mod bare;
mod engine;
mod intake;
mod latency;
mod load;
mod memory;
mod server;

use std::process::ExitCode;

/// How much work a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds: does it work, is the order of magnitude right.
    Quick,
    /// Minutes: figures to write down.
    Full,
}

impl Size {
    fn pick(self, quick: usize, full: usize) -> usize {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// One figure.
#[derive(Debug)]
pub struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    baseline: Option<f64>,
}

impl Figure {
    fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            name,
            value,
            unit,
            baseline: None,
        }
    }

    fn against(self, baseline: f64) -> Self {
        Self {
            baseline: Some(baseline),
            ..self
        }
    }

    #[expect(clippy::print_stdout, reason = "figures are what this program prints")]
    fn print(&self) {
        let ratio = self.baseline.filter(|b| *b > 0.0).map(|b| self.value / b);
        let line = serde_json::json!({
            "name": self.name, "value": round(self.value), "unit": self.unit,
            "baseline": self.baseline.map(round), "ratio": ratio.map(round),
        });
        println!("{line}");
    }
}

fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

type Bench = fn(Size) -> Result<Vec<Figure>, Box<dyn std::error::Error>>;

const BENCHES: &[(&str, Bench)] = &[
    ("intake", intake::run),
    ("latency", latency::run),
    ("memory", memory::run),
];

fn main() -> ExitCode {
    // Cargo passes `--bench` of its own.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let size = if args.iter().any(|a| a == "--quick") {
        Size::Quick
    } else {
        Size::Full
    };
    let names: Vec<&String> = args.iter().filter(|a| !a.starts_with("--")).collect();
    if let Some(unknown) = names
        .iter()
        .find(|n| !BENCHES.iter().any(|(name, _)| *name == n.as_str()))
    {
        let known: Vec<_> = BENCHES.iter().map(|(name, _)| *name).collect();
        eprintln!("no benchmark {unknown}; there are: {}", known.join(", "));
        return ExitCode::from(2);
    }
    for (name, bench) in BENCHES
        .iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|n| n.as_str() == *name))
    {
        match bench(size) {
            Ok(figures) => figures.iter().for_each(Figure::print),
            Err(error) => {
                eprintln!("{name}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
