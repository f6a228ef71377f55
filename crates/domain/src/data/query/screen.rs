//! Screening of queries: refuses forbidden statements and names with a clear reason.

use super::{
    lexer::{Token, TokenKind},
    refusal::Refusal,
    system_names::{is_catalog, is_forbidden_function, is_forbidden_schema, is_forbidden_type},
};
use crate::catalog::refuse_value;

/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 250;

/// Checks a query's tokens and returns the end of the query without trailing semicolons.
pub(super) fn check(sql: &str, tokens: &[Token]) -> Result<usize, Refusal> {
    let is_end = |it: &&Token| it.kind != TokenKind::Symbol(b';');
    let Some(last) = tokens.iter().rposition(|it| is_end(&it)) else {
        return Err(Refusal::new("the query is empty"));
    };
    let body = tokens.get(..=last).unwrap_or(tokens);
    check_beginning(sql, body)?;
    check_parentheses(body)?;
    for (index, it) in body.iter().enumerate() {
        let next = body.get(index + 1).map(|next| next.kind);
        match it.kind {
            TokenKind::Symbol(b';') => {
                return Err(Refusal::new("the query holds several statements; send one"));
            }
            // Escapes would hide forbidden names from this check.
            TokenKind::UnicodeName => {
                return Err(Refusal::new(
                    "names with Unicode escapes (U&\"…\") are not allowed",
                ));
            }
            TokenKind::Word | TokenKind::Quoted => {
                let name = name(sql, it);
                check_name(&name, next)?;
                if it.kind == TokenKind::Word && !is_label(sql, body.get(..index)) {
                    check_value(&name)?;
                }
            }
            _ => {}
        }
    }
    let end = body.last().map_or(0, |it| it.end);
    // Only semicolons, blanks and comments follow.
    let next = tokens
        .get(last + 1)
        .map_or(end, |semicolon| semicolon.start);
    Ok(if tokens.len() > last + 1 {
        next
    } else {
        sql.len()
    })
}

fn check_beginning(sql: &str, body: &[Token]) -> Result<(), Refusal> {
    // A query may begin with parentheses: `(SELECT …) UNION …`.
    let first = body.iter().find(|it| it.kind != TokenKind::Symbol(b'('));
    let word = first
        .filter(|it| it.kind == TokenKind::Word)
        .map(|it| name(sql, it));
    match word.as_deref() {
        Some("select" | "with" | "values" | "table") => Ok(()),
        Some(other) => Err(Refusal::new(format!(
            "a query is one SELECT; this one begins with \"{other}\""
        ))),
        None => Err(Refusal::new("a query is one SELECT")),
    }
}

fn check_parentheses(body: &[Token]) -> Result<(), Refusal> {
    let mut depth = 0_usize;
    for it in body {
        match it.kind {
            TokenKind::Symbol(b'(') => depth += 1,
            TokenKind::Symbol(b')') => {
                // More closing than opening ones could end a statement that encloses the query.
                depth = depth.checked_sub(1).ok_or_else(unbalanced)?;
            }
            _ => {}
        }
        // PostgreSQL's parser and planner recurse, and their stack is limited.
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

/// Returns whether a word that follows these tokens is a label: behind a dot or `as`.
fn is_label(sql: &str, before: Option<&[Token]>) -> bool {
    before
        .and_then(<[Token]>::last)
        .is_some_and(|last| match last.kind {
            TokenKind::Symbol(symbol) => symbol == b'.',
            TokenKind::Word => name(sql, last) == "as",
            _ => false,
        })
}

fn check_value(word: &str) -> Result<(), Refusal> {
    match refuse_value(word) {
        Some(reason) => Err(Refusal::new(reason)),
        None => Ok(()),
    }
}

/// Returns whether queries refuse a name wherever it stands, so that they could not read a table or column of it.
pub(crate) fn is_refused_anywhere(name: &str) -> bool {
    is_catalog(name) || is_forbidden_type(name)
}

fn check_name(name: &str, next: Option<TokenKind>) -> Result<(), Refusal> {
    // Only where it is called: a laboratory may have a column of that name.
    if next == Some(TokenKind::Symbol(b'(')) && is_forbidden_function(name) {
        return Err(Refusal::new(format!(
            "the function \"{name}\" is not allowed in queries"
        )));
    }
    // Only before a dot: elsewhere it may be the name of a column or an alias.
    if next == Some(TokenKind::Symbol(b'.')) && is_forbidden_schema(name) {
        return Err(Refusal::new(format!(
            "\"{name}\" is no schema that queries read: write the names of tables alone"
        )));
    }
    // Anywhere, because a type stands after `::` or `as`, or is called as a function.
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

/// Returns a name as PostgreSQL reads it: folded, or without its quotes.
pub(super) fn name(sql: &str, it: &Token) -> String {
    let text = sql.get(it.start..it.end).unwrap_or_default();
    if it.kind == TokenKind::Quoted {
        let inner = text
            .get(1..text.len().saturating_sub(1))
            .unwrap_or_default();
        return inner.replace("\"\"", "\"");
    }
    // PostgreSQL folds unquoted names to lower case: ASCII, and in a database of a Turkish
    // single-byte encoding this letter, too.
    text.to_ascii_lowercase().replace('İ', "i")
}
