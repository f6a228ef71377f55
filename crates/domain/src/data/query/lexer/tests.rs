use super::*;

fn cut(sql: &str) -> Vec<(TokenKind, &str)> {
    tokenize(sql)
        .unwrap()
        .into_iter()
        .map(|it| (it.kind, &sql[it.start..it.end]))
        .collect()
}

fn symbols(text: &str) -> Vec<(TokenKind, &str)> {
    text.char_indices()
        .map(|(at, _)| (TokenKind::Symbol(text.as_bytes()[at]), &text[at..=at]))
        .collect()
}

fn refused(sql: &str) -> String {
    tokenize(sql).unwrap_err().to_string()
}

#[test]
fn numbers_are_one_token_with_fraction_and_exponent() {
    for number in [
        "0",
        "12",
        "1_000",
        "1.5",
        "1.",
        "1e5",
        "1.e5",
        "1E+05",
        "1.25e-7",
        "1_0.2_5e1_0",
        "0x1F",
        "0XfF_00",
        "0o17",
        "0b1_0",
    ] {
        assert_eq!(cut(number), [(TokenKind::Literal, number)]);
    }
}

#[test]
fn a_number_ends_where_postgresql_ends_it() {
    for (sql, number, rest) in [
        ("2*3", "2", vec![symbols("*")[0], (TokenKind::Literal, "3")]),
        ("2-3", "2", vec![symbols("-")[0], (TokenKind::Literal, "3")]),
    ] {
        let mut expected = vec![(TokenKind::Literal, number)];
        expected.extend(rest);
        assert_eq!(cut(sql), expected, "{sql}");
    }
    let range = [
        vec![(TokenKind::Literal, "1")],
        symbols(".."),
        vec![(TokenKind::Literal, "2")],
    ];
    assert_eq!(cut("1..2"), range.concat());
}

#[test]
fn a_name_right_behind_a_number_or_placeholder_is_refused() {
    for sql in [
        "1e", "1e+", "1ex", "1.5pg_x", "1e5x", "1_", "1__0", "1_e'\\'", "0x", "0xg", "0b12x",
        "0_x", "1é",
    ] {
        assert!(refused(sql).contains("right behind a number"), "{sql}");
    }
    assert!(refused("$1a").contains("right behind a placeholder"));
}

#[test]
fn a_text_that_continues_in_further_quotes_is_refused() {
    for (first, second) in [
        ("'a'", "'b'"),
        ("E'a'", "'b\\''"),
        ("U&'a'", "'b'"),
        ("b'1'", "'0'"),
        ("n'a'", "'b'"),
    ] {
        for between in [
            " ",
            "\n",
            "\r",
            "\t\n\x0c ",
            " -- x\n",
            "--'\n--\n",
            "/*\n*/",
        ] {
            let sql = format!("{first}{between}{second}");
            assert!(refused(&sql).contains("join them with ||"), "{sql:?}");
        }
    }
    assert!(refused("x'1''0'").contains("join them with ||"));
    // Names in quotes, and texts between dollar signs, never continue.
    assert_eq!(cut("\"date\"\n'2026-01-01'").len(), 2);
    assert_eq!(cut("'a',\n'b'").len(), 3);
}

#[test]
fn texts_and_quoted_names_are_one_token() {
    for text in [
        "''",
        "'a'",
        "''''",
        "'it''s'",
        "e''",
        r"E'\''",
        r"e'a\\'",
        "e'a''b'",
        "$$$$",
        "$$ a $$",
        "$a$ $b$ $$ $a$",
        "$é_1$x$é_1$",
    ] {
        assert_eq!(cut(text), [(TokenKind::Literal, text)]);
    }
    for name in ["\"a\"", "\"a\"\"b\"", "\"\"\"\""] {
        assert_eq!(cut(name), [(TokenKind::Quoted, name)]);
    }
    assert_eq!(
        cut("U&\"a\"\"b\""),
        [(TokenKind::UnicodeName, "U&\"a\"\"b\"")]
    );
    for bits in ["b'01'", "X'1f'"] {
        assert_eq!(cut(bits), [(TokenKind::Literal, bits)]);
    }
    assert_eq!(
        cut("e'a' e"),
        [(TokenKind::Literal, "e'a'"), (TokenKind::Word, "e")]
    );
}

