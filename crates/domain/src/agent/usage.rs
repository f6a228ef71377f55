//! Token usage.

/// Number of tokens that a model has used, as far as its provider reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the requests.
    pub input_tokens: Option<u64>,
    /// Tokens of the responses.
    pub output_tokens: Option<u64>,
    /// All tokens, which may include some that are neither.
    pub total_tokens: Option<u64>,
}

impl Usage {
    /// The usage with a missing total added up from its parts.
    #[must_use]
    pub fn with_total(self) -> Self {
        Self {
            total_tokens: self
                .total_tokens
                .or_else(|| sum(self.input_tokens, self.output_tokens)),
            ..self
        }
    }

    /// Adds the usage of another response. A number that only one of them has is stored.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (own, other) = (self.with_total(), other.with_total());
        Self {
            input_tokens: sum(own.input_tokens, other.input_tokens),
            output_tokens: sum(own.output_tokens, other.output_tokens),
            total_tokens: sum(own.total_tokens, other.total_tokens),
        }
    }
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        // An unknown number is not zero: one that is known stands alone.
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn usage(input: Option<u64>, output: Option<u64>, total: Option<u64>) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: total,
        }
    }

    #[test]
    fn usage_adds_up_and_a_missing_total_is_the_sum() {
        let first = usage(Some(10), Some(2), None);
        let second = usage(Some(20), None, Some(25));
        assert_eq!(
            Usage::default().plus(first).plus(second),
            usage(Some(30), Some(2), Some(37))
        );
        assert_eq!(Usage::default().plus(Usage::default()), Usage::default());
        let huge = usage(Some(u64::MAX), None, None);
        assert_eq!(huge.plus(huge).total_tokens, Some(u64::MAX));
    }
}
