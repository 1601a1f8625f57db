"""Flow starts and congestion avoidances written in Python."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, overload

from flowstart import _native
from flowstart._native import Ack, Round, Window


@dataclass(frozen=True)
class Exit:
    """How a start hands over to congestion avoidance.

    Args:
        cwnd: window to go on with, in packets.
        ssthresh: threshold to go on with, in packets; the window unless given.
        reason: "delay", "pipe full", "delivery lag", "rate plateau", "loss", "marks",
            "threshold" or "limit".
        rate: pace at this rate at first, of payload, in bit/s.
    """

    cwnd: int
    ssthresh: int | None = None
    reason: str = "limit"
    rate: float | None = None


class _Connection:
    """What an algorithm knows of its connection.

    Attributes:
        initial_window: packets that the connection begins with.
        mss: payload of a full packet in bytes.
        seed: for randomness of its own; use no other.
    """

    initial_window: int
    mss: int
    seed: int


class FlowStart(_Connection):
    """A flow start. Without a method of its own it is standard slow start.

    It has `initial_window` (packets), `mss` (bytes) and `seed` once it is made.
    """

    def on_ack(self, ack: Ack, window: Window) -> Exit | None:
        """Take an ACK in, before the window grows; an `Exit` ends the start."""

    def on_round(self, round: Round, window: Window) -> Exit | None:
        """Take a whole round trip in; an `Exit` ends the start."""

    def grow(self, ack: Ack, window: Window) -> None:
        """Set `window.cwnd` for this ACK; returns nothing."""
        window.slow_start(ack.acked)

    def on_signal(self, now: float, signal: str, window: Window) -> str | int | None:
        """Answer "loss", "marks" or "timeout".

        Returns:
            `None` or "leave" to leave with the avoidance's reduction, a number to leave with this
            threshold in packets, "ignore" to go on (not after a timeout).
        """
        return None

    def departure(self, now: float, window: Window) -> float | None:
        """Say when the next packet may leave, in seconds.

        `None` leaves it to the window. Must change nothing: it may be asked several times.
        """
        return None


class CongestionAvoidance(_Connection):
    """A congestion avoidance; `grow` and `reduce` are required.

    It has `initial_window` (packets), `mss` (bytes) and `seed` once it is made.
    """

    def on_ack(self, ack: Ack, window: Window) -> None:
        """Take an ACK in; the window cannot be changed here."""

    def on_round(self, round: Round, window: Window) -> None:
        """Take a whole round trip in; the window cannot be changed here."""

    def grow(self, ack: Ack, acked: int, window: Window) -> None:
        """Set `window.cwnd` for this ACK, of which `acked` packets count; returns nothing."""
        raise NotImplementedError

    def reduce(self, now: float, signal: str, window: Window) -> int:
        """Give the threshold in packets after "loss", "marks" or "timeout"."""
        raise NotImplementedError

    def pacing_rate(self) -> float | None:
        """Pace at this rate of payload in bit/s; `None` leaves it to the connection."""
        return None


_Algorithm = TypeVar("_Algorithm", bound="type[FlowStart] | type[CongestionAvoidance]")


def _own_methods(kind: type, base: type) -> list[str]:
    names = [name for name in vars(base) if not name.startswith("_")]
    return [name for name in names if getattr(kind, name, None) is not getattr(base, name, None)]


def _warn_of_slips(kind: type, base: type) -> None:
    """Warn of a method that nobody calls, as `on_acks`: its class would be standard slow start."""
    known = [name for name in vars(base) if not name.startswith("_")]
    for name in vars(kind):
        near = difflib.get_close_matches(name.lower(), known, 1, 0.8)
        if near and name not in known and callable(getattr(kind, name)):
            meant = f"{kind.__name__}.{name} is called by nobody; did you mean {near[0]}?"
            warnings.warn(meant, UserWarning, stacklevel=4)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@overload
def register(kind: _Algorithm, /) -> _Algorithm: ...


@overload
def register(
    *, name: str | None = None, ecn: bool = False, draws: bool = False
) -> Callable[[_Algorithm], _Algorithm]: ...


def register(
    kind: _Algorithm | None = None,
    /,
    *,
    name: str | None = None,
    ecn: bool = False,
    draws: bool = False,
) -> _Algorithm | Callable[[_Algorithm], _Algorithm]:
    """Make an algorithm a contestant: a decorator for a subclass.

    From then on its name is known wherever names are read: ``compare(["my_start+cubic"])``,
    scenarios, grids. One per connection is made, without arguments.

    Args:
        kind: a subclass of `FlowStart` or `CongestionAvoidance`.
        name: its name; the class's in snake case unless given.
        ecn: flows with this avoidance answer accurate congestion marks (RFC 8257).
        draws: what it does hangs on `seed`: then races have as many runs as were asked for,
            also over a path where nothing is random.

    Raises:
        ValueError: if the name is taken by an algorithm of flowstart, or is none.
        TypeError: if the class is of neither kind.
    """

    def take(kind: _Algorithm) -> _Algorithm:
        if not isinstance(kind, type):
            raise TypeError("register takes a subclass of FlowStart or CongestionAvoidance")
        called = name if name is not None else _snake(kind.__name__)
        about = next(iter((kind.__doc__ or "").strip().splitlines()), called)
        base: type
        if issubclass(kind, FlowStart):
            base = FlowStart
        elif issubclass(kind, CongestionAvoidance):
            base = CongestionAvoidance
            for required in ("grow", "reduce"):
                if getattr(kind, required) is getattr(base, required):
                    raise TypeError(f"{kind.__name__} needs a method {required!r}")
        else:
            raise TypeError("register takes a subclass of FlowStart or CongestionAvoidance")
        methods = _own_methods(kind, base)
        _warn_of_slips(kind, base)

        def factory(initial_window: int, mss: int, seed: int) -> tuple[object, list[str]]:
            algorithm = kind()
            algorithm.initial_window, algorithm.mss, algorithm.seed = initial_window, mss, seed
            return algorithm, methods

        if base is FlowStart:
            _native.register_start(called, about, factory, draws)
        else:
            _native.register_avoidance(called, about, factory, ecn, draws)
        return kind

    return take if kind is None else take(kind)
