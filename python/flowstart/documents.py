"""Documents of the command line with their tables, a summary and a picture."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flowstart import _native
from flowstart.results import _MOST_NAMED, _cell, _html, _picture, _text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERDICTS = ("reproduced", "differs", "undecided", "under_specified")

Row = dict[str, Any]


def _flat(row: Mapping[str, Any], before: str = "") -> Row:
    """Name what lies deeper by its whole way: ``parts.network.mean_s``. Lists become JSON."""
    flat: Row = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = json.dumps(value) if isinstance(value, list) else value
    return flat


def _table(rows: Iterable[Mapping[str, Any]]) -> _native.Table:
    flat = [_flat(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return _native.table_of([(name, [row.get(name) for row in flat]) for name in names])


class Document(dict[str, Any]):
    """A JSON document of the command line, with its text as it was printed."""

    def __init__(self, text: bytes, remarks: list[str]) -> None:
        super().__init__(json.loads(text))
        #: The bytes that the command line prints.
        self.text = text.decode("utf-8")
        #: What the command said beside its data.
        self.remarks = remarks

    @cached_property
    def tables(self) -> dict[str, _native.Table]:
        """What the document lists, as tables for pandas, polars and pyarrow, by name."""
        lists = self._lists() if self._whole() else {}
        return {name: _table(rows) for name, rows in lists.items() if rows}

    #: What a document of its kind has; lists and plans, which commands print too, have not.
    _has: str | None = None

    def _whole(self) -> bool:
        found = self.get(self._has) if self._has is not None else None
        return isinstance(found, list) and all(isinstance(one, Mapping) for one in found)

    def _lists(self) -> dict[str, list[Row]]:
        return {}

    def _summary(self) -> list[list[str]]:
        return []

    def __repr__(self) -> str:
        rows = self._summary() if self._whole() else []
        return _text(rows) if len(rows) > 1 else f"{type(self).__name__}({', '.join(self)})"

    def _repr_html_(self) -> str:
        rows = self._summary() if self._whole() else []
        if len(rows) < 2:
            return f"<pre>{type(self).__name__}</pre>"
        return _html(rows) + _picture(self.plot, "what the document says")

    def plot(self) -> Figure:
        """Draw what the document says. Needs matplotlib."""
        if not self._whole():
            raise ValueError("this document has no picture")
        return self._draw()

    def _draw(self) -> Figure:
        raise ValueError("this document has no picture")


class Frontier(Document):
    """What `flowstart.frontier` brings.

    Tables: "cells", a row per contestant and path with its measures, and "contestants", their
    medians over all paths.
    """

    _has = "contestants"

    def _lists(self) -> dict[str, list[Row]]:
        contestants = self["contestants"]
        first = dict.fromkeys(("contestant", "path", "capacity", "rtt", "buffer", "load"))
        cells = [
            {**first, **cell, "contestant": one["contestant"]}
            for one in contestants
            for cell in one["cells"]
        ]
        keys = ("contestant", "on_the_front", "lost_caused", "lost_caused_idle")
        medians = [{**{key: one.get(key) for key in keys}, **one["medians"]} for one in contestants]
        return {"cells": cells, "contestants": medians}

    def _summary(self) -> list[list[str]]:
        heads = ["contestant", "completion", "added delay", "cells", "on the front"]
        rows = [
            [
                one["contestant"],
                _cell(one["medians"].get("completion_ratio")),
                _cell(one["medians"].get("delay_ratio")),
                str(len(one["cells"])),
                "yes" if one.get("on_the_front") else "",
            ]
            for one in self["contestants"]
        ]
        return [heads, *rows]

    def _draw(self) -> Figure:
        """Draw completion and added delay, over the reference's; medians over all paths."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 5), layout="constrained")
        axis = figure.subplots()
        for one in self["contestants"]:
            delay, time = (one["medians"].get(f"{name}_ratio") for name in ("delay", "completion"))
            if delay is not None and time is not None:
                axis.plot([delay], [time], "o" if one.get("on_the_front") else ".")
                axis.annotate(one["contestant"], (delay, time), fontsize="x-small")
        axis.set_xlabel("added delay over the reference's")
        axis.set_ylabel("completion time over the reference's")
        return figure


