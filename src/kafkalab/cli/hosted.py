"""``python -m kafkalab.cli.hosted``: make the workspace of a session on Binder, with what a learner must know about it."""

from __future__ import annotations

from kafkalab.course import open_workspace

__all__ = ["NOTICE", "NOTICE_FILE", "main"]

NOTICE_FILE = "About this session.md"
"""Its name in the workspace."""

NOTICE = """\
# Your session on Binder

Begin with [chapter 00](notebooks/00_start_here.ipynb). The folder `labs` has the exercises.

**Memory.** You have 2 GB. That's enough for one chapter at a time. Close a notebook before you open the next one: its kernel
and its cluster end with its tab.

**Time.** Binder ends a session that you leave alone, on mybinder.org after ten minutes. It ends every session after some
hours. What's in the session is lost then.

**Take your work with you.** Open a terminal with *File → New → Terminal*, and call

```
tar czf work.tgz .kafkalab labs notebooks
```

Then right-click `work.tgz` in the file list, and choose *Download*. The file holds your notebooks and your progress.

**Take it up again.** In a new session, drag `work.tgz` into the file list. Open a terminal, and call

```
tar xzf work.tgz
```

Open your notebooks after that. If one is open already, choose *File → Reload Notebook from Disk*.
"""


def main() -> None:
    """Make or update the workspace, put the notice into it, and print the workspace's folder."""
    workspace = open_workspace()
    workspace.update()
    (workspace.folder / NOTICE_FILE).write_text(NOTICE)
    print(workspace.folder)


if __name__ == "__main__":
    main()
