"""Figures of growth curves, and the table that shows them."""

from typing import NamedTuple, Optional

SLOPE_READS = 7
"""Number of reads per slope, enough to average out the noise of one read."""
CURVE_WIDTH = 40
"""Width of a curve, in characters."""
BARS = "▁▂▃▄▅▆▇█"


class Growth(NamedTuple):
    """Figures of one well. None depends on the background, which an export does not contain."""

    start_od: Optional[float]
    max_od: Optional[float]
    max_od_per_h: Optional[float]

    @classmethod
    def of(cls, hours, values):
        """Compute the figures of a well whose values were read at `hours`."""
        points = [(hour, value) for hour, value in zip(hours, values) if value is not None]
        ods = [value for _, value in points]
        slopes = [slope(points[i : i + SLOPE_READS]) for i in range(len(points) - SLOPE_READS + 1)]
        return cls(
            start_od=ods[0] if ods else None,
            max_od=max(ods, default=None),
            max_od_per_h=max(slopes, default=None),
        )


def slope(points):
    """Compute the slope of the least-squares line."""
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    above = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return above / sum((x - x_mean) ** 2 for x, _ in points)


def report(export):
    """Render a table of all wells; all curves have the same scale."""
    measured = [value for values in export.wells.values() for value in values if value is not None]
    low, high = min(measured, default=0.0), max(measured, default=1.0)
    title = f"curve (all wells from {low:.3f} to {high:.3f})"
    lines = [f"  well  points  start OD  max OD  max OD/h  {title}"]
    for well, values in export.wells.items():
        figures = ["-" if it is None else f"{it:.3f}" for it in Growth.of(export.hours, values)]
        points = sum(value is not None for value in values)
        curve = sparkline(values, CURVE_WIDTH, low, high)
        start, greatest, rate = figures
        lines.append(f"  {well:<4}  {points:>6}  {start:>8}  {greatest:>6}  {rate:>8}  {curve}".rstrip())
    return "\n".join(lines)


def sparkline(values, width, low, high):
    """Draw a curve in at most `width` characters, each the mean of its share of the values."""
    width = min(width, len(values))
    curve = ""
    for column in range(width):
        share = values[column * len(values) // width : (column + 1) * len(values) // width]
        present = [value for value in share if value is not None]
        curve += bar(sum(present) / len(present), low, high) if present else " "
    return curve


def bar(value, low, high):
    """Return one of eight bars; values outside of the scale stay within the bars."""
    if high == low:
        return BARS[0]
    step = int((value - low) / (high - low) * len(BARS))
    return BARS[max(0, min(step, len(BARS) - 1))]
