"""What the scripts of .ci that run many races have in common."""

import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def program():
    """The program: FLOWSTART if that is set, else what is built here."""
    built = os.environ.get("FLOWSTART")
    if not built:
        subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "flowstart"], check=True, cwd=ROOT)
        built = str(ROOT / "target/release/flowstart")
    return built


def output(command, void=None):
    """What it prints. A failure is the end, but for one that says `void`: `None`."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode and void and void in done.stderr:
        return None
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def each(work, jobs):
    """The work on every job, on all cores, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, jobs))


def compared(flowstart, more, void=None):
    """Values of every run of the start and of the reference; `None` if the race is void."""
    text = output([flowstart, "compare", "--json", "--no-report", "--threads", "1", *more], void)
    if text is None:
        return None
    contestants = json.loads(text)["contestants"]
    return [[run["values"] for run in contestant["runs"]] for contestant in contestants]


def scenario(flowstart, text, table="flows", void=None):
    """Rows of a table of a scenario, of its flows if it is not named; `None` if it is void."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(text)
        if output([flowstart, "run", str(file), "--out", f"{folder}/out", "--threads", "1"], void) is None:
            return None
        with open(f"{folder}/out/{table}.csv", newline="") as rows:
            return list(csv.DictReader(rows))


# Paths drawn at random, and what is said of those that there cannot be.
VOID = "aggregates of these limits"
QUEUES = ["drop_tail", "pie", "codel", "fq_codel", "dual_pi2", "red"]
OTHERS = ["cubic", "bbr", "reno", "2 cubic", "cubic", "bbr"]


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def drawn_path(number, capacities=(3, 600), rtts=(6, 200)):
    """Keys of a profile's [path], the queue, who else is there, the capacity in Mbit/s; `None` if
    the draw is of a shaper whose capacity fades, which there is not. Capacities in Mbit/s, RTTs in
    ms."""
    draw = random.Random(number)
    between = lambda low, high: log_uniform(draw, low, high)
    capacity, rtt = between(*capacities), between(*rtts)
    told = f"{rtt:.1f} ms" if rtts[0] >= 6 else f"{1000 * rtt:.0f} us"
    keys = {"capacity": f'"{capacity:.2f} Mbit/s"', "rtt": f'"{told}"', "buffer": f'"{between(0.25, 4):.2f} BDP"'}
    fading = draw.random() < 0.15
    if fading:
        spread, correlation = draw.uniform(0.1, 1), between(50, 2000)
        keys["capacity"] = (
            f'{{ mean = "{capacity:.2f} Mbit/s", spread = {spread:.2f}, correlation = "{correlation:.0f} ms" }}'
        )
    kind, shaped = draw.random(), False
    if kind < 0.16:
        burst, line = between(8, 512), capacity * between(1.5, 20)
        keys["medium"], shaped = f'{{ shaper = {{ burst = "{burst:.0f} kB", line = "{line:.1f} Mbit/s" }} }}', True
    elif kind < 0.30:
        every, errors = between(500, 20000), draw.choice([0, 0, 0.1])
        keys["medium"] = f'{{ slots = {{ every = "{every:.0f} us", errors = {errors}, again_after = "8 ms" }} }}'
    elif kind < 0.42 and not fading and capacity < 300:
        frames, airtime = draw.choice([32, 64, 128]), between(1, 4)
        errors, others = draw.uniform(0, 0.15), draw.choice([0, 0, 1, 3])
        keys["medium"] = (
            f'{{ wifi = {{ frames = {frames}, airtime = "{airtime:.1f} ms", errors = {errors:.2f}, others = {others} }} }}'
        )
    elif kind < 0.5:
        every, delay = between(0.5, 10), between(1, 12)
        keys["medium"] = f'{{ grants = {{ every = "{every:.1f} ms", delay = "{delay:.1f} ms" }} }}'
    elif kind < 0.55:
        at, extra = between(50, 1000), between(2, 40)
        keys["medium"] = f'{{ detours = [{{ at = "{at:.0f} ms", extra = "{extra:.0f} ms" }}] }}'
    back = draw.random()
    if back < 0.25:
        most = draw.choice([None, 8, 16, 44])
        limit = f", most = {most}" if most else ""
        keys["merged_acks"] = f'{{ within = "{between(300, 20000):.0f} us"{limit} }}'
    elif back < 0.35:
        keys["reverse_capacity"], keys["reverse_buffer"] = f'"{capacity / between(8, 60):.3f} Mbit/s"', '"100 ms"'
    elif back < 0.42:
        keys["reverse_capacity"] = f'"{capacity / between(4, 20):.3f} Mbit/s"'
        every, delay = between(0.5, 10), between(1, 12)
        keys["reverse_medium"] = f'{{ grants = {{ every = "{every:.1f} ms", delay = "{delay:.1f} ms" }} }}'
    elif back < 0.47:
        keys["reverse_capacity"] = f'"{capacity / between(8, 60):.3f} Mbit/s"'
        keys["reverse_queue"] = '"ack_filter"'
    if draw.random() < 0.35:
        jitter = min(between(100, 12000), rtt * 400)
        reorder = draw.random() < 0.25
        keys["jitter"] = f'{{ spread = "{jitter:.0f} us", reorder = true }}' if reorder else f'"{jitter:.0f} us"'
    if draw.random() < 0.12:
        keys["loss"] = f"{between(1e-4, 0.02):.5f}"
    queue = draw.choices(QUEUES, [0.42, 0.12, 0.12, 0.14, 0.12, 0.08])[0]
    beside = draw.choice(OTHERS) if draw.random() < 0.35 else None
    return None if shaped and fading else (keys, queue, beside, capacity)
