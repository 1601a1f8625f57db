"""The commands of flowstart as functions."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from flowstart import _native
from flowstart.documents import AttainableRate, Chirp, Document, Frontier, Reproduction
from flowstart.results import RaceResult, RunResult
from flowstart.scenario import Like, as_file

_D = TypeVar("_D", bound=Document)

Progress = Callable[[int, int], object]


def _options(options: dict[str, Any]) -> list[str]:
    """Keywords as options of the command line: ``rtt="20 ms"`` is ``--rtt=20 ms``."""
    words = []
    for key, value in options.items():
        if key in ("help", "version", "json"):
            raise ValueError(f"{key} is for the command line: a function returns its result")
        option = "--" + key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={one}" for one in value]
        else:
            words.append(f"{option}={value}")
    return words


def _named(words: Sequence[object]) -> list[str]:
    """What is named is no option: those are keywords."""
    named = [str(word) for word in words]
    for word in named:
        if word.startswith("-"):
            raise ValueError(f'"{word}" is an option, and those are keywords; a file is "./{word}"')
    return named


def _contestants(contestants: Sequence[str] | None) -> list[str]:
    # A string is a sequence of strings too: of its letters.
    if contestants is None:
        return []
    each = [contestants] if isinstance(contestants, str) else list(contestants)
    if not each:
        raise ValueError("contestants names nobody; without it the usual ones race")
    return [f"--contestant={one}" for one in each]


@contextlib.contextmanager
def _bar(progress: bool | Progress, what: str) -> Iterator[Progress | None]:
    """A bar of tqdm, in terminals and notebooks; nothing where tqdm is not installed."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(desc=what, leave=False) as bar:

        def tell(done: int, of: int) -> None:
            bar.total = of
            bar.update(done - bar.n)

        yield tell


def _refused(status: int, message: str) -> Exception:
    if status == 2:
        return ValueError(message)
    if status == 3:
        return OSError(message)
    return RuntimeError(message or f"the command ended with status {status}")


#: Status of real runs that were less faithful than their limit asks for.
_UNFAITHFUL = 4


def _warn(unfaithful: str | None, depth: int) -> None:
    """Warn the code `depth` calls above of what a real run was not."""
    if unfaithful:
        warnings.warn(f"not faithful enough: {unfaithful}", RuntimeWarning, stacklevel=depth + 1)


def command(*arguments: str, progress: bool | Progress = False) -> str:
    """Run a command line in this process and give what it prints.

    What it says beside its data goes to standard error. Algorithms that are registered here take
    part.

    Raises:
        ValueError: what the command line says of wrong arguments, in one sentence.
        OSError: if this machine cannot do it.
    """
    output, remarks = _printed(list(arguments), progress)
    for remark in remarks:
        print(remark, file=sys.stderr)
    return output


def _printed(arguments: list[str], progress: bool | Progress = False) -> tuple[str, list[str]]:
    """Give what a command prints, and what it says beside that; for callers of callers."""
    with _bar(progress, arguments[0] if arguments else "flowstart") as bar:
        status, output, message, remarks = _native.call(arguments, bar)
    if status not in (0, 1, _UNFAITHFUL):
        raise _refused(status, message)
    _warn(message if status == _UNFAITHFUL else None, 3)
    # What ended with status 1 has a result, and a sentence about it.
    said = [message] if status == 1 and message else []
    return output.decode("utf-8"), remarks + said


def _document(kind: type[_D], arguments: list[str], progress: bool | Progress) -> _D:
    with _bar(progress, arguments[0]) as bar:
        status, output, message, remarks = _native.call([*arguments, "--json"], bar)
    # A check that failed has a result too, and a real run that was late.
    if status not in (0, 1, _UNFAITHFUL) or not output:
        raise _refused(status, message)
    _warn(message if status == _UNFAITHFUL else None, 3)
    return kind(output, remarks)


