"""Units of what each reader finds, where allotropy names another one than the file.

allotropy labels every absorbance `mAU`, although it passes on the number of the file, which is in units of
absorbance. Tests compare this table with the texts of the files.
"""

from __future__ import annotations

# Quantities by reader. A unit of None: the file names none, and there is none to assume.
UNITS: dict[str, dict[str, str | None]] = {
    "AGILENT_GEN5": {"absorbance": "OD"},
    "MOLDEV_SOFTMAX_PRO": {"absorbance": "OD"},
    "THERMO_FISHER_NANODROP_8000": {"absorbance": "OD"},
    "THERMO_FISHER_NANODROP_EIGHT": {"absorbance": "OD"},
    "THERMO_FISHER_NANODROP_ONE": {"absorbance": "OD"},
    "PERKIN_ELMER_ENVISION": {"fluorescence": "counts", "luminescence": "counts"},
    "LUMINEX_XPONENT": {"fluorescence": "MFI", "Net MFI": "MFI"},
}

# What allotropy writes where there is no unit.
NO_UNIT = {"(unitless)", "unitless", "#", "N/A", ""}

# Units of absorbance that hold only if the number was scaled, which allotropy does not do.
UNCERTAIN = {"mAU"}


def unit_of(reader: str, quantity: str, given: object) -> tuple[str | None, bool]:
    """Returns the unit of a quantity, and whether it is certain."""
    known = UNITS.get(reader, {})
    if quantity in known:
        return known[quantity], True
    if not isinstance(given, str) or given in NO_UNIT:
        return None, True
    if given in UNCERTAIN:
        return None, False
    return given, True
