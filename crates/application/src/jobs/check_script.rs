//! Checks that a script is Python, UTF-8, and has inline metadata that can be used (PEP 723): see docs/adr/0013.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use futures::{channel::oneshot, lock::Mutex};
use labdata_domain::{
    jobs::{ScriptFlaw, ScriptMetadata, foreign_encoding, normalized},
    refusal::{ErrorCode, Refusal},
};
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer, parse_module};

use crate::Error;

/// The most brackets inside of each other, as in Python's own parser.
const MAX_BRACKETS: usize = 200;

/// The most blocks inside of each other, as in Python's own parser.
const MAX_BLOCKS: usize = 100;

/// The most operators, calls and brackets that one expression holds without a comma: what bounds
/// the depth of its tree.
const MAX_CHAIN: usize = 3_000;

/// The stack of the thread that parses: enough for a tree of those depths, on every platform
/// gives to threads. Only what is touched takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// One script is parsed at a time, so that requests cannot take many such stacks.
static PARSING: Mutex<()> = Mutex::new(());

/// A script as it is stored, and the outcome of its check.
///
/// A check takes a while and waits for others. It belongs before the work that holds something which
/// others wait for, such as the connection of a unit of work.
#[derive(Clone, Debug)]
pub struct CheckedScript {
    code: String,
    refusal: Option<ScriptFailure>,
}

/// Why a script was not accepted.
#[derive(Clone, Debug)]
enum ScriptFailure {
    Flaw(ScriptFlaw),
    /// The check failed; for the log.
    Broken(String),
}

impl CheckedScript {
    /// Checks a script.
    pub async fn check(code: &str) -> Self {
        let code = normalized(code);
        let refusal = match flaw_of(&code).await {
            Ok(flaw) => flaw.map(ScriptFailure::Flaw),
            Err(cause) => Some(ScriptFailure::Broken(cause)),
        };
        Self { code, refusal }
    }

    /// Returns the code as it is stored, if it was accepted.
    ///
    /// # Errors
    /// `Invalid`, naming line and column.
    pub(crate) fn accepted(self) -> Result<String, Error> {
        match self.refusal {
            None => Ok(self.code),
            Some(ScriptFailure::Flaw(flaw)) => Err(Refusal::invalid(
                ErrorCode::InvalidCode,
                format!("the code is refused: {flaw}"),
            )
            .into()),
            Some(ScriptFailure::Broken(cause)) => Err(Error::Internal(cause)),
        }
    }
}

/// Looks for a flaw on a thread with a large stack.
async fn flaw_of(code: &str) -> Result<Option<ScriptFlaw>, String> {
    let _turn = PARSING.lock().await;
    let (response, answered) = oneshot::channel();
    let code = code.to_owned();
    thread::Builder::new()
        .name("check-script".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| find_flaw(&code)));
            // The receiver no longer exists if the request was abandoned.
            let _ = response.send(outcome);
        })
        .map_err(|error| format!("no thread to check a script: {error}"))?;
    match answered.await {
        Ok(Ok(flaw)) => Ok(flaw),
        Ok(Err(_)) | Err(_) => Err("the check of a script broke".to_owned()),
    }
}

/// Looks for a flaw in a normalized script.
fn find_flaw(code: &str) -> Option<ScriptFlaw> {
    // First, because the parser recurses: deep nesting would overflow its stack.
    too_deep(code)
        .or_else(|| not_python(code))
        .or_else(|| foreign_encoding(code))
        .or_else(|| ScriptMetadata::read(code).err())
}

/// Refuses trees deeper than Python itself takes before they are made: taking them apart needs as
/// much stack as they are deep.
fn too_deep(code: &str) -> Option<ScriptFlaw> {
    if !is_too_deep(code) {
        return None;
    }
    // The lexer does not tell where it is. The shortest beginning that is too deep ends there.
    let (mut fits, mut exceeds) = (0, code.len());
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        let beginning = code.get(..code.floor_char_boundary(middle));
        if beginning.is_some_and(is_too_deep) {
            exceeds = middle;
        } else {
            fits = middle;
        }
    }
    let offset = code.floor_char_boundary(fits);
    Some(ScriptFlaw::at(code, offset, "this is nested too deeply"))
}

