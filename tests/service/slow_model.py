"""Code of a separate process that serves a slow model."""

# the service with a slow model that prints the start of each run
SLOW = """
import sys, time
from fillmask.engine.runtime import Runtime
run = Runtime.run
def slow(self, batch):
    print("running", flush=True)
    time.sleep(0.7)
    return run(self, batch)
Runtime.run = slow
from fillmask.__main__ import main
sys.exit(main())
"""
