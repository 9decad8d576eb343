"""The fillmask-serve command, which serves models over HTTP."""

import faulthandler
import gc
import signal
import sys
import threading


def main() -> int:
    """Run the server and return its exit code (`serve`)."""
    # prints the traceback of a crash in native code
    if sys.stderr is not None:  # not closed
        faulthandler.enable()
    # Garbage collections take a tenth of the CPU time of a start and free almost no memory. The
    # server enables garbage collection after the start.
    gc.disable()
    # the handlers come before the imports, because a signal may arrive during an import
    for number in (signal.SIGTERM, signal.SIGINT):
        # no request is pending before the server listens
        signal.signal(number, lambda *_: sys.exit(0))
    reload_requested = threading.Event()
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda *_: reload_requested.set())

    from fillmask.serve import serve  # noqa: PLC0415 - after the signal handlers

    return serve(sys.argv[1:], reload_requested)


if __name__ == "__main__":
    sys.exit(main())
