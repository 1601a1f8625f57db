"""Grids and figures over many processes or machines.

Every piece of work is a call of its own, and what is finished is kept in a folder (the checkpoint):
workers may die, and the next run goes on with what there is. The results are those of one local
run, byte by byte.

With Ray: ``pip install flowstart[ray]``, on an existing cluster (``ray.init(address="auto")``
beforehand) or a local one that is started here. Workers need the package, and no shared disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from flowstart.commands import _options, command
from flowstart.results import Document

#: The file in which `flowstart frontier --out` keeps what is finished.
RECORDS = "records.csv"
#: How often a piece of work is tried whose worker died.
TRIES = 5


def _shard(contestants: Sequence[str], options: dict[str, Any], shard: int, of: int) -> bytes:
    """Run a shard of a grid and give its records."""
    with tempfile.TemporaryDirectory(prefix="flowstart-") as folder:
        words = [f"--contestant={one}" for one in contestants]
        command(
            "frontier",
            *words,
            *_options(options),
            f"--shard={shard}/{of}",
            f"--out={folder}",
            "--threads=1",
        )
        return Path(folder, RECORDS).read_bytes()


def _figure(name: str, options: dict[str, Any]) -> bytes:
    return command("reproduce", name, *_options(options), "--threads=1", "--json").encode()


def _attainable(contestant: str, options: dict[str, Any]) -> bytes:
    return command("benchmark", contestant, *_options(options), "--threads=1", "--json").encode()


Work = tuple[str, Callable[..., bytes], tuple[Any, ...]]


def _local(works: list[Work], workers: int | None, keep: Callable[[str, bytes], None]) -> None:
    import multiprocessing

    # Threads of this process do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = {pool.submit(work, *given): name for name, work, given in works}
        for future in as_completed(futures):
            keep(futures[future], future.result())


def _ray(works: list[Work], workers: int | None, keep: Callable[[str, bytes], None]) -> None:
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    tasks = {}
    for name, work, given in works:
        task = ray.remote(max_retries=TRIES, num_cpus=1)(work)
        tasks[task.remote(*given)] = name
    waiting = list(tasks)
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=1)
        for one in done:
            keep(tasks[one], ray.get(one))


def _all(
    works: Iterable[Work], folder: Path, backend: str, workers: int | None
) -> dict[str, bytes]:
    """Do what is not in the folder yet; give all, by name."""
    if backend not in ("local", "ray"):
        raise ValueError(f'"{backend}" is no backend (known: local, ray)')
    folder.mkdir(parents=True, exist_ok=True)
    works = list(works)

    def keep(name: str, result: bytes) -> None:
        # Whole or not at all: a run that is stopped leaves no half files.
        part = folder / f"{name}.part"
        part.write_bytes(result)
        part.replace(folder / name)

    missing = [work for work in works if not (folder / work[0]).is_file()]
    if missing:
        (_ray if backend == "ray" else _local)(missing, workers, keep)
    return {name: (folder / name).read_bytes() for name, _, _ in works}


def frontier(
    contestants: Sequence[str] = (),
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    shards: int = 64,
    **options: Any,
) -> Document:
    """Race over a grid of paths on many workers, as ``flowstart frontier --out``.

    Args:
        contestants: who races; the usual ones unless given. They must be known to the workers.
        out: the folder of the results; what is finished is kept in ``out/shards``.
        backend: "local" for processes of this machine, "ray" for a Ray cluster.
        workers: how many; one per core unless given.
        shards: pieces that the grid is cut into.
        **options: as `flowstart.frontier` takes them.

    Returns:
        The document of the whole grid: the same bytes as those of a local run.
    """
    folder = Path(out)
    works: list[Work] = [
        (f"shard-{one}-of-{shards}.csv", _shard, (list(contestants), options, one, shards))
        for one in range(1, shards + 1)
    ]
    records = _all(works, folder / "shards", backend, workers)
    merge(records.values(), folder)
    words = [f"--contestant={one}" for one in contestants]
    printed = command(
        "frontier", *words, *_options(options), f"--out={folder}", "--resume", "--json"
    )
    return Document(printed.encode(), [])


def merge(parts: Iterable[bytes], folder: Path) -> None:
    """Put the records of several runs into the folder of one; each record stands there once."""
    lines: dict[str, None] = {}
    head = ""
    for part in parts:
        rows = part.decode("utf-8").splitlines()
        if rows:
            head, *body = rows
            lines.update(dict.fromkeys(body))
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in ([head, *lines] if head else []))
    part_file = folder / f"{RECORDS}.part"
    part_file.write_text(text, encoding="utf-8")
    part_file.replace(folder / RECORDS)


def reproduce(
    figures: Sequence[str],
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    **options: Any,
) -> dict[str, Document]:
    """Reproduce figures on many workers; a document each, by name."""
    works: list[Work] = [
        (f"{name.replace('/', '-')}.json", _figure, (name, options)) for name in figures
    ]
    done = _all(works, Path(out), backend, workers)
    return {
        name: Document(done[file], []) for name, (file, _, _) in zip(figures, works, strict=True)
    }


def attainable_rate(
    contestants: Sequence[str],
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    **options: Any,
) -> dict[str, Document]:
    """Measure attainable rates on many workers; a document for each contestant."""

    def file(name: str) -> str:
        return "".join(c if c.isalnum() or c in "+_-." else "_" for c in name) + ".json"

    works: list[Work] = [(file(name), _attainable, (name, options)) for name in contestants]
    done = _all(works, Path(out), backend, workers)
    return {name: Document(done[one[0]], []) for name, one in zip(contestants, works, strict=True)}
