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
