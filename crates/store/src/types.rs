//! What goes into the store and comes out of it, by topic.

mod dead_letter;
mod event;
mod inbox;
mod installation;
mod look;
mod queue;
mod record;
mod sandbox;
mod target;

pub use dead_letter::*;
pub use event::*;
pub use inbox::*;
pub use installation::*;
pub use look::*;
pub use queue::*;
pub use record::*;
pub use sandbox::*;
pub use target::*;
