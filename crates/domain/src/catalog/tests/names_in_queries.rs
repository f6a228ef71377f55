//! Names that definitions accept are names that queries read.

use proptest::prelude::*;

use super::*;
use crate::{catalog::sql_name, data::query::QueryText};

#[test]
fn a_name_that_queries_refuse_is_refused_in_a_definition() {
    for name in [
        "pg_class",
        "pg_type",
        "pg_settings",
        "pg_user",
        "pg_views",
        "pg_stat_runs",
        "regclass",
        "regtype",
    ] {
        for definition in [
            curated(name, vec![]),
            curated("plate", vec![column(name, DataType::String)]),
        ] {
            let problems = definition.resolve(&lab()).unwrap_err();
            assert!(problems[0].contains("PostgreSQL's own"), "{problems:?}");
            assert_eq!(problems.len(), 1, "{problems:?}");
        }
    }
    // Picograms, and a reference, which is `pg_type_id` in SQL.
    for definition in [
        curated("pg_per_well", vec![column("pg_ml", DataType::Float)]),
        curated(
            "plate",
            vec![reference("pg_type", "experiment", DataType::String)],
        ),
    ] {
        assert!(definition.resolve(&lab()).is_ok());
    }
}

proptest! {
    #[test]
    fn every_name_that_is_accepted_can_be_selected_from(
        name in "(pg_(stat|statio|stats|class|type|user|views|settings|roles|tables|[a-z]{1,6})\
                 |reg(class|type|proc|role|procedure|operator|[a-z])|user|current_date|select|[a-z])\
                 [a-z_]{0,3}",
    ) {
        let sql = sql_name(&name);
        for (definition, query) in [
            (curated(&name, vec![]), format!("SELECT id FROM \"{sql}\"")),
            (
                curated("plate", vec![column(&name, DataType::String)]),
                format!("SELECT \"{sql}\" FROM plate"),
            ),
        ] {
            if definition.resolve(&lab()).is_ok() {
                prop_assert!(QueryText::parse(&query).is_ok(), "{}", query);
            }
        }
    }
}
