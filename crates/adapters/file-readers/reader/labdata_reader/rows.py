"""Rows of measurements and points of curves out of an ASM document.

ASM is the Allotrope Simple Model: nested JSON in which `{"value", "unit"}` is a quantity and a `… data cube`
is a curve. Every quantity of a measurement becomes one row, every curve one row with points.
"""

from __future__ import annotations

import hashlib
from typing import Any, Iterator

from .invalid import Flaw, Judge, flaws, reason_of
from .times import Times, in_utc
from .units import unit_of

# Parts of a measurement that say how it was done, not what was found.
CONTEXT = {
    "device control aggregate document",
    "sample document",
    "data processing document",
    "custom information document",
    "image aggregate document",
    "error aggregate document",
    "calculated data aggregate document",
}

# Quantities beside a measurement that are no results.
CONDITIONS = {"compartment temperature"}


class Rows:
    """Rows of one document."""

    def __init__(self, reader: str, content: bytes, times: Times) -> None:
        self.reader = reader
        self.times = times
        self.judge = Judge(content)
        self.digest = hashlib.sha256(content).hexdigest()[:40]
        self.measurements: list[dict[str, Any]] = []
        self.curves: list[dict[str, Any]] = []
        self.doubts: list[str] = []
        self.contexts: dict[str, dict[str, Any]] = {}
        # Labels of the parts of measurements, by the ids to which calculated values refer.
        self.labels: dict[str, dict[str, Any]] = {}
        # Contexts of all measurements, in order.
        self.sources: list[dict[str, Any]] = []
        self.device: dict[str, Any] = {}

    def take(self, document: dict[str, Any]) -> None:
        """Adds the rows of a document."""
        for name, body in document.items():
            if not name.endswith("aggregate document") or not isinstance(body, dict):
                continue
            self.device = device_of(body)
            for groups in [value for key, value in body.items() if is_list_of_groups(key, value)]:
                for group in groups:
                    self._take_group(group)
            self._take_calculated(body, {})

    def _take_group(self, group: dict[str, Any]) -> None:
        shared = group.get("measurement aggregate document")
        if not isinstance(shared, dict):
            return
        for measurement in shared.get("measurement document", []):
            context = self._context(shared, measurement)
            identifier = measurement.get("measurement identifier")
            self.sources.append(context)
            before = len(self.measurements)
            found = flaws(measurement)
            self._take_node(measurement, context, found, {})
            if isinstance(identifier, str):
                # Calculated values refer to the measurement; analytes have ids of their own.
                for known, labels in identifiers(measurement, {}):
                    self.contexts[known] = context
                    self.labels[known] = labels
            if before == len(self.measurements) and found:
                self.add("measurement", None, None, context, {"reason": reason_of(found[0].text)})
            self._take_calculated(measurement, context)
        self._take_calculated(shared, {})

    def _context(self, shared: dict[str, Any], measurement: dict[str, Any]) -> dict[str, Any]:
        sample = measurement.get("sample document", {})
        control = first(measurement, "device control aggregate document", "device control document")
        metadata: dict[str, Any] = {}
        for key, name in (
            ("well plate identifier", "plate"),
            ("sample role type", "role"),
            ("batch identifier", "batch"),
        ):
            if sample.get(key):
                metadata[name] = sample[key]
        for key in ("detection type", "reporter dye setting", "detector gain setting"):
            if control.get(key) is not None:
                metadata[key.removesuffix(" setting").replace(" ", "_")] = control[key]
        excitation = quantity(control.get("excitation wavelength setting"))
        if excitation is not None:
            metadata["excitation_nm"] = excitation
        for key, value in measurement.items():
            if key in CONDITIONS and isinstance(value, dict):
                metadata[key.replace(" ", "_")] = value.get("value")
            elif key in ("target DNA description", "measurement method identifier") and value:
                metadata[key.replace(" ", "_")] = value
        messages = [flaw.text for flaw in flaws(measurement) if flaw.text]
        if messages:
            metadata["messages"] = list(dict.fromkeys(messages))[:20]
        return {
            "method": measurement.get("analytical method identifier")
            or shared.get("analytical method identifier"),
            "sample": sample.get("sample identifier"),
            "well": sample.get("well location identifier") or sample.get("location identifier"),
            "wavelength_nm": quantity(control.get("detector wavelength setting")),
            "measured_at": measurement.get("measurement time") or shared.get("measurement time"),
            "metadata": metadata,
            "flaws": flaws(measurement),
        }

    def _take_node(
        self, node: dict[str, Any], context: dict[str, Any], found: list[Flaw], labels: dict[str, Any]
    ) -> None:
        labels = labels | labels_of(node)
        found = found or flaws(node)
        for key, value in node.items():
            if key in CONTEXT or key in CONDITIONS:
                continue
            if isinstance(value, dict):
                if "value" in value and "unit" in value:
                    self._take_quantity(key, value, context, found, labels)
                elif key.endswith("data cube"):
                    self._take_cube(key, value, context, found, labels)
                else:
                    self._take_node(value, context, found, labels)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        self._take_node(item, context, found, labels)

    def _take_quantity(
        self, key: str, value: dict[str, Any], context: dict[str, Any], found: list[Flaw], labels: dict[str, Any]
    ) -> None:
        kind = labels.get("statistical_feature") if key == "statistical value" else key.split(" (")[0]
        kind = str(kind or key)
        extra = {name: label for name, label in labels.items() if name != "statistical_feature"}
        role = value.get("has statistic datum role")
        if role:
            extra["statistic"] = str(role).removesuffix(" role")
        number, reason = self.judge.value(value["value"], found, key)
        if reason is not None:
            extra["reason"] = reason
        self.add(kind, number, self._unit(kind, value["unit"]), context, extra)

    def _take_cube(
        self, key: str, cube: dict[str, Any], context: dict[str, Any], found: list[Flaw], labels: dict[str, Any]
    ) -> None:
        structure, data = cube.get("cube-structure", {}), cube.get("data", {})
        axes, names = structure.get("dimensions", []), structure.get("measures", [])
        if len(axes) != 1:
            self.doubt(f"{key}: a curve has one axis, this one has {len(axes)}, and was left out")
            return
        x = [self.judge.point(value, None, [])[0] for value in data.get("dimensions", [[]])[0]]
        for name, values in zip(names, data.get("measures", [])):
            concept = str(name.get("concept") or key.removesuffix(" data cube"))
            points, invalid = [], []
            for position, value in zip(x, values):
                number, reason = self.judge.point(value, position, found)
                points.append(number)
                if reason is not None:
                    invalid.append({"x": position, "reason": reason})
            if len(values) != len(x):
                self.doubt(f"{key}: {len(values)} values for {len(x)} positions; the rest was left out")
            extra = dict(labels)
            if invalid:
                extra["invalid_points"] = invalid[:1000]
                extra["reason"] = invalid[0]["reason"]
            if cube.get("label"):
                extra["label"] = cube["label"]
            axis = axes[0]
            x_name = str(axis.get("concept") or "x")
            x_unit = self._unit(x_name, axis.get("unit"))
            y_unit = self._unit(concept, name.get("unit"))
            self.add(concept, None, y_unit, context, extra, (x_name, x_unit, concept, y_unit))
            self.curves.append({"measurement": len(self.measurements) - 1, "x": x[: len(points)], "y": points})

    def _take_calculated(self, node: dict[str, Any], context: dict[str, Any]) -> None:
        documents = node.get("calculated data aggregate document", {}).get("calculated data document", [])
        for document in documents:
            result = document.get("calculated result")
            if not isinstance(result, dict):
                continue
            name = str(document.get("calculated data name", "calculated value"))
            sources = [
                self.contexts[identifier]
                for identifier in source_identifiers(document)
                if identifier in self.contexts
            ]
            source = context or common(sources)
            labels = [self.labels.get(identifier, {}) for identifier in source_identifiers(document)]
            own = flaws(document)
            flawed = own or [flaw for flaw in source.get("flaws", []) if flaw.feature == name]
            number, reason = self.judge.value(result.get("value"), flawed, name)
            extra: dict[str, Any] = {"is_calculated": True, **common_labels(labels)}
            if reason is not None:
                extra["reason"] = reason
            self.add(name, number, self._unit(name, result.get("unit")), source, extra)

    def add(
        self,
        kind: str,
        value: float | None,
        unit: str | None,
        context: dict[str, Any],
        extra: dict[str, Any],
        axes: tuple[Any, ...] = (None, None, None, None),
    ) -> None:
        """Adds a row."""
        metadata = {"reader": self.reader, **context.get("metadata", {}), **extra}
        measured_at = context.get("measured_at")
        if measured_at in self.times.unclear:
            metadata["measured_at_reason"] = f"{measured_at}: {self.times.unclear[measured_at]}"
            measured_at = None
        elif isinstance(measured_at, str):
            measured_at = in_utc(measured_at)
        self.measurements.append(
            {
                "key": f"{self.digest}-{self.reader}-{len(self.measurements)}",
                "device": self.device.get("device"),
                "vendor": self.device.get("vendor"),
                "method": text(context.get("method")),
                "kind": kind,
                "sample": text(context.get("sample")),
                "well": text(context.get("well")),
                "value": value,
                "unit": unit,
                "wavelength_nm": context.get("wavelength_nm"),
                "measured_at": measured_at,
                "x_name": axes[0],
                "x_unit": axes[1],
                "y_name": axes[2],
                "y_unit": axes[3],
                "metadata": metadata,
            }
        )

    def _unit(self, quantity_name: str, given: object) -> str | None:
        unit, is_certain = unit_of(self.reader, quantity_name, given)
        if not is_certain:
            self.doubt(f"{quantity_name}: the unit {given} is not certain and was left out")
        return unit

    def doubt(self, message: str) -> None:
        """Adds a doubt."""
        if message not in self.doubts and len(self.doubts) < 50:
            self.doubts.append(message)


