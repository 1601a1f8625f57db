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


def whole(tmp_path):
    words = ["--contestant=slow_start+cubic", *flowstart.commands._options(GRID)]
    flowstart.command("frontier", *words, f"--out={tmp_path / 'whole'}", "--json")
    return (tmp_path / "whole" / "records.csv").read_bytes()


def test_a_grid_in_shards_is_the_grid(tmp_path):
    out = tmp_path / "parts"
    distributed.frontier(["slow_start+cubic"], out=out, shards=3, workers=2, **GRID)
    expected = whole(tmp_path)
    assert (out / "records.csv").read_bytes() == expected
    # All is there: nothing is run again, and a shard that was lost is.
    (out / "shards" / "shard-2-of-3.csv").unlink()
    distributed.frontier(["slow_start+cubic"], out=out, shards=3, workers=2, **GRID)
    assert (out / "records.csv").read_bytes() == expected


def test_a_backend_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="known: local, ray"):
        distributed.reproduce([], out=tmp_path, backend="slurm")


def test_a_ray_worker_may_die(tmp_path):
    ray = pytest.importorskip("ray")
    import os
    import signal
    import threading

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    def kill():
        import subprocess

        found = subprocess.run(["pgrep", "-f", "ray::_shard"], capture_output=True, text=True)
        for pid in found.stdout.split()[:1]:
            os.kill(int(pid), signal.SIGKILL)

    timer = threading.Timer(4.0, kill)
    timer.start()
    try:
        out = tmp_path / "ray"
        distributed.frontier(["slow_start+cubic"], out=out, shards=4, backend="ray", **GRID)
    finally:
        timer.cancel()
        ray.shutdown()
    assert (out / "records.csv").read_bytes() == whole(tmp_path)
