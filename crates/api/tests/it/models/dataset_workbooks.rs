//! Datasets of Excel workbooks, also of hostile ones.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    dataset_lab::{DatasetLab, PATH, columns},
    workbooks::{BOOK, BOOK_RELATIONS, SHARED, SHEET, Workbook, header, number, row, text},
};
use crate::{
    process::directory,
    work::platform_runs::{KEY, Lab},
};

/// Size of a part that no workbook has.
const BOMB: usize = 300 << 20;

/// Memory by which a server may grow over hostile workbooks, in bytes. Each bomb unpacks to more.
const GROWTH: u64 = 192 << 20;

/// Time after which a workbook is taken for one that is read forever.
const FOREVER: Duration = Duration::from_mins(2);

/// The rows that the preview of a dataset shows.
async fn preview(lab: &DatasetLab, dataset: &Value) -> Value {
    let path = format!("{PATH}/{}/preview", dataset["id"].as_str().unwrap());
    lab.client.get(&path).await.json(200)["data"].clone()
}

async fn read(lab: &DatasetLab, workbook: &Workbook) -> Value {
    let id = lab.upload("plate.xlsx", workbook.bytes()).await;
    lab.of_file(&id).await.json(200)
}

/// Rows of one cell in column A, from the second row on.
fn cells(values: &[String]) -> String {
    let rows = (2..).zip(values).map(|(n, value)| {
        let cell = value.replace("<c ", &format!("<c r=\"A{n}\" "));
        row(n, &[cell])
    });
    rows.collect()
}

#[tokio::test]
async fn a_workbook_becomes_a_dataset_with_dates() {
    let lab = DatasetLab::start().await;
    let rows = [
        header(&["well", "od", "day", "read"]),
        row(
            2,
            &[
                text("A2", "A1"),
                number("B2", "0.25"),
                "<c r=\"C2\" s=\"1\"><v>46082</v></c>".to_owned(),
                "<c r=\"D2\" s=\"2\"><v>46082.5</v></c>".to_owned(),
            ],
        ),
        row(
            3,
            &[
                text("A3", "µ &lt;2&gt;"),
                // A missing number, as a lookup leaves it.
                "<c r=\"B3\" t=\"e\"><f>NA()</f><v>#N/A</v></c>".to_owned(),
            ],
        ),
        // A formula with the value that it had.
        row(4, &["<c r=\"B4\"><f>B2*2</f><v>0.5</v></c>".to_owned()]),
    ];
    let dataset = read(&lab, &Workbook::of_rows(&rows.concat())).await;
    let expected = [
        ("well", "text"),
        ("od", "float"),
        ("day", "date"),
        ("read", "text"),
    ];
    assert_eq!(columns(&dataset), expected);
    let expected = json!([
        ["A1", 0.25, "2026-03-01", "2026-03-01T12:00:00"],
        ["µ <2>", null, null, null],
        [null, 0.5, null, null],
    ]);
    assert_eq!(preview(&lab, &dataset).await, expected);
}

#[tokio::test]
async fn errors_and_formulas_without_a_value_are_refused() {
    let lab = DatasetLab::start().await;
    for (cell, reason) in [
        (
            "<c r=\"A3\" t=\"e\"><f>1/0</f><v>#DIV/0!</v></c>",
            "the error #DIV/0!",
        ),
        ("<c r=\"A3\"><f>A2*2</f><v/></c>", "a formula whose value"),
    ] {
        let rows = header(&["a"]) + &row(2, &[number("A2", "1")]) + &row(3, &[cell.to_owned()]);
        let detail = lab
            .refusal("plate.xlsx", Workbook::of_rows(&rows).bytes())
            .await;
        assert!(detail.contains(reason), "{detail}");
    }
}

#[tokio::test]
async fn merged_cells_hold_their_value() {
    let lab = DatasetLab::start().await;
    let rows = [
        header(&["plate", "", "od"]),
        row(2, &[text("A2", "P1"), number("C2", "1")]),
        row(3, &[number("C3", "2")]),
    ];
    let sheet = format!(
        "<worksheet><sheetData>{}</sheetData><mergeCells count=\"2\"><mergeCell ref=\"A1:B1\"/>\
         <mergeCell ref=\"A2:A3\"/></mergeCells></worksheet>",
        rows.concat()
    );
    let dataset = read(&lab, &Workbook::of_sheet(&sheet)).await;
    let expected = [("plate", "text"), ("od", "integer")];
    assert_eq!(columns(&dataset), expected);
    let expected = json!([["P1", 1], ["P1", 2]]);
    assert_eq!(preview(&lab, &dataset).await, expected);
}

