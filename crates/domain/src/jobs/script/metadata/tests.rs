use proptest::prelude::*;
use regex_lite::Regex;

use super::*;

fn read(code: &str) -> Option<ScriptMetadata> {
    ScriptMetadata::read(code).unwrap_or_else(|flaw| panic!("{code:?}: {flaw}"))
}

fn flaw(code: &str) -> (usize, usize) {
    let flaw = ScriptMetadata::read(code).expect_err(code);
    assert!(!flaw.message.is_empty());
    (flaw.line, flaw.column)
}

#[test]
fn dependencies_are_seen_however_the_block_is_written() {
    for script in [
        "# /// script\n# dependencies = [\"six\"]\n# ///\n",
        "# /// script\n#\n# dependencies = [\"six\"]\n#\n# ///",
        "import os\n# /// script\n# requires-python = \">=3.11\"\n# dependencies=[\n#   \"six\",\n# ]\n# ///\n",
        "# a comment\n# /// script\n# dependencies = [\"six\"]\n# ///\n# another\n",
        "# /// other\n# x\n# ///\n\n# /// script\n# dependencies = [\"six\"]\n# ///\n",
        // The expression of the PEP knows no literals.
        "text = '''\n# /// script\n# dependencies = [\"six\"]\n# ///\n'''\n",
    ] {
        assert_eq!(read(script).unwrap().dependencies, ["six"], "{script}");
    }
    for script in [
        "# /// script\n# dependencies = [ ]\n# ///\n",
        "# /// script\n# requires-python = \">=3.11\"\n# ///\n# dependencies = [\"six\"]\n",
        "# /// script\n# tool.uv.exclude-newer = \"2026-01-01T00:00:00Z\"\n# ///\n",
    ] {
        assert!(read(script).unwrap().dependencies.is_empty(), "{script}");
    }
}

#[test]
fn a_text_that_the_pep_does_not_call_a_script_block_is_a_comment() {
    for code in [
        "",
        "print(1)",
        "# dependencies = [\"six\"]\n",
        // Of another type, indented, without content, or not exactly the line of the PEP.
        "# /// other\n# = nonsense\n# ///\n",
        "# /// other\n# = nonsense\n",
        "  # /// script\n  # = nonsense\n  # ///\npass\n",
        "# /// script\n# ///\n",
        "# /// script \n# = nonsense\n# ///\n",
        "# /// script\t\n# = nonsense\n# ///\n",
        "# /// script\u{c}\n# = nonsense\n# ///\n",
        "#  /// script\n# = nonsense\n# ///\n",
        "#\t/// script\n# = nonsense\n# ///\n",
        "#/// script\n# = nonsense\n# ///\n",
        "# ///script\n# = nonsense\n# ///\n",
        "# /// Script\n# = nonsense\n# ///\n",
        "## /// script\n# = nonsense\n# ///\n",
        "x = 1 # /// script\n# = nonsense\n# ///\n",
        // Content of a block of another type.
        "# /// other\n# /// script\n# = nonsense\n# ///\n",
    ] {
        assert_eq!(read(code), None, "{code:?}");
    }
}

#[test]
fn a_block_that_is_not_closed_is_refused_at_its_opening() {
    for (code, line) in [
        ("# /// script\n# dependencies = [\"six\"]\nprint(1)\n", 1),
        ("import os\n# /// script\n# dependencies = []\n", 2),
        ("# /// script", 1),
        // Lines that a block cannot have end it.
        ("# /// script\n#= nonsense\n# ///\n", 1),
        ("# /// script\n#\ta = 1\n# ///\n", 1),
        ("# /// script\n\n# a = 1\n# ///\n", 1),
        ("# /// script\n# a = 1\n# /// \n", 1),
        ("# /// script\n# a = 1\n#///\n", 1),
        ("# /// script\n# a = 1\n# ////\n", 1),
        ("# /// script\n# a = 1\n# ///\n\n# /// script\n# a = 1\n", 5),
        ("# /// script\n# a = 1\n# ///\n# /// script\n", 4),
        ("text = '''\n# /// script\n'''\n", 2),
    ] {
        assert_eq!(flaw(code), (line, 1), "{code:?}");
    }
}

