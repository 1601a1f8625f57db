"""Scenarios as dictionaries, dataclasses or TOML."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from numbers import Integral, Real
from typing import Any


@dataclass
class Path:
    """A bottleneck and its round-trip time.

    Args:
        capacity: such as "100 Mbit/s".
        rtt: base round-trip time, such as "20 ms".
        buffer: such as "1 BDP", "100 packets", "50 ms".
        more: any other key of [path] in scenario files.
    """

    capacity: str = "100 Mbit/s"
    rtt: str = "20 ms"
    buffer: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Flow:
    """A flow, or several alike.

    Args:
        algorithm: such as "hystart+cubic".
        start: when it begins, such as "1 s".
        size: what it transfers, such as "1 MB"; endless unless given.
        count: how many.
        more: any other key of [[flow]] in scenario files.
    """

    algorithm: str = "hystart+cubic"
    start: str | None = None
    size: str | None = None
    count: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Scenario:
    """What `flowstart run` reads from a file.

    Args:
        duration: virtual time, such as "10 s".
        path: the bottleneck.
        flow: who sends.
        more: any other key of scenario files.
    """

    duration: str = "10 s"
    path: Path = field(default_factory=Path)
    flow: Sequence[Flow] = field(default_factory=lambda: [Flow()])
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Its first argument is the duration, and who has a dictionary means all of a scenario.
        if isinstance(self.duration, Mapping):
            raise TypeError("a dictionary is a scenario as it is: flowstart.run(dictionary)")


Like = Scenario | Mapping[str, Any] | str | os.PathLike[str]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        keys = {
            one.name: _plain(getattr(value, one.name))
            for one in fields(value)
            if one.name != "more" and getattr(value, one.name) is not None
        }
        return {**keys, **_plain(getattr(value, "more", {}))}
    if isinstance(value, Mapping):
        # Nothing said is nothing written, as in JSON's documents of scenarios.
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's escapes are JSON's, and one character more must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    # The numbers of numpy are such numbers too.
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner, where) for inner in value) + "]"
    if isinstance(value, Mapping):
        inner = (f"{_key(key)} = {_value(item, f'{where}.{key}')}" for key, item in value.items())
        return "{ " + ", ".join(inner) + " }"
    raise ValueError(f"{where}: a scenario cannot hold a {type(value).__name__}")


def _key(key: str) -> str:
    bare = key and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in key)
    return key if bare else json.dumps(key, ensure_ascii=False)


def to_toml(scenario: Scenario | Mapping[str, Any]) -> str:
    """Write a scenario as TOML."""
    try:
        table = _plain(scenario)
    except RecursionError:
        raise ValueError("a scenario cannot be nested so deeply, or contain itself") from None
    plain, tables, lists = [], [], []
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = "".join(f"{_key(k)} = {_value(v, f'{key}.{k}')}\n" for k, v in value.items())
            tables.append(f"\n[{_key(key)}]\n{inner}")
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            for one in value:
                inner = "".join(f"{_key(k)} = {_value(v, f'{key}.{k}')}\n" for k, v in one.items())
                lists.append(f"\n[[{_key(key)}]]\n{inner}")
        else:
            plain.append(f"{_key(key)} = {_value(value, key)}\n")
    return "".join(plain + tables + lists)


def as_file(scenario: Like) -> tuple[str, dict[str, str]]:
    """Give the name of the scenario's file, and its text if it has none."""
    if isinstance(scenario, os.PathLike):
        return os.fspath(scenario), {}
    # TOML has an equals sign; a file may.
    if (
        isinstance(scenario, str)
        and "\n" not in scenario
        and ("=" not in scenario or os.path.exists(scenario))
    ):
        return scenario, {}
    if not isinstance(scenario, (str, Scenario, Mapping)):
        kind = type(scenario).__name__
        raise TypeError(f"a scenario is a file, TOML, a dictionary or a Scenario, not {kind}")
    text = scenario if isinstance(scenario, str) else to_toml(scenario)
    return "scenario.toml", {"scenario.toml": text}