#[tokio::test]
async fn rows_and_cells_that_are_only_declared_are_not_made() {
    let lab = DatasetLab::start().await;
    let began = Instant::now();
    let sheet = format!(
        "<worksheet><dimension ref=\"A1:XFD1048576\"/><sheetData>{}{}{}</sheetData></worksheet>",
        header(&["n"]),
        row(2, &[number("A2", "7")]),
        "<row/>".repeat(100_000),
    );
    let last = header(&["n"]) + &row(1_048_576, &[number("A1048576", "7")]);
    for workbook in [Workbook::of_sheet(&sheet), Workbook::of_rows(&last)] {
        let dataset = read(&lab, &workbook).await;
        assert_eq!(columns(&dataset), [("n", "integer")]);
        assert_eq!(dataset["row_count"], 1);
    }
    assert!(began.elapsed() < FOREVER);
}

/// Workbooks that are no tables, with a part of the refusal.
fn refused() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let whole = Workbook::of_rows(&(header(&["a"]) + &row(2, &[number("A2", "1")])));
    let bytes = whole.bytes();
    let cut = |length: usize| bytes[..length].to_vec();
    let swapped = row(2, &[number("B2", "1"), number("A2", "1")]);
    vec![
        (
            "nothing but a start",
            b"PK\x03\x04".to_vec(),
            "not an Excel workbook",
        ),
        (
            "Excel 97",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".repeat(64),
            "not an Excel workbook",
        ),
        ("half", cut(bytes.len() / 2), "not an Excel workbook"),
        (
            "without its end",
            cut(bytes.len() - 30),
            "not an Excel workbook",
        ),
        (
            "no sheet",
            Workbook::of_rows("").with(BOOK, "<workbook/>").bytes(),
            "the file is empty",
        ),
        (
            "no rows",
            Workbook::of_rows("").bytes(),
            "the file is empty",
        ),
        (
            "blank rows",
            Workbook::of_rows("<row r=\"1\"><c r=\"A1\"/></row>").bytes(),
            "the file is empty",
        ),
        (
            "one name twice",
            Workbook::of_rows(&header(&["a", "b", "a"])).bytes(),
            "the same header \"a\"",
        ),
        (
            "a name that a blank one gets",
            Workbook::of_rows(&(header(&["column_2", "", "c"]) + &row(2, &[number("B2", "1")])))
                .bytes(),
            "the same header \"column_2\"",
        ),
        (
            "a long name",
            Workbook::of_rows(&header(&[&"x".repeat(201)])).bytes(),
            "200",
        ),
        (
            "a value beside the table",
            Workbook::of_rows(&(header(&["a"]) + &row(2, &[number("C2", "1")]))).bytes(),
            "row 2 has a value in column 3",
        ),
        (
            "16,384 columns",
            Workbook::of_rows(&row(1, &[text("A1", "a"), text("XFD1", "z")])).bytes(),
            "16384 columns",
        ),
        (
            "cells out of order",
            Workbook::of_rows(&(header(&["a", "b"]) + &swapped)).bytes(),
            "damaged",
        ),
        (
            "a cut sheet",
            Workbook::of_sheet("<worksheet><sheetData><row r=\"1\"><c").bytes(),
            "",
        ),
        (
            "a text that is not there",
            Workbook::of_rows("<row r=\"1\"><c r=\"A1\" t=\"s\"><v>7</v></c></row>").bytes(),
            "damaged",
        ),
        (
            "texts that are only declared",
            Workbook::of_rows(&header(&["a"]))
                .with(
                    SHARED,
                    "<sst uniqueCount=\"99999999999\"><si><t>a</t></si></sst>",
                )
                .bytes(),
            "too large",
        ),
    ]
}

/// Workbooks that unpack to much, with a part of the refusal. Their checksums are wrong.
fn bombs() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    vec![
        ("a bomb of a sheet", bomb(SHEET, BOMB), "damaged"),
        ("a bomb of texts", bomb(SHARED, BOMB), "damaged"),
        ("a bomb that declares less", bomb(SHEET, 1), "damaged"),
        (
            "a bomb beside the sheet",
            bomb("xl/media/image1.png", BOMB),
            "damaged",
        ),
    ]
}

/// A workbook with a part that unpacks to that much, and declares that size.
fn bomb(part: &str, declared: usize) -> Vec<u8> {
    let rows = header(&["a"]) + &row(2, &[number("A2", "1")]);
    let workbook = Workbook::of_rows(&rows);
    workbook.with_spaces(part, BOMB, declared).bytes()
}

