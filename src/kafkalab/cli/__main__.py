"""``python -m kafkalab.cli`` is the same as ``kafkalab``."""

import sys

from kafkalab.cli import main

sys.exit(main())