class Reproduction(Document):
    """What `flowstart.reproduce` brings.

    Tables: "claims", a row per claim with its verdict, and "papers", how many came out how.
    """

    def _whole(self) -> bool:
        return isinstance(self.get("papers"), Mapping)

    def _lists(self) -> dict[str, list[Row]]:
        claims = [
            {"figure": figure["figure"], **claim}
            for figure in self["figures"]
            for claim in figure["claims"]
        ]
        papers = [
            {"paper": paper, "origin": origin, **counts}
            for paper, origins in self["papers"].items()
            for origin, counts in origins.items()
        ]
        return {"claims": claims, "papers": papers}

    def _summary(self) -> list[list[str]]:
        rows = [
            [row["paper"], row["origin"], *(str(row[verdict]) for verdict in _VERDICTS)]
            for row in self._lists()["papers"]
        ]
        return [["paper", "whose claims", *(one.replace("_", "-") for one in _VERDICTS)], *rows]

    def _draw(self) -> Figure:
        """Draw how many claims of each paper came out how."""
        from matplotlib.figure import Figure

        rows = self._lists()["papers"][::-1]
        figure = Figure(figsize=(7, 1 + 0.4 * len(rows)), layout="constrained")
        axis = figure.subplots()
        names = [f"{row['paper']} ({row['origin']})" for row in rows]
        left = [0] * len(rows)
        for verdict in _VERDICTS:
            counts = [row[verdict] for row in rows]
            axis.barh(names, counts, left=left, label=verdict.replace("_", "-"))
            left = [before + count for before, count in zip(left, counts, strict=True)]
        axis.set_xlabel("claims")
        axis.legend(fontsize="small")
        return figure


class AttainableRate(Document):
    """What `flowstart.attainable_rate` brings.

    Tables: "attainable_rate", the curve with its band; "probes", a row per rate that was tried;
    "startup", what a new connection transfers by when.
    """

    _has = "results"

    def _lists(self) -> dict[str, list[Row]]:
        def of(name: str) -> list[Row]:
            found = ((one["label"], one.get(name) or []) for one in self["results"])
            return [
                {"label": label, **row}
                for label, part in found
                for row in (part.get("points", []) if isinstance(part, Mapping) else part)
            ]

        return {name: of(name) for name in ("attainable_rate", "probes", "startup")}

    def _summary(self) -> list[list[str]]:
        def rate(bps: float | None) -> str:
            return _cell(None if bps is None else bps / 1e6)

        rows = [
            [one["label"], rate(one["long_term_rate_bps"]), rate(one.get("too_high_bps"))]
            for one in self["results"]
        ]
        return [["label", "long-term rate (Mbit/s)", "too high (Mbit/s)"], *rows]

    def _draw(self) -> Figure:
        """Draw the rate that can be relied on over the length of an interval."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axis = figure.subplots()
        for one in self["results"]:
            points = [point for point in one["attainable_rate"] if point["bps"]]
            times = [point["t_s"] for point in points]
            (line,) = axis.plot(times, [point["bps"] / 1e6 for point in points], label=one["label"])
            low, high = (
                [(point[key] or 0) / 1e6 for point in points] for key in ("low_bps", "high_bps")
            )
            axis.fill_between(times, low, high, color=line.get_color(), alpha=0.2)
        axis.set_xscale("log")
        axis.set_xlabel("interval (s)")
        axis.set_ylabel("attainable rate (Mbit/s)")
        if len(self["results"]) <= _MOST_NAMED:
            axis.legend(fontsize="small")
        return figure


class Chirp(Document):
    """What `flowstart.explain_chirp` brings. Table: "packets", a row for each."""

    _has = "packets"

    def _lists(self) -> dict[str, list[Row]]:
        return {"packets": [{"packet": None, "part": None, **one} for one in self["packets"]]}

    def _summary(self) -> list[list[str]]:
        rows = []
        for name in ("published", "own"):
            bps = self[name].get("rate_bps")
            rows.append([name, _cell(None if bps is None else bps / 1e6)])
        return [["reading", "rate (Mbit/s)"], *rows]

    def _draw(self) -> Figure:
        """Draw the queueing delay of each packet over the time at which it left."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axis = figure.subplots()
        seen = [packet for packet in self["packets"] if packet["delay_ns"] is not None]
        times = [packet["sent_ns"] / 1e6 for packet in seen]
        axis.plot(times, [packet["delay_ns"] / 1e6 for packet in seen], "o-")
        axis.set_xlabel("left at (ms)")
        axis.set_ylabel("queueing delay (ms)")
        return figure
