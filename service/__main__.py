"""fillmask-serve: read the settings, load the model, serve until told to stop."""

import faulthandler
import signal
import sys
import threading


def main() -> int:
    """Serve; 0 after SIGTERM or SIGINT, 1 when the service fails, 2 when it cannot start."""
    # a crash of native code leaves a line in the log, and where it was
    faulthandler.enable()
    # before all else: a signal may come while the imports are still running
    for number in (signal.SIGTERM, signal.SIGINT):
        # until the server listens there is nothing to finish
        signal.signal(number, lambda *_: sys.exit(0))
    reload_asked = threading.Event()
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda *_: reload_asked.set())

    from service.serve import serve  # noqa: PLC0415 - see above

    return serve(sys.argv[1:], reload_asked)


if __name__ == "__main__":
    sys.exit(main())
