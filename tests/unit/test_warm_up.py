"""What is compiled when installing: everything that a publication of some size will need."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from pg_mdistinct.core.knowledge import recall
from pg_mdistinct.core.update_graph import risks
from pg_mdistinct.experiments.publisher import Publisher
from pg_mdistinct.experiments.records import workload_model
from pg_mdistinct.server.warm_up import compile_core
from pg_mdistinct.workload import Workload

def signatures():
    return {
        (kernel.__module__, kernel.__name__, signature)
        for name, module in list(sys.modules.items()) if name.startswith("pg_mdistinct.core.")
        for kernel in vars(module).values() if isinstance(kernel, Dispatcher)
        for signature in kernel.signatures
    }

compile_core.__wrapped__(None)
before = signatures()
assert len(before) > 15, before
for nested in (False, True):
    workload = Workload(initial=2_000, insertions=500, deletions=200, updates=500, nested=nested)
    model = workload_model(workload)
    publisher = Publisher(model, 4)
    for snapshot in workload.releases(3):
        publisher.publish(snapshot)
    recall(publisher.history(), model)
    risks(publisher.history(), model)
for new in signatures() - before:
    print(new)
"""


def test_publishing_needs_no_kernel_that_was_not_compiled() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert finished.stdout == ""