/// Contents of one pair of brackets, or of none.
#[derive(Default)]
struct Chain {
    /// Number of operators, calls and brackets since the last comma.
    links: usize,
    /// Number of open parameter lists of lambdas, whose commas divide nothing.
    lambdas: usize,
}

fn is_too_deep(code: &str) -> bool {
    let mut lexer = lexer::lex(code, Mode::Module);
    let mut around: Vec<Chain> = Vec::new();
    let mut here = Chain::default();
    let (mut total, mut blocks) = (0_usize, 0_usize);
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return false,
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                here.links += 1;
                total += 1;
                around.push(std::mem::take(&mut here));
            }
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd => {
                total -= here.links;
                here = around.pop().unwrap_or_default();
            }
            // Items of a list lie beside each other; only commas of a lambda do not end one.
            TokenKind::Comma if here.lambdas == 0 => {
                total -= here.links;
                here.links = 0;
            }
            TokenKind::Newline | TokenKind::Semi => {
                around.clear();
                here = Chain::default();
                total = 0;
            }
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            token => {
                match token {
                    TokenKind::Lambda => here.lambdas += 1,
                    TokenKind::Colon => here.lambdas = here.lambdas.saturating_sub(1),
                    _ => {}
                }
                here.links += 1;
                total += 1;
            }
        }
        if blocks > MAX_BLOCKS || around.len() > MAX_BRACKETS || total > MAX_CHAIN {
            return true;
        }
    }
}

