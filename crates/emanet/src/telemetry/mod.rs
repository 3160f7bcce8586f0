//! To come.
/// Counters.
#[derive(Debug)]
pub struct Metrics;
impl Metrics {
    /// .
    pub fn event_ignored(&self) {}
    /// .
    pub fn event_buried(&self) {}
    /// .
    pub fn step_failed(&self, _: emanet_core::step::Kind, _: emanet_core::classify::Class) {}
    /// .
    pub fn step_ruled(&self, _: emanet_core::step::Kind, _: &emanet_core::step::Ruling) {}
}