def device_of(body: dict[str, Any]) -> dict[str, Any]:
    """Returns device and vendor of a document."""
    device = body.get("device system document", {})
    names = [device.get(key) for key in ("device identifier", "model number", "equipment serial number")]
    known = list(dict.fromkeys(str(name) for name in names if name not in (None, "", "N/A")))
    vendor = device.get("product manufacturer") or device.get("brand name")
    software = body.get("data system document", {}).get("software name")
    return {"device": " ".join(known) or None, "vendor": text(vendor or software)}


def is_list_of_groups(key: str, value: object) -> bool:
    """Returns true for the list of a technique's documents."""
    return key.endswith(" document") and isinstance(value, list) and all(isinstance(it, dict) for it in value)


def labels_of(node: dict[str, Any]) -> dict[str, Any]:
    """Returns the names by which the quantities of a node differ from others of the measurement."""
    wanted = {
        "analyte name": "analyte",
        "assay bead identifier": "bead",
        "statistical feature": "statistical_feature",
        "peak name": "peak",
        "peak index": "peak_index",
        "written name": "name",
        "distribution identifier": "distribution",
        "feature": "feature",
    }
    return {name: node[key] for key, name in wanted.items() if isinstance(node.get(key), (str, int, float))}


def identifiers(node: object, labels: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the ids of a measurement and of its parts, to which calculated values refer, and their labels."""
    if isinstance(node, dict):
        labels = labels | labels_of(node)
        for key, value in node.items():
            if key.endswith("identifier") and isinstance(value, str):
                yield value, labels
            else:
                yield from identifiers(value, labels)
    elif isinstance(node, list):
        for item in node:
            yield from identifiers(item, labels)


def source_identifiers(document: dict[str, Any]) -> list[str]:
    """Returns the ids of what a calculated value was calculated from."""
    sources = document.get("data source aggregate document", {}).get("data source document", [])
    return [str(source.get("data source identifier")) for source in sources]


def common_labels(labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the labels that all sources of a calculated value share, but for the statistic it was made of."""
    if not labels:
        return {}
    first_one, *others = labels
    return {
        name: label
        for name, label in first_one.items()
        if name != "statistical_feature" and all(it.get(name) == label for it in others)
    }


def common(contexts: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what all sources of a calculated value share."""
    if not contexts:
        return {}
    first_one, *others = contexts
    shared = {key: value for key, value in first_one.items() if all(it.get(key) == value for it in others)}
    if "metadata" not in shared:
        metadata = first_one.get("metadata", {})
        shared["metadata"] = {
            key: value for key, value in metadata.items() if all(it.get("metadata", {}).get(key) == value for it in others)
        }
    return shared


def first(node: dict[str, Any], aggregate: str, document: str) -> dict[str, Any]:
    """Returns the first document of an aggregate."""
    documents = node.get(aggregate, {}).get(document, [])
    return documents[0] if documents and isinstance(documents[0], dict) else {}


def quantity(value: object) -> float | None:
    """Returns the number of a quantity."""
    number = value.get("value") if isinstance(value, dict) else None
    return float(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def text(value: object) -> str | None:
    """Returns a text; allotropy writes N/A where there is none."""
    return None if value in (None, "", "N/A") else str(value)
