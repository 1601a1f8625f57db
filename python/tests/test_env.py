import pytest

import flowstart

np = pytest.importorskip("numpy")
gym = pytest.importorskip("gymnasium")
from flowstart import env as environments  # noqa: E402


@pytest.mark.parametrize("name", ["FlowStart", "CongestionControl"])
def test_gymnasiums_checker_accepts_the_environment(name):
    from gymnasium.utils.env_checker import check_env

    check_env(gym.make(f"flowstart/{name}-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("kind", ["flow_start", "congestion_control"])
def test_the_same_seed_and_actions_are_the_same_episode(kind):
    def episode():
        env = environments.VectorEnv(kind, 3, threads=2)
        seen = [env.reset(seed=5)[0]]
        actions = np.random.default_rng(1).uniform(-1, 1, (30, 3, 3))
        for action in actions:
            seen += env.step(action)[:4]
        return np.concatenate([np.ravel(part).astype(float) for part in seen])

    assert np.array_equal(episode(), episode())


def test_growth_fills_the_pipe_and_then_the_queue():
    env = environments.VectorEnv(draw=environments.paths((1e7, 1e7), (0.05, 0.05), (4.0, 4.0)))
    env.reset(seed=1)
    delivered, delays = [], []
    for _ in range(7):
        observation, _, terminated, _, _ = env.step(np.array([[1.0, 0.0, -1.0]]))
        delivered.append(observation[0][5])
        delays.append(observation[0][1])
        if terminated[0]:
            break
    assert delays[0] < 0.2
    assert max(delays) > 0.5


def test_leaving_ends_the_episode_with_the_reward_of_what_follows():
    env = environments.VectorEnv(draw=environments.paths((1e7, 1e7), (0.05, 0.05)), tail=10)
    env.reset(seed=1)
    for _ in range(3):
        env.step(np.array([[1.0, 0.0, -1.0]]))
    _, reward, terminated, truncated, _ = env.step(np.array([[0.0, 0.0, 1.0]]))
    assert terminated[0]
    assert not truncated[0]
    assert 3 < reward[0] < 11
    # The step behind the end begins the next episode and pays nothing.
    _, reward, terminated, _, _ = env.step(np.array([[0.0, 0.0, 1.0]]))
    assert reward[0] == 0
    assert not terminated[0]


def test_a_policy_races_as_a_start():
    def leave_at_once(observation):
        assert len(observation) == len(environments.OBSERVATION)
        return [0.0, 0.0, 1.0]

    environments.register_policy("leave_at_once", leave_at_once)
    race = flowstart.compare(
        ["leave_at_once+cubic", "slow_start+cubic"],
        capacity="50 Mbit/s",
        rtt="100 ms",
        size=["1 MB"],
    )
    [time] = [name for name in race.runs.column_names if name.startswith("completion_")]
    times = race.mean(time)
    assert times["leave_at_once+cubic"] > 2 * times["slow_start+cubic"]


def test_ranges_that_are_none_are_refused():
    with pytest.raises(ValueError, match="capacity must be a range"):
        environments.paths(capacity=(2e6, 1e6))
    with pytest.raises(ValueError, match="kind of agent"):
        environments.VectorEnv("router")
