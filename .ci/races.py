"""What .ci/beyond-the-grid, .ci/random-paths and .ci/after-the-answer are run with."""

import csv
import json
import os
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


def scenario(flowstart, text, table="flows"):
    """Rows of a table of a scenario, of its flows if it is not named."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(text)
        output([flowstart, "run", str(file), "--out", f"{folder}/out", "--threads", "1"])
        with open(f"{folder}/out/{table}.csv", newline="") as rows:
            return list(csv.DictReader(rows))
