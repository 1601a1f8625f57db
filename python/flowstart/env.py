"""Environments for learning agents (Gymnasium).

``flowstart/FlowStart-v0``: an agent is the start of a flow. Every round trip it says how many
packets the next one gets, how their gaps shrink, and whether to leave; CUBIC goes on from there.
``flowstart/CongestionControl-v0``: an agent sets the window every round trip, which leaves evenly
over 0.8 of a smoothed round trip.

An action is three numbers in a row:

0. growth: factor of the packets per round trip as a logarithm to base 2, -2 to 2; there are never
   more than 1024, or 16 times the most that arrived in a round trip so far;
1. shape (start only): how much gaps shrink over the round trip, 0 (even) to 1;
2. leave (start only): above 0 the start is over.

`OBSERVATION` names the ten numbers of an observation. The reward of an interval is::

    payload delivered / capacity - delay_weight * queueing delay / base RTT - loss_weight * losses

with the share of packets lost, and delays by the mean round-trip time of the interval. The
reward of leaving a start is that of the `tail` round trips that follow, together. An episode whose
flow has a size is over when all of it has arrived.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from flowstart import _native
from flowstart.scenario import Scenario, to_toml

#: What an agent is told.
OBSERVATION: tuple[str, ...] = (
    "packets per round trip: logarithm to base 2, over 10",
    "mean RTT over the smallest, less 1",
    "smallest RTT of the interval over the smallest, less 1",
    "largest RTT of the interval over the smallest, less 1",
    "last less first RTT of the interval, in smallest RTTs",
    "packets delivered per packet planned",
    "share of packets lost",
    "share of packets marked",
    "packets in flight per packet planned",
    "intervals so far, over 20",
)

_ACTIONS = 3
_LOW = np.array([-2.0, 0.0, -1.0])
_HIGH = np.array([2.0, 1.0, 1.0])

#: What is made at most: more would not fit into a memory.
_MOST_ENVIRONMENTS, _MOST_STEPS, _MOST_THREADS = 65_536, 1_000_000, 1024

#: Payload and bytes on the wire of a full packet.
_MSS, _PACKET = 1448, 1500

#: Names of paths as people have them: the kinds of ``flowstart frontier --grid rough``, and the
#: profiles.
ROUGH: tuple[str, ...] = tuple(_native.rough_names())

#: A path for an episode, drawn with this generator: a scenario (also TOML) whose last flow is the
#: agent, and the capacity in bit/s.
Draw = Callable[[np.random.Generator], tuple[Mapping[str, Any] | Scenario | str, float]]


def paths(
    capacity: tuple[float, float] = (5e6, 2e8),
    rtt: tuple[float, float] = (0.01, 0.15),
    buffer: tuple[float, float] = (0.5, 4.0),
    others: Sequence[int] = (0,),
    jitter: float = 0.0,
) -> Draw:
    """Draw paths from ranges: capacity and RTT evenly by their logarithm.

    Args:
        capacity: least and most, bit/s.
        rtt: least and most base round-trip time, seconds.
        buffer: least and most, in bandwidth-delay products.
        others: how many CUBIC flows are there before; drawn from these.
        jitter: most that a packet is delayed at random, in base round-trip times.
    """
    for name, (least, most) in (("capacity", capacity), ("rtt", rtt), ("buffer", buffer)):
        if not 0 < least <= most < math.inf:
            raise ValueError(f"{name} must be a range above 0, least first; not ({least}, {most})")

    if not 0 <= jitter < math.inf:
        raise ValueError(f"jitter must not be below 0, and no more than a number: not {jitter}")
    _others(others)

    def draw(random: np.random.Generator) -> tuple[Mapping[str, Any], float]:
        rate = math.exp(random.uniform(math.log(capacity[0]), math.log(capacity[1])))
        base = math.exp(random.uniform(math.log(rtt[0]), math.log(rtt[1])))
        path: dict[str, Any] = {
            "capacity": f"{round(rate)} bit/s",
            "rtt": f"{round(base * 1e6)} us",
            "buffer": f"{random.uniform(*buffer):.2f} BDP",
        }
        if jitter > 0:
            path["jitter"] = f"{round(random.uniform(0, jitter) * base * 1e6) + 1} us"
        return _episode(path, base, int(random.choice(np.asarray(others)))), rate * _MSS / _PACKET

    return draw


def rough(
    names: str | Sequence[str] | None = None,
    capacity: tuple[float, float] | None = None,
    others: Sequence[int] = (0,),
) -> Draw:
    """Draw paths as people have them: profiles, and the kinds of the rough grid.

    Args:
        names: which; all of ``flowstart.env.ROUGH`` unless given.
        capacity: least and most, bit/s, drawn evenly by the logarithm; that of its file unless
            given. What goes with it (the way back, a trace) changes in proportion.
        others: how many CUBIC flows are there before; drawn from these.
    """
    chosen = [names] if isinstance(names, str) else list(ROUGH if names is None else names)
    _others(others)
    if not chosen:
        raise ValueError("names must name a path")
    for name in chosen:
        _native.rough_path(name)
    if capacity is not None and not 0 < capacity[0] <= capacity[1] < math.inf:
        raise ValueError(f"capacity must be a range above 0, least first; not {capacity}")

    def draw(random: np.random.Generator) -> tuple[Mapping[str, Any], float]:
        name = chosen[int(random.integers(len(chosen)))]
        wanted = None
        if capacity is not None:
            wanted = math.exp(random.uniform(math.log(capacity[0]), math.log(capacity[1])))
        path, rate, base = _native.rough_path(name, wanted)
        count = int(random.choice(np.asarray(others)))
        return _episode(json.loads(path), base, count), rate * _MSS / _PACKET

    return draw


def _others(others: Sequence[int]) -> None:
    if not len(others) or not all(isinstance(one, Integral) and one >= 0 for one in others):
        raise ValueError(
            f"others must be numbers of flows to draw from, such as (0, 1): not {others}"
        )


def _episode(path: Mapping[str, Any], base: float, count: int) -> dict[str, Any]:
    """The scenario of an episode: so many CUBIC flows, and behind them the agent."""
    begins = 0.0
    flows: list[dict[str, Any]] = []
    if count:
        begins = 40 * base
        flows.append({"algorithm": "hystart+cubic", "count": count})
    flows.append({"algorithm": "slow_start+cubic", "start": f"{round(begins * 1e6)} us"})
    return {"duration": f"{math.ceil(begins + 2000 * base)} s", "path": path, "flow": flows}


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value}")


class VectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """Many environments side by side, each step in native threads.

    An environment whose episode ended begins the next one with the step after
    (``AutoresetMode.NEXT_STEP``).

    Args:
        kind: "flow_start" or "congestion_control".
        num_envs: how many.
        draw: where paths come from; `paths` with its defaults unless given.
        delay_weight: weight of the queueing delay, in base RTTs.
        loss_weight: weight of the share of packets lost.
        tail: round trips after a start that its reward counts.
        steps: intervals after which an episode is cut.
        threads: native threads; one per core unless given.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [],
        "autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        kind: str = "flow_start",
        num_envs: int = 1,
        *,
        draw: Draw | None = None,
        delay_weight: float = 0.5,
        loss_weight: float = 5.0,
        tail: int = 10,
        steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        _within("num_envs", num_envs, 1, _MOST_ENVIRONMENTS)
        _within("tail", tail, 0, _MOST_STEPS)
        if steps is not None:
            _within("steps", steps, 1, _MOST_STEPS)
        if threads is not None:
            _within("threads", threads, 1, _MOST_THREADS)
        for name, weight in (("delay_weight", delay_weight), ("loss_weight", loss_weight)):
            if not math.isfinite(weight):
                raise ValueError(f"{name} must be a number, not {weight}")
        if draw is not None and not callable(draw):
            raise TypeError(f"draw must be a function such as paths() gives, not {draw!r}")
        self.num_envs = num_envs
        self._draw = draw if draw is not None else paths()
        steps = steps if steps is not None else (40 if kind == "flow_start" else 200)
        count = threads if threads is not None else min(num_envs, os.cpu_count() or 1)
        self._native = _native.Environments(
            kind, num_envs, delay_weight, loss_weight, tail, steps, count
        )
        self.single_observation_space = gym.spaces.Box(-10.0, 10.0, (len(OBSERVATION),), np.float64)
        self.single_action_space = gym.spaces.Box(_LOW, _HIGH, dtype=np.float64)
        self.observation_space = gym.vector.utils.batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self._observations = np.zeros((num_envs, len(OBSERVATION)))
        self._rewards = np.zeros(num_envs)
        self._terminated = np.zeros(num_envs, np.uint8)
        self._truncated = np.zeros(num_envs, np.uint8)
        self._over = np.zeros(num_envs, bool)
        self._random = np.random.default_rng()

    def _still_open(self) -> None:
        if self.closed:
            raise gym.error.ClosedEnvironmentError("these environments are closed: make new ones")

    def _begin(self, index: int) -> None:
        drawn = self._draw(self._random)
        if not (
            isinstance(drawn, tuple)
            and len(drawn) == 2
            and isinstance(drawn[0], (Mapping, Scenario, str))
            and isinstance(drawn[1], Real)
        ):
            raise TypeError(f"draw must give a scenario and a capacity in bit/s, not {drawn!r:.80}")
        text = drawn[0] if isinstance(drawn[0], str) else to_toml(drawn[0])
        capacity = float(drawn[1])
        seed = int(self._random.integers(2**63))
        self._observations[index] = self._native.reset(index, text, capacity, seed)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begin an episode in every environment."""
        del options
        self._still_open()
        if isinstance(seed, list):
            if len(seed) != self.num_envs:
                raise ValueError(f"{self.num_envs} environments need a seed each, not {len(seed)}")
            # One generator for all; who leaves one out means no number.
            self._random = np.random.default_rng([0 if one is None else one + 1 for one in seed])
        elif seed is not None:
            self._random = np.random.default_rng(seed)
        for index in range(self.num_envs):
            self._begin(index)
        self._over[:] = False
        return self._observations.copy(), {}

    def step(
        self, actions: NDArray[np.float64]
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Advance every environment by a round trip."""
        self._still_open()
        given = np.ascontiguousarray(actions, np.float64)
        if given.shape != (self.num_envs, _ACTIONS):
            wanted = f"{_ACTIONS} numbers for each of {self.num_envs} environments"
            raise ValueError(f"actions must be {wanted}, not an array of the shape {given.shape}")
        if not np.isfinite(given).all():
            raise ValueError("an action is three numbers, and infinity is none")
        skip = self._over.astype(np.uint8)
        for index in np.flatnonzero(self._over):
            self._begin(int(index))
        self._native.step(
            given, skip, (self._observations, self._rewards, self._terminated, self._truncated)
        )
        terminated, truncated = self._terminated.astype(bool), self._truncated.astype(bool)
        self._over = terminated | truncated
        return self._observations.copy(), self._rewards.copy(), terminated, truncated, {}


