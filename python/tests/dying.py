"""Work for workers that are killed: imported by processes of their own."""

import os
import signal
import time
from pathlib import Path

import flowstart


@flowstart.register(name="imported_start")
class Imported(flowstart.FlowStart):
    """Slow start that only those know who import this module."""


def dies_once(marker: str, work: str) -> bytes:
    """Killed, in the middle of its work, the first time that anybody does it."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return f"{work} by {os.getpid()}".encode()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def dies(_: str) -> bytes:
    """Killed whenever anybody does it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def sleeps(marker: str) -> bytes:
    """Says who has begun, and is never done."""
    part = Path(f"{marker}.part")
    part.write_text(str(os.getpid()))
    part.replace(marker)
    time.sleep(3600)
    return b""


def fails(marker: str) -> bytes:
    """Raises as soon as somebody else sleeps."""
    while not Path(marker).exists():
        time.sleep(0.01)
    raise ValueError("on purpose")


def alone(lock: str, one: int) -> bytes:
    """Fail if another of its kind is at work."""
    with open(lock, "x"):
        time.sleep(0.1)
    os.unlink(lock)
    return str(one).encode()
