"""``python -m kafkalab.cli.hosted PLACE COMMAND…``: make a session ready, and become the server's command."""

from __future__ import annotations

import sys

from kafkalab.cli.hosted.notice import NOTICES
from kafkalab.cli.hosted.start import become, make_ready

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in NOTICES:
        sys.exit(f"usage: python -m kafkalab.cli.hosted {{{','.join(NOTICES)}}} COMMAND...")
    make_ready(sys.argv[1])
    # On a hub a whole class opens JupyterLab in the same minute. There, each learner's first cell starts a cluster.
    become(sys.argv[2:], standby=sys.argv[1] == "binder")
