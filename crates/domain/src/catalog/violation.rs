//! Constraints that stored rows would break.

use std::fmt;

/// Maximum number of characters of values that a message repeats.
const MAX_VALUES: usize = 500;

/// A constraint that a write, or a change of a definition, would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Values that must be unique occur twice.
    Repeated(ViolatedKey),
    /// A reference points at no row.
    Dangling(ViolatedKey),
    /// A column that must not be null would be null.
    Null {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Any other constraint.
    Other {
        /// The table.
        table: String,
        /// The constraint.
        constraint: String,
        /// The store's description of the row.
        detail: String,
    },
    /// A value, or all of a row, exceeds a limit of the store.
    Limit {
        /// The table, if the store names it.
        table: Option<String>,
        /// The store's description of the limit.
        limit: String,
    },
}

/// A key constraint with the values that break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolatedKey {
    /// The table.
    pub table: String,
    /// The constraint.
    pub constraint: String,
    /// Names of the columns in SQL, separated by commas.
    pub columns: String,
    /// Their values, separated by commas.
    pub values: String,
}

impl fmt::Display for ViolatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of a unique text column may have megabytes.
        let values: String = self.values.chars().take(MAX_VALUES).collect();
        write!(
            f,
            "(constraint \"{}\"): {} = {values}",
            self.constraint, self.columns
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated(key) => write!(
                f,
                "\"{}\": two rows would have the same values, which must be unique {key}",
                key.table
            ),
            Self::Dangling(key) => write!(
                f,
                "\"{}\": a reference would point at no row {key}",
                key.table
            ),
            Self::Null { table, column } => {
                write!(f, "\"{table}\": column \"{column}\" must not be null")
            }
            Self::Other {
                table,
                constraint,
                detail,
            } => {
                // It quotes values, too.
                let detail: String = detail.chars().take(MAX_VALUES).collect();
                write!(
                    f,
                    "\"{table}\": a constraint does not hold (constraint \"{constraint}\"): {detail}"
                )
            }
            Self::Limit { table, limit } => match table {
                Some(table) => write!(f, "\"{table}\": {limit}"),
                None => f.write_str(limit),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &str) -> ViolatedKey {
        ViolatedKey {
            table: "well".to_owned(),
            constraint: "well_plate_place_key".to_owned(),
            columns: "plate, place".to_owned(),
            values: values.to_owned(),
        }
    }

    #[test]
    fn a_violation_names_table_constraint_and_values() {
        assert_eq!(
            Violation::Repeated(key("p, 2")).to_string(),
            "\"well\": two rows would have the same values, which must be unique (constraint \"well_plate_place_key\"): plate, place = p, 2"
        );
        assert_eq!(
            Violation::Dangling(key("p, 2")).to_string(),
            "\"well\": a reference would point at no row (constraint \"well_plate_place_key\"): plate, place = p, 2"
        );
        let null = Violation::Null {
            table: "well".to_owned(),
            column: "plate".to_owned(),
        };
        assert_eq!(
            null.to_string(),
            "\"well\": column \"plate\" must not be null"
        );
        let other = Violation::Other {
            table: "well".to_owned(),
            constraint: "well_check".to_owned(),
            detail: "row (1)".to_owned(),
        };
        assert_eq!(
            other.to_string(),
            "\"well\": a constraint does not hold (constraint \"well_check\"): row (1)"
        );
        let limit = |table: Option<&str>| Violation::Limit {
            table: table.map(str::to_owned),
            limit: "row is too big".to_owned(),
        };
        assert_eq!(limit(Some("well")).to_string(), "\"well\": row is too big");
        assert_eq!(limit(None).to_string(), "row is too big");
    }

    #[test]
    fn long_values_are_cut() {
        let message = Violation::Repeated(key(&"é".repeat(600))).to_string();
        assert!(message.ends_with(&format!("plate, place = {}", "é".repeat(500))));
    }
}
