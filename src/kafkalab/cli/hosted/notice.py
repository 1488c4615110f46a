"""What a learner must know of a session on somebody else's machine: what is lost when, and how to keep it."""

from __future__ import annotations

__all__ = ["NOTICES", "NOTICE_FILE"]

NOTICE_FILE = "About this session.md"
"""Its name in the workspace."""

_TAKE_ALONG = """\
**Take your work with you.** Open a terminal with *File → New → Terminal*, and call

```
kafkalab export work.zip
```

Then right-click `work.zip` in the file list, and choose *Download*. The file holds your notebooks and your progress.

**Take it up again.** In a new session, drag `work.zip` into the file list. Open a terminal, and call

```
kafkalab import work.zip
```

Open your notebooks after that. If one is open already, choose *File → Reload Notebook from Disk*.
"""

_BINDER = """\
# Your session on Binder

Begin with [chapter 00](notebooks/00_start_here.ipynb). The folder `labs` has the exercises.

**Memory.** You have 2 GB. That's enough for one chapter at a time. Close a notebook before you open the next one: its kernel
and its cluster end with its tab.

**Time.** Binder ends a session that you leave alone, on mybinder.org after ten minutes. It ends every session after some
hours. What's in the session is lost then.

"""

_HUB = """\
# Your server for the class

Begin with [chapter 00](notebooks/00_start_here.ipynb). The folder `labs` has the exercises.

**Memory.** Your server has a limit. It's enough for one chapter at a time. Close a notebook before you open the next one: its
kernel and its cluster end with its tab.

**Time.** The hub ends a server that you leave alone for long. Clusters end with it. Your notebooks and your progress stay.

"""

NOTICES = {"binder": _BINDER + _TAKE_ALONG, "hub": _HUB + _TAKE_ALONG}
"""The notice by the place of the session."""
