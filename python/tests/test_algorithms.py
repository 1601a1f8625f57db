import warnings
from types import SimpleNamespace

import pytest

import flowstart

QUICK = {"capacity": "10 Mbit/s", "size": ["100 kB"]}


def race(*who, **options):
    return flowstart.compare(list(who), **{**QUICK, **options})


@flowstart.register
class PlainSlowStart(flowstart.FlowStart):
    """Slow start without a method of its own."""


@flowstart.register
class DelayExit(flowstart.FlowStart):
    """Leaves when the round-trip time has risen by a quarter."""

    def on_ack(self, ack, window):
        if ack.rtt is not None and ack.min_rtt is not None and ack.rtt > 1.25 * ack.min_rtt:
            return flowstart.Exit(window.cwnd, reason="delay")
        return None


@flowstart.register(name="python_reno")
class Reno(flowstart.CongestionAvoidance):
    """One packet more per round trip, half after a loss."""

    def __init__(self):
        self.count = 0

    def grow(self, ack, acked, window):
        self.count += acked
        if self.count >= window.cwnd:
            self.count -= window.cwnd
            window.cwnd += 1

    def reduce(self, now, signal, window):
        return window.cwnd // 2


def test_a_start_without_methods_is_slow_start():
    ours, theirs = race("plain_slow_start+cubic"), race("slow_start+cubic")
    for measure in theirs.runs.column_names[2:]:
        assert ours.runs.column(measure) == theirs.runs.column(measure), measure


def test_an_algorithm_that_draws_is_run_as_often_as_asked():
    @flowstart.register(name="leaves_by_chance", draws=True)
    class ByChance(flowstart.FlowStart):
        """Leaves at a window that its seed says."""

        def on_ack(self, ack, window):
            if window.cwnd >= 16 + self.seed % 16:
                return flowstart.Exit(window.cwnd, reason="delay")
            return None

    @flowstart.register(name="by_chance_beyond", draws=True)
    class Beyond(Reno):
        """Reno that says that it draws."""

    def rows(who):
        return len(race(who, runs=3).runs.column("contestant"))

    assert rows("plain_slow_start+cubic") == 1
    assert rows("leaves_by_chance+cubic") == 3
    assert rows("slow_start+by_chance_beyond") == 3


def test_reno_in_python_is_reno():
    ours, theirs = race("slow_start+python_reno"), race("slow_start+reno")
    [name] = [name for name in theirs.runs.column_names if name.startswith("completion_")]
    assert ours.runs.column(name)[0] == pytest.approx(theirs.runs.column(name)[0], rel=0.02)


def test_an_exit_ends_the_start():
    result = race("delay_exit+cubic")
    exits = result.document["contestants"][0]
    assert "delay" in str(exits)


def test_an_own_start_is_listed():
    names = [start["name"] for start in flowstart.names()["flow_starts"]]
    assert "plain_slow_start" in names
    assert "delay_exit" in names


def test_the_contract_can_be_checked():
    flowstart.check("delay_exit+cubic")
    with pytest.raises(ValueError, match="unknown_start"):
        flowstart.check("unknown_start+cubic")

    shared = []

    @flowstart.register(name="shares_state")
    class Shares(flowstart.FlowStart):
        """Goes by what other connections did."""

        def grow(self, ack, window):
            shared.append(1)
            window.slow_start(len(shared) % 7)

    with pytest.raises(ValueError, match="another result when the same race is run again"):
        flowstart.check("shares_state+cubic")

    @flowstart.register(name="never_gets_on")
    class NeverGetsOn(flowstart.FlowStart):
        """Asks again and again."""

        def departure(self, now, window):
            return now + 1e-9

    with pytest.raises(ValueError, match="simulated time after 1000000 events"):
        flowstart.check("never_gets_on+cubic")


def test_rounds_are_summed_up():
    rounds = []

    @flowstart.register(name="rounds_only")
    class Rounds(flowstart.FlowStart):
        """Slow start that looks at rounds."""

        def on_round(self, round, window):
            rounds.append((round.number, round.acked))

    race("rounds_only+cubic", size=["1 MB"], threads=1, capacity="100 Mbit/s")
    begins = [index for index, (number, _) in enumerate(rounds) if number == 0]
    first = [acked for _, acked in rounds[begins[0] : begins[1]]]
    # The first ACK ends a round of its own; the rest of the initial window, then twice as many.
    assert first[:4] == [1, 9, 18, 34]


