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


PATH = {"capacity": "50 Mbit/s", "rtt": "40 ms", "buffer": "4 BDP"}


def test_a_start_is_told_in_a_race_what_it_is_told_in_training():
    told = []

    def grows(observation):
        told.append(observation)
        return [0.7, 0.3, -1.0]

    environments.register_policy("grows", grows)
    flowstart.run({"duration": "1 s", "path": PATH, "flow": [{"algorithm": "grows+cubic"}]})
    scenario = {"duration": "1 s", "path": PATH, "flow": [{}]}
    env = environments.VectorEnv(draw=lambda random: (scenario, 5e7))
    trained = [env.reset(seed=1)[0][0]]
    trained += [env.step(np.array([[0.7, 0.3, -1.0]]))[0][0] for _ in range(8)]
    assert trained[-1][0] > trained[0][0]
    np.testing.assert_allclose(told[: len(trained)], trained)


@pytest.mark.parametrize("avoidance", ["reno", "cubic", "bic", "bbr", "bbr3", "delay_or_cubic"])
def test_what_follows_a_start_delivers_in_training_what_it_delivers_in_a_race(avoidance):
    # Packets are lost and timers expire. The link is silent in the end: what arrived is known.
    steps = [{"at": "0 s", "rate": "20 Mbit/s"}, {"at": "2 s", "rate": "0 bit/s"}]
    path = {
        "capacity": {"period": "3 s", "steps": steps},
        "rtt": "40 ms",
        "buffer": "60 packets",
        "loss": "0.1 %",
    }
    scenario = {
        "seed": int(np.random.default_rng(1).integers(2**63)),
        "duration": "11.9 s",
        "path": path,
    }

    def flow(start):
        return [{"algorithm": f"{start}+{avoidance}", "dialect": "linux"}]

    environments.register_policy("leaves_at_once", lambda seen: [0.0, 0.0, 1.0])
    flows = flowstart.run({**scenario, "flow": flow("leaves_at_once")})["flows"]
    raced = {name: flows.column(name)[0] for name in flows.column_names}
    assert raced["rto_count"] > 3
    trained = {**scenario, "flow": flow("slow_start")}
    env = environments.VectorEnv(
        draw=lambda random: (trained, 8e6), delay_weight=0, loss_weight=0, tail=400
    )
    env.reset(seed=1)
    _, rewards, _, _, _ = env.step(np.array([[0.0, 0.0, 1.0]]))
    # At this capacity a reward of 1 is 1 MB per second.
    assert round(rewards[0] * raced["min_rtt_us"]) == raced["bytes_delivered"]


@pytest.mark.parametrize("kind", ["flow_start", "congestion_control"])
def test_an_episode_is_over_when_all_of_the_flow_has_arrived(kind):
    scenario = {"duration": "60 s", "path": PATH, "flow": [{"size": "500 kB"}]}
    env = environments.VectorEnv(kind, draw=lambda random: (scenario, 5e7))
    env.reset(seed=1)
    steps, arrived = 0, 0.0
    while True:
        _, rewards, terminated, truncated, _ = env.step(np.array([[0.5, 0.0, -1.0]]))
        steps, arrived = steps + 1, arrived + rewards[0] * 0.04 * 5e7 / 8
        assert not truncated[0]
        if terminated[0]:
            break
    # Nothing queues or is lost: the reward is what arrived, less the initial window.
    assert arrived == pytest.approx(500e3 - 10 * 1448, rel=0.05)
    assert steps < 15


def of_a_race(contestant, capacity="50 Mbit/s"):
    """What a policy that keeps its window is told in a run, and the run's flow."""
    told = []

    def keeps(observation):
        told.append(observation)
        return [0.0, 0.0, -1.0]

    environments.register_policy("keeps_its_window", keeps, kind="congestion_control")
    path = {"capacity": capacity, "rtt": "40 ms", "buffer": "4 BDP"}
    scenario = {"duration": "2 s", "path": path, "flow": [{"algorithm": contestant}]}
    flows = flowstart.run(scenario)["flows"]
    return np.array(told), {name: flows.column(name)[0] for name in flows.column_names}


