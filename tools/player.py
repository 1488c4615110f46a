"""Show a recording on a page of the site: the map, and the timeline below it, with a button and a slider.

Everything is in the page, so it plays from a folder, too. Without a script the page shows the last moment, and so does a printer.
``docs/site/static/player.js`` does the rest.
"""

from __future__ import annotations

import math
from html import escape

from kafkalab.widgets.map_drawing import map_picture
from kafkalab.widgets.picture import flow
from kafkalab.widgets.timeline_drawing import MARGINS, describe_gaps, draw_timeline
from recording import Recording

__all__ = ["player"]


def player(recording: Recording) -> str:
    """Return a recording as HTML."""
    seconds = math.ceil(recording.seconds * 10) / 10  # a whole number of the slider's steps
    frames = []
    last = len(recording.moments) - 1
    for number, moment in enumerate(recording.moments):
        picture = map_picture(moment.view, groups=False)
        happened = "; ".join(moment.events) or "All is well."
        frames.append(
            f'<div class="moment" data-at="{moment.at:.2f}"{"" if number == last else " hidden"}>'
            f'{picture.html}<p class="happened">{escape(happened)}</p></div>'
        )
    words = f"{len(recording.acks)} messages: {describe_gaps(recording.acks)}"
    timeline = flow([draw_timeline(recording.acks, recording.marks)], words)
    left, right = MARGINS
    return (
        f'<div class="player" role="group" aria-label="Recorded failover" data-seconds="{seconds:.1f}" '
        f'data-left="{left}" data-right="{right}">'
        "<p><strong>Play it back.</strong> This is a recording of another run: what the cluster did, moment by moment.</p>"
        f'<div class="moments">{"".join(frames)}</div><div class="record">{timeline}</div>'
        '<div class="controls" hidden><button type="button">Play</button>'
        f'<input type="range" min="0" max="{seconds:.1f}" step="0.1" value="{seconds:.1f}" '
        f'aria-label="Seconds into the recording"><output>{seconds:.1f} s</output></div></div>'
    )
