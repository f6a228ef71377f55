//! Constraints that PostgreSQL reports as violated.

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use labdata_domain::catalog::{ViolatedKey, Violation};

use super::condition::Condition;

/// The constraint that a statement broke; `None` if the error is of another kind.
pub(crate) fn violation_of(error: &DieselError) -> Option<Violation> {
    let DieselError::DatabaseError(kind, information) = error else {
        return None;
    };
    let information = information.as_ref();
    let table = || information.table_name().unwrap_or("?").to_owned();
    match kind {
        DatabaseErrorKind::UniqueViolation => Some(Violation::Repeated(violated_key(information))),
        DatabaseErrorKind::ForeignKeyViolation => {
            Some(Violation::Dangling(violated_key(information)))
        }
        DatabaseErrorKind::NotNullViolation => Some(Violation::Null {
            table: table(),
            column: information.column_name().unwrap_or("?").to_owned(),
        }),
        DatabaseErrorKind::RestrictViolation
        | DatabaseErrorKind::ExclusionViolation
        | DatabaseErrorKind::CheckViolation => Some(Violation::Other {
            table: table(),
            constraint: constraint(information),
            detail: information.details().unwrap_or_default().to_owned(),
        }),
        // A limit of PostgreSQL on values that passed every check of their type, or on columns.
        _ => (Condition::of(information) == Some(Condition::Limit)).then(|| Violation::Limit {
            table: information.table_name().map(str::to_owned),
            limit: information.message().to_owned(),
        }),
    }
}

fn constraint(information: &dyn DatabaseErrorInformation) -> String {
    information.constraint_name().unwrap_or("?").to_owned()
}

fn violated_key(information: &dyn DatabaseErrorInformation) -> ViolatedKey {
    let detail = information.details().unwrap_or_default();
    // A managed server may not let the role set `lc_messages`: the detail is then in another language.
    let (columns, values) = key_of_detail(detail).unwrap_or(("key", detail));
    ViolatedKey {
        table: information.table_name().unwrap_or("?").to_owned(),
        constraint: constraint(information),
        columns: columns.to_owned(),
        values: values.to_owned(),
    }
}

/// Reads `Key (columns)=(values) …`, as PostgreSQL writes it in English; `None` for any other text.
fn key_of_detail(detail: &str) -> Option<(&str, &str)> {
    const ENDS: [&str; 4] = [
        ") already exists.",
        ") is duplicated.",
        ") is not present in table ",
        ") is still referenced from table ",
    ];
    let (columns, rest) = detail.strip_prefix("Key (")?.split_once(")=(")?;
    // The last occurrence: a value may contain the same words.
    let end = ENDS.iter().filter_map(|end| rest.rfind(end)).max()?;
    Some((columns, rest.get(..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_values_are_read_from_the_detail() {
        for (detail, key) in [
            ("Key (name)=(a) already exists.", Some(("name", "a"))),
            (
                "Key (plate, place)=(p (1), 2) is duplicated.",
                Some(("plate, place", "p (1), 2")),
            ),
            (
                "Key (sample_id)=() already exists.) is not present in table \"sample\".",
                Some(("sample_id", ") already exists.")),
            ),
            (
                "Key (id)=(s1) is still referenced from table \"measurement\".",
                Some(("id", "s1")),
            ),
            ("La clave (name)=(a) ya existe.", None),
            ("", None),
        ] {
            assert_eq!(key_of_detail(detail), key, "{detail}");
        }
    }
}
