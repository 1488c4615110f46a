"""The course's notebooks, and the learner's own copies of them."""

from kafkalab.course.content import SOLUTIONS, Content, LabFacts
from kafkalab.course.installed import CONTENT_FOLDER, Course, find_course
from kafkalab.course.names import find_notebook
from kafkalab.course.workspace import Update, Workspace, open_workspace, reset, solution, workspace_dir

__all__ = [
    "CONTENT_FOLDER",
    "SOLUTIONS",
    "Content",
    "Course",
    "LabFacts",
    "Update",
    "Workspace",
    "find_course",
    "find_notebook",
    "open_workspace",
    "reset",
    "solution",
    "workspace_dir",
]
