"""The script of `labdata demo`: its parser, its figures and its table; tests of the program run the whole."""

import contextlib
import math
from pathlib import Path

import pytest
from growth_report import Growth, report, sparkline
from parse_growth_curves import KineticExport, NotAnExport, parse

DEMO = Path(__file__).parents[3] / "docs/demo"

SMALL = (
    "\r\nPlate Number\tPlate 2\r\nTime\t12:30:01 PM\r\nReader Type:\tX\r\n\r\n600\r\n\r\n"
    "Time\tT° 600\tA1\tB12\r\n0:00:30\t37.0\t-0.066\tOVRFLW\r\n1:30:00\t37.1\t0.5\t1.25\r\n"
    "0:00:00\r\n0:00:00\t\t\t\r\n\r\nResults\r\n\t1\t2\r\n"
)


def test_reads_wells_times_and_facts():
    export = parse(SMALL.encode())
    assert export.hours == [30 / 3600, 1.5]
    assert export.wells == {"A1": [-0.066, 0.5], "B12": [None, 1.25]}
    assert export.header["Reader Type"] == "X"
    assert export.header["Time"] == "12:30:01 PM"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1", "utf-8-sig", "unix"])
def test_every_usual_encoding_reads_the_same(encoding):
    if encoding == "unix":
        content = SMALL.replace("\r\n", "\n").encode()
    else:
        content = (b"\xfe\xff" if encoding == "utf-16-be" else b"") + SMALL.encode(encoding)
    assert parse(content) == parse(SMALL.encode())


def test_a_comma_may_stand_for_the_point():
    assert parse(SMALL.replace("1.25", "1,25").encode()).wells["B12"][1] == 1.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no kinetic table"),
        ("Time\t1:00\nA1\tB1\n", "no kinetic table"),
        ("Time\tT\tA1\n\n", "the kinetic table has no reads"),
        ("Time\tT\tA1\tA1\n", "line 1: the well A1 stands there twice"),
        ("Time\tT\tA1\tsum\n", 'line 1: "sum" is no well such as A1'),
        ("Time\tT\tA1\n12 s\t1\t2\n", 'line 2: "12 s" is no time such as 0:10:00'),
        ("Time\tT\tA1\n0:61:00\t1\t2\n", 'line 2: "0:61:00" is no time such as 0:10:00'),
        ("Time\tT\tA1\tA2\n0:01:00\t1\t2\n", "line 2: 1 values for 2 wells"),
        ("Time\tT\tA1\n0:01:00\t1\t2\t3\n", "line 2: 2 values for 1 wells"),
        ("Time\tA1\n0:01:00\tnone\n", 'line 2: A1 holds "none", which is no number'),
        ("Time\tA1\n0:01:00\t1.2.3\n", 'line 2: A1 holds "1.2.3", which is no number'),
        ("Time\tA1\n0:01:00\t1e999\n", 'line 2: A1 holds "1e999", which is no number'),
        ("Time\tA1\n0:02:00\t1\n0:01:00\t1\n", "line 3: the read at 0:01:00"),
        ("Time\tA1\n9999999:00:00\t1\n", "line 2"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(NotAnExport) as error:
        parse(text.encode())
    assert str(error.value).startswith(message)


def test_any_bytes_are_parsed_or_refused():
    contents = [SMALL.encode()[:end] for end in range(len(SMALL))]
    for content in [*contents, b"\xff\xfe\x00", bytes(range(256))]:
        with contextlib.suppress(NotAnExport):
            parse(content)


def growth(values):
    return Growth.of(list(range(len(values))), values)


def test_the_steepest_part_of_a_curve_counts():
    found = growth([1.0, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 4.5, 4.5])
    assert (found.start_od, found.max_od) == (1.0, 4.5)
    assert found.max_od_per_h == pytest.approx(0.5)


def test_too_few_values_have_no_rate():
    assert growth([]) == Growth(None, None, None)
    assert growth([0.1, 1.0]).max_od_per_h is None


def test_the_shipped_curves_rise_as_the_formula_in_their_header_does():
    export = parse((DEMO / "simulated_growth_curves.txt").read_bytes())
    assert (len(export.wells), len(export.hours)) == (24, 100)
    rates = {well: Growth.of(export.hours, values).max_od_per_h for well, values in export.wells.items()}
    # A logistic curve rises most steeply at half its height: K ln 2 / (4 T).
    for well, height, doubling in [
        ("A1", 1.5, 0.75),
        ("A6", 1.5, 0.75),
        ("B3", 1.35, 1.0),
        ("C2", 1.1, 1.5),
        ("D1", 0.9, 2.25),
    ]:
        assert rates[well] == pytest.approx(height * math.log(2) / (4 * doubling), rel=0.1)
    assert rates["D6"] < 0.01


def test_shows_each_well_with_its_curve():
    wells = {"A1": [0.1, None, 0.8], "D12": [None, None, None]}
    lines = report(KineticExport({}, [0.0, 1.0, 2.0], wells)).splitlines()
    assert lines[1] == "  A1         2     0.100   0.800         -  ▁ █"
    assert lines[2] == "  D12        0         -       -         -"


def test_rises_from_the_lowest_to_the_highest_bar():
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert sparkline(values, 8, 0.0, 7.0) == "▁▂▃▄▅▆▇█"
    assert sparkline(values, 4, 0.0, 7.0) == "▁▃▆█"


def test_is_blank_where_nothing_was_measured():
    assert sparkline([0.0, None, 1.0], 3, 0.0, 1.0) == "▁ █"
    assert sparkline([], 10, 0.0, 1.0) == ""


def test_never_has_more_characters_than_values():
    assert sparkline([1.0, 2.0], 40, 1.0, 2.0) == "▁█"


def test_flat_curves_and_values_outside_stay_within_the_bars():
    assert sparkline([1.0, 1.0], 2, 1.0, 1.0) == "▁▁"
    assert sparkline([-5.0, 5.0], 2, 0.0, 1.0) == "▁█"
