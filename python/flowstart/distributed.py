"""Grids and figures over many processes or machines.

Every piece of work is a call of its own, and what is finished is kept in a folder (the checkpoint):
workers may die, and the next call goes on with what there is. The results are those of one local
run, byte by byte.

What is kept is only used again for the same work: the same contestants and options, the same files
that options name, the same build of flowstart, the same sources of `modules` and their packages.

With Ray: ``pip install flowstart[ray]``, on an existing cluster (``ray.init(address="auto")``
beforehand) or a local one that is started here. Workers need the package, and no shared disk. With
``backend="local"`` a script needs ``if __name__ == "__main__":``, as whenever processes are
started; notebooks do not.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import pickle
import re
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from flowstart import _native
from flowstart.commands import Progress, _bar, _contestants, _options, _printed
from flowstart.documents import AttainableRate, Document, Frontier, Reproduction

_D = TypeVar("_D", bound=Document)

#: The file in which `flowstart frontier --out` keeps what is finished.
RECORDS = "records.csv"
#: Pieces that a grid is cut into at most.
MOST_SHARDS = _native.MOST_SHARDS
#: How often work is tried again whose worker died, if nothing was finished in between.
TRIES = 5


def _import(modules: Sequence[str]) -> None:
    """Make the algorithms known that these modules register."""
    for module in modules:
        importlib.import_module(module)


def _whole(error: Exception) -> Exception:
    """Give an error that survives the way to another process with what it says."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return RuntimeError("".join(traceback.format_exception(error)))


#: How the sentence about a name that nobody registered goes on.
_UNKNOWN = re.compile("unknown (flow start|congestion avoidance)")


def _hinted(error: Exception) -> Exception:
    """Say of a name that a worker does not know how it would."""
    if not isinstance(error, ValueError) or not _UNKNOWN.search(str(error)):
        return error
    how = 'workers know an algorithm of your own if its module is named: modules=["my_algorithms"]'
    return ValueError(f"{error}; {how}")


def _shard(words: list[str], modules: Sequence[str]) -> bytes:
    """Run a shard of a grid and give its records."""
    _import(modules)
    try:
        return _records(words)
    except Exception as error:
        raise _hinted(_whole(error)) from None