def test_an_exception_comes_out_with_its_trace():
    @flowstart.register(name="broken_start")
    class Broken(flowstart.FlowStart):
        """Raises."""

        def on_ack(self, ack, window):
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose") as error:
        race("broken_start+cubic")
    assert any("on_ack" in str(entry) for entry in error.traceback)
    # The next race is a race again.
    assert race("cubic").complete


@pytest.mark.parametrize("stops_with", ["the exception", "an interrupt"])
def test_exceptions_of_many_threads_do_not_come_out_of_the_next_race(stops_with):
    @flowstart.register(name="broken_often")
    class Broken(flowstart.FlowStart):
        """Raises in every run."""

        def on_round(self, round, window):
            raise ZeroDivisionError("on purpose")

    def interrupt(done, of):
        raise KeyboardInterrupt

    progress = interrupt if stops_with == "an interrupt" else False
    for _ in range(3):
        with pytest.raises((ZeroDivisionError, KeyboardInterrupt)):
            race("broken_often+cubic", runs=50, threads=4, background=["cubic"], progress=progress)
        assert race("cubic").complete


def test_races_of_two_threads_have_exceptions_of_their_own():
    @flowstart.register(name="broken_here")
    class Broken(flowstart.FlowStart):
        """Raises in its last round: on this path a start has two."""

        def on_round(self, round, window):
            if round.number > 1:
                raise ZeroDivisionError("on purpose")

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as threads:
        good = [threads.submit(race, "cubic", runs=20, background=["cubic"]) for _ in range(4)]
        bad = [threads.submit(race, "broken_here+cubic", size=["10 MB"]) for _ in range(4)]
    assert all(future.result().complete for future in good)
    assert all(isinstance(future.exception(), ZeroDivisionError) for future in bad)


def test_no_result_of_a_run_that_raised_is_kept(tmp_path):
    @flowstart.register(name="broken_on_short_paths")
    class Broken(flowstart.FlowStart):
        """Raises where round trips are short."""

        def on_round(self, round, window):
            if round.min_rtt is not None and round.min_rtt < 0.015:
                raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        flowstart.frontier(
            ["broken_on_short_paths+cubic"],
            quick=True,
            capacity=["5 Mbit/s"],
            rtt=["10 ms", "20 ms"],
            load=["idle"],
            path=["clean"],
            out=tmp_path,
            threads=1,
        )
    head, *records = (tmp_path / "records.csv").read_text().splitlines()
    column = head.split(",").index("rtt_ms")
    broken = [line for line in records if "broken_on_short_paths" in line]
    assert all(line.split(",")[column] == "20" for line in broken), broken


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("on_ack", flowstart.Exit(2**32 - 1)),
        ("on_ack", flowstart.Exit(0, ssthresh=0)),
        ("on_ack", flowstart.Exit(10, rate=float("inf"))),
        ("departure", -1.0),
        ("on_signal", 0),
        ("on_signal", 2**32 - 1),
    ],
)
def test_odd_answers_of_a_start_leave_a_race(method, answer):
    kind = type("Odd", (flowstart.FlowStart,), {method: lambda self, *_: answer})
    flowstart.register(name="odd_start")(kind)
    assert race("odd_start+cubic", buffer="5 packets").complete


