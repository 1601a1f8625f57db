import csv
import json
import pickle
import subprocess
import sys

import pytest

import flowstart

QUICK = {"capacity": "10 Mbit/s", "size": ["30 kB"]}
SHORT = {
    "duration": "1 s",
    "path": {"capacity": "5 Mbit/s", "rtt": "20 ms"},
    "flow": [{"algorithm": "cubic"}],
}


def test_a_race_is_the_one_of_the_command_line():
    race = flowstart.compare(["cubic", "reno"], **QUICK)
    printed = flowstart.command(
        "compare",
        "-C",
        "cubic,reno",
        "--capacity=10Mbit/s",
        "-n",
        "30kB",
        "--json",
        "--no-report",
    )
    assert race.to_json() == printed
    assert race.complete
    assert race.document["contestants"][0]["label"] == "hystart+cubic"


def test_a_race_has_tables_and_looks_like_one():
    race = flowstart.compare(["cubic"], **QUICK)
    assert race.runs.column("contestant") == ["hystart+cubic"]
    assert len(race.series) > 10
    assert "hystart+cubic" in repr(race)
    assert "<table>" in race._repr_html_()
    with pytest.raises(ValueError, match="no measure"):
        race.mean("contestant")
    with pytest.raises(ValueError, match="no measure"):
        race.mean("beauty")


def test_tables_of_a_race_say_what_its_files_say(tmp_path):
    words = ["-C=cubic,reno", "--background=cubic", "--runs=3", "--capacity=10Mbit/s", "-n=30kB"]
    flowstart.command("compare", *words, f"--out={tmp_path}")
    race = flowstart.compare(["cubic", "reno"], background="cubic", runs=3, **QUICK)
    for table, file, same in (
        (race.runs, "runs.csv", ["contestant", "run", "exit_reasons", "queue", "exit_rtts"]),
        (race.series, "series.csv", ["contestant", "value", "low", "high"]),
    ):
        with (tmp_path / file).open() as text:
            rows = list(csv.DictReader(text))
        for name in same:
            assert [plain(row[name]) for row in rows] == list(map(plain, table.column(name))), name
    assert len(race.plot().axes[0].collections) == 2, "a band for each"


def plain(value):
    """A value of a table or of a file, as both write it."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return value or ""


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: flowstart.compare(["cubik"]), 'did you mean "cubic"?'),
        (lambda: flowstart.compare(capacity="fast"), "--capacity:"),
        (lambda: flowstart.run("nowhere.toml"), "nowhere.toml"),
        (lambda: flowstart.run({"duration": "1 s", "path": {"capcity": "1 Mbit/s"}}), "capcity"),
        (lambda: flowstart.run({"duration": {1, 2}}), "cannot hold a set"),
        (lambda: flowstart.command("comparr"), "comparr"),
        (lambda: flowstart.run("--help"), "those are keywords"),
        (lambda: flowstart.compare(scenario="-x.toml"), 'a file is "./-x.toml"'),
        (lambda: flowstart.reproduce("--help"), "those are keywords"),
        (lambda: flowstart.attainable_rate("--help"), "those are keywords"),
        (lambda: flowstart.explain_chirp("--help"), "those are keywords"),
        (lambda: flowstart.reproduce("no-such-paper"), "no-such-paper"),
    ],
)
def test_what_is_wrong_is_said_in_the_command_lines_words(call, sentence):
    with pytest.raises(ValueError) as error:
        call()
    assert sentence in str(error.value)


def test_a_scenario_runs_from_a_dictionary_a_dataclass_and_toml_alike():
    flow = flowstart.Flow(algorithm="slow_start+reno", size="100 kB")
    scenario = flowstart.Scenario(
        duration="3 s", path=flowstart.Path(capacity="10 Mbit/s"), flow=[flow]
    )
    as_dict = {
        "duration": "3 s",
        "path": {"capacity": "10 Mbit/s", "rtt": "20 ms"},
        "flow": [{"algorithm": "slow_start+reno", "size": "100 kB"}],
    }
    toml = """
        duration = "3 s"
        [path]
        capacity = "10 Mbit/s"
        rtt = "20 ms"
        [[flow]]
        algorithm = "slow_start+reno"
        size = "100 kB"
    """
    results = [flowstart.run(one) for one in (scenario, as_dict, toml)]
    times = [result["flows"].column("completion_time_s") for result in results]
    assert times[0] == times[1] == times[2]
    assert 0.08 < times[0][0] < 1.0


def test_a_run_has_a_picture_of_rates_windows_and_delays():
    pytest.importorskip("matplotlib")
    scenario = {
        "duration": "2 s",
        "path": {"capacity": "10 Mbit/s", "rtt": "20 ms"},
        "flow": [{"algorithm": "slow_start+reno", "count": 2}],
    }
    result = flowstart.run(scenario)
    rates, windows, waits = result.plot().axes
    # Two flows have rates and windows, one link delays.
    assert [len(axis.lines) for axis in (rates, windows, waits)] == [2, 2, 1]
    assert max(rates.lines[0].get_ydata()) < 10 < max(windows.lines[0].get_ydata())
    assert "<img" in result._repr_html_()


def test_a_run_without_samples_is_shown_without_a_picture():
    scenario = {
        "duration": "1 s",
        "path": {"capacity": "10 Mbit/s", "rtt": "20 ms"},
        "flow": [{"size": "1 kB"}],
        "output": {"sample": "0 s"},
    }
    result = flowstart.run(scenario)
    assert len(result["samples"]) == 0
    shown = result._repr_html_()
    assert "<table>" in shown and "<img" not in shown
    with pytest.raises(ValueError, match="there is no run 0 with samples"):
        result.plot()


def test_progress_is_told():
    told = []
    flowstart.compare(["cubic"], progress=lambda done, of: told.append((done, of)), **QUICK)
    assert told
    assert told[-1][0] == told[-1][1]


def test_progress_of_a_grid_ends_where_it_ends():
    told = []
    path = {"profile": "lte", "as_is": True, "runs": 1}
    flowstart.frontier("reno", progress=lambda *done: told.append(done), **path)
    done, of = told[-1]
    assert done == of > 0


def test_an_interrupt_stops_a_race():
    program = """