def test_a_congestion_control_races_as_it_was_trained():
    told, flow = of_a_race("built_in+keeps_its_window")
    path = {"capacity": "50 Mbit/s", "rtt": "40 ms", "buffer": "4 BDP"}
    scenario = {"duration": "2 s", "path": path, "flow": [{}]}
    env = environments.VectorEnv("congestion_control", draw=lambda random: (scenario, 5e7))
    trained = [env.reset(seed=1)[0][0]]
    trained += [env.step(np.array([[0.0, 0.0, -1.0]]))[0][0] for _ in range(20)]
    np.testing.assert_allclose(told[:20], trained[:20])
    assert flow["exit_reason"] == "limit"


def test_what_would_leave_a_start_says_nothing_to_a_congestion_control():
    told = []

    def leaves(observation):
        told.append(observation)
        return [0.1, 0.0, 1.0]

    environments.register_policy("leaves", leaves, kind="congestion_control")
    flowstart.run({"duration": "2 s", "path": PATH, "flow": [{"algorithm": "built_in+leaves"}]})
    scenario = {"duration": "2 s", "path": PATH, "flow": [{}]}
    env = environments.VectorEnv("congestion_control", draw=lambda random: (scenario, 5e7))
    trained = [env.reset(seed=1)[0][0]]
    trained += [env.step(np.array([[0.1, 0.0, 1.0]]))[0][0] for _ in range(10)]
    np.testing.assert_allclose(told[: len(trained)], trained)


def test_a_congestion_control_goes_on_with_the_window_of_the_start_before_it():
    told, flow = of_a_race("hystart+keeps_its_window")
    window = 2 ** (10 * told[0][0])
    assert window == pytest.approx(flow["exit_cwnd_pkts"], rel=0.01)
    assert window > 50
    # It was not asked while the start had the window, whose packets it does not pace either.
    assert told[0][-1] == 0
    assert len(told) < (2 - flow["exit_s"]) / 0.04
    _, slow_start = of_a_race("hystart+cubic")
    assert flow["exit_s"] == slow_start["exit_s"]


@pytest.mark.parametrize("answer", [[0.0, 0.0], [0.0, 0.0, float("nan")], "leave", None])
def test_a_policy_that_answers_something_else_is_an_error(answer):
    environments.register_policy("odd_policy", lambda observation: answer)
    with pytest.raises(ValueError, match="a policy answers with 3 finite numbers, not with"):
        flowstart.compare(["odd_policy+cubic"], capacity="10 Mbit/s", size=["100 kB"])


def watched(asked, fails=False):
    """A drawn path whose agent's flow goes on with an avoidance in Python."""

    @flowstart.register(name="asked_avoidance")
    class Asked(flowstart.CongestionAvoidance):
        """Paces, and counts how often it is asked."""

        def grow(self, ack, acked, window):
            if fails:
                raise ZeroDivisionError("on purpose")
            window.cwnd = 20

        def reduce(self, now, signal, window):
            return 10

        def pacing_rate(self):
            asked.append(1)
            return 5e6

    path = {"capacity": "10 Mbit/s", "rtt": "20 ms"}
    flow = [{"algorithm": "slow_start+asked_avoidance"}]
    return lambda random: ({"duration": "10 s", "path": path, "flow": flow}, 1e7)


def test_after_the_start_the_avoidance_of_the_scenario_goes_on_as_it_is():
    asked = []
    env = environments.VectorEnv(num_envs=2, draw=watched(asked))
    env.reset(seed=1)
    _, _, terminated, _, _ = env.step(np.array([[0.0, 0.0, 1.0]] * 2))
    assert terminated.all()
    assert asked


def test_exceptions_come_out_of_a_step_and_the_next_needs_a_reset():
    env = environments.VectorEnv(num_envs=2, draw=watched([], fails=True))
    env.reset(seed=1)
    leave = np.array([[0.0, 0.0, 1.0]] * 2)
    with pytest.raises(ZeroDivisionError):
        env.step(leave)
    with pytest.raises(RuntimeError, match="must be reset"):
        env.step(leave)


