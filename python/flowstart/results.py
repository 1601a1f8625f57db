"""Results: tables for pandas, polars and pyarrow, text for terminals, figures for notebooks."""

from __future__ import annotations

import html
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flowstart import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

#: Lines of a picture that are named at most.
_MOST_NAMED = 12

#: What the summary of a race shows: measure, heading, digits.
_SHOWN = (
    ("exit_rtts", "exit (RTT)", 1),
    ("delay_p99_ms", "P99 delay (ms)", 2),
    ("lost_before_exit", "lost before exit", 1),
)


#: Columns of a race's runs that are no measures.
_NO_MEASURES = ("contestant", "run", "exit_reasons", "queue")


def _cell(value: Any, digits: int = 2) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


#: Rows of a table that its text shows, and characters of a line.
_MOST_ROWS, _MOST_WIDE = 10, 100


def table_rows(table: _native.Table) -> list[list[str]]:
    """Give the head of a table, its first rows and how many more there are, as text."""
    names = table.column_names
    shown = min(len(table), _MOST_ROWS)
    columns = [[_cell(value, 6) for value in table.column(name)[:shown]] for name in names]
    return [names, *(list(row) for row in zip(*columns, strict=True))]


def table_text(table: _native.Table) -> str:
    """Show a table in a terminal."""
    rows = table_rows(table)
    names = rows[0]
    if not names:
        return "no columns"
    widths = [max(len(row[column]) for row in rows) + 2 for column in range(len(names))]
    fit = next((n for n in range(len(names)) if sum(widths[: n + 1]) > _MOST_WIDE), len(names))
    fit = max(fit, 1)
    shown = _text([row[:fit] for row in rows])
    if more := len(table) - (len(rows) - 1):
        shown += f"\n... {more} more rows"
    if names[fit:]:
        shown += f"\n... and the columns {', '.join(names[fit:])}"
    return shown


def table_html(table: _native.Table) -> str:
    """Show a table in a notebook."""
    rows = table_rows(table)
    more = len(table) - (len(rows) - 1)
    return _html(rows) + (f"<p>{more} more rows</p>" if more else "")


