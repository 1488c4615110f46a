"""Your progress: a bar for each chapter, with its labs behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from kafkalab.course import find_course
from kafkalab.progress import ProgressRecord, load
from kafkalab.widgets.notebook_links import course_folder, notebook_link
from kafkalab.widgets.progress_data import ChapterProgress, Task, chapters_of, labs_of_course, time_in_words

__all__ = ["Progress", "progress_html", "progress_page", "progress_text"]

# Colours are JupyterLab's where there is one, so that the dark theme has its own. A page outside has none.
_STYLE = """<style>
.kl-progress { max-width: 820px; line-height: 1.45; }
.kl-progress details { border-top: 1px solid var(--jp-border-color2, #8886); margin: 0; }
.kl-progress details:last-of-type { border-bottom: 1px solid var(--jp-border-color2, #8886); }
.kl-progress summary { padding: 5px 2px; cursor: pointer; }
.kl-progress summary:focus-visible { outline: 2px solid var(--jp-brand-color1, #2678d9); }
.kl-progress-head { display: inline-grid; width: calc(100% - 24px); vertical-align: top; align-items: center; gap: 12px;
  grid-template-columns: minmax(0, 1fr) minmax(60px, 22%) 64px; }
.kl-progress-bar { display: block; height: 8px; border-radius: 4px; overflow: hidden;
  background: var(--jp-layout-color2, #8884); }
.kl-progress-bar > span { display: block; height: 100%; background: #2da44e; }
.kl-progress-count { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.kl-progress ul { list-style: none; margin: 0 0 8px; padding: 0 0 0 20px; }
.kl-progress li { display: grid; grid-template-columns: 18px minmax(0, 1fr) auto; gap: 4px; margin: 2px 0; }
.kl-progress li > :last-child { color: var(--jp-ui-font-color2, inherit); text-align: right; }
.kl-progress p { margin: 6px 0; }
</style>"""

_MEANT = (
    "Time goes from the first cell that you ran in a chapter or its labs to the last one. "
    "Gaps of more than 10 minutes don't count."
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Progress in the Kafka course</title>
<style>body { font: 16px/1.45 system-ui, sans-serif; max-width: 820px; margin: 24px auto; padding: 0 16px; }</style>
</head>
<body>
<main>
<h1>Progress in the Kafka course</h1>
%s
</main>
</body>
</html>
"""


class Progress:
    """Your progress: a bar for each chapter. Unfold it to see its labs, with links, its quiz and your predictions."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        record, labs = load(), labs_of_course()
        keeps = (
            "<p><code>kafkalab progress --help</code> in a terminal: how to keep this as a page or as JSON, or delete it.</p>"
        )
        html = progress_html(chapters_of(record, labs), _links(labs)) + keeps
        return {"text/html": html, "text/plain": progress_text(record, labs)}


def _links(labs: Mapping[str, str]) -> dict[str, Path]:
    """Return the learner's copy of the notebook that each check or quiz is in, as far as there is one."""
    from kafkalab import checks  # see `labs_of_course`

    root, content = course_folder(), find_course().content
    if root is None:
        return {}
    notebooks = {
        check.id: root / "labs" / content.chapter_of(stem) / f"{stem}.ipynb"
        for stem, lab in checks.labs().items()
        for check in lab.checks
        if check.id in labs
    }
    notebooks |= {f"{name[:2]} quiz": root / "notebooks" / f"{name}.ipynb" for name in content.chapter_titles}
    return {name: path for name, path in notebooks.items() if path.exists()}


def progress_html(chapters: Sequence[ChapterProgress], notebooks: Mapping[str, Path], *, unfolded: bool = False) -> str:
    """Return the progress as HTML.

    Parameters
    ----------
    chapters
        What `chapters_of` returns.
    notebooks
        The notebooks to link to, by the name of the task.
    unfolded
        Whether all labs are in sight.
    """
    done, tasks = sum(chapter.done for chapter in chapters), sum(len(chapter.tasks) for chapter in chapters)
    known = sum(chapter.known for chapter in chapters)
    came_true = sum(chapter.came_true for chapter in chapters)
    predicted = f" · {came_true} of {known} predictions came true" if known else ""
    seconds = sum(chapter.seconds for chapter in chapters)
    took = f" · {time_in_words(seconds)}" if seconds else ""
    rows = [f"<p><b>{done} of {tasks} done</b>{predicted}{took}</p>{_bar(done, tasks)}<p></p>"]
    for chapter in chapters:
        count = f'<span class="kl-progress-count">{chapter.done} of {len(chapter.tasks)}</span>'
        title = f"<span>{escape(f'{chapter.number} · {chapter.title}')}</span>"
        head = f'<span class="kl-progress-head">{title}{_bar(chapter.done, len(chapter.tasks))}{count}</span>'
        items = "".join(_item(task, notebooks.get(task.name)) for task in chapter.tasks)
        if chapter.known:
            words = f"{chapter.came_true} of {chapter.known} as you predicted"
            items += f"<li><span></span><span>Predictions</span><span>{words}</span></li>"
        if chapter.seconds:
            items += f"<li><span></span><span>Time</span><span>{time_in_words(chapter.seconds)}</span></li>"
        rows.append(f"<details{' open' * unfolded}><summary>{head}</summary><ul>{items}</ul></details>")
    meant = f"<p>{_MEANT}</p>" if seconds else ""
    return f'{_STYLE}<div class="kl-progress">{"".join(rows)}{meant}</div>'


def _bar(done: int, of: int) -> str:
    # A picture of the number beside it, so a screen reader needn't read it.
    return f'<span class="kl-progress-bar" aria-hidden="true"><span style="width:{100 * done / of:.1f}%"></span></span>'


def _item(task: Task, notebook: Path | None) -> str:
    title = task.title or task.name
    shown = escape(title) if notebook is None else notebook_link(notebook, title)
    mark = '<span role="img" aria-label="done">✓</span>' if task.done else '<span role="img" aria-label="to do">○</span>'
    return f"<li>{mark}<span>{shown}</span><span>{escape(task.words)}</span></li>"


def progress_page(chapters: Sequence[ChapterProgress]) -> str:
    """Return the progress as a page of its own, to keep or print, without links: nobody knows where it will be."""
    return _PAGE % progress_html(chapters, {}, unfolded=True)


def progress_text(record: ProgressRecord, labs: Mapping[str, str]) -> str:
    """Return the progress as plain text."""
    tasks = [task for chapter in chapters_of(record, labs) for task in chapter.tasks]
    width = max(len(task.name) for task in tasks)
    return "\n".join(f"{'x' if task.done else ' '} {task.name:<{width}}  {task.words}" for task in tasks)
