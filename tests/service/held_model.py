"""Code of a separate process that serves a model whose runs wait."""

# The service with a model that prints the start of each run and waits while the file HELD exists in
# the directory of the process.
HELD = """
import os, sys, time
from fillmask.engine.runtime import Runtime
run = Runtime.run
def wait(self, batch):
    print("running", flush=True)
    while os.path.exists("HELD"):
        time.sleep(0.01)
    return run(self, batch)
Runtime.run = wait
from fillmask.__main__ import main
sys.exit(main())
"""