class _Single(gym.Env[NDArray[np.float64], NDArray[np.float64]]):
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    kind = ""

    def __init__(self, **options: Any) -> None:
        self._many = VectorEnv(self.kind, 1, threads=1, **options)
        self._over = False
        self.observation_space = self._many.single_observation_space
        self.action_space = self._many.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        observations, info = self._many.reset(seed=seed, options=options)
        self._over = False
        return observations[0], info

    def step(
        self, action: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        # The many would begin the next episode by themselves.
        if self._over:
            raise gym.error.ResetNeeded("the episode is over: reset the environment, then step")
        observations, rewards, terminated, truncated, info = self._many.step(
            np.asarray(action, np.float64)[None]
        )
        self._over = bool(terminated[0] or truncated[0])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info


class FlowStartEnv(_Single):
    """An agent is the start of a flow; see the module."""

    kind = "flow_start"


class CongestionControlEnv(_Single):
    """An agent sets the window every round trip; see the module."""

    kind = "congestion_control"


def register_policy(
    name: str,
    policy: Callable[[list[float]], Sequence[float]],
    *,
    kind: str = "flow_start",
    about: str = "a trained agent",
) -> None:
    """Make a trained agent a contestant: ``compare(["NAME+cubic", "hystart+cubic"])``.

    A congestion control is ``"built_in+NAME"`` as in training, from the first packet on. Behind
    another start, as ``"hystart+NAME"``, it goes on with the window that this start leaves.

    Args:
        name: lower-case letters, digits and underscores.
        policy: from an observation to an action, as in the environment of this kind.
        kind: "flow_start" or "congestion_control".
        about: what it is, in a line.
    """
    if not callable(policy):
        wanted = "a function from an observation to an action"
        raise TypeError(f"policy must be {wanted}, not {policy!r}")
    _native.register_policy(kind, name, about, policy)


for _name, _entry in (("FlowStart", FlowStartEnv), ("CongestionControl", CongestionControlEnv)):
    gym.register(
        f"flowstart/{_name}-v0",
        entry_point=_entry,
        vector_entry_point=partial(VectorEnv, _entry.kind),
    )
