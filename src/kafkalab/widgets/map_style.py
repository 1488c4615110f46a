"""The look of the live map: one style sheet that follows JupyterLab's theme.

Every difference has a form besides its colour: a leader is filled, a replica out of the ISR is hatched, one on a broker
that is down is dotted and struck through.
"""

from __future__ import annotations

from kafkalab.widgets.palette import CROWN, LAG, OUT_OF_ISR, STATE_COLOURS, THEMED, readable

__all__ = ["GAP", "STYLE", "columns"]

GAP = 6  # pixels between the columns of brokers

_LEADER = "#1763c7"  # dark enough for white numbers


def columns(number: int) -> str:
    """Return the columns of a grid with one for each broker."""
    return f"repeat({number}, minmax(0, 1fr))"


_STATES = "".join(f".kafkalab-map .is-{state} {{ --state: {colour}; }}\n" for state, colour in STATE_COLOURS.items())

STYLE = f"""<style>
.widget-box:has(.kafkalab-map), .kafkalab-map, .kafkalab-map .widget-box {{ overflow: visible; }}
.kafkalab-map {{ color: {THEMED.text}; font: 13px/1.4 var(--jp-ui-font-family, system-ui, sans-serif); }}
.kafkalab-map .widget-html, .kafkalab-map .widget-html-content {{ margin: 0; min-width: 0; height: auto; font-size: 13px;
  line-height: 1.4; }}
.kafkalab-map .muted {{ color: {THEMED.muted}; font-weight: 400; }}
.kafkalab-map .bad {{ color: {readable(STATE_COLOURS["dead"])}; }}
.kafkalab-map .note {{ color: {readable(STATE_COLOURS["paused"])}; }}
.kafkalab-map .unseen {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }}
{_STATES}
.kafkalab-map .broker {{ min-height: 38px; padding: 1px 0 2px; border-bottom: 3px solid var(--state); line-height: 18px; }}
.kafkalab-map .broker.gone {{ border-bottom-style: dashed; }}
.kafkalab-map .broker b {{ font-size: 13px; }}
.kafkalab-map .broker div {{ font-size: 12px; overflow-wrap: anywhere; }}
.kafkalab-map .broker .crown {{ color: {readable(CROWN)}; font-size: 14px; }}
.kafkalab-map .topic {{ display: flex; gap: 0 8px; align-items: baseline; flex-wrap: wrap; margin-top: 5px; font-size: 12px; }}
.kafkalab-map .topic b {{ font-size: 13px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.kafkalab-map .columns {{ display: grid; gap: {GAP}px; }}
.kafkalab-map .replicas {{ display: flex; flex-wrap: wrap; gap: 2px; min-height: 20px; align-content: flex-start; }}
.kafkalab-map i {{ box-sizing: border-box; min-width: 22px; padding: 0 2px; border: 1px solid transparent; border-radius: 4px;
  font: 12px/18px system-ui, sans-serif; text-align: center; color: {THEMED.text}; position: relative; }}
.kafkalab-map i.leader {{ background: {_LEADER}; color: #fff; font-weight: 700; }}
.kafkalab-map i.follower {{ background: color-mix(in srgb, {_LEADER} 24%, {THEMED.background}); }}
.kafkalab-map i.out {{ border: 1px solid {OUT_OF_ISR}; background: repeating-linear-gradient(135deg,
  transparent 0 3px, color-mix(in srgb, {OUT_OF_ISR} 30%, transparent) 3px 4px); }}
.kafkalab-map i.down {{ border: 1px dotted {STATE_COLOURS["stopped"]}; color: {THEMED.muted}; text-decoration: line-through; }}
.kafkalab-map i.preferred::after {{ content: ""; position: absolute; right: -1px; bottom: -1px; border: 3px solid;
  border-color: transparent {CROWN} {CROWN} transparent; border-bottom-right-radius: 4px; }}
.kafkalab-map i.owned {{ background: color-mix(in srgb, {STATE_COLOURS["up"]} 24%, {THEMED.background}); }}
.kafkalab-map i.behind {{ background: color-mix(in srgb, {LAG} 30%, {THEMED.background}); border: 1px solid {LAG}; }}
.kafkalab-map .chips {{ display: flex; flex-wrap: wrap; gap: 3px 4px; margin-top: 6px; font-size: 12px; }}
.kafkalab-map .chips > span {{ border: 1px solid {THEMED.border}; border-radius: 10px; padding: 0 7px;
  overflow-wrap: anywhere; }}
.kafkalab-map .chips > .bad {{ border-style: dashed; border-color: currentcolor; }}
.kafkalab-map .legend {{ display: flex; flex-wrap: wrap; gap: 2px 10px; margin-top: 6px; font-size: 12px; }}
.kafkalab-map .group {{ display: flex; gap: 8px; align-items: center; margin-top: 6px; }}
.kafkalab-map .group b {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.kafkalab-map .group .bar {{ flex: 0 0 70px; margin-left: auto; height: 8px; border: 1px solid {THEMED.border};
  border-radius: 4px; }}
.kafkalab-map .group .bar span {{ display: block; height: 100%; border-radius: 4px; background: {LAG}; }}
.kafkalab-map .member {{ display: grid; grid-template-columns: 92px 1fr auto; gap: 6px; margin-top: 2px; font-size: 12px; }}
.kafkalab-map .member > :first-child {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.kafkalab-map .bar + .numbers {{ min-width: 52px; text-align: right; }}
.kafkalab-map .numbers {{ font-variant-numeric: tabular-nums; font-size: 12px; white-space: nowrap; }}

.kafkalab-fold {{ position: relative; }}
.kafkalab-fold:not(:has(> .kafkalab-opener details[open])) > .kafkalab-folded {{ display: none; }}
.kafkalab-fold > .kafkalab-opener {{ position: absolute; top: 0; left: 0; right: 0; width: auto; }}
.kafkalab-opener summary {{ height: 24px; line-height: 24px; list-style: none; cursor: pointer; border-radius: 4px; }}
.kafkalab-opener summary::-webkit-details-marker {{ display: none; }}
.kafkalab-opener summary::before {{ content: "▸" / ""; color: {THEMED.muted}; }}
.kafkalab-opener details[open] summary::before {{ content: "▾" / ""; }}
.kafkalab-fold > .kafkalab-label {{ padding-left: 14px; min-height: 24px; font-size: 12px; }}
.kafkalab-fold > .kafkalab-label .widget-html-content {{ line-height: 24px; color: {THEMED.muted}; }}

.kafkalab-fold.kafkalab-menu > .kafkalab-opener {{ left: auto; width: 24px; }}
.kafkalab-menu > .kafkalab-label {{ padding: 0; color: {THEMED.text}; }}
.kafkalab-menu > .kafkalab-label .widget-html-content {{ color: {THEMED.text}; line-height: 1.4; }}
.kafkalab-menu > .kafkalab-opener summary {{ height: 22px; line-height: 20px; text-align: center; font-size: 17px; }}
.kafkalab-menu > .kafkalab-opener summary:hover {{ background: {THEMED.panel}; }}
.kafkalab-menu > .kafkalab-opener details summary::before,
.kafkalab-menu > .kafkalab-opener details[open] summary::before {{ content: "⋯" / ""; color: {THEMED.text}; }}
.kafkalab-menu .jupyter-button {{ width: auto; height: auto; min-height: 24px; margin: 2px 0 0; padding: 2px 0;
  line-height: 18px; white-space: normal; overflow: visible; font-size: 12px; border: 1px solid {THEMED.border};
  border-radius: 4px; background: {THEMED.background}; color: {THEMED.text}; }}
.kafkalab-menu .jupyter-button.kafkalab-danger {{ border-color: currentcolor; color: {readable(STATE_COLOURS["dead"])}; }}
.kafkalab-map :is(summary, .jupyter-button, .kafkalab-events):focus-visible {{ outline: 2px solid {_LEADER};
  outline-offset: -1px; }}

.kafkalab-map .kafkalab-events {{ position: sticky; bottom: 0; z-index: 1; display: flex; flex-direction: column-reverse;
  max-height: 124px; overflow-y: auto; margin-top: 8px; padding: 3px 6px; border: 1px solid {THEMED.border}; border-radius: 6px;
  background: {THEMED.background}; }}
.kafkalab-map .kafkalab-events > * {{ flex: none; }}
.kafkalab-map .event {{ display: flex; gap: 8px; font-size: 12px; line-height: 17px; }}
.kafkalab-map .event time {{ flex: 0 0 52px; color: {THEMED.muted}; font-variant-numeric: tabular-nums; }}
.kafkalab-map .event span {{ overflow-wrap: anywhere; min-width: 0; }}
</style>"""