def _text(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *rest = row
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _html(rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head, *body = rows
    return (
        f"<table><thead>{line(head, 'th')}</thead><tbody>"
        + "".join(line(row, "td") for row in body)
        + "</tbody></table>"
    )


def _picture(plot: Callable[[], Figure], what: str) -> str:
    """The figure as an image for notebooks; nothing without matplotlib."""
    import base64
    import io

    try:
        figure = plot()
    except ImportError:
        return ""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, bbox_inches="tight")
    data = base64.b64encode(picture.getvalue()).decode("ascii")
    return f'<img alt="{what}" src="data:image/png;base64,{data}">'


class _NoSamples(ValueError):
    """There is nothing to draw."""


def _unknown(measure: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(measure, known, 3) or known[:3]
    return f'this race has no measure "{measure}"; did you mean {", ".join(near)}?'


class _Pickled:
    """What a race brought, in the place of the native result that it was taken from."""

    def __init__(
        self, runs: _native.Table, series: _native.Table, text: str, complete: bool
    ) -> None:
        self._runs, self._series, self._text, self._complete = runs, series, text, complete

    def runs(self) -> _native.Table:
        return self._runs

    def series(self) -> _native.Table:
        return self._series

    def to_json(self) -> str:
        return self._text

    def complete(self) -> bool:
        return self._complete


class RaceResult:
    """The result of a race: `runs` and `series` as tables, `document` as the JSON document.

    It can be pickled, and so go from one process to another.
    """

    def __init__(self, native: _native.RaceResult, remarks: list[str] | None = None) -> None:
        self._native: _native.RaceResult | _Pickled = native
        #: What the command said beside its data.
        self.remarks = remarks or []

    def __getstate__(self) -> tuple[_Pickled, list[str]]:
        return _Pickled(self.runs, self.series, self.to_json(), self.complete), self.remarks

    def __setstate__(self, state: tuple[_Pickled, list[str]]) -> None:
        self._native, self.remarks = state

    @cached_property
    def runs(self) -> _native.Table:
        """A row per contestant and run, a column per measure (docs/measures.md).

        Behind them `exit_reasons`, of every newcomer, and `queue`.
        """
        return self._native.runs()

    @cached_property
    def series(self) -> _native.Table:
        """What the pictures show: contestant, what, time in round trips, value, time in seconds.

        Of several runs the value is the median, and four fifths of them lie between low and high.
        """
        return self._native.series()

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document that ``flowstart compare --json`` prints."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    @property
    def complete(self) -> bool:
        """False if the race was stopped before its end."""
        return self._native.complete()

    def to_json(self) -> str:
        """Give the document as text: the same bytes as the command line's."""
        return self._native.to_json()

    def mean(self, measure: str) -> dict[str, float | None]:
        """Give the mean of a measure over all runs that have it, by contestant.

        Raises:
            ValueError: if this race has no such measure; the nearest names are given.
        """
        known = [name for name in self.runs.column_names if name not in _NO_MEASURES]
        if measure not in known:
            raise ValueError(_unknown(measure, known))
        values: dict[str, list[float]] = {}
        for who, value in zip(
            self.runs.column("contestant"), self.runs.column(measure), strict=True
        ):
            found = values.setdefault(str(who), [])
            if isinstance(value, float):
                found.append(value)
        return {who: sum(all_) / len(all_) if all_ else None for who, all_ in values.items()}

    def _rows(self) -> list[list[str]]:
        names = self.runs.column_names
        shown = [one for one in _SHOWN if one[0] in names]
        times = [name for name in names if name.startswith("completion_") and name.endswith("_ms")]
        shown += [(name, name.removesuffix("_ms").replace("_", " ") + " (ms)", 1) for name in times]
        means = [self.mean(name) for name, _, _ in shown]
        rows = [["contestant", *(heading for _, heading, _ in shown)]]
        for who in dict.fromkeys(str(who) for who in self.runs.column("contestant")):
            cells = (
                _cell(mean.get(who), digits)
                for mean, (_, _, digits) in zip(means, shown, strict=True)
            )
            rows.append([who, *cells])
        return rows

    def __repr__(self) -> str:
        return _text(self._rows())

    def _repr_html_(self) -> str:
        return _html(self._rows()) + _picture(self.plot, "rate and queueing delay over time")

    def plot(self) -> Figure:
        """Draw rate and queueing delay over round trips; of several runs the median and a band.

        Needs matplotlib.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        names = ("contestant", "what", "time_rtt", "value", "low", "high")
        columns = [self.series.column(name) for name in names]
        lines: dict[tuple[object, object], list[tuple[Any, ...]]] = {}
        for who, what, *point in zip(*columns, strict=True):
            lines.setdefault((who, what), []).append(tuple(point))
        for (who, what), points in lines.items():
            axis = {"throughput_mbit_s": above, "queue_ms": below}.get(str(what))
            if axis is None:
                continue
            times, values, low, high = zip(*points, strict=True)
            (line,) = axis.plot(times, values, label=str(who))
            if None not in low:
                axis.fill_between(times, low, high, color=line.get_color(), alpha=0.15)
        above.set_ylabel("throughput (Mbit/s)")
        above.legend(fontsize="small")
        below.set_ylabel("longest wait (ms)")
        below.set_xlabel("round trips after the first bit")
        return figure


class RunResult:
    """The tables of a scenario's results (docs/results.md), by name."""

    def __init__(
        self, name: str, tables: list[tuple[str, _native.Table]], remarks: list[str] | None = None
    ) -> None:
        self.name = name
        self.tables = dict(tables)
        #: What the command said beside its data.
        self.remarks = remarks or []

    def __getitem__(self, name: str) -> _native.Table:
        return self.tables[name]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(table)} rows" for name, table in self.tables.items())
        return f"{self.name} ({sizes})"

    def _repr_html_(self) -> str:
        rows = [["table", "rows", "columns"]]
        rows += [
            [name, str(len(table)), ", ".join(table.column_names)]
            for name, table in self.tables.items()
        ]
        try:
            picture = _picture(self.plot, "rates, windows and queueing delays over time")
        except _NoSamples:
            picture = ""
        return f"<p>{html.escape(self.name)}</p>{_html(rows)}{picture}"

    def plot(self, run: int = 0) -> Figure:
        """Draw rates and windows of flows and queueing delays of links over time, of one run.

        Needs matplotlib.
        """
        from matplotlib.figure import Figure

        samples = self.tables["samples"]
        columns = [
            samples.column(name)
            for name in (
                "run",
                "series",
                "t_s",
                "delivered_bps",
                "snd_cwnd_pkts",
                "sojourn_max_us",
            )
        ]
        panels = ("goodput (Mbit/s)", "window (packets)", "longest wait (ms)")
        scales = (1e-6, 1.0, 1e-3)
        figure = Figure(figsize=(8, 7), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True)
        lines: list[dict[object, tuple[list[Any], list[Any]]]] = [{} for _ in panels]
        for number, series, time, *values in zip(*columns, strict=True):
            if number != run:
                continue
            for known, value, scale in zip(lines, values, scales, strict=True):
                if value is not None:
                    times, heights = known.setdefault(series, ([], []))
                    times.append(time)
                    heights.append(value * scale)
        if not any(lines):
            raise _NoSamples(f"there is no run {run} with samples")
        for axis, label, known in zip(axes, panels, lines, strict=True):
            for series, (times, heights) in known.items():
                axis.plot(times, heights, label=str(series))
            axis.set_ylabel(label)
            if 0 < len(known) <= _MOST_NAMED:
                axis.legend(fontsize="small")
        axes[-1].set_xlabel("seconds")
        return figure