import flowstart, signal, os

# Who runs the tests in the background may have told them to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt(done, of):
    os.kill(os.getpid(), signal.SIGINT)

try:
    flowstart.compare(
        ["cubic"], background=["4 cubic"], runs=100_000, capacity="1 Gbit/s", progress=interrupt
    )
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "stopped\n", done.stderr


def test_what_progress_raises_stops_a_race():
    def full(done, of):
        raise OSError("no space is left")

    with pytest.raises(OSError, match="no space is left"):
        flowstart.compare(["cubic"], runs=100_000, background=["cubic"], progress=full)


def test_help_is_text_and_files_are_not_promised():
    assert "Usage: flowstart compare" in flowstart.command("compare", "--help")
    assert flowstart.command("--version").startswith("flowstart ")
    with pytest.raises(ValueError, match="asks for files"):
        flowstart.compare(["cubic"], out="folder", **QUICK)


def test_a_contestant_may_stand_alone():
    race = flowstart.compare("cubic", **QUICK)
    assert race.runs.column("contestant") == ["hystart+cubic"]


def test_nobody_is_not_everybody():
    numpy = pytest.importorskip("numpy")
    race = flowstart.compare(numpy.array(["cubic", "reno"]), **QUICK)
    assert race.runs.column("contestant") == ["hystart+cubic", "slow_start+reno"]
    for nobody in ([], (), numpy.array([])):
        with pytest.raises(ValueError, match="names nobody"):
            flowstart.compare(nobody, **QUICK)


def test_what_the_command_line_says_beside_its_data_is_not_lost(capsys):
    flowstart.command("compare", "-C=dctcp", "--background=cubic", "--runs=1", "-n=9kB", "--json")
    assert "not over a queue that marks" in capsys.readouterr().err
    race = flowstart.compare(["dctcp"], background=["cubic"], runs=1, **QUICK)
    assert "not over a queue that marks" in race.remarks[0]
    assert flowstart.compare(["reno"], scenario=SHORT, **QUICK).remarks != []
    run = pickle.loads(pickle.dumps(flowstart.run(SHORT, runs=3)))
    [remark] = run.remarks
    assert remark.endswith("no randomness in this scenario: one run is enough")


def test_numbers_of_numpy_are_numbers():
    np = pytest.importorskip("numpy")
    from flowstart.scenario import to_toml

    table = {"runs": np.int64(3), "share": np.float64(0.5), "one": np.float32(2), "text": "\x7f"}
    assert to_toml(table) == 'runs = 3\nshare = 0.5\none = 2.0\ntext = "\\u007f"\n'


def test_files_that_a_scenario_names_are_looked_for_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steady.trace").write_text("".join(f"{ms}\n" for ms in range(1, 11)))
    scenario = {
        "duration": "1 s",
        "path": {"capacity": {"trace": "steady.trace"}, "rtt": "20 ms"},
        "flow": [{"algorithm": "slow_start+reno", "size": "100 kB"}],
    }
    [time] = flowstart.run(scenario)["flows"].column("completion_time_s")
    assert 0.06 < time < 1.0
    scenario["path"]["capacity"]["trace"] = "other.trace"
    with pytest.raises(ValueError, match=r"other\.trace"):
        flowstart.run(scenario)


