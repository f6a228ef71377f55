//! The main job as a lab's script does it, over HTTP.

mod client;
pub mod gen5;
mod growth;
mod platform;
mod report;
mod steps;
mod story;
mod writes;

pub(crate) use story::tell;

/// The shipped export: simulated growth curves in the Gen5 kinetic layout. Its header states the
/// formula that made it.
pub const SIMULATED: &str = include_str!("../../demo/simulated_growth_curves.txt");
/// Its file's name.
pub const SIMULATED_NAME: &str = "simulated_growth_curves.txt";
