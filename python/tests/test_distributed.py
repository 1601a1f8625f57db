import functools
import os
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import dying
import pytest

import flowstart
from flowstart import distributed

GRID = {
    "quick": True,
    "capacity": ["5 Mbit/s", "20 Mbit/s"],
    "rtt": ["20 ms"],
    "load": ["idle"],
    "path": ["clean", "loss"],
    "runs": 2,
}
GRID_1 = {**GRID, "runs": 1}


def local(folder, who="slow_start+cubic", grid=GRID):
    words = [f"--contestant={who}", *flowstart.commands._options(grid)]
    flowstart.command("frontier", *words, f"--out={folder}", "--json")
    return (folder / "records.csv").read_bytes()


def test_a_grid_in_shards_is_the_grid(tmp_path):
    out, told = tmp_path / "parts", []
    grid = functools.partial(distributed.frontier, ["slow_start+cubic"], out=out, shards=3)
    grid(workers=2, progress=lambda *done: told.append(done), **GRID)
    expected = local(tmp_path / "whole")
    assert (out / "records.csv").read_bytes() == expected
    assert told == [(1, 3), (2, 3), (3, 3)]
    # All is there: nothing is run again, and a shard that was lost is.
    [lost] = (out / "shards").glob("*/2-of-3/records.csv")
    lost.unlink()
    told.clear()
    grid(workers=2, progress=lambda *done: told.append(done), **GRID)
    assert told == [(3, 3)]
    assert (out / "records.csv").read_bytes() == expected


def test_what_is_kept_serves_the_same_work_only(tmp_path):
    grid = functools.partial(distributed.frontier, out=tmp_path / "out", shards=2, workers=2)
    grid(["slow_start+cubic"], **GRID_1)
    grid(["slow_start+cubic"], **GRID)
    grown = (tmp_path / "out" / "records.csv").read_bytes()
    assert grown == local(tmp_path / "whole")
    # Of an earlier run nothing is lost.
    before = set(local(tmp_path / "own", "hystart+cubic").splitlines())
    distributed.frontier(["slow_start+cubic"], out=tmp_path / "own", shards=2, workers=2, **GRID)
    after = set((tmp_path / "own" / "records.csv").read_bytes().splitlines())
    assert before | set(grown.splitlines()) == after


def test_documents_of_different_options_are_different(tmp_path):
    rates = functools.partial(
        distributed.attainable_rate,
        out=tmp_path,
        workers=2,
        capacity="5 Mbit/s",
        rtt="20 ms",
        peers=0,
        epsilon="5 %",
        lasting="5 s",
        warm_up="1 s",
        step="1 Mbit/s",
        no_report=True,
    )
    few = rates(["cubic"], samples=20)["cubic"]
    many = rates(["cubic"], samples=30)["cubic"]
    assert few.text != many.text
    assert rates(["cubic"], samples=20)["cubic"].text == few.text


def test_what_is_kept_serves_the_same_files_only(tmp_path):
    scenario, out = tmp_path / "path.toml", tmp_path / "out"
    trace = tmp_path / "rate.trace"
    capacity = '{ trace = "rate.trace" }'
    scenario.write_text(f'[path]\ncapacity = {capacity}\nrtt = "20 ms"\n')
    options = {"peers": 0, "epsilon": "5 %", "samples": 20, "lasting": "5 s", "warm_up": "1 s"}
    options |= {"step": "1 Mbit/s", "no_report": True, "scenario": str(scenario)}
    rates = functools.partial(distributed.attainable_rate, "cubic", out=out, workers=1, **options)
    texts = []
    for one in ("1\n", "1\n2\n"):
        trace.write_text(one)
        texts.append(rates()["cubic"].text)
    # What is too long for a name is none.
    title = "x" * 5000
    scenario.write_text(f'title = "{title}"\n[path]\ncapacity = "5 Mbit/s"\nrtt = "20 ms"\n')
    texts.append(rates()["cubic"].text)
    assert len(set(texts)) == 3
    # Of a file that was cut nothing is used.
    for kept in out.glob("*.json"):
        kept.write_bytes(kept.read_bytes()[:100])
    assert rates()["cubic"].text == texts[-1]