#[test]
fn two_script_blocks_are_one_too_many() {
    let code = "# /// script\n# a = 1\n# ///\n\n# /// script\n# a = 1\n# ///\n";
    assert_eq!(flaw(code), (5, 1));
    let code = "# /// script\n# a = 1\n# ///\ntext = '''\n# /// script\n# a = 1\n# ///\n'''\n";
    assert_eq!(flaw(code), (5, 1));
}

#[test]
fn a_block_reaches_to_the_last_closing_line() {
    let code = "# /// script\n# a = 1\n# ///\n# b = 2\n# ///\n";
    assert_eq!(flaw(code).0, 3);
    let code = "# /// script\n# a = 1\n# /// script\n# ///\n";
    assert_eq!(flaw(code).0, 3);
}

#[test]
fn fields_that_cannot_be_used_are_refused_at_their_line() {
    for (content, place) in [
        ("# dependencies = [", 2),
        ("# dependencies = ", 2),
        ("# a = 1\n# a = 2", 3),
        ("# dependencies = 5", 2),
        ("# dependencies = \"six\"", 2),
        ("# dependencies = {six = \"1\"}", 2),
        ("# dependencies = [\n#   \"six\",\n#   7,\n# ]", 4),
        ("# dependencies = [\n#   \"six\",\n#   \"six 1.0\",\n# ]", 4),
        ("# dependencies = [\"\"]", 2),
        ("#\n# requires-python = 3.11", 3),
        ("# requires-python = \"three\"", 2),
        ("# requires-python = [\">=3.11\"]", 2),
        ("# tool = 1", 2),
        ("# [tool]\n# uv = \"1\"", 3),
        ("# [tool.uv]\n# constraint-dependencies = \"six<2\"", 3),
    ] {
        let code = format!("# /// script\n{content}\n# ///\nprint(1)\n");
        assert_eq!(flaw(&code).0, place, "{code}");
    }
    let flaw = ScriptMetadata::read("import os\n\n# /// script\n# a = 1\n# a = 2\n# ///\n");
    let flaw = flaw.unwrap_err();
    assert_eq!((flaw.line, flaw.column), (5, 3), "{flaw}");
}

#[test]
fn a_script_says_which_python_it_needs() {
    let metadata = read("# /// script\n# requires-python = \">=3.11, <4\"\n# ///\n").unwrap();
    assert_eq!(metadata.requires_python.to_string(), ">=3.11, <4");
    let metadata = read("# /// script\n# requires-python = \"\"\n# ///\n").unwrap();
    assert_eq!(metadata.requires_python, VersionSpecifiers::empty());
}

/// Content of the script blocks that the reference implementation finds.
fn reference(code: &str) -> Vec<(usize, usize)> {
    let expression =
        Regex::new(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$");
    expression
        .unwrap()
        .captures_iter(code)
        .filter(|block| &block["type"] == "script")
        .map(|block| {
            let content = block.name("content").unwrap();
            (content.start(), content.end())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn blocks_are_those_of_the_reference_expression(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "# /// script", "# /// script", "# /// other", "# /// script ", "# ///", "# ///",
                "# ///", "# a = 1", "#", "#a", "", "x = 1", " # ///",
            ]),
            0..12,
        )
    ) {
        let code = lines.join("\n");
        let expected = reference(&code);
        match find_block(&code) {
            Ok(None) => prop_assert!(expected.is_empty(), "{code:?}"),
            Ok(Some(found)) => {
                prop_assert_eq!(vec![(found.content.start, found.content.end)], expected, "{:?}", code);
            }
            Err(flaw) if flaw.message.contains("only") => prop_assert!(expected.len() > 1, "{code:?}"),
            // The opening that is not closed is none that the expression matches.
            Err(flaw) => {
                let at: usize = code.split('\n').take(flaw.line).map(|line| line.len() + 1).sum();
                prop_assert!(expected.iter().all(|(start, _)| *start != at), "{code:?}");
            }
        }
    }
}