def _records(words: list[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="flowstart-") as folder:
        _printed([*words, f"--out={folder}", "--threads=1"])
        return Path(folder, RECORDS).read_bytes()


def _document(words: list[str], modules: Sequence[str]) -> bytes:
    """Run a command and give its document."""
    _import(modules)
    try:
        return _printed([*words, "--threads=1", "--json"])[0].encode()
    except Exception as error:
        raise _hinted(_whole(error)) from None


#: The name of what is kept, a function and its arguments.
Work = tuple[str, Callable[..., bytes], tuple[Any, ...]]
Keep = Callable[[str, bytes], None]


def _ends_with_its_parent() -> None:
    """Let a worker end when the process that gives it work is killed; it would wait for ever."""
    import multiprocessing

    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _once(works: list[Work], workers: int | None, keep: Keep) -> None:
    """Do the work in processes of this machine; a worker that dies ends it."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Threads of this process do not survive a fork.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ends_with_its_parent)
    try:
        futures = {pool.submit(work, *given): name for name, work, given in works}
        for future in as_completed(futures):
            keep(futures[future], future.result())
    except BaseException:
        # Nobody waits for hours of work that nobody will look at.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()


def _local(works: list[Work], workers: int | None, keep: Keep) -> None:
    from concurrent.futures.process import BrokenProcessPool

    waiting, tries = {work[0]: work for work in works}, 0

    def kept(name: str, result: bytes) -> None:
        nonlocal tries
        keep(name, result)
        del waiting[name]
        tries = 0

    while waiting:
        try:
            _once(list(waiting.values()), workers, kept)
        except BrokenProcessPool:
            tries += 1
            if tries > TRIES:
                raise


def _call(work: Callable[..., bytes], given: tuple[Any, ...]) -> bytes:
    return work(*given)


def _ray(works: list[Work], workers: int | None, keep: Keep) -> None:
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    # One for all, for each is sent to every worker.
    remote = ray.remote(max_retries=TRIES, num_cpus=1)(_call)
    tasks: dict[Any, str] = {}
    waiting = list(works)
    # A cluster that others started may be larger than what was asked for.
    at_once = len(works) if workers is None else workers
    try:
        while waiting or tasks:
            while waiting and len(tasks) < at_once:
                name, work, given = waiting.pop(0)
                tasks[remote.remote(work, given)] = name
            for one in ray.wait(list(tasks), num_returns=1)[0]:
                try:
                    result = ray.get(one)
                except ray.exceptions.RayTaskError as error:
                    # The sentence, as it is said here; where it came from stays with it.
                    if isinstance(error.cause, ValueError | OSError | RuntimeError):
                        raise error.cause from error
                    raise
                keep(tasks[one], result)
                del tasks[one]
    except BaseException:
        for one in tasks:
            ray.cancel(one, force=True)
        raise


def _is_kept(path: Path) -> bool:
    """Tell what was kept from nothing, and from a file that was cut."""
    if not path.is_file():
        return False
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError:
            return False
    # A shard without a start has its heading.
    return path.suffix != ".csv" or b"\n" in path.read_bytes()


def _all(
    works: list[Work],
    folder: Path,
    backend: str,
    workers: int | None,
    progress: bool | Progress,
) -> dict[str, bytes]:
    """Do what is not in the folder yet; give all, by name."""
    if backend not in ("local", "ray"):
        raise ValueError(f'"{backend}" is no backend (known: local, ray)')
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if not next(one for one in (folder, *folder.parents) if one.exists()).is_dir():
        raise ValueError(f"cannot create {folder}: a file of that name is in the way")
    missing = [work for work in works if not _is_kept(folder / work[0])]
    finished = len(works) - len(missing)
    with _bar(progress, "pieces of work") as bar:

        def keep(name: str, result: bytes) -> None:
            nonlocal finished
            # Whole or not at all: a run that is stopped leaves no half files.
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may do the same work.
            part = path.with_name(f"{path.name}.{os.getpid()}.part")
            part.write_bytes(result)
            part.replace(path)
            finished += 1
            if bar is not None:
                bar(finished, len(works))

        if missing:
            (_ray if backend == "ray" else _local)(missing, workers, keep)
    return {name: (folder / name).read_bytes() for name, _, _ in works}


def _code(modules: Sequence[str]) -> bytes:
    """Tell the code that does the work from any other."""
    files = [_native.__file__]
    if isinstance(modules, str) or not all(isinstance(module, str) for module in modules):
        raise TypeError(f"modules must be a list of names, not {modules!r}")
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec is None:
            raise ValueError(f'there is no module "{module}"')
        files += [spec.origin] if spec.has_location and spec.origin else []
        # What a package imports of itself counts, too.
        whole = importlib.util.find_spec(module.partition(".")[0])
        for folder in (whole and whole.submodule_search_locations) or ():
            files += sorted(str(file) for file in Path(folder).rglob("*.py"))
    return b"".join(hashlib.sha256(Path(file).read_bytes()).digest() for file in files)


def _text_of(path: Path) -> bytes | None:
    """What a file says, if this is the name of one."""
    try:
        return path.read_bytes() if path.is_file() else None
    except (OSError, ValueError):
        # Too long for a name, or not for this user.
        return None


def _read_by(words: Sequence[str]) -> bytes:
    """Tell the files that options name, and those named in them (traces), from any other."""
    found: dict[Path, bytes] = {}
    for word in words[1:]:
        # Lists are separated by commas.
        for name in (word.partition("=")[2] if word.startswith("--") else word).split(","):
            path = Path(name)
            text = _text_of(path)
            if text is None or path in found:
                continue
            found[path] = text
            inner = re.findall(r"[\"']([^\"'\n]+)[\"']", text.decode("utf-8", "replace"))
            named = {one: _text_of(one) for one in (path.parent / one for one in inner)}
            found |= {one: text for one, text in named.items() if text is not None}
    return b"".join(hashlib.sha256(text).digest() for text in found.values())


def _digest(words: Sequence[str], code: bytes) -> str:
    kept = json.dumps(list(words)).encode() + code + _read_by(words)
    return hashlib.sha256(kept).hexdigest()[:16]


def _one_thread(options: dict[str, Any]) -> None:
    if options.get("threads") is not None:
        raise ValueError("every piece of work has one thread: workers says how many at once")


def frontier(
    contestants: Sequence[str] | None = None,
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    shards: int = 64,
    modules: Sequence[str] = (),
    progress: bool | Progress = False,
    **options: Any,
) -> Frontier:
    """Race over a grid of paths on many workers, as ``flowstart frontier --out``.

    Args:
        contestants: who races; the usual ones unless given.
        out: the folder of the results, of an earlier run too; what is finished is kept in
            ``out/shards``.
        backend: "local" for processes of this machine, "ray" for a Ray cluster.
        workers: how many; one per core unless given.
        shards: pieces that the grid is cut into, at most `MOST_SHARDS`.
        modules: what workers import first, such as the module of your algorithm.
        progress: a bar (needs tqdm), or a function of (done, of).
        **options: as `flowstart.frontier` takes them.

    Returns:
        The document of the whole grid: the same bytes as those of a local run.

    Raises:
        ValueError: what the command line says, in one sentence.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise ValueError(f"shards must be from 1 to {MOST_SHARDS}, not {shards}")
    for word in ("resume", "output", "shard", "merge", "plan"):
        if word in options:
            raise ValueError(f"{word} is for `flowstart.frontier`: here all results lie in `out`")
    _one_thread(options)
    words = ["frontier", *_contestants(contestants), *_options(options)]
    kept = Path(out, "shards", _digest(words, _code(modules)))
    works: list[Work] = [
        (f"{one}-of-{shards}/{RECORDS}", _shard, ([*words, f"--shard={one}/{shards}"], modules))
        for one in range(1, shards + 1)
    ]
    _import(modules)
    _all(works, kept, backend, workers, progress)
    parts = [f"--merge={(kept / name).parent}" for name, _, _ in works]
    printed, remarks = _printed([*words, f"--out={out}", "--resume", *parts, "--json"])
    return Frontier(printed.encode(), remarks)


def _documents(
    kind: type[_D],
    each: dict[str, list[str]],
    out: str | Path,
    backend: str,
    workers: int | None,
    modules: Sequence[str],
    progress: bool | Progress,
) -> dict[str, _D]:
    """Run commands, and keep the document of each."""
    files, works, code = {}, [], _code(modules)
    for name, words in each.items():
        plain = "".join(c if c.isalnum() or c in "+_-." else "_" for c in name)
        files[name] = f"{plain}-{_digest(words, code)}.json"
        work: Work = (files[name], _document, (words, modules))
        works.append(work)
    _import(modules)
    done = _all(works, Path(out), backend, workers, progress)
    return {name: kind(done[file], []) for name, file in files.items()}


def reproduce(
    figures: Sequence[str] = (),
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> dict[str, Reproduction]:
    """Reproduce figures (all unless named) on many workers; a document each, by name."""
    _one_thread(options)
    names = [figures] if isinstance(figures, str) else list(figures)
    if not names:
        listed = json.loads(_printed(["reproduce", "--list", "--json"])[0])
        names = [figure["figure"] for figure in listed["figures"]]
    each = {name: ["reproduce", name, *_options(options)] for name in names}
    return _documents(Reproduction, each, out, backend, workers, (), progress)


def attainable_rate(
    contestants: Sequence[str],
    *,
    out: str | Path,
    backend: str = "local",
    workers: int | None = None,
    modules: Sequence[str] = (),
    progress: bool | Progress = False,
    **options: Any,
) -> dict[str, AttainableRate]:
    """Measure attainable rates on many workers; a document for each contestant."""
    _one_thread(options)
    names = [contestants] if isinstance(contestants, str) else list(contestants)
    each = {name: ["benchmark", name, *_options(options)] for name in names}
    return _documents(AttainableRate, each, out, backend, workers, modules, progress)