def test_steps_and_resets_of_two_threads_do_not_wait_for_each_other():
    from concurrent.futures import ThreadPoolExecutor

    env = environments.VectorEnv(num_envs=4, draw=watched([]), steps=1000)
    env.reset(seed=1)
    native, scenario = env._native, environments.to_toml(watched([])(None)[0])

    def steps():
        for _ in range(20):
            env.step(np.array([[0.5, 0.0, 1.0]] * 4))

    def resets():
        for seed in range(100):
            native.reset(0, scenario, 1e7, seed)

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(steps), threads.submit(resets)]:
            future.result(timeout=300)


def test_ranges_that_are_none_are_refused():
    with pytest.raises(ValueError, match="capacity must be a range"):
        environments.paths(capacity=(2e6, 1e6))
    with pytest.raises(ValueError, match="kind of agent"):
        environments.VectorEnv("router")


def test_paths_as_people_have_them_are_episodes_too():
    many = environments.VectorEnv("flow_start", len(environments.ROUGH), draw=environments.rough())
    observations, _ = many.reset(seed=1)
    for _ in range(5):
        observations, rewards, *_ = many.step(np.zeros((many.num_envs, 3)))
    assert np.isfinite(observations).all() and np.isfinite(rewards).all()
    draw = environments.rough(["wifi", "lte"], capacity=(2e7, 4e7), others=(2,))
    random = np.random.default_rng(7)
    seen = set()
    for _ in range(20):
        scenario, capacity = draw(random)
        assert 2e7 * 1448 / 1500 <= capacity <= 4e7 * 1448 / 1500
        assert scenario["flow"][0]["count"] == 2
        seen.add("wifi" in str(scenario["path"]))
        environments.VectorEnv(draw=lambda _, path=(scenario, capacity): path).reset(seed=1)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_envs": 2**62}, "num_envs must be from 1"),
        ({"num_envs": -1}, "num_envs must be from 1"),
        ({"threads": 200_000}, "threads must be from 1 to 1024"),
        ({"steps": 0}, "steps must be from 1"),
        ({"delay_weight": float("nan")}, "delay_weight must be a number"),
    ],
)
def test_environments_that_cannot_be_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        environments.VectorEnv("flow_start", **{"num_envs": 1, **options})


def test_an_action_is_three_numbers():
    one = environments.FlowStartEnv()
    one.reset(seed=1)
    one.step([0.0, 0.0, -1.0])
    with pytest.raises(ValueError, match="infinity is none"):
        one.step(np.array([np.nan, 0.0, 0.0]))


def test_gymnasium_makes_the_native_vector():
    many = gym.make_vec("flowstart/FlowStart-v0", 3)
    assert isinstance(many.unwrapped, environments.VectorEnv)
    many.reset(seed=[1, None, 3])
    assert many.num_envs == 3


@pytest.mark.parametrize("seeds", [[1, 2], [], [1, 2, 3, 4]])
def test_a_list_of_seeds_has_one_for_each_environment(seeds):
    many = environments.VectorEnv(num_envs=3)
    with pytest.raises(ValueError, match=f"3 environments need a seed each, not {len(seeds)}"):
        many.reset(seed=seeds)


@pytest.mark.parametrize("wrong", [np.zeros((1, 2)), np.full((1, 3), np.nan)])
def test_an_action_that_is_refused_costs_no_path(wrong):
    many, same = (environments.VectorEnv(num_envs=1, steps=2) for _ in range(2))
    for one in (many, same):
        one.reset(seed=5)
        for _ in range(2):
            over = one.step(np.zeros((1, 3)))
        assert over[2] | over[3]
    # The next step begins an episode.
    with pytest.raises(ValueError, match="action"):
        many.step(wrong)
    for _ in range(2):
        after, beside = (one.step(np.zeros((1, 3)))[0] for one in (many, same))
        assert (after == beside).all()