#[test]
fn a_backslash_escapes_only_in_texts_that_say_so() {
    assert_eq!(
        cut(r"'\' a"),
        [(TokenKind::Literal, r"'\'"), (TokenKind::Word, "a")]
    );
    assert_eq!(cut(r"e'\' a'"), [(TokenKind::Literal, r"e'\' a'")]);
    assert_eq!(
        cut(r"u'\'"),
        [(TokenKind::Word, "u"), (TokenKind::Literal, r"'\'")]
    );
}

#[test]
fn words_hold_letters_digits_underscores_and_dollar_signs() {
    for word in ["a", "_a1", "a$1", "größe", "E", "u"] {
        assert_eq!(cut(word), [(TokenKind::Word, word)]);
    }
    let unquoted = [
        vec![(TokenKind::Word, "u")],
        symbols("&"),
        vec![(TokenKind::Word, "x")],
    ];
    assert_eq!(cut("u&x"), unquoted.concat());
}

#[test]
fn comments_and_blanks_are_left_out() {
    for sql in [
        " a\t\r\n\x0b\x0c",
        "-- x\na",
        "--\ra",
        "/**/a",
        "/* x /* y */ z */ a",
        "/*/*/**/*/*/a--",
    ] {
        let tokens = cut(sql);
        assert_eq!(tokens, [(TokenKind::Word, "a")], "{sql:?}");
    }
    assert_eq!(cut("- /"), symbols("-/"));
    assert_eq!(cut("-a"), [symbols("-")[0], (TokenKind::Word, "a")]);
}

#[test]
fn placeholders_differ_from_the_operator() {
    assert_eq!(cut("%s"), [(TokenKind::Percent, "%s")]);
    assert_eq!(cut("=%s)")[1], (TokenKind::Percent, "%s"));
    assert_eq!(cut("%%"), [(TokenKind::EscapedPercent, "%%")]);
    for (sql, word) in [("%some", "some"), ("%s1", "s1"), ("%s$", "s$")] {
        assert_eq!(
            cut(sql),
            [symbols("%")[0], (TokenKind::Word, word)],
            "{sql}"
        );
    }
    assert_eq!(
        cut("$1 $65535"),
        [
            (TokenKind::Numbered(1), "$1"),
            (TokenKind::Numbered(65_535), "$65535")
        ]
    );
    assert!(refused("$65536").contains("too high"));
    assert!(refused("$99999999999999999999").contains("too high"));
    assert_eq!(cut("$ $"), symbols("$$"));
    assert_eq!(
        cut("$a b"),
        [
            symbols("$")[0],
            (TokenKind::Word, "a"),
            (TokenKind::Word, "b")
        ]
    );
}

#[test]
fn named_placeholders_are_refused_and_parentheses_behind_the_operator_are_not() {
    for sql in ["%(name)s", "a = %(n_1)s"] {
        assert!(refused(sql).contains("%(name)s"), "{sql}");
    }
    assert_eq!(cut("%()s")[..3], symbols("%()"));
    assert_eq!(cut("%(a)")[0], symbols("%")[0]);
    assert_eq!(
        cut("%(a)"),
        [symbols("%("), vec![(TokenKind::Word, "a")], symbols(")")].concat()
    );
    assert_eq!(cut("%(a+b)s").len(), 7);
}

#[test]
fn unterminated_texts_names_and_comments_are_refused() {
    for (sql, what) in [
        ("'a", "a text"),
        ("'a''", "a text"),
        ("e'a", "a text"),
        (r"e'a\'", "a text"),
        ("$a$ $b$", "a text"),
        ("\"a", "a quoted name"),
        ("u&\"a", "a quoted name"),
        ("/* /* */", "a comment"),
    ] {
        assert_eq!(refused(sql), format!("{what} never ends"), "{sql}");
    }
}
