"""What the native part has."""

from collections.abc import Callable, Sequence
from typing import final

__all__ = [
    "MOST_SHARDS",
    "Ack",
    "Environments",
    "RaceResult",
    "Round",
    "Table",
    "Window",
    "call",
    "check",
    "compare",
    "register_avoidance",
    "register_policy",
    "register_start",
    "rough_names",
    "rough_path",
    "run",
    "table_from",
    "table_of",
    "version",
    "working_threads",
]

#: Pieces that a grid is cut into at most.
MOST_SHARDS: int

_Progress = Callable[[int, int], object] | None

@final
class Ack:
    """What an ACK says. Times in seconds; packets where nothing else is said."""

    now: float
    acked: int
    acked_bytes: int
    marked: int
    lost: int
    rtt: float | None
    srtt: float | None
    min_rtt: float | None
    in_flight: int
    packets_out: int
    delivered: int
    delivery_rate: float | None
    cwnd_limited: bool
    app_limited: bool

@final
class Round:
    """What a round trip showed. Times in seconds, counts in packets."""

    number: int
    now: float
    duration: float
    acked: int
    lost: int
    marked: int
    first_rtt: float | None
    last_rtt: float | None
    smallest_rtt: float | None
    min_rtt: float | None
    in_flight: int

@final
class Window:
    """Congestion window and slow-start threshold, in packets.

    Both can be set by the methods that decide about the window, until they return; elsewhere that
    is an AttributeError.
    """

    cwnd: int
    ssthresh: int
    def slow_start(self, acked: int) -> int: ...

@final
class Table:
    """A table in Arrow's memory layout."""

    column_names: list[str]
    def column(self, name: str) -> list[object]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[object, tuple[list[tuple[str, str, object]]]]: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class RaceResult:
    """The result of a race."""

    def to_json(self) -> str: ...
    def runs(self) -> Table: ...
    def series(self) -> Table: ...
    def complete(self) -> bool: ...

@final
class Environments:
    """Simulations side by side, advanced by an interval each."""

    def __new__(
        cls,
        kind: str,
        count: int,
        delay_weight: float,
        loss_weight: float,
        tail: int,
        steps: int,
        threads: int,
    ) -> Environments: ...
    def reset(self, index: int, toml: str, capacity: float, seed: int) -> list[float]: ...
    def step(
        self,
        actions: object,
        skip: object,
        written: tuple[object, object, object, object],
    ) -> None: ...

def call(
    arguments: Sequence[str], progress: _Progress = None
) -> tuple[int, bytes, str, list[str]]: ...
def compare(
    arguments: Sequence[str], progress: _Progress = None, texts: dict[str, str] | None = None
) -> tuple[RaceResult, list[str], str | None]: ...
def run(
    arguments: Sequence[str], progress: _Progress = None, texts: dict[str, str] | None = None
) -> tuple[list[tuple[str, list[tuple[str, Table]]]], list[str]]: ...
def table_from(columns: Sequence[tuple[str, str, Sequence[object]]]) -> Table: ...
def table_of(columns: Sequence[tuple[str, Sequence[object]]]) -> Table: ...
def check(contestant: str) -> None: ...
def register_start(
    name: str, about: str, factory: Callable[[int, int, int], object], draws: bool
) -> None: ...
def register_avoidance(
    name: str, about: str, factory: Callable[[int, int, int], object], ecn: bool, draws: bool
) -> None: ...
def register_policy(
    kind: str, name: str, about: str, callable: Callable[[list[float]], Sequence[float]]
) -> None: ...
def rough_names() -> list[str]: ...
def rough_path(name: str, capacity: float | None = None) -> tuple[str, float, float]: ...
def version() -> str: ...
def working_threads() -> list[int]: ...