def test_a_policy_that_cannot_be_called_is_refused_at_once():
    with pytest.raises(TypeError, match="an observation to an action, not 3"):
        environments.register_policy("no_policy", 3)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"names": ["nowhere"]}, "there is no path"),
        ({"names": []}, "must name a path"),
        ({"capacity": (2.0, 1.0)}, "capacity must be a range"),
        ({"others": ()}, "others must be numbers"),
    ],
)
def test_rough_paths_that_are_none_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        environments.rough(**options)


def test_an_algorithm_does_not_step_the_environment_it_is_in():
    many = environments.VectorEnv(num_envs=1)

    @flowstart.register(name="steps_its_environment")
    class Stepping(flowstart.CongestionAvoidance):
        def grow(self, ack, acked, window):
            many.reset(seed=1)

        def reduce(self, now, signal, window):
            return 2

    def draw(random):
        flow = [{"algorithm": "slow_start+steps_its_environment"}]
        path = {"capacity": "10 Mbit/s", "rtt": "20 ms"}
        return {"duration": "10 s", "path": path, "flow": flow}, 1e7

    many._draw = draw
    many.reset(seed=1)
    with pytest.raises(RuntimeError, match="in the middle of a step"):
        many.step(np.array([[0.0, 0.0, 1.0]]))


def test_an_algorithm_does_not_reset_the_environment_that_is_being_reset():
    many = environments.VectorEnv(num_envs=1)

    @flowstart.register(name="resets_its_environment")
    class Resetting(flowstart.FlowStart):
        def on_ack(self, ack, window):
            many.reset(seed=1)

    def draw(random):
        flow = [{"algorithm": "resets_its_environment+cubic"}, {"start": "1 s"}]
        path = {"capacity": "10 Mbit/s", "rtt": "20 ms"}
        return {"duration": "10 s", "path": path, "flow": flow}, 1e7

    many._draw = draw
    with pytest.raises(RuntimeError, match="in the middle of a step"):
        many.reset(seed=1)


def test_what_is_sent_is_bounded_by_what_arrives():
    draw = environments.paths(capacity=(1e6, 1e6), rtt=(0.02, 0.02), buffer=(1.0, 1.0), others=(0,))
    many = environments.VectorEnv("congestion_control", num_envs=1, draw=draw, steps=50)
    many.reset(seed=1)
    most = 0.0
    for _ in range(40):
        seen, *_ = many.step(np.array([[2.0, 0.0, -1.0]]))
        most = max(most, 2 ** (10 * seen[0, 0]))
    assert most == pytest.approx(1024)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 4), (1, 2, 3)])
def test_actions_of_another_shape_are_not_mixed_up(shape):
    many = environments.VectorEnv(num_envs=2)
    many.reset(seed=1)
    with pytest.raises(ValueError, match="3 numbers for each of 2 environments"):
        many.step(np.zeros(shape))


def test_a_draw_may_give_any_scenario():
    path = flowstart.Path("10 Mbit/s", "20 ms")
    text = '[path]\ncapacity = "10 Mbit/s"\nrtt = "20 ms"\n[[flow]]\n'
    for scenario in (flowstart.Scenario("10 s", path), text):
        many = environments.VectorEnv(draw=lambda random, drawn=scenario: (drawn, 1e7))
        assert many.reset(seed=1)[0].shape == (1, len(environments.OBSERVATION))


@pytest.mark.parametrize("drawn", ["nothing", ({}, "fast"), ({},), ([], 1e7)])
def test_a_draw_that_gives_something_else_is_an_error(drawn):
    many = environments.VectorEnv(num_envs=1, draw=lambda random: drawn)
    with pytest.raises(TypeError, match="a scenario and a capacity"):
        many.reset(seed=1)


def test_a_step_after_the_end_of_an_episode_needs_a_reset():
    import gymnasium

    env = gymnasium.make("flowstart/FlowStart-v0").unwrapped
    env.reset(seed=1)
    leave = np.array([0.0, 0.0, 1.0])
    assert env.step(leave)[2]
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over"):
        env.step(leave)
    env.reset()
    env.step(leave)


def test_what_is_closed_takes_no_steps():
    import gymnasium

    env = environments.VectorEnv(num_envs=1)
    env.reset(seed=1)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(np.zeros((1, 3)))):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="closed"):
            call()
