"""The course's notebooks, and the learner's own copies of them."""

from kafkalab.course.content import Content, find_content
from kafkalab.course.names import find_notebook
from kafkalab.course.workspace import Update, Workspace, open_workspace, reset, solution, workspace_dir

__all__ = [
    "Content",
    "Update",
    "Workspace",
    "find_content",
    "find_notebook",
    "open_workspace",
    "reset",
    "solution",
    "workspace_dir",
]
