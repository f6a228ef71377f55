//! The story that `labdata demo` tells: the main job as a lab's script does it.
//!
//! **Invariants.** An HTTP client only: it knows the platform's API and no crate of the platform.
//! It prints nothing itself; the caller passes the function that shows a line.

mod client;
mod gen5;
mod growth;
mod model;
mod platform;
mod report;
mod sparkline;
mod steps;
mod story;
mod writes;

pub use steps::Say;
pub use story::tell;

/// The shipped export: simulated growth curves in the Gen5 kinetic layout. Its header states their
/// formula.
pub const SIMULATED: &str = include_str!("../assets/simulated_growth_curves.txt");
/// File name of [`SIMULATED`].
pub const SIMULATED_NAME: &str = "simulated_growth_curves.txt";
