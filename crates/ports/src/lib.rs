//! What the platform needs of the outside world, as traits.