#[tokio::test]
async fn a_workbook_that_is_no_table_is_told_why_and_leaves_nothing() {
    let lab = DatasetLab::start().await;
    for (name, bytes, reason) in refused().into_iter().chain(bombs()) {
        let id = lab.upload("plate.xlsx", bytes).await;
        let (stored, began) = (lab.stored(), Instant::now());
        let detail = lab.of_file(&id).await.detail(400);
        assert!(detail.contains(reason), "{name}: {detail}");
        assert_eq!(lab.stored(), stored, "{name}");
        assert!(began.elapsed() < FOREVER, "{name}");
    }
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn a_workbook_reaches_nothing_outside_of_itself() {
    let lab = DatasetLab::start().await;
    let secret = lab.on.server.anonymous().get("/healthz").await.text;
    let entities = |definition: &str| {
        format!(
            "<?xml version=\"1.0\"?><!DOCTYPE worksheet [{definition}]><worksheet><sheetData>{}{}\
             </sheetData></worksheet>",
            header(&["a"]),
            row(2, &[text("A2", "&x;")])
        )
    };
    let laughs = (1..12).fold("<!ENTITY l0 \"lol\">".to_owned(), |all, level| {
        let inner = format!("&l{};", level - 1).repeat(10);
        all + &format!("<!ENTITY l{level} \"{inner}\">")
    }) + "<!ENTITY x \"&l11;\">";
    let relation = |target: &str, mode: &str| {
        format!(
            "<Relationships><Relationship Id=\"rId1\" Target=\"{target}\" {mode} Type=\"http://schemas.\
             openxmlformats.org/officeDocument/2006/relationships/worksheet\"/></Relationships>"
        )
    };
    let whole = || Workbook::of_rows(&(header(&["a"]) + &row(2, &[number("A2", "1")])));
    for (name, workbook) in [
        (
            "a file",
            Workbook::of_sheet(&entities(
                "<!ENTITY x SYSTEM \"file:///proc/self/environ\">",
            )),
        ),
        (
            "an address",
            Workbook::of_sheet(&entities("<!ENTITY x SYSTEM \"http://169.254.169.254/\">")),
        ),
        (
            "entities of entities",
            Workbook::of_sheet(&entities(&laughs)),
        ),
        (
            "a sheet on the disk",
            whole().with(
                BOOK_RELATIONS,
                &relation("../../../../../../etc/passwd", ""),
            ),
        ),
        (
            "a sheet of an address",
            whole().with(
                BOOK_RELATIONS,
                &relation("http://169.254.169.254/", "TargetMode=\"External\""),
            ),
        ),
    ] {
        let id = lab.upload("plate.xlsx", workbook.bytes()).await;
        let reply = lab.of_file(&id).await;
        if reply.status == 200 {
            // A table without the text, which the reader left out.
            let rows = preview(&lab, &reply.json(200)).await.to_string();
            assert!(rows.len() < 100, "{name}: {rows}");
            for outside in ["PATH=", "root:", "lollol", secret.as_str()] {
                assert!(!rows.contains(outside), "{name}: {rows}");
            }
        } else {
            let detail = reply.detail(400);
            assert!(detail.contains("the file is"), "{name}: {detail}");
        }
    }
}

#[tokio::test]
async fn numbers_and_dates_out_of_range_are_refused_or_shown_as_they_are() {
    let lab = DatasetLab::start().await;
    for value in [
        "1e999", "-1e999", "NaN", "1e308", "-1", "99999999", "1e18", "12,5", "", "0x10",
    ] {
        for style in ["", "s=\"1\"", "t=\"b\"", "t=\"d\"", "t=\"n\"", "t=\"s\""] {
            let values = [format!("<c {style}><v>{value}</v></c>")];
            let workbook = Workbook::of_rows(&(header(&["a"]) + &cells(&values)));
            let id = lab.upload("plate.xlsx", workbook.bytes()).await;
            let reply = lab.of_file(&id).await;
            if reply.status == 200 {
                preview(&lab, &reply.json(200)).await;
            } else {
                let detail = reply.detail(400);
                assert!(!detail.is_empty(), "{value} {style}: {detail}");
            }
        }
    }
}

/// The largest memory that a process held, in bytes.
fn most_resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn hostile_workbooks_do_not_fill_the_servers_memory() {
    let directory = directory();
    let lab = Lab::start_with(directory.path(), &[], &[]);
    let instrument = json!({"name": "reader"});
    let instrument = lab.call(Method::POST, "/instruments", instrument).await;
    let mut files = Vec::new();
    let workbooks = refused().into_iter().chain(bombs());
    for (number, (name, bytes, _)) in workbooks.enumerate() {
        let file = format!("{number}.xlsx");
        let id = lab.upload(&instrument["id"], &file, bytes).await;
        files.push((name, id));
    }
    let before = most_resident(lab.pid());
    for (name, id) in files {
        let body = json!({"name": "wine", "file_id": id});
        let (status, text) = lab.ask(KEY, Method::POST, "/datasets", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name}: {text}");
    }
    let grown = most_resident(lab.pid()).saturating_sub(before);
    assert!(grown < GROWTH, "{} MiB", grown >> 20);
}