fn not_python(code: &str) -> Option<ScriptFlaw> {
    let error = parse_module(code).err()?;
    let offset = usize::from(error.location.start());
    Some(ScriptFlaw::at(code, offset, error.error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check_script(code: &str) -> Result<(), Error> {
        let checked = CheckedScript::check(code).await;
        checked.accepted().map(drop)
    }

    fn found(code: &str) -> (usize, usize) {
        let flaw =
            find_flaw(&normalized(code)).unwrap_or_else(|| panic!("nothing wrong with {code:?}"));
        assert!(!flaw.message.is_empty());
        (flaw.line, flaw.column)
    }

    #[test]
    fn python_of_any_kind_passes() {
        for code in [
            "",
            "\n",
            "# only a comment",
            "\u{feff}print('with a byte order mark')\n",
            "print('without a newline at the end')",
            "def f(a, /, b, *, c: int = 1) -> None:\r\n    return None\r\n",
            "match x:\n    case [1, *rest] if rest:\n        pass\n",
            "type A[T] = list[T]\n",
            "print(f\"{'a' + f'{1:>{2}}'}\")\n",
            "async def f():\n    async with a as b:\n        await b\n",
            "try:\n    pass\nexcept* ValueError:\n    pass\n",
            "名前 = 1\n",
        ] {
            assert_eq!(find_flaw(&normalized(code)), None, "{code:?}");
        }
    }

    #[test]
    fn what_is_not_python_is_refused_at_its_place() {
        for (code, place) in [
            ("print 'python 2'\n", (1, 7)),
            ("a = 1\nb = = 2\n", (2, 5)),
            ("a = 1\r\nb = = 2\r\n", (2, 5)),
            ("ä = 'ä'; b = = 2\n", (1, 14)),
            ("\u{feff}b = = 2\n", (1, 5)),
            ("if True:\npass\n", (2, 1)),
            ("  a = 1\n", (1, 1)),
            ("x = 'no end\n", (1, 5)),
            ("f(", (1, 3)),
            ("SELECT 1;", (1, 8)),
        ] {
            assert_eq!(found(code), place, "{code:?}");
        }
    }

    #[tokio::test]
    async fn metadata_and_encoding_are_checked_in_the_text_that_is_stored() {
        let good = "# /// script\n# requires-python = \">=3.11\"\n#\n# dependencies = [\n#   \"httpx\",\n# ]\n# ///\nimport httpx\n";
        for code in [good, &good.replace('\n', "\r\n"), &good.replace('\n', "\r")] {
            let code = format!("\u{feff}{code}");
            let accepted = CheckedScript::check(&code).await.accepted();
            assert_eq!(accepted.unwrap(), good, "{code:?}");
        }
        let bad = "import os\n# /// script\n#\n# dependencies = [\"httpx\"\n# x = 1\n# ///\n";
        for code in [bad, &bad.replace('\n', "\r\n"), &bad.replace('\n', "\r")] {
            assert_eq!(found(code).0, 5, "{code:?}");
        }
        assert_eq!(found("# coding: latin-1\n"), (1, 1));
        assert_eq!(found("\n# /// script\n# dependencies = []\n"), (2, 1));
    }

    #[tokio::test]
    async fn code_that_is_nested_too_deeply_is_refused_and_nothing_breaks() {
        const DEEP: usize = 200_000;
        let repeated = |before: &str, middle: &str, after: &str| {
            format!("{}{middle}{}\n", before.repeat(DEEP), after.repeat(DEEP))
        };
        for code in [
            repeated("(", "1", ")"),
            repeated("[", "", ""),
            repeated("{1:", "1", "}"),
            repeated("-", "1", ""),
            repeated("not ", "1", ""),
            repeated("lambda:", "1", ""),
            repeated("lambda a,b:", "1", ""),
            repeated("f'{", "1", "}'"),
            repeated("1+", "1", ""),
            repeated("1**", "1", ""),
            repeated("", "a", ".b"),
            repeated("", "a", "()"),
            repeated("", "a", "[0]"),
            repeated("", "a", "\n"),
            repeated("", "1", " if 1 else 1"),
            repeated("a=", "1", ""),
            repeated("*", "a", ""),
            repeated("", "(a", ".b\n"),
            repeated("await ", "a", ""),
            repeated("(),", "a", "+("),
            format!("match x:\n case {}", repeated("[", "1", "]")),
            (0..2_000).fold(String::new(), |code, depth| {
                code + &" ".repeat(depth) + "if 1:\n"
            }),
            format!("# /// script\n# a = {}# ///\n", repeated("[", "", "]")),
        ] {
            // The text does not matter, only that there is one.
            if let Err(error) = check_script(&code).await {
                assert!(error.code() == Some(ErrorCode::InvalidCode), "{error}");
            } else {
                assert!(code.starts_with("a\n"), "{}", &code[..20]);
            }
        }
    }

    #[tokio::test]
    async fn trees_as_deep_as_they_may_be_are_parsed() {
        let chain = |before: &str, count: usize, middle: &str, after: &str| {
            format!("{}{middle}{}\n", before.repeat(count), after.repeat(count))
        };
        for code in [
            chain("(", MAX_BRACKETS, "1", ")"),
            chain("-", MAX_CHAIN, "1", ""),
            chain("not ", MAX_CHAIN, "1", ""),
            chain("1**", MAX_CHAIN, "1", ""),
            chain("lambda:", MAX_CHAIN / 2, "1", ""),
            chain("", MAX_CHAIN, "a", ".b"),
            chain("", MAX_CHAIN, "a", "()"),
            chain("", MAX_CHAIN / 2, "1", " if 1 else 1"),
            chain("f'{", MAX_BRACKETS / 2, "1", "}'"),
            (0..=MAX_BLOCKS).fold(String::new(), |code, depth| {
                code + &" ".repeat(depth) + "if 1:\n"
            }) + &" ".repeat(MAX_BLOCKS + 1)
                + "pass\n",
        ] {
            let outcome = check_script(&code).await;
            assert!(outcome.is_ok() || code.starts_with("if"), "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn long_flat_scripts_are_no_problem() {
        let list = format!("x = [{}]\n", "(1, -2.5, 'a', f(x)),\n".repeat(20_000));
        let calls = "print(a.b + c[1])\n".repeat(20_000);
        let strings = format!("x = ({})\n", "'a'\n".repeat(50_000));
        for code in [list, calls, strings] {
            let outcome = check_script(&code).await;
            assert!(outcome.is_ok(), "{outcome:?}");
        }
    }
}
