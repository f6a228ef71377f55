//! Formats of dates.

use super::{
    Moment,
    fields::{clock, day_of, digits, fraction, half_day, hour_of, month_name, utc_offset},
    iso::time_of,
};

/// Formats in which a date without one is looked for, besides ISO 8601.
pub(super) const DETECTED: [&str; 8] = [
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %b %Y",
];

/// Format of dates, as `strftime` has it: `%d.%m.%Y %H:%M`. After a format without a time, a text may
/// have one in the form of ISO 8601, or with AM and PM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    tokens: Vec<Token>,
    has_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Day,
    Month,
    MonthName,
    Year,
    ShortYear,
    Hour,
    Hour12,
    Minute,
    Second,
    Fraction,
    HalfDay,
    Offset,
    Literal(char),
}

impl DateFormat {
    /// Reads a format.
    ///
    /// # Errors
    /// What a format takes.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const USAGE: &str = "must be a format as \"%d.%m.%Y %H:%M\", of %d, %m, %b, %Y, %y, %H, %I, \
                             %M, %S, %f, %p and %z, with day, month and year";
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            if char != '%' {
                tokens.push(Token::Literal(char));
                continue;
            }
            match chars.next() {
                Some('d' | 'e') => tokens.push(Token::Day),
                Some('m') => tokens.push(Token::Month),
                Some('b' | 'B') => tokens.push(Token::MonthName),
                Some('Y') => tokens.push(Token::Year),
                Some('y') => tokens.push(Token::ShortYear),
                Some('H') => tokens.push(Token::Hour),
                Some('I') => tokens.push(Token::Hour12),
                Some('M') => tokens.push(Token::Minute),
                Some('S') => tokens.push(Token::Second),
                Some('f') => tokens.push(Token::Fraction),
                Some('p') => tokens.push(Token::HalfDay),
                Some('z') => tokens.push(Token::Offset),
                Some('F') => {
                    let day = [Token::Year, Token::Month, Token::Day];
                    for (index, token) in day.into_iter().enumerate() {
                        if index > 0 {
                            tokens.push(Token::Literal('-'));
                        }
                        tokens.push(token);
                    }
                }
                Some('T') => {
                    let clock = [Token::Hour, Token::Minute, Token::Second];
                    for (index, token) in clock.into_iter().enumerate() {
                        if index > 0 {
                            tokens.push(Token::Literal(':'));
                        }
                        tokens.push(token);
                    }
                }
                Some('%') => tokens.push(Token::Literal('%')),
                _ => return Err(USAGE),
            }
        }
        let count = |any: &[Token]| tokens.iter().filter(|token| any.contains(token)).count();
        let hours = count(&[Token::Hour, Token::Hour12]);
        // Each part once, since two could contradict each other, and none without the next larger one.
        let is_complete = count(&[Token::Day]) == 1
            && count(&[Token::Month, Token::MonthName]) == 1
            && count(&[Token::Year, Token::ShortYear]) == 1
            && hours <= 1
            && count(&[Token::Minute]) <= hours
            && count(&[Token::Second]) <= count(&[Token::Minute])
            && count(&[Token::Fraction]) <= count(&[Token::Second])
            && count(&[Token::HalfDay]) == count(&[Token::Hour12])
            && count(&[Token::Offset]) <= hours;
        if !is_complete {
            return Err(USAGE);
        }
        Ok(Self {
            text: text.to_owned(),
            tokens,
            has_time: hours > 0,
        })
    }

    /// Returns the text of the format.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The formats that are detected.
    pub(in crate::read) fn detected() -> Vec<Self> {
        DETECTED
            .iter()
            .filter_map(|text| Self::parse(text).ok())
            .collect()
    }

    /// Reads a text in this format, the whole of it.
    pub(in crate::read) fn read(&self, text: &str) -> Option<Moment> {
        let mut rest = text;
        let (mut day, mut month, mut year) = (None, None, None);
        let (mut hour, mut minute, mut second, mut nanos) = (0, 0, 0, 0);
        let (mut hour12, mut is_afternoon, mut offset) = (None, false, None);
        for token in &self.tokens {
            match token {
                Token::Day => day = Some(digits(&mut rest, 1, 2)?),
                Token::Month => month = Some(digits(&mut rest, 1, 2)?),
                Token::MonthName => month = Some(month_name(&mut rest)?),
                Token::Year => year = Some(digits(&mut rest, 4, 4)?),
                Token::ShortYear => {
                    // POSIX: 69 to 99 are of the last century.
                    let short = digits(&mut rest, 2, 2)?;
                    year = Some(if short >= 69 {
                        1900 + short
                    } else {
                        2000 + short
                    });
                }
                Token::Hour => hour = digits(&mut rest, 1, 2)?,
                Token::Hour12 => hour12 = Some(digits(&mut rest, 1, 2)?),
                Token::Minute => minute = digits(&mut rest, 2, 2)?,
                Token::Second => second = digits(&mut rest, 2, 2)?,
                Token::Fraction => nanos = fraction(&mut rest)?,
                Token::HalfDay => is_afternoon = half_day(&mut rest)?,
                Token::Offset => offset = Some(utc_offset(&mut rest)?),
                Token::Literal(literal) => {
                    let found = rest.chars().next()?;
                    // Some locales write a no-break space in front of AM and PM.
                    let is_blank = matches!(found, ' ' | '\u{a0}' | '\u{202f}');
                    if found != *literal && !(*literal == ' ' && is_blank) {
                        return None;
                    }
                    rest = rest.get(found.len_utf8()..)?;
                }
            }
        }
        let date = day_of(year?, month?, day?)?;
        if self.has_time {
            if let Some(hours) = hour12 {
                hour = hour_of(hours, is_afternoon)?;
            }
            let time = clock(hour, minute, second, nanos)?;
            return rest.is_empty().then_some(Moment {
                date,
                time: Some(time),
                offset,
            });
        }
        let after = rest.trim_start_matches([' ', '\u{a0}', '\u{202f}', 'T', ',']);
        if rest.is_empty() {
            return Some(Moment {
                date,
                time: None,
                offset: None,
            });
        }
        // `05.03.20241` has no blank before its time.
        (after.len() < rest.len()).then(|| time_of(date, after))?
    }
}
