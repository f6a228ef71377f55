//! Refuses what queries may not be or use, so that the reason is clear.

use super::{
    Refusal,
    lexer::{Piece, Placed},
    system_names::{is_catalog, is_forbidden_function, is_forbidden_schema, is_forbidden_type},
};

/// The deepest that parentheses may be nested.
const MAX_DEPTH: usize = 250;

/// Checks a query's pieces; returns where its last one ends, trailing semicolons left out.
pub(super) fn check(sql: &str, pieces: &[Placed]) -> Result<usize, Refusal> {
    let is_end = |it: &&Placed| it.piece != Piece::Symbol(b';');
    let Some(last) = pieces.iter().rposition(|it| is_end(&it)) else {
        return Err(Refusal::new("the query is empty"));
    };
    let body = pieces.get(..=last).unwrap_or(pieces);
    check_beginning(sql, body)?;
    check_parentheses(body)?;
    for (index, it) in body.iter().enumerate() {
        let next = body.get(index + 1).map(|next| next.piece);
        match it.piece {
            Piece::Symbol(b';') => {
                return Err(Refusal::new("the query holds several statements; send one"));
            }
            Piece::UnicodeName => {
                return Err(Refusal::new(
                    "names with Unicode escapes (U&\"…\") are not allowed",
                ));
            }
            Piece::Word | Piece::Quoted => check_name(&name(sql, it), next)?,
            _ => {}
        }
    }
    let end = body.last().map_or(0, |it| it.end);
    // What lies behind is a semicolon, blanks or a comment.
    let next = pieces
        .get(last + 1)
        .map_or(end, |semicolon| semicolon.start);
    Ok(if pieces.len() > last + 1 {
        next
    } else {
        sql.len()
    })
}

fn check_beginning(sql: &str, body: &[Placed]) -> Result<(), Refusal> {
    let first = body.iter().find(|it| it.piece != Piece::Symbol(b'('));
    let word = first
        .filter(|it| it.piece == Piece::Word)
        .map(|it| name(sql, it));
    match word.as_deref() {
        Some("select" | "with" | "values" | "table") => Ok(()),
        Some(other) => Err(Refusal::new(format!(
            "a query is one SELECT; this one begins with \"{other}\""
        ))),
        None => Err(Refusal::new("a query is one SELECT")),
    }
}

fn check_parentheses(body: &[Placed]) -> Result<(), Refusal> {
    let mut depth = 0_usize;
    for it in body {
        match it.piece {
            Piece::Symbol(b'(') => depth += 1,
            Piece::Symbol(b')') => {
                depth = depth.checked_sub(1).ok_or_else(unbalanced)?;
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(Refusal::new("the query is nested too deeply"));
        }
    }
    if depth == 0 {
        Ok(())
    } else {
        Err(unbalanced())
    }
}

fn unbalanced() -> Refusal {
    Refusal::new("the query's parentheses do not match")
}

fn check_name(name: &str, next: Option<Piece>) -> Result<(), Refusal> {
    if next == Some(Piece::Symbol(b'(')) && is_forbidden_function(name) {
        return Err(Refusal::new(format!(
            "the function \"{name}\" is not allowed in queries"
        )));
    }
    if next == Some(Piece::Symbol(b'.')) && is_forbidden_schema(name) {
        return Err(Refusal::new(format!(
            "\"{name}\" is no schema that queries read: write the names of tables alone"
        )));
    }
    if is_forbidden_type(name) {
        return Err(Refusal::new(format!(
            "the type \"{name}\" is not allowed in queries"
        )));
    }
    if is_catalog(name) {
        return Err(Refusal::new(format!(
            "\"{name}\" is no table that queries read"
        )));
    }
    Ok(())
}

/// A name as PostgreSQL understands it: folded, or without its quotes.
fn name(sql: &str, it: &Placed) -> String {
    let text = sql.get(it.start..it.end).unwrap_or_default();
    if it.piece == Piece::Quoted {
        let inner = text
            .get(1..text.len().saturating_sub(1))
            .unwrap_or_default();
        return inner.replace("\"\"", "\"");
    }
    text.to_ascii_lowercase()
}
