"""Every value of the files, against what the test itself reads in their texts."""

from __future__ import annotations

import csv
import io
import re
import unittest

from .files import DEMO, curves_of, reading_of, real_file, values_of

NOTHING = {"", "?????", "OVRFLW"}


def gen5_table(text: str) -> tuple[list[float], dict[str, list[float | None]]]:
    """Returns the seconds and the values by well of a kinetic export."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Time\tT"))
    wells = lines[start].split("\t")[2:]
    seconds: list[float] = []
    values: dict[str, list[float | None]] = {well: [] for well in wells}
    for line in lines[start + 1 :]:
        cells = line.split("\t")
        if len(cells) < 3 or not cells[2]:
            break
        hours, minutes, rest = map(int, cells[0].split(":"))
        seconds.append(hours * 3600 + minutes * 60 + rest)
        for well, cell in zip(wells, cells[2:]):
            values[well].append(None if cell in NOTHING else float(cell))
    return seconds, values


class Gen5(unittest.TestCase):
    def check_curves(self, reading: dict, text: str, measured_at: str) -> None:
        seconds, expected = gen5_table(text)
        self.assertIn("Absorbance", text)
        self.assertNotIn("mAU", text)
        found = curves_of(reading)
        self.assertEqual([row["well"] for row, *_ in found], list(expected))
        for row, x, y in found:
            self.assertEqual((x, y), (seconds, expected[row["well"]]), row["well"])
            units = [row[name] for name in ("kind", "unit", "x_name", "x_unit", "y_name", "y_unit")]
            self.assertEqual(units, ["absorbance", "OD", "elapsed time", "s", "absorbance", "OD"])
            self.assertEqual((row["value"], row["wavelength_nm"]), (None, 600.0))
            self.assertEqual(row["measured_at"], measured_at)

    def test_growth_curves_and_what_was_calculated_of_them(self) -> None:
        file = real_file("gen5_kinetic_growth_curve.txt")
        reading, text = reading_of(file, zone="America/New_York"), file.read_text("utf-8")
        self.assertEqual((reading["reader"], reading["candidates"]), ("AGILENT_GEN5", ["AGILENT_GEN5"]))
        self.check_curves(reading, text, "2023-09-15T16:30:01Z")
        self.assertEqual(
            reading["doubts"],
            [
                "t at Max V [600]: results such as 10:10:22 are no numbers and were left out",
                "Lagtime [600]: results such as 10:08:22 and ????? are no numbers and were left out",
            ],
        )
        results: dict[str, dict[str, float]] = {}
        row_name = ""
        for line in text.split("\nResults\n")[1].splitlines()[1:]:
            cells = line.split("\t")
            row_name = cells[0] or row_name
            for column, cell in enumerate(cells[1:7], 1):
                if re.fullmatch(r"-?[0-9.]+", cell):
                    results.setdefault(cells[7], {})[f"{row_name}{column}"] = float(cell)
        self.assertEqual(sorted(results), ["Max V [600]", "R-Squared [600]"])
        for kind, expected in results.items():
            found = {row["well"]: row["value"] for row in values_of(reading, kind)}
            self.assertEqual(found, expected)
        self.assertEqual(len(reading["measurements"]), 24 + 48)

    def test_an_overflow_is_null_with_its_reason(self) -> None:
        reading, text = reading_of(DEMO), DEMO.read_text("utf-8")
        self.assertEqual(text.count("OVRFLW"), 1)
        self.check_curves(reading, text, "2026-03-01T09:00:00Z")
        flawed = [row for row, _, y in curves_of(reading) if None in y]
        self.assertEqual([row["well"] for row in flawed], ["A1"])
        self.assertEqual(flawed[0]["metadata"]["reason"], "OVRFLW")
        self.assertEqual(flawed[0]["metadata"]["invalid_points"], [{"x": 42030.0, "reason": "OVRFLW"}])
        self.assertIn("name no zone", reading["doubts"][0])

    def test_a_measured_zero_is_no_overflow(self) -> None:
        text = DEMO.read_text("utf-8").replace("0:00:30\t37.0\t0.119\t0.102", "0:00:30\t37.0\t-0.000\t0.000")
        file = DEMO.with_name("zeros.txt")
        from labdata_reader.reading import read

        reading = read(text.encode(), file.name, "AGILENT_GEN5", None, None)
        by_well = {row["well"]: y for row, _, y in curves_of(reading)}
        self.assertEqual((by_well["A1"][0], by_well["A2"][0]), (0.0, 0.0))
        self.assertEqual(by_well["A1"].count(None), 1)

    def test_every_place_of_an_overflow_is_found(self) -> None:
        from labdata_reader.reading import read

        lines = DEMO.read_text("utf-8").splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("Time\tT"))
        for read_number, column in ((1, 2), (1, 25), (50, 10), (100, 2), (100, 25)):
            cells = lines[start + read_number].split("\t")
            cells[column] = "OVRFLW"
            changed = lines[:]
            changed[start + read_number] = "\t".join(cells)
            text = "\n".join(changed)
            reading = read(text.encode(), DEMO.name, "AGILENT_GEN5", None, None)
            seconds, expected = gen5_table(text)
            for row, x, y in curves_of(reading):
                self.assertEqual((x, y), (seconds, expected[row["well"]]), (read_number, column))


    def test_an_overflow_of_an_endpoint_is_null_beside_measured_zeros(self) -> None:
        from labdata_reader.reading import read

        # Simulated, in the layout of an endpoint export.
        text = "\n".join(
            (
                "\n\nSoftware Version\t3.12.08\n\n\n\nExperiment File Path:\tsimulated\nProtocol File Path:\tsimulated\n\n",
                "Plate Number\tPlate 1\nDate\t3/1/2026\nTime\t9:00:00 AM\nReader Type:\tSimulation",
                "Reader Serial Number:\t0\nReading Type\tReader\n\nProcedure Details\n\nPlate Type\t96 WELL PLATE",
                "Read\tAbsorbance Endpoint\n\tFull Plate\n\tWavelengths:  450\n\tRead Speed: Normal\n\nResults",
                "\t1\t2\t3\nA\t0.100\tOVRFLW\t-0.000\t450\nB\t0.200\t0.000\t0.300\t450\n",
            )
        )
        reading = read(text.encode(), "endpoint.txt", "auto", None, "UTC")
        found = {row["well"]: (row["value"], row["metadata"].get("reason")) for row in reading["measurements"]}
        self.assertEqual(
            found,
            {
                "A1": (0.1, None),
                "A2": (None, "OVRFLW"),
                "A3": (0.0, None),
                "B1": (0.2, None),
                "B2": (0.0, None),
                "B3": (0.3, None),
            },
        )
        self.assertEqual({(row["unit"], row["wavelength_nm"]) for row in reading["measurements"]}, {("OD", 450.0)})


class SoftMax(unittest.TestCase):
    def test_absorbances_of_two_plates(self) -> None:
        file = real_file("softmax_absorbance.txt")
        reading, text = reading_of(file), file.read_text("utf-16")
        self.assertEqual(reading["candidates"], ["MOLDEV_SOFTMAX_PRO"])
        self.assertIn("\tOD\t", text)
        expected: dict[tuple[str, str], float] = {}
        reduced: dict[tuple[str, str], float] = {}
        for block in text.split("~End")[:2]:
            lines = [line.split("\t") for line in block.strip("\ufeff\n").splitlines()]
            head = next(number for number, cells in enumerate(lines) if cells[0] == "Plate:")
            plate = lines[head][1]
            for target, number in ((expected, head + 1), (reduced, head + 4)):
                for well, cell in zip(lines[number], lines[number + 1]):
                    if re.fullmatch(r"[A-H][0-9]+", well) and cell:
                        target[plate, well] = float(cell)
        self.assertEqual(len(expected), 192)
        found = values_of(reading, "absorbance")
        self.assertEqual({(row["metadata"]["plate"], row["well"]): row["value"] for row in found}, expected)
        self.assertEqual({(row["unit"], row["wavelength_nm"]) for row in found}, {("OD", 450.0)})
        found = values_of(reading, "Reduced")
        self.assertEqual({(row["metadata"]["plate"], row["well"]): row["value"] for row in found}, reduced)
        self.check_averages(reading, text)
        saved = re.search(r"Date Last Saved: ([0-9/]+ [0-9:]+ [AP]M)", text)
        assert saved is not None
        self.assertEqual({row["measured_at"] for row in found}, {"2023-11-27T10:57:22Z"}, saved[1])

    def check_averages(self, reading: dict, text: str) -> None:
        expected = []
        for group in text.split("\nGroup: ")[1:]:
            lines = [[cell.strip() for cell in line.split("\t")] for line in group.splitlines()]
            if "AvgConc" not in lines[1]:
                continue
            column = lines[1].index("WellPlateName")
            for start in (at for at, cells in enumerate(lines) if cells[0].isdigit() and len(cells) > column):
                first = dict(zip(lines[1], lines[start]))
                plates = {lines[start][column]}
                for cells in lines[start + 1 :]:
                    if cells[0] or len(cells) <= column:
                        break
                    plates.add(cells[column])
                if first["AvgConc"]:
                    expected.append((first["Sample"], float(first["AvgConc"]), sorted(plates)))
        found = values_of(reading, "AvgConc")
        self.assertEqual(
            sorted((row["sample"], row["value"], row["metadata"]["plates"]) for row in found), sorted(expected)
        )
        self.assertEqual(len(found), 24)
        self.assertFalse([row for row in found if "plate" in row["metadata"]])
        by_well = values_of(reading, "BackCalcConc")
        self.assertEqual({row["metadata"]["plate"] for row in by_well}, {"Plate01", "Plate02"})


class NanoDrop(unittest.TestCase):
    def test_absorbances_concentrations_and_ratios(self) -> None:
        file = real_file("nanodrop_8000.txt")
        reading = reading_of(file, zone="Europe/Berlin")
        self.assertEqual(reading["candidates"], ["THERMO_FISHER_NANODROP_8000"])
        lines = file.read_text("ascii").splitlines()
        names = [name.strip() for name in lines[0].split("\t")]
        rows = []
        for line in lines[1:]:
            if not line:
                break
            rows.append(dict(zip(names, line.split("\t"))))
        self.assertEqual(len(rows), 39)
        for kind, column, unit in (
            ("absorbance", "A280 10mm", "OD"),
            ("mass concentration", "conc.", "mg/mL"),
            ("A260/280", "260/280", None),
        ):
            found = values_of(reading, kind)
            self.assertEqual([row["value"] for row in found], [float(row[column]) for row in rows], kind)
            self.assertEqual([row["well"] for row in found], [row["Well"] for row in rows])
            self.assertEqual({row["unit"] for row in found}, {unit})
        self.assertEqual({row["units"].lower() for row in rows}, {"mg/ml"})
        times = [re.sub(r" PM", "", row["Time"]).split(":") for row in rows]
        expected = [f"2022-09-01T{int(hour) + 10:02}:{minute}:00Z" for hour, minute in times]
        self.assertEqual([row["measured_at"] for row in values_of(reading, "absorbance")], expected)
        self.assertEqual(reading["doubts"], ["dates such as 9/1/2022 were read with the month first"])


class EnVision(unittest.TestCase):
    def test_counts_of_two_channels_and_their_ratio(self) -> None:
        file = real_file("envision_fluorescence.csv")
        reading, text = reading_of(file), file.read_text("ascii")
        self.assertEqual(reading["candidates"], ["PERKIN_ELMER_ENVISION"])
        matrices: dict[str, dict[str, float]] = {}
        name = ""
        for line in text.splitlines():
            cells = line.split(",")
            if line.startswith(("Results for", "Calculated results")):
                name = line
            elif not line:
                name = ""
            elif re.fullmatch(r"[A-H]", cells[0]) and name:
                for column, cell in enumerate(cells[1:13], 1):
                    if cell:
                        matrices.setdefault(name, {})[f"{cells[0]}{column}"] = float(cell)
        ratio, first, second = matrices.values()
        self.assertTrue(all("(Counts)" in name for name in list(matrices)[1:]))
        found = values_of(reading, "fluorescence")
        for wavelength, expected in ((665.0, first), (620.0, second)):
            of_channel = [row for row in found if row["wavelength_nm"] == wavelength]
            self.assertEqual({row["well"]: row["value"] for row in of_channel}, expected)
        self.assertEqual({row["unit"] for row in found}, {"counts"})
        self.assertEqual({row["measured_at"] for row in found}, {"2022-10-13T15:08:06Z"})
        calculated = [row for row in reading["measurements"] if row["metadata"].get("is_calculated")]
        self.assertEqual({row["well"]: row["value"] for row in calculated}, ratio)


class Luminex(unittest.TestCase):
    def test_two_readers_take_it_and_one_is_chosen(self) -> None:
        file = real_file("luminex_xponent.csv")
        unsure = reading_of(file)
        self.assertEqual(unsure["reader"], None)
        self.assertEqual(unsure["candidates"], ["LUMINEX_INTELLIFLEX", "LUMINEX_XPONENT"])
        known = reading_of(file, preferred="LUMINEX_XPONENT")
        self.assertEqual(known["reader"], "LUMINEX_XPONENT")
        self.assertEqual(known["measurements"], reading_of(file, "LUMINEX_XPONENT")["measurements"])

    def test_medians_and_counts_by_bead(self) -> None:
        file = real_file("luminex_xponent.csv")
        reading = reading_of(file, "LUMINEX_XPONENT", "UTC")
        sections: dict[str, list[dict[str, str]]] = {}
        rows = csv.reader(io.StringIO(file.read_text("ascii")))
        name, names = "", []
        for cells in rows:
            if cells[:1] == ["DataType:"]:
                name, names = cells[1], []
            elif cells[:1] == ["Location"]:
                names = cells
            elif name and names and cells and cells[0].startswith(("1(", "2(", "3(", "4(")):
                sections.setdefault(name, []).append(dict(zip(names, cells)))
        self.assertIn("Net MFI", sections)

        def expected(section: str) -> dict[tuple[str, str], float]:
            return {
                (row["Location"].split(",")[1].rstrip(")"), bead): float(row[bead])
                for row in sections[section]
                for bead in ("alpha", "bravo")
            }

        found = values_of(reading, "fluorescence")
        medians = {(row["well"], row["metadata"]["analyte"]): row["value"] for row in found}
        self.assertEqual(medians, expected("Median"))
        self.assertEqual({(row["unit"], row["metadata"]["statistic"]) for row in found}, {("MFI", "median")})
        self.assertEqual({row["measured_at"] for row in found}, {"2023-05-18T11:03:56Z"})
        counts = values_of(reading, "assay bead count")
        by_bead = {(row["well"], row["metadata"]["analyte"]): row["value"] for row in counts if "analyte" in row["metadata"]}
        self.assertEqual(by_bead, expected("Count"))
        totals = {row["well"]: row["value"] for row in counts if "analyte" not in row["metadata"]}
        self.assertEqual(
            totals,
            {row["Location"].split(",")[1].rstrip(")"): float(row["Total Events"]) for row in sections["Median"]},
        )
        net = values_of(reading, "Net MFI")
        by_bead = {(row["well"], row["metadata"]["analyte"]): row["value"] for row in net}
        self.assertEqual(by_bead, expected("Net MFI"))
        self.assertEqual({row["metadata"]["bead"] for row in net}, {"28", "35"})
        self.assertEqual({row["unit"] for row in net}, {"MFI"})
        warned = {row["well"] for row in found if row["metadata"].get("messages")}
        self.assertEqual(warned, {"A1"})


class QuantStudio(unittest.TestCase):
    def sections(self, text: str) -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {}
        for section in re.split(r"\n(?=\[)", text)[1:]:
            title, head, *lines = section.splitlines()
            names = head.split("\t")
            found[title.strip("[]")] = [
                dict(zip(names, (cell.strip() for cell in line.split("\t")))) for line in lines if line.strip()
            ]
        return found

    def test_amplification_curves_dyes_and_results(self) -> None:
        file = real_file("quantstudio_qpcr.txt")
        reading = reading_of(file)
        self.assertEqual(reading["candidates"], ["APPBIO_QUANTSTUDIO"])
        sections = self.sections(file.read_text("ascii"))
        wells = {row["Well"]: row["Well Position"] for row in sections["Sample Setup"]}
        expected: dict[tuple[str, str, str], tuple[list[float], list[float]]] = {}
        for row in sections["Amplification Data"]:
            for column, kind in (("Rn", "normalized reporter result"), ("Delta Rn", "baseline corrected reporter result")):
                key = (wells[row["Well"]], row["Target Name"], kind)
                x, y = expected.setdefault(key, ([], []))
                x.append(float(row["Cycle"]))
                y.append(float(row[column].replace(",", "")))
        dyes = {row["Target Name"]: row["Reporter"] for row in sections["Results"]}
        # The export has empty wells there, too.
        for row in (row for row in sections["Multicomponent Data"] if row["Well"] in wells):
            for target, dye in dyes.items():
                for column, label in ((dye, "reporter dye"), ("ROX", "passive reference dye")):
                    x, y = expected.setdefault((wells[row["Well"]], target, label), ([], []))
                    x.append(float(row["Cycle"]))
                    y.append(float(row[column].replace(",", "")))
        found = {}
        for row, x, y in curves_of(reading):
            kind = row["metadata"]["label"] if row["kind"] == "fluorescence" else row["kind"]
            found[row["well"], row["metadata"]["target_DNA_description"], kind] = (x, y)
        self.assertEqual(found, expected)
        self.assertEqual({row["measured_at"] for row, *_ in curves_of(reading)}, {"2010-10-01T05:44:54Z"})
        results = {(row["Well Position"], row["Target Name"]): row for row in sections["Results"]}
        for kind, column in (
            ("cycle threshold result", "CT"),
            ("normalized reporter result", "Rn"),
            ("amplification score", "Amp Score"),
            ("cq confidence", "Cq Conf"),
        ):
            measured = {
                (row["well"], row["metadata"]["target_DNA_description"]): row["value"] for row in values_of(reading, kind)
            }
            written = {
                key: None if row[column] == "Undetermined" else float(row[column]) for key, row in results.items()
            }
            self.assertEqual(measured, written, kind)
        undetermined = [row for row in values_of(reading, "cycle threshold result") if row["value"] is None]
        self.assertEqual(len(undetermined), 28)
        self.assertEqual({row["metadata"]["reason"] for row in undetermined}, {"Undetermined"})
        self.assertEqual(len({row["key"] for row in reading["measurements"]}), len(reading["measurements"]))


class ViCell(unittest.TestCase):
    def test_counts_of_cells(self) -> None:
        import openpyxl

        file = real_file("vicell_xr.xlsx")
        reading = reading_of(file)
        self.assertEqual(reading["candidates"], ["BECKMAN_VI_CELL_XR"])
        lines = list(openpyxl.load_workbook(file).active.iter_rows(values_only=True))
        start = next(number for number, line in enumerate(lines) if line[0] == "Sample ID")
        self.assertIn("/ml (x10^6)", lines[start + 1])
        samples = [line for line in lines[start + 2 :] if line[0]]
        self.assertEqual(len(samples), 16)
        for kind, column, unit in (
            ("total cell count", 11, "cell"),
            ("viable cell count", 12, "cell"),
            ("viability", 13, "%"),
            ("total cell density", 14, "10^6 cells/mL"),
            ("viable cell density", 15, "10^6 cells/mL"),
            ("average total cell diameter", 16, "µm"),
            ("average total cell circularity", 17, None),
        ):
            found = values_of(reading, kind)
            written = {line[0]: float(line[column]) for line in samples}
            self.assertEqual({row["sample"]: row["value"] for row in found}, written, kind)
            self.assertEqual({row["unit"] for row in found}, {unit}, kind)


if __name__ == "__main__":
    unittest.main()