@pytest.mark.parametrize("wrong", [5, None, ["20 Mbit/s"]])
def test_what_is_no_scenario_is_refused_in_one_sentence(wrong):
    with pytest.raises(TypeError, match="a file, TOML, a dictionary or a Scenario"):
        flowstart.run(wrong)


def test_what_is_for_the_command_line_alone_is_refused():
    for name in ("help", "version", "json"):
        with pytest.raises(ValueError, match=f"{name} is for the command line"):
            flowstart.compare(**{name: True})


def test_a_simulation_of_minutes_is_left_behind_by_an_interrupt():
    program = """
import flowstart, signal, threading, os

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    flowstart.run({
        "duration": "36000 s",
        "path": {"capacity": "1 Gbit/s", "rtt": "10 ms"},
        "flow": [{"algorithm": "cubic"}],
    })
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.strip() == "interrupted", result.stderr


def test_a_process_ends_in_order_although_an_algorithm_does_not_return():
    program = """
import flowstart, signal, threading, os

signal.signal(signal.SIGINT, signal.default_int_handler)

@flowstart.register
class Endless(flowstart.FlowStart):
    def on_ack(self, ack, window):
        while True:
            pass

threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    flowstart.compare(["endless+cubic"], size=["100 kB"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.stdout.strip(), result.returncode) == ("interrupted", 0), result.stderr


@pytest.mark.parametrize(
    ("catches", "status"), [("KeyboardInterrupt", 0), ("ZeroDivisionError", 130)]
)
def test_a_process_ends_in_order_although_an_algorithm_catches_interrupts(catches, status):
    program = f"""
import flowstart, signal, threading, os, time

signal.signal(signal.SIGINT, signal.default_int_handler)

@flowstart.register
class Stubborn(flowstart.FlowStart):
    def on_ack(self, ack, window):
        while True:
            try:
                while True:
                    time.sleep(0.01)
            except BaseException:
                pass

threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    flowstart.compare(["stubborn+cubic"], size=["100 kB"])
except {catches}:
    pass
finally:
    print("interrupted")
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.stdout.strip(), result.returncode) == ("interrupted", status), result.stderr
    assert "Fatal" not in result.stderr


def test_a_dictionary_is_no_duration():
    with pytest.raises(TypeError, match=r"flowstart.run\(dictionary\)"):
        flowstart.Scenario({"duration": "1 s"})


def test_tables_go_to_pandas_as_the_page_says():
    pandas = pytest.importorskip("pandas", "3")
    race = flowstart.compare(["cubic"], **QUICK)
    frame = pandas.DataFrame.from_arrow(race.runs)
    assert list(frame["contestant"]) == ["hystart+cubic"]


def test_a_contestant_named_twice_is_refused():
    with pytest.raises(ValueError, match=r"hystart\+cubic is among the contestants twice"):
        flowstart.compare(["cubic", "hystart"])


def test_names_are_listed():
    listed = flowstart.names()
    assert json.loads(listed.text) == listed
    assert any(start["name"] == "adaptive_chirping" for start in listed["flow_starts"])


def test_tables_go_to_arrow_without_copying():
    pyarrow = pytest.importorskip("pyarrow")
    race = flowstart.compare(["cubic"], **QUICK)
    table = pyarrow.table(race.runs)
    assert table.num_rows == 1
    assert table.column("contestant").to_pylist() == ["hystart+cubic"]


def documents():
    return {
        "frontier": flowstart.frontier(["hystart+cubic"], quick=True, capacity="20 Mbit/s"),
        "reproduce": flowstart.reproduce("quick-start/fig9"),
        "chirp": flowstart.explain_chirp(),
        "rate": flowstart.attainable_rate("reno", peers=0, capacity="4 Mbit/s", samples=100),
    }


def test_documents_have_tables_a_summary_and_a_picture():
    pytest.importorskip("matplotlib")
    found = documents()
    names = {key: set(document.tables) for key, document in found.items()}
    assert names["frontier"] == {"cells", "contestants"}
    assert names["reproduce"] == {"claims", "papers"}
    assert names["chirp"] == {"packets"}
    assert names["rate"] >= {"attainable_rate", "probes"}
    cells = found["frontier"].tables["cells"]
    assert len(cells) == sum(len(one["cells"]) for one in found["frontier"]["contestants"])
    assert set(cells.column("contestant")) == {"hystart+cubic"}
    claims = found["reproduce"].tables["claims"]
    assert claims.column("holds") == [
        claim["holds"] for figure in found["reproduce"]["figures"] for claim in figure["claims"]
    ]
    packets = found["chirp"].tables["packets"]
    assert packets.column("packet") == list(range(len(packets)))
    for key, document in found.items():
        assert len(repr(document).splitlines()) > 1, key
        assert "<table>" in document._repr_html_() and "<img" in document._repr_html_(), key
        assert document.plot().axes, key


def test_a_table_shows_its_first_rows_and_names_what_it_does_not_show():
    packets = flowstart.explain_chirp().tables["packets"]
    lines = repr(packets).splitlines()
    assert lines[0].split()[:2] == ["packet", "part"]
    assert f"... {len(packets) - 10} more rows" in lines
    assert all(len(line) <= 110 for line in lines[:11])
    assert packets._repr_html_().count("<tr>") == 11


def test_tables_go_to_polars():
    polars = pytest.importorskip("polars")
    race = flowstart.compare(["cubic"], **QUICK)
    frame = polars.DataFrame(race.runs)
    assert frame["exit_rtts"].to_list() == race.runs.column("exit_rtts")
    # None is nothing said there too.
    packets = flowstart.explain_chirp().tables["packets"]
    frame = polars.DataFrame(packets)
    assert frame["label_ns"].to_list() == packets.column("label_ns")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: flowstart.compare(nonsense=3), "unexpected argument '--nonsense' found"),
        (
            lambda: flowstart.compare(capaci="1 Mbit/s"),
            "unexpected argument '--capaci' found; a similar argument exists: '--capacity'",
        ),
        (lambda: flowstart.frontier(grid="x"), "'--grid <GRID>' [possible values: smooth, rough]"),
        (
            lambda: flowstart.compare(["cubic"], **QUICK).mean("exit_rtt"),
            'no measure "exit_rtt"; did you mean exit_rtts',
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(ask, said):
    with pytest.raises(ValueError) as error:
        ask()
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.toml").write_text(
        'duration = "1 s"\n[path]\ncapacity = "10 Mbit/s"\nrtt = "20 ms"\n[[flow]]\n'
    )
    assert flowstart.run("a=b.toml").name == "a=b"


def test_a_scenario_that_contains_itself_is_refused():
    scenario = {"duration": "1 s"}
    scenario["path"] = scenario
    with pytest.raises(ValueError, match="nested"):
        flowstart.run(scenario)


def test_lists_and_plans_are_documents_without_tables():
    for document in (
        flowstart.explain_chirp(list=True),
        flowstart.reproduce(list=True),
        flowstart.frontier(plan=True, quick=True),
    ):
        assert document.tables == {}
        assert repr(document).startswith(type(document).__name__)
        assert "<pre>" in document._repr_html_()
        with pytest.raises(ValueError, match="no picture"):
            document.plot()


def again(value):
    return pickle.loads(pickle.dumps(value))


def columns(table):
    return {name: table.column(name) for name in table.column_names}


def test_results_go_from_one_process_to_another():
    race = flowstart.compare(["cubic", "reno"], size=["30 kB"], capacity="10 Mbit/s", runs=2)
    other = again(race)
    assert other.to_json() == race.to_json() and other.complete and repr(other) == repr(race)
    assert columns(other.runs) == columns(race.runs)
    assert columns(other.series) == columns(race.series)
    assert again(other).document == race.document
    run = flowstart.run(SHORT)
    assert {name: columns(table) for name, table in again(run).tables.items()} == {
        name: columns(table) for name, table in run.tables.items()
    }
    chirp = flowstart.explain_chirp()
    assert len(chirp.tables["packets"]) > 0
    other = again(chirp)
    assert other == chirp and other.text == chirp.text
    assert columns(other.tables["packets"]) == columns(chirp.tables["packets"])


def test_columns_keep_their_kinds_when_they_go():
    pyarrow = pytest.importorskip("pyarrow")
    run = flowstart.run(SHORT)
    for table in run.tables.values():
        assert pyarrow.table(again(table)) == pyarrow.table(table)


def test_a_real_race_that_was_late_warns_and_has_its_result():
    options = {"size": ["30 kB"], "capacity": "10 Mbit/s", "real": True, "fidelity": "1 ns"}
    try:
        with pytest.warns(RuntimeWarning, match="not faithful enough: ") as warned:
            race = flowstart.compare(["cubic"], **options)
    except OSError as error:
        pytest.skip(str(error))
    assert warned[0].filename == __file__
    assert race.complete and race.mean("completion_30kb_ms")["hystart+cubic"] is not None