@pytest.mark.parametrize(
    ("method", "answer", "wrong"),
    [
        ("on_ack", flowstart.Exit(-1), ValueError),
        ("on_ack", flowstart.Exit(10, reason="boredom"), ValueError),
        ("on_ack", 10, TypeError),
        ("on_signal", "stay", ValueError),
        ("on_signal", -1, ValueError),
        ("on_ack", SimpleNamespace(cwnd=10), TypeError),
        ("on_ack", flowstart.Exit(10, rate="fast"), TypeError),
        ("on_ack", flowstart.Exit(10, rate=10**400), ValueError),
        ("on_ack", flowstart.Exit(10, rate=-1.0), ValueError),
        ("on_ack", flowstart.Exit(10, rate=float("nan")), ValueError),
        ("on_ack", flowstart.Exit(10, reason=3), ValueError),
        # Who says yes or no means no packets.
        ("on_ack", flowstart.Exit(True), TypeError),
        ("on_signal", True, TypeError),
        ("on_signal", False, TypeError),
        ("departure", True, TypeError),
        ("on_ack", flowstart.Exit(10, rate=True), TypeError),
        ("departure", "soon", TypeError),
        ("departure", float("nan"), ValueError),
        ("departure", float("inf"), ValueError),
        ("departure", 10**400, ValueError),
        ("departure", 1e300, ValueError),
    ],
)
def test_answers_that_mean_nothing_are_an_error(method, answer, wrong):
    kind = type("Odd", (flowstart.FlowStart,), {method: lambda self, *_: answer})
    flowstart.register(name="odd_start")(kind)
    with pytest.raises(wrong):
        race("odd_start+cubic", buffer="5 packets")


@pytest.mark.parametrize(
    ("rate", "wrong"),
    [(10**400, ValueError), (float("nan"), ValueError), ("fast", TypeError), (True, TypeError)],
)
def test_rates_that_are_no_numbers_are_refused_in_a_sentence(rate, wrong):
    kind = type("Odd", (Reno,), {"pacing_rate": lambda self: rate})
    flowstart.register(name="odd_pace")(kind)
    with pytest.raises(wrong, match="pacing_rate returns must be a number of bit/s"):
        race("slow_start+odd_pace", buffer="5 packets")


@pytest.mark.parametrize("rate", [0, 0.5, -1e6])
def test_rates_at_which_nothing_leaves_are_refused_in_a_sentence(rate):
    kind = type("Odd", (Reno,), {"pacing_rate": lambda self: rate})
    flowstart.register(name="odd_pace")(kind)
    with pytest.raises(ValueError, match="pacing_rate returns must be at least 1 bit/s, or None"):
        race("slow_start+odd_pace", buffer="5 packets")


def test_odd_windows_of_an_avoidance_leave_a_race():
    @flowstart.register(name="odd_avoidance")
    class Odd(flowstart.CongestionAvoidance):
        """As large as it goes, then as small."""

        def grow(self, ack, acked, window):
            window.cwnd = 2**32 - 1 if window.cwnd < 1000 else 0

        def reduce(self, now, signal, window):
            return 0

        def pacing_rate(self):
            return float("inf")

    assert race("slow_start+odd_avoidance", buffer="5 packets").complete


@pytest.mark.parametrize("answer", [20, 0, "20"])
def test_a_window_that_grow_returns_instead_of_setting_it_is_refused(answer):
    start = type("Returned", (flowstart.FlowStart,), {"grow": lambda self, ack, window: answer})
    flowstart.register(name="returned_start")(start)
    avoidance = type("ReturnedToo", (Reno,), {"grow": lambda self, ack, acked, window: answer})
    flowstart.register(name="returned_avoidance")(avoidance)
    for contestant in ("returned_start+cubic", "slow_start+returned_avoidance"):
        with pytest.raises(
            TypeError, match=f"grow returns nothing, not {answer}: it sets window.cwnd"
        ):
            race(contestant, buffer="5 packets")


def test_a_class_needs_no_sentence_about_it():
    for said in (None, "", " \n "):
        kind = type("Silent", (flowstart.FlowStart,), {"__doc__": said})
        flowstart.register(name="silent_start")(kind)


def test_names_and_kinds_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="part of flowstart"):
        flowstart.register(name="hystart")(PlainSlowStart)
    with pytest.raises(ValueError, match="lower-case"):
        flowstart.register(name="My Start")(PlainSlowStart)
    with pytest.raises(TypeError, match="subclass"):
        flowstart.register(int)
    with pytest.raises(TypeError, match="'reduce'"):

        @flowstart.register
        class Half(flowstart.CongestionAvoidance):
            """Has no reduce."""

            def grow(self, ack, acked, window):
                pass


