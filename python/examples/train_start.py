"""A flow start that learns: the cross-entropy method over a small policy.

Trains on drawn paths for some minutes, judges on paths it has not seen, and races the result.

    python examples/train_start.py --generations 30
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import flowstart
from flowstart import env as environments

INPUTS = len(environments.OBSERVATION)
HIDDEN = 8
SIZES = (INPUTS * HIDDEN, HIDDEN, HIDDEN * 3, 3)


def unpack(weights):
    """The matrices of a network with one hidden layer."""
    parts = np.split(weights, np.cumsum(SIZES)[:-1])
    return parts[0].reshape(INPUTS, HIDDEN), parts[1], parts[2].reshape(HIDDEN, 3), parts[3]


def act(weights, observations):
    """Actions for observations, a row each; `weights` may differ by row."""
    first, bias, second, out = unpack(weights)
    hidden = np.tanh(observations @ first + bias)
    return scaled(hidden @ second + out)


def scaled(raw):
    """Numbers of a network as growth (-2 to 2), shape (0 to 1) and leave (-1 to 1)."""
    growth = 2 * np.tanh(raw[..., 0] + 0.5)
    shape = 1 / (1 + np.exp(-raw[..., 1]))
    leave = np.tanh(raw[..., 2] - 0.5)
    return np.stack([growth, shape, leave], axis=-1)


def returns(candidates, draw, episodes, seed):
    """Mean reward of each candidate over the same drawn paths."""
    count = len(candidates)
    totals = np.zeros(count)
    matrices = [unpack(weights) for weights in candidates]
    first, bias, second, out = (np.stack(part) for part in zip(*matrices, strict=True))
    for episode in range(episodes):
        # One path for all candidates: they are compared on the same luck.
        scenario = draw(np.random.default_rng([seed, episode]))
        many = environments.VectorEnv("flow_start", count, draw=lambda _, s=scenario: s)
        observations, _ = many.reset(seed=episode)
        alive = np.ones(count, bool)
        while alive.any():
            hidden = np.tanh(np.einsum("ni,nih->nh", observations, first) + bias)
            actions = scaled(np.einsum("nh,nho->no", hidden, second) + out)
            observations, rewards, terminated, truncated, _ = many.step(actions)
            totals += rewards * alive
            alive &= ~(terminated | truncated)
    return totals / episodes


def train(generations, population, episodes, seed, draw):
    """The cross-entropy method; gives the mean of the last generation."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(sum(SIZES)), np.full(sum(SIZES), 0.5)
    elite = max(population // 5, 2)
    for generation in range(generations):
        candidates = mean + spread * random.standard_normal((population, mean.size))
        scores = returns(candidates, draw, episodes, seed * 1000 + generation)
        best = candidates[np.argsort(scores)[-elite:]]
        mean = best.mean(axis=0)
        spread = best.std(axis=0) + 0.3 * 0.9**generation
        print(f"generation {generation}: mean {scores.mean():.2f}, best {scores.max():.2f}")
    return mean


def judge(name, capacities, rtts):
    """Completion of 1 MB and P99 queueing delay, by contestant, on paths of a grid."""
    rows = []
    for capacity in capacities:
        for rtt in rtts:
            race = flowstart.compare(
                [f"{name}+cubic", "slow_start+cubic", "hystart+cubic"],
                capacity=capacity,
                rtt=rtt,
                size=["1 MB"],
            )
            rows.append((capacity, rtt, race.mean("completion_1mb_ms"), race.mean("delay_p99_ms")))
    return rows


def held_out(weights, draw, episodes, seed=2**31):
    """Mean reward and its 95 % interval on paths that were never trained on.

    The other number of each pair is slow start's: twice the packets every round trip, until a loss
    ends it.
    """
    policies = {
        "learned": lambda observations: act(weights, observations),
        "slow start": lambda observations: np.tile([1.0, 0.0, -1.0], (len(observations), 1)),
    }
    results = {}
    for name, policy in policies.items():
        many = environments.VectorEnv("flow_start", episodes, draw=draw)
        observations, _ = many.reset(seed=seed)
        totals, alive = np.zeros(episodes), np.ones(episodes, bool)
        while alive.any():
            observations, rewards, terminated, truncated, _ = many.step(policy(observations))
            totals += rewards * alive
            alive &= ~(terminated | truncated)
        half = 1.96 * totals.std(ddof=1) / np.sqrt(episodes)
        results[name] = (float(totals.mean()), float(half))
    return results


def main():
    """Train, judge, race."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=30)
    parser.add_argument("--population", type=int, default=40)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    draw = environments.paths((5e6, 1e8), (0.01, 0.1), (0.5, 2.0))
    weights = train(options.generations, options.population, options.episodes, options.seed, draw)
    if options.out:
        options.out.write_text(json.dumps(weights.tolist()))
    for name, (mean, half) in held_out(weights, draw, 200).items():
        print(f"{name}: reward {mean:.2f} +- {half:.2f} on 200 paths that were not trained on")
    environments.register_policy(
        "learned_start", lambda observation: act(weights, np.array(observation)).tolist()
    )
    # Held out: none of these capacities and round-trip times was drawn in training but by chance.
    for capacity, rtt, times, delays in judge(
        "learned_start", ["8 Mbit/s", "30 Mbit/s", "90 Mbit/s"], ["15 ms", "40 ms", "90 ms"]
    ):
        print(f"{capacity}, {rtt}: 1 MB in ms {times}, P99 delay in ms {delays}")


if __name__ == "__main__":
    main()
