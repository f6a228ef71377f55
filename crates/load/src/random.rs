//! Seeded random numbers.

/// `SplitMix64`: small, fast, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; equal seeds yield equal numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.draw() % end }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn equal_seeds_yield_equal_numbers_below_the_end() {
        let (mut one, mut same, mut other) = (Random::new(1), Random::new(1), Random::new(2));
        let drawn: Vec<u64> = (0..100).map(|_| one.below(10)).collect();
        assert!(drawn.iter().all(|number| *number < 10));
        assert_eq!(drawn, (0..100).map(|_| same.below(10)).collect::<Vec<_>>());
        assert_ne!(drawn, (0..100).map(|_| other.below(10)).collect::<Vec<_>>());
    }
}
