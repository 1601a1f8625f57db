"""What is left behind by an interrupt is ended when the process ends.

A thread that is in the middle of Python code when the interpreter goes would abort the process.
"""

import atexit
import ctypes
import time

from flowstart import _native

#: How long threads may take to end, in seconds. One that simulates and calls no Python code does
#: not hear of it, and does no harm.
_PATIENCE = 1.0
#: How often they are told, in seconds.
_LOOK = 0.02


def end_left_behind() -> None:
    """Raises KeyboardInterrupt in the threads that still work, and waits for them."""
    until = time.monotonic() + _PATIENCE
    interrupt = ctypes.py_object(KeyboardInterrupt)
    while (left := _native.working_threads()) and time.monotonic() < until:
        for thread in left:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), interrupt)
        time.sleep(_LOOK)


atexit.register(end_left_behind)
