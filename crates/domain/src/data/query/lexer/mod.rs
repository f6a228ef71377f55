//! SQL lexer that splits text as PostgreSQL's does with `standard_conforming_strings` on.
//!
//! General SQL tokenizers do not fit: they read `a=%s` as the operator `=%` and a name.
//!
//! Text that versions of PostgreSQL read differently, or whose end depends on text before it, is
//! refused: a name that this lexer takes for a part of a string would be hidden from the screen.

#[cfg(test)]
mod tests;

use super::refusal::Refusal;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Keyword or unquoted name.
    Word,
    /// Name in double quotes.
    Quoted,
    /// Name with Unicode escapes, `U&"…"`.
    UnicodeName,
    /// String, number or bit string.
    Literal,
    /// `%s`.
    Percent,
    /// `%%`.
    EscapedPercent,
    /// `$1`.
    Numbered(usize),
    /// Any other character.
    Symbol(u8),
}

/// Token with its byte range in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Splits a text into tokens without blanks and comments.
pub(super) fn tokenize(sql: &str) -> Result<Vec<Token>, Refusal> {
    let lexer = Lexer {
        bytes: sql.as_bytes(),
    };
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = lexer.byte(at) {
        lexer.refuse_continuation(tokens.last(), at)?;
        let (kind, end) = lexer.token(byte, at)?;
        if let Some(kind) = kind {
            tokens.push(Token {
                kind,
                start: at,
                end,
            });
        }
        at = end;
    }
    Ok(tokens)
}

struct Lexer<'s> {
    bytes: &'s [u8],
}

const fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

const fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn never_ends(what: &str) -> Refusal {
    Refusal::new(format!("{what} never ends"))
}