@pytest.mark.parametrize(
    ("name", "kind"),
    [("cubic", "congestion avoidance"), ("hystart", "flow start"), ("dctcp", "avoidance")],
)
@pytest.mark.parametrize("base", [flowstart.FlowStart, Reno])
def test_a_name_that_contestants_have_by_themselves_is_taken(name, kind, base):
    own = type("Own", (base,), {})
    with pytest.raises(ValueError, match=f'{kind} "{name}" is part of flowstart'):
        flowstart.register(name=name)(own)


@pytest.mark.parametrize("slip", ["on_acks", "onAck", "on_signals", "departures"])
def test_a_method_that_nobody_calls_is_warned_of(slip):
    slipped = type("Slipped", (flowstart.FlowStart,), {slip: lambda self, *_: None})
    with pytest.warns(UserWarning, match=f"Slipped.{slip} is called by nobody; did you mean"):
        flowstart.register(slipped)


def test_other_methods_are_a_class_own_business():
    own = {"helper": lambda self: 1, "rounds": 3, "__len__": lambda self: 1, "on_ack": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flowstart.register(name="helped")(type("Helped", (Reno,), own))


@pytest.mark.parametrize("wrong", [5, "careful", None])
def test_only_classes_are_registered(wrong):
    with pytest.raises(TypeError, match="a subclass of FlowStart or CongestionAvoidance"):
        flowstart.register()(wrong)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(-1, ValueError), (2**32, ValueError), ("many", TypeError), (None, TypeError)],
)
def test_windows_that_are_no_counts_are_refused_in_a_sentence(wrong, error):
    @flowstart.register(name="sets_wrong_windows")
    class Wrong(flowstart.FlowStart):
        def on_ack(self, ack, window):
            window.cwnd = wrong

    with pytest.raises(error, match=r"cwnd must be .* packets, not"):
        flowstart.compare(["sets_wrong_windows+cubic"], capacity="10 Mbit/s", size=["30 kB"])

    @flowstart.register(name="leaves_with_wrong_windows")
    class Leaving(flowstart.FlowStart):
        def on_ack(self, ack, window):
            return flowstart.Exit(wrong)

    with pytest.raises(error, match=r"cwnd of an Exit must be .* packets, not"):
        flowstart.compare(["leaves_with_wrong_windows+cubic"], capacity="10 Mbit/s", size=["30 kB"])


@pytest.mark.parametrize("change", ["cwnd", "ssthresh", "slow_start"])
@pytest.mark.parametrize(
    ("base", "method", "why"),
    [
        (flowstart.FlowStart, "departure", "departure cannot change the window"),
        (Reno, "on_ack", "grow sets it"),
        (Reno, "on_round", "grow sets it"),
        (Reno, "reduce", "reduce cannot change the window"),
    ],
)
def test_a_window_that_cannot_be_changed_says_so(base, method, why, change):
    def changes(self, *given):
        if change == "slow_start":
            given[-1].slow_start(1)
        else:
            setattr(given[-1], change, 10)

    flowstart.register(name="changes_windows")(type("Changes", (base,), {method: changes}))
    start = base is flowstart.FlowStart
    with pytest.raises(AttributeError, match=why):
        race("changes_windows+cubic" if start else "slow_start+changes_windows", buffer="5 packets")


def test_a_window_that_was_kept_is_that_of_a_call_that_is_over():
    kept = []

    @flowstart.register(name="keeps_windows")
    class Keeps(flowstart.FlowStart):
        def on_ack(self, ack, window):
            window.cwnd += 1
            kept.append(window)

    assert race("keeps_windows+cubic").complete
    assert kept[-1].cwnd > 0
    with pytest.raises(AttributeError, match="belongs to a call that is over"):
        kept[-1].cwnd = 10


def test_who_sends_nothing_is_named_in_the_remarks():
    @flowstart.register(name="sends_nothing")
    class Nothing(flowstart.FlowStart):
        def departure(self, now, window):
            return 1e9

    result = race("sends_nothing+cubic", size=["30 kB"])
    assert "sends_nothing+cubic completed no transfer in any run" in result.remarks
