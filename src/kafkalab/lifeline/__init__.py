"""Everything that kafkalab starts dies with the process that owns it, however that process ends.

A *run* is a folder plus a mark: every process started for it carries ``KAFKALAB_RUN=<id>`` in its environment,
every container and network the label ``kafkalab.run=<id>``. A *claim* says which process owns the run. For each owner a
*reaper* (a small process in a session of its own) waits for the owner's end, also by SIGKILL, and then removes
all that its runs left behind. A claim is one file, so handing a run over to another process is one atomic rename.
"""

from kafkalab.lifeline.owner import Owner
from kafkalab.lifeline.runs import RUN_LABEL, RUN_VARIABLE, Run, abandoned_runs, claimed_runs, marked_processes, reap, started

__all__ = ["RUN_LABEL", "RUN_VARIABLE", "Owner", "Run", "abandoned_runs", "claimed_runs", "marked_processes", "reap", "started"]
