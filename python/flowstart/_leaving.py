"""What is left behind by an interrupt is ended when the process ends.

A thread that is in the middle of Python code when the interpreter goes would abort the process.
"""

import atexit
import contextlib
import ctypes
import os
import sys
import time

from flowstart import _native

#: How long threads may take to end, in seconds. One that simulates and calls no Python code does
#: not hear of it, and does no harm.
_PATIENCE = 1.0
#: How often they are told, in seconds.
_LOOK = 0.02


def end_left_behind() -> None:
    """Raises KeyboardInterrupt in the threads that still work, and waits for them.

    Python code may catch it and go on. The process then ends without the interpreter's end.
    """
    until = time.monotonic() + _PATIENCE
    in_python: set[int] = set()
    interrupt = ctypes.py_object(KeyboardInterrupt)
    while (left := _native.working_threads()) and time.monotonic() < until:
        for thread in left:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), interrupt)
        time.sleep(_LOOK)
        in_python |= sys._current_frames().keys()
    if in_python.intersection(left):
        _leave()


def _leave() -> None:
    """End the process at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        # Nobody may read them any more, or there may be none.
        with contextlib.suppress(Exception):
            stream.flush()
    # The status that the interpreter would give. What `sys.exit` was given it does not tell.
    uncaught = getattr(sys, "last_type", None)
    if uncaught is None:
        os._exit(0)
    os._exit(130 if issubclass(uncaught, KeyboardInterrupt) else 1)


atexit.register(end_left_behind)