def test_the_sources_of_a_package_count(tmp_path, monkeypatch):
    package = tmp_path / "many_files"
    package.mkdir()
    (package / "__init__.py").write_text("from many_files import start\n")
    (package / "start.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen = {distributed._code([name]) for name in ("many_files", "many_files.start")}
    (package / "start.py").write_text("A = 2\n")
    seen |= {distributed._code([name]) for name in ("many_files", "many_files.start")}
    assert len(seen) == 4


def test_of_an_unknown_algorithm_it_is_said_how_workers_know_it(tmp_path):
    @flowstart.register(name="only_here")
    class Only(flowstart.FlowStart):
        """Known to this process alone."""

    for call in (distributed.frontier, distributed.attainable_rate):
        options = GRID_1 if call is distributed.frontier else {}
        with pytest.raises(ValueError, match=r"unknown flow start.*modules=\["):
            call(["only_here+cubic"], out=tmp_path, workers=1, **options)


def test_algorithms_of_modules_take_part(tmp_path):
    out = tmp_path / "parts"
    distributed.frontier(
        ["imported_start+cubic"], out=out, shards=2, workers=2, modules=["dying"], **GRID_1
    )
    assert (out / "records.csv").read_bytes() == local(
        tmp_path / "whole", "imported_start+cubic", GRID_1
    )
    with pytest.raises(ValueError, match='no module "nowhere"'):
        distributed.frontier(None, out=out, modules=["nowhere"])


@pytest.mark.parametrize("backend", ["local", "ray"])
def test_a_worker_may_die(tmp_path, backend):
    if backend == "ray":
        ray = pytest.importorskip("ray")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": dying.__file__.rpartition("/")[0]}},
        )
    works = [(str(one), dying.dies_once, (str(tmp_path / f"{one % 2}"), one)) for one in range(6)]
    try:
        done = distributed._all(works, tmp_path / "done", backend, 2, False)
        assert {name: text.split()[0].decode() for name, text in done.items()} == {
            str(one): str(one) for one in range(6)
        }
        # Both were killed once.
        assert (tmp_path / "0").exists()
        assert (tmp_path / "1").exists()
        if backend == "ray":
            # One at a time where one worker was asked for, on a cluster of two.
            alone = [(f"alone-{n}", dying.alone, (str(tmp_path / "lock"), n)) for n in range(6)]
            distributed._all(alone, tmp_path / "done", backend, 1, False)
            out = tmp_path / "ray"
            distributed.frontier(["slow_start+cubic"], out=out, shards=2, backend="ray", **GRID)
            assert (out / "records.csv").read_bytes() == local(tmp_path / "whole")
    finally:
        if backend == "ray":
            ray.shutdown()


def test_work_that_kills_every_worker_is_given_up(tmp_path):
    with pytest.raises(BrokenProcessPool):
        distributed._all([("never", dying.dies, ("x",))], tmp_path, "local", 1, False)


def test_workers_end_with_the_process_that_gave_them_work(tmp_path):
    marker, script = tmp_path / "sleeps", tmp_path / "gives_work.py"
    script.write_text(
        "import pathlib\n"
        "import dying\n"
        "from flowstart import distributed\n"
        "if __name__ == '__main__':\n"
        f"    work = ('never', dying.sleeps, ({str(marker)!r},))\n"
        f"    distributed._all([work], pathlib.Path({str(tmp_path)!r}), 'local', 1, False)\n"
    )
    beside = dying.__file__.rpartition("/")[0]
    before = os.environ.get("PYTHONPATH")
    seen = {**os.environ, "PYTHONPATH": beside if before is None else f"{beside}:{before}"}
    giver = subprocess.Popen([sys.executable, script], env=seen)
    until(marker.exists)
    worker = int(marker.read_text())
    giver.kill()
    giver.wait()
    status = Path(f"/proc/{worker}/stat")
    until(lambda: not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z")


def until(comes):
    for _ in range(600):
        if comes():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come")


def test_a_mistake_ends_the_others(tmp_path):
    marker = str(tmp_path / "sleeps")
    works = [("long", dying.sleeps, (marker,)), ("wrong", dying.fails, (marker,))]
    with pytest.raises(ValueError, match="on purpose"):
        distributed._all(works, tmp_path / "done", "local", 2, False)


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ValueError, match="known: local, ray"):
        distributed.reproduce(["abstract"], out=tmp_path, backend="slurm")
    most = distributed.MOST_SHARDS
    for shards in (0, most + 1):
        with pytest.raises(ValueError, match=f"shards must be from 1 to {most}"):
            distributed.frontier(None, out=tmp_path, shards=shards)
    # It is as many as the program takes.
    with pytest.raises(ValueError, match=rf"1/{most + 1}.*at most {most}\)"):
        distributed._printed(["frontier", "--quick", f"--shard=1/{most + 1}"])
    for word in ("resume", "output", "shard", "merge", "plan"):
        with pytest.raises(ValueError, match=f"{word} is for"):
            distributed.frontier(None, out=tmp_path, **{word: True})
    with pytest.raises(ValueError, match="json is for the command line"):
        distributed.frontier(None, out=tmp_path, json=True)
    with pytest.raises(TypeError, match="a list of names"):
        distributed.frontier(None, out=tmp_path, modules=[3])
    with pytest.raises(ValueError, match="workers must be at least 1"):
        distributed.frontier(None, out=tmp_path, workers=0)
    with pytest.raises(ValueError, match="workers says how many"):
        distributed.frontier(None, out=tmp_path, threads=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a file of that name is in the way"):
        distributed.frontier(None, out=tmp_path / "file")
    with pytest.raises(ValueError, match="cubik"):
        distributed.frontier(["cubik"], out=tmp_path, shards=2, workers=2)


def test_an_exception_that_cannot_travel_comes_with_what_it_says():
    class Stubborn(Exception):
        def __reduce__(self):
            raise TypeError("cannot be pickled")

    try:
        raise Stubborn("the queue is empty")
    except Stubborn as error:
        travels = distributed._whole(error)
    assert isinstance(travels, RuntimeError)
    assert "Stubborn: the queue is empty" in str(travels) and "Traceback" in str(travels)
    plain = ValueError("as it is")
    assert distributed._whole(plain) is plain