def compare(
    contestants: Sequence[str] | None = None,
    *,
    scenario: Like | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> RaceResult:
    """Race flow starts over one path, as ``flowstart compare``.

    Args:
        contestants: such as ``["hystart+cubic", "my_start+cubic@codel"]``, or one of them; the
            usual race unless given.
        scenario: a path, and who is there before.
        progress: a bar (needs tqdm), or a function of (done, of).
        **options: the options of the command line: ``capacity="1 Gbit/s"``, ``rtt="50 ms"``,
            ``buffer="0.5 BDP"``, ``background=["2 cubic"]``, ``size=["100 kB"]``, ``runs=10``,
            ``seed=7``, ``threads=2``, ``profile="wifi"``.

    A real run (``real=True``) that was later than its limit warns (`RuntimeWarning`) and has its
    result all the same.

    Raises:
        ValueError: what the command line says, in one sentence.
    """
    words, texts = ["compare"], dict[str, str]()
    if scenario is not None:
        file, texts = as_file(scenario)
        words += _named([file])
    words += _contestants(contestants) + _options(options)
    with _bar(progress, "racing") as bar:
        native, remarks, unfaithful = _native.compare(words, bar, texts)
    _warn(unfaithful, 2)
    return RaceResult(native, remarks)


def run(scenario: Like, *, progress: bool | Progress = False, **options: Any) -> RunResult:
    """Run a scenario, as ``flowstart run``.

    Args:
        scenario: a file, TOML text, a dictionary or a `Scenario`.
        progress: a bar (needs tqdm), or a function of (done, of).
        **options: the options of the command line: ``runs``, ``seed``, ``threads``.

    Raises:
        ValueError: what the command line says, in one sentence.
    """
    file, texts = as_file(scenario)
    _named([file])
    with _bar(progress, "running") as bar:
        [(name, tables)], remarks = _native.run(["run", file, *_options(options)], bar, texts)
    return RunResult(name, tables, remarks)


def frontier(
    contestants: Sequence[str] | None = None,
    *,
    progress: bool | Progress = False,
    **options: Any,
) -> Frontier:
    """Race over a grid of paths, as ``flowstart frontier``.

    With ``out="folder"`` results are kept as they come, and ``resume=True`` goes on with them.
    """
    words = ["frontier", *_contestants(contestants), *_options(options)]
    return _document(Frontier, words, progress)


def reproduce(*figures: str, progress: bool | Progress = False, **options: Any) -> Reproduction:
    """Reproduce papers' figures (all unless named), as ``flowstart reproduce``."""
    return _document(Reproduction, ["reproduce", *_named(figures), *_options(options)], progress)


def attainable_rate(
    contestant: str | None = None, *, progress: bool | Progress = False, **options: Any
) -> AttainableRate:
    """Measure what rate can be relied on, as ``flowstart benchmark``.

    Without a contestant it is that of CUBIC, or of what ``measured``, ``real`` or the like name.
    """
    words = [] if contestant is None else _named([contestant])
    return _document(AttainableRate, ["benchmark", *words, *_options(options)], progress)


def explain_chirp(file: str | None = None, **options: Any) -> Chirp:
    """Explain one chirp, that of a file or one of its own, as ``flowstart explain-chirp``."""
    words = [] if file is None else _named([file])
    return _document(Chirp, ["explain-chirp", *words, *_options(options)], False)


def check(contestant: str) -> None:
    """Check what every start and avoidance must keep to: ``check("my_start+cubic")``.

    Every transfer completes over hard paths, no simulation takes more than a million events, the
    same race gives the same result again, and asking for a departure twice changes nothing
    (docs/own-algorithm.md).

    Raises:
        ValueError: the first rule that it breaks, and on which path.
    """
    _native.check(contestant)


def names() -> Document:
    """List starts, avoidances, queues and contestants, own ones among them."""
    return _document(Document, ["list"], False)
