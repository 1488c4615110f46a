"""Colours: one set for stored pictures, one that follows JupyterLab's theme."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalab.cluster.view import BrokerState

__all__ = ["LIGHT", "STATE_COLOURS", "THEMED", "Palette", "readable"]


@dataclass(frozen=True)
class Palette:
    """Colours of surfaces and text. All other colours are mid-tones that stand out on light and on dark."""

    background: str
    panel: str
    border: str
    text: str
    muted: str


# A stored picture is an image that doesn't know the page's theme, so it brings its own light card.
LIGHT = Palette(background="#ffffff", panel="#f6f8fa", border="#c9d1d9", text="#1f2328", muted="#59636e")

THEMED = Palette(
    background="var(--jp-layout-color1, #ffffff)",
    panel="var(--jp-layout-color2, #f6f8fa)",
    border="var(--jp-border-color1, #c9d1d9)",
    text="var(--jp-ui-font-color1, #1f2328)",
    muted="var(--jp-ui-font-color2, #59636e)",
)

STATE_COLOURS: dict[BrokerState, str] = {
    "up": "#1f883d",
    "starting": "#2678d9",
    "paused": "#b07800",
    "isolated": "#8250df",
    "stopped": "#6e7781",
    "dead": "#d1242f",
}

LEADER = "#2678d9"
OUT_OF_ISR = "#d1242f"
CROWN = "#d99e00"
LAG = "#b07800"


def readable(colour: str) -> str:
    """Return a colour for text: darker in the light theme, lighter in the dark one."""
    return f"color-mix(in srgb, {colour} 65%, {THEMED.text})"
