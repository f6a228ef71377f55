"""Values that stand in an export, but not in the document that allotropy makes of it."""

from __future__ import annotations

import unittest

from labdata_reader.exports import complete
from labdata_reader.rows import Rows
from labdata_reader.times import Times


def rows_of(reader: str, *contexts: dict) -> Rows:
    """Returns the rows of a file with these measurements, none of which has a value yet."""
    rows = Rows(reader, b"", Times("UTC"))
    rows.sources = [{"sample": None, "metadata": {}, **context} for context in contexts]
    return rows


def qpcr(well: str, target: str) -> dict:
    return {"well": well, "metadata": {"target_DNA_description": target}}


class Undetermined(unittest.TestCase):
    def test_a_well_without_a_threshold_is_a_null_row_with_its_scores(self) -> None:
        rows = rows_of("APPBIO_QUANTSTUDIO", qpcr("A1", "IPC"), qpcr("A2", "IPC"))
        rows.add("cycle threshold result", 31.5, None, rows.sources[0], {})
        text = (
            "[Results]\nWell Position\tTarget Name\tCT\tAmp Score\tCq Conf\n"
            "A1\tIPC\t31.5\t0.9\t0.8\nA2\tIPC\tUndetermined\t0.503\t\n\n[Other]\nA2\tIPC\t1\t2\t3\n"
        )
        for encoding in ("utf-8", "utf-16"):
            del rows.measurements[1:]
            complete(rows, text.encode(encoding))
            found = [(row["kind"], row["well"], row["value"]) for row in rows.measurements[1:]]
            self.assertEqual(found, [("cycle threshold result", "A2", None), ("amplification score", "A2", 0.503)])
            self.assertEqual(rows.measurements[1]["metadata"]["reason"], "Undetermined")
            self.assertEqual(rows.doubts, [])

    def test_scores_that_cannot_be_looked_up_are_a_doubt(self) -> None:
        rows = rows_of("APPBIO_QUANTSTUDIO_DESIGNANDANALYSIS", qpcr("A1", "IPC"), qpcr("A2", "IPC"))
        rows.add("cycle threshold result", 31.5, None, rows.sources[0], {})
        complete(rows, b"PK\3\4")
        self.assertEqual(rows.measurements[1]["metadata"]["reason"], "the file has no cycle threshold here")
        self.assertEqual(rows.doubts, ["Amp Score, Cq Conf: values of 1 wells without a cycle threshold are left out"])

    def test_a_file_without_thresholds_has_none(self) -> None:
        rows = rows_of("APPBIO_QUANTSTUDIO", qpcr("A1", "IPC"))
        complete(rows, b"")
        self.assertEqual(rows.measurements, [])


class ResultsByWell(unittest.TestCase):
    def test_results_without_a_row_are_named(self) -> None:
        rows = rows_of("AGILENT_GEN5", {"well": "A1"}, {"well": "A2"})
        rows.add("Max V [600]", 0.5, None, rows.sources[0], {})
        complete(
            rows,
            b"Results\n\t1\t2\nA\t0.5\t?????\tMax V [600]\n\t0:10:22\t?????\tLagtime [600]\n\nA\tx\ty\tOther\n",
        )
        found = [(row["kind"], row["well"], row["value"]) for row in rows.measurements[1:]]
        self.assertEqual(found, [("Max V [600]", "A2", None)])
        self.assertEqual(rows.measurements[1]["metadata"]["reason"], "?????")
        self.assertEqual(
            rows.doubts, ["Lagtime [600]: results such as 0:10:22 and ????? are no numbers and were left out"]
        )


class Plates(unittest.TestCase):
    def test_an_average_names_all_its_plates(self) -> None:
        rows = rows_of("MOLDEV_SOFTMAX_PRO")
        context = {"well": None, "sample": "01", "metadata": {"plate": "P1"}}
        for kind, value in (("AvgOD", 3.4), ("OD", 3.3), ("OD", 3.5), ("AvgOD", 1.2)):
            rows.add(kind, value, None, context, {"is_calculated": True})
        complete(
            rows,
            b"Group: A\nSample\tWells\tOD\tAvgOD\tWellPlateName\n01\tA1\t3.3\t3.4\tP1\n \tB1\t3.5\t \tP2\n\n"
            b"Group: B\nSample\tWells\tAvgOD\tWellPlateName\n01\tC1\t1.2\tP1\n",
        )
        named = [(row["metadata"].get("plate"), row["metadata"].get("plates")) for row in rows.measurements]
        self.assertEqual(named, [(None, ["P1", "P2"]), ("P1", None), ("P1", None), ("P1", None)])


class TimesOfRows(unittest.TestCase):
    def test_a_row_has_its_time_in_utc(self) -> None:
        rows = rows_of("AGILENT_GEN5")
        for time in ("2026-07-01T12:00:00.5+02:00", "2026-07-01T12:00:00+00:00", None):
            rows.add("absorbance", 0.5, None, {"measured_at": time}, {})
        found = [row["measured_at"] for row in rows.measurements]
        self.assertEqual(found, ["2026-07-01T10:00:00.500000Z", "2026-07-01T12:00:00Z", None])


if __name__ == "__main__":
    unittest.main()
