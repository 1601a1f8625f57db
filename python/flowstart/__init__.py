"""flowstart: how new flows get up to speed, simulated packet by packet.

>>> import flowstart
>>> race = flowstart.compare(["hystart+cubic", "slow_start+cubic"], capacity="20 Mbit/s")
>>> print(race)  # doctest: +SKIP

Functions take what the options of the command line take, as keywords: ``capacity="1 Gbit/s"``,
``rtt="50 ms"``, ``buffer="0.5 BDP"``, ``runs=10``. Numbers are in the unit that the documentation
of each function gives.
"""

from flowstart import _leaving as _leaving
from flowstart._native import Ack, Round, Table, Window, version
from flowstart.algorithms import (
    CongestionAvoidance,
    Exit,
    FlowStart,
    register,
)
from flowstart.commands import (
    attainable_rate,
    check,
    command,
    compare,
    explain_chirp,
    frontier,
    names,
    reproduce,
    run,
)
from flowstart.documents import AttainableRate, Chirp, Document, Frontier, Reproduction
from flowstart.results import RaceResult, RunResult
from flowstart.scenario import Flow, Path, Scenario

__version__ = version()

__all__ = [
    "Ack",
    "AttainableRate",
    "Chirp",
    "CongestionAvoidance",
    "Document",
    "Exit",
    "Flow",
    "FlowStart",
    "Frontier",
    "Path",
    "RaceResult",
    "Reproduction",
    "Round",
    "RunResult",
    "Scenario",
    "Table",
    "Window",
    "attainable_rate",
    "check",
    "command",
    "compare",
    "explain_chirp",
    "frontier",
    "names",
    "register",
    "reproduce",
    "run",
]
