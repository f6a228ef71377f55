//! The rules of columns and of the order of rows.

use std::cmp::Ordering;

use serde_json::json;

use super::{super::*, catalog, plan, target};
use crate::scalar::{KeyValue, Scalar};

fn ordered(name: &str, order_by: &[&str], after: Option<Position>) -> Result<ReadPlan, String> {
    let selection = RowSelection {
        order_by: order_by.iter().map(|term| (*term).to_owned()).collect(),
        after,
        ..RowSelection::default()
    };
    ReadPlan::new(target(name), &catalog(), selection).map_err(|problems| problems.join("; "))
}

fn display(name: &str, columns: &[&str]) -> Result<String, String> {
    let selection = RowSelection {
        columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
        ..RowSelection::default()
    };
    let plan = ReadPlan::new(target(name), &catalog(), selection);
    let plan = plan.map_err(|problems| problems.join("; "))?;
    let columns = plan.columns.iter();
    let columns = columns.map(|column| format!("{}={}", column.name, column.field.sql_name));
    Ok(columns.collect::<Vec<_>>().join(" "))
}

#[test]
fn columns_are_shown_in_the_order_in_which_they_are_named() {
    let read = display("part", &["size", "whole", "whole_id", "created_at", "id"]);
    let expected = "size=size whole=whole_id whole_id=whole_id created_at=created_at id=id";
    assert_eq!(read.as_deref(), Ok(expected));
    assert_eq!(display("points", &["od"]).as_deref(), Ok("od=od"));
    assert_eq!(
        display("job", &["name", "id"]).as_deref(),
        Ok("name=name id=id")
    );
}

#[test]
fn all_columns_are_shown_unless_some_are_named() {
    let all = |name| {
        let plan = plan(name, &json!({})).unwrap();
        let names = plan.columns.into_iter().map(|column| column.name);
        names.collect::<Vec<_>>().join(" ")
    };
    let system = "created_at updated_at created_by_execution_id updated_by_execution_id";
    assert_eq!(all("part"), format!("id whole experiment size {system}"));
    assert_eq!(all("points"), "part od");
    assert_eq!(all("organizationmember"), "id email name");
}

#[test]
fn every_unknown_or_repeated_column_is_reported() {
    assert_eq!(
        display("part", &["none", "size", "size", "experiment__name"]).unwrap_err(),
        "columns \"none\": \"part\" has no such column; columns \"size\": named twice; \
         columns \"experiment__name\": \"part\" has no such column"
    );
    // Points have no columns of the server's.
    assert!(display("points", &["created_at"]).is_err());
    assert_eq!(
        ordered("every", &["-none", "json", "size", "-date", "date"], None).unwrap_err(),
        "order_by \"-none\": \"every\" has no such column; order_by \"json\": a json column has no order; \
         order_by \"size\": \"every\" has no such column; order_by \"date\": named twice"
    );
}

#[test]
fn a_cursor_belongs_to_one_order_of_the_rows() {
    let at = |terms: &[(&str, Option<Scalar>)]| Position {
        ordered: terms
            .iter()
            .map(|(term, value)| OrderedValue {
                term: (*term).to_owned(),
                value: value.clone(),
            })
            .collect(),
        row: RowPosition::Key(KeyValue::Text("a".to_owned())),
    };
    let one = Some(Scalar::Integer(1));
    let fits = |order: &[&str], position: Position| ordered("part", order, Some(position)).is_ok();
    assert!(fits(&["-size"], at(&[("-size", one.clone())])));
    assert!(fits(&["-size"], at(&[("-size", None)])));
    assert!(fits(
        &["whole"],
        at(&[("whole", Some(Scalar::Text("b".to_owned())))])
    ));
    assert!(
        !fits(&["size"], at(&[("-size", one.clone())])),
        "another direction"
    );
    assert!(
        !fits(&["-size"], at(&[("-size", Some(Scalar::Float(1.0)))])),
        "another type"
    );
    assert!(
        !fits(&["-size", "id"], at(&[("-size", one.clone())])),
        "a longer order"
    );
    assert!(!fits(&[], at(&[("-size", one)])), "no order");
    assert!(!fits(&["-size"], at(&[])), "a cursor without order");
}

#[test]
fn null_is_greater_than_every_value_and_long_texts_compare_by_their_beginning() {
    let plan = ordered("every", &["integer", "text", "id"], None).unwrap();
    let [integer, text, id] = plan.order.as_slice() else {
        panic!("three terms");
    };
    assert_eq!((integer.is_key, id.is_key), (false, true));
    let (one, two) = (Scalar::Integer(1), Scalar::Integer(2));
    let compare = |term: &OrderTerm, left: Option<&Scalar>, right: Option<&Scalar>| {
        term.compare(&term.place(left), &term.place(right))
    };
    let descending = OrderTerm {
        descending: true,
        ..integer.clone()
    };
    for (left, right, expected) in [
        (Some(&one), Some(&two), Ordering::Less),
        (Some(&two), None, Ordering::Less),
        (None, None, Ordering::Equal),
    ] {
        assert_eq!(compare(integer, left, right), expected);
        assert_eq!(compare(&descending, left, right), expected.reverse());
    }
    let long = |end: &str| Scalar::Text("ü".repeat(ORDERED_CHARACTERS) + end);
    assert_eq!(
        compare(text, Some(&long("a")), Some(&long("b"))),
        Ordering::Equal
    );
    let short = Scalar::Text("Z".to_owned());
    assert_eq!(compare(text, Some(&short), Some(&long(""))), Ordering::Less);
}
