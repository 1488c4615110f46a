"""``python -P -m kafkalab.grading.kernel``: the kernel of a submission. It's the course's kernel with a witness in it."""

from __future__ import annotations

import os
import sys

from kafkalab.grading import witness
from kafkalab.kernel import own_folder_after_pythons

if __name__ == "__main__":
    from ipykernel.kernelapp import launch_new_instance

    witness.begin(int(os.environ.pop("KAFKALAB_WITNESS")))
    sys.path = own_folder_after_pythons(sys.path)
    launch_new_instance()