impl Lexer<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Refuses a string that stands right behind another one.
    ///
    /// Over a line break PostgreSQL reads both as one string, the second by the rules of the first:
    /// in `E'a'⏎'b\'` the last quote does not close. On one line it is a syntax error.
    fn refuse_continuation(&self, last: Option<&Token>, at: usize) -> Result<(), Refusal> {
        let is_string = |last: &Token| {
            last.kind == TokenKind::Literal && self.byte(last.end.saturating_sub(1)) == Some(b'\'')
        };
        if self.byte(at) == Some(b'\'') && last.is_some_and(is_string) {
            return Err(Refusal::new(
                "a text cannot continue in a second pair of quotes: join them with ||",
            ));
        }
        Ok(())
    }

    /// Returns the position if no name begins there. PostgreSQL before version 15 reads `1a` as a
    /// number and a name, later versions refuse it.
    fn apart(&self, end: usize, what: &str) -> Result<usize, Refusal> {
        if self.byte(end).is_some_and(starts_word) {
            return Err(Refusal::new(format!(
                "a name stands right behind {what}: put a blank between them"
            )));
        }
        Ok(end)
    }

    fn follows(&self, at: usize, text: &[u8]) -> bool {
        self.bytes
            .get(at..)
            .is_some_and(|rest| rest.starts_with(text))
    }

    /// Returns the first position from there on at which the test fails.
    fn skip(&self, from: usize, test: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest
            .iter()
            .position(|byte| !test(*byte))
            .unwrap_or(rest.len())
    }

    /// Returns the token that starts there, unless it is blank or a comment, and its end.
    fn token(&self, byte: u8, at: usize) -> Result<(Option<TokenKind>, usize), Refusal> {
        let some = |kind, end| Ok((Some(kind), end));
        match byte {
            // PostgreSQL skips the vertical tab, too, which `is_ascii_whitespace` leaves out.
            _ if byte.is_ascii_whitespace() || byte == 0x0b => Ok((None, at + 1)),
            b'-' if self.follows(at, b"--") => {
                // For PostgreSQL a carriage return ends the comment, too: what follows is part of
                // the query.
                Ok((None, self.skip(at, |byte| byte != b'\n' && byte != b'\r')))
            }
            b'/' if self.follows(at, b"/*") => Ok((None, self.comment(at)?)),
            b'\'' => some(TokenKind::Literal, self.quoted(at, b'\'', "a text")?),
            b'"' => some(TokenKind::Quoted, self.quoted(at, b'"', "a quoted name")?),
            b'$' => self.dollar(at),
            b'%' if self.follows(at, b"%%") => some(TokenKind::EscapedPercent, at + 2),
            b'%' if self.follows(at, b"%(") => {
                let end = self.skip(at + 2, continues_word);
                if end > at + 2 && self.follows(end, b")s") {
                    return Err(Refusal::new(
                        "placeholders have no names: write %s or $1, not %(name)s",
                    ));
                }
                some(TokenKind::Symbol(byte), at + 1)
            }
            // `a%size` is a remainder, not a placeholder.
            b'%' if self.follows(at, b"%s") && !self.byte(at + 2).is_some_and(continues_word) => {
                some(TokenKind::Percent, at + 2)
            }
            _ if byte.is_ascii_digit() => {
                some(TokenKind::Literal, self.apart(self.number(at), "a number")?)
            }
            _ if starts_word(byte) => self.word(at),
            _ => some(TokenKind::Symbol(byte), at + 1),
        }
    }

    fn word(&self, at: usize) -> Result<(Option<TokenKind>, usize), Refusal> {
        let end = self.skip(at, continues_word);
        let word = self.bytes.get(at..end).unwrap_or_default();
        // Only in `E'…'` a backslash is an escape (`standard_conforming_strings`).
        if word.eq_ignore_ascii_case(b"e") && self.byte(end) == Some(b'\'') {
            return Ok((Some(TokenKind::Literal), self.escaped(end)?));
        }
        // Bit strings know no doubled quote: a second one begins another string, which is refused.
        let is_bits = word.eq_ignore_ascii_case(b"b") || word.eq_ignore_ascii_case(b"x");
        if is_bits && self.byte(end) == Some(b'\'') {
            let close = self.skip(end + 1, |byte| byte != b'\'');
            return match self.byte(close) {
                Some(_) => Ok((Some(TokenKind::Literal), close + 1)),
                None => Err(never_ends("a text")),
            };
        }
        // A text `U&'…'` ends where an ordinary one does, so it needs no separate case.
        if word.eq_ignore_ascii_case(b"u") && self.follows(end, b"&\"") {
            let end = self.quoted(end + 1, b'"', "a quoted name")?;
            return Ok((Some(TokenKind::UnicodeName), end));
        }
        Ok((Some(TokenKind::Word), end))
    }

    /// Returns the first position from there on that is no digit, nor a single underscore before one.
    fn digits(&self, from: usize, is_digit: fn(&u8) -> bool) -> usize {
        let mut end = from;
        loop {
            end = self.skip(end, |byte| is_digit(&byte));
            let continues = end > from
                && self.byte(end) == Some(b'_')
                && self.byte(end + 1).as_ref().is_some_and(is_digit);
            if !continues {
                return end;
            }
            end += 1;
        }
    }

    fn number(&self, at: usize) -> usize {
        let radix: Option<fn(&u8) -> bool> = match self.byte(at + 1) {
            _ if self.byte(at) != Some(b'0') => None,
            Some(b'x' | b'X') => Some(u8::is_ascii_hexdigit),
            Some(b'o' | b'O') => Some(|byte| matches!(byte, b'0'..=b'7')),
            Some(b'b' | b'B') => Some(|byte| matches!(byte, b'0' | b'1')),
            _ => None,
        };
        if let Some(is_digit) = radix {
            // Without a digit, or with a wrong one, a name stands behind the number, which is refused.
            let end = self.digits(at + 2, is_digit);
            return if end > at + 2 { end } else { at + 1 };
        }
        let digits = |from| self.digits(from, u8::is_ascii_digit);
        let mut end = digits(at);
        // PostgreSQL reads `1..2` as two numbers with `..` between them.
        if self.byte(end) == Some(b'.') && self.byte(end + 1) != Some(b'.') {
            end = digits(end + 1);
        }
        // An exponent needs a digit: `1e` and `1e+` are the number 1 and a name.
        let sign = usize::from(matches!(self.byte(end + 1), Some(b'+' | b'-')));
        let exponent = matches!(self.byte(end), Some(b'e' | b'E'));
        if exponent
            && self
                .byte(end + 1 + sign)
                .is_some_and(|byte| byte.is_ascii_digit())
        {
            end = digits(end + 1 + sign);
        }
        end
    }

    /// Returns the position after the closing quote; a doubled quote does not close.
    fn quoted(&self, at: usize, quote: u8, what: &str) -> Result<usize, Refusal> {
        let mut at = at + 1;
        loop {
            at = self.skip(at, |byte| byte != quote);
            match (self.byte(at), self.byte(at + 1)) {
                (None, _) => return Err(never_ends(what)),
                // A doubled quote stands for itself.
                (_, Some(next)) if next == quote => at += 2,
                _ => return Ok(at + 1),
            }
        }
    }

    /// Like [`Lexer::quoted`], with backslash escapes.
    fn escaped(&self, at: usize) -> Result<usize, Refusal> {
        let mut at = at + 1;
        loop {
            at = self.skip(at, |byte| byte != b'\'' && byte != b'\\');
            match (self.byte(at), self.byte(at + 1)) {
                (None, _) => return Err(never_ends("a text")),
                (Some(b'\\'), _) | (_, Some(b'\'')) => at += 2,
                _ => return Ok(at + 1),
            }
        }
    }

    /// Returns the position after a comment; comments nest.
    fn comment(&self, at: usize) -> Result<usize, Refusal> {
        // Block comments nest in PostgreSQL.
        let (mut at, mut depth) = (at + 2, 1_usize);
        while depth > 0 {
            if self.follows(at, b"/*") {
                (at, depth) = (at + 2, depth + 1);
            } else if self.follows(at, b"*/") {
                (at, depth) = (at + 2, depth - 1);
            } else if self.byte(at).is_some() {
                at += 1;
            } else {
                return Err(never_ends("a comment"));
            }
        }
        Ok(at)
    }

    /// Reads `$1`, `$$…$$`, `$tag$…$tag$`, or a lone dollar sign.
    fn dollar(&self, at: usize) -> Result<(Option<TokenKind>, usize), Refusal> {
        let digits = self.skip(at + 1, |byte| byte.is_ascii_digit());
        if digits > at + 1 {
            let text = self
                .bytes
                .get(at + 1..digits)
                .and_then(|text| str::from_utf8(text).ok());
            let number = text
                .and_then(|text| text.parse().ok())
                // PostgreSQL's protocol counts parameters with 16 bits.
                .filter(|number| *number <= 65_535);
            let number =
                number.ok_or_else(|| Refusal::new("a placeholder's number is too high"))?;
            let end = self.apart(digits, "a placeholder")?;
            return Ok((Some(TokenKind::Numbered(number)), end));
        }
        let tag = self.skip(at + 1, |byte| byte != b'$' && continues_word(byte));
        if self.byte(tag) != Some(b'$') {
            return Ok((Some(TokenKind::Symbol(b'$')), at + 1));
        }
        let delimiter = self.bytes.get(at..=tag).unwrap_or_default();
        let mut end = tag + 1;
        while self.byte(end).is_some() {
            if self.follows(end, delimiter) {
                return Ok((Some(TokenKind::Literal), end + delimiter.len()));
            }
            end += 1;
        }
        Err(never_ends("a text"))
    }
}
