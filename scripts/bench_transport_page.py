"""The page of the transport benchmark: a plot of misses against datagrams per message for each link, and the table."""
from __future__ import annotations

import html
import math
from collections.abc import Callable

WIDTH, HEIGHT, LEFT, TOP = 760, 380, 70, 30
COLOURS = ["#0b7a75", "#c1440e", "#5b4b9a", "#8a6d00", "#1f6fb2", "#b0306a", "#4d7c0f", "#555555"]
COLUMNS = [("scenario", "link", "{}"), ("rate_hz", "Hz", "{:.0f}"), ("sent", "sent", "{}"), ("lost", "lost", "{}"), ("missed", "missed", "{:.2e}"),
           ("floor_missed", "outage floor", "{:.1e}"), ("floor_p50_ms", "delay ms", "{:.2f}"), ("p50_ms", "p50 ms", "{:.2f}"), ("p90_ms", "p90", "{:.2f}"),
           ("p99_ms", "p99", "{:.2f}"), ("p999_ms", "p99.9", "{:.2f}"), ("longest_run", "most in a row", "{}"), ("datagrams", "datagrams", "{:.2f}"),
           ("feedback", "back", "{:.2f}"), ("cpu_us", "CPU us", "{:.1f}"), ("rounds", "rounds", "{}")]


def page(content: dict, label: Callable[[dict], str]) -> str:
    """The whole page."""
    rows = sorted(content["rows"], key=lambda row: (row["scenario"], row["rate_hz"], row["missed"]))
    links = sorted({(row["scenario"], row["rate_hz"]) for row in rows})
    plots = "".join(plot(f"{name}, {rate:.0f} Hz", [row for row in rows if (row["scenario"], row["rate_hz"]) == (name, rate)], label)
                    for name, rate in links)
    head = "".join(f"<th>{text}</th>" for text in ["contender", *(title for _, title, _ in COLUMNS)])
    body = "".join(f"<tr><td>{html.escape(label(row))}</td>{''.join(cell(row[key], form) for key, _, form in COLUMNS)}</tr>" for row in rows)
    return f"""<!doctype html><meta charset="utf-8"><title>Transports</title>
<style>body{{font:14px sans-serif;margin:2em;max-width:1200px}}table{{border-collapse:collapse}}td,th{{padding:3px 9px;text-align:right;border-bottom:1px
solid #ddd}}td:first-child,th:first-child{{text-align:left}}</style><h1>Transports on emulated links</h1>
<p>One way, from the intended send time; missed: not there within {content["deadline_ms"]:.0f} ms. Datagrams per message on the interface, forward and back.
CPU: both ends, all threads. {html.escape(content["machine"])}, {content["processors"]} processors;
{len(content["void"])} runs void, {len(content["failed"])} failed.</p>
{plots}<table><tr>{head}</tr>{body}</table>"""


def cell(value: object, form: str) -> str:
    """A cell; a percentile that is a lost message, or rests on too few, is a dash."""
    return f"<td>{'-' if value is None else form.format(value)}</td>"


def plot(title: str, rows: list[dict], label: Callable[[dict], str]) -> str:
    """Misses (logarithmic) over datagrams per message. A hollow mark is an upper bound: no miss was seen."""
    lowest = min(row["missed_at_most"] for row in rows)
    decades = max(1, math.ceil(-math.log10(lowest)))
    most = max(2.0, math.ceil(max(row["datagrams"] for row in rows) * 2) / 2)
    across = lambda value: LEFT + (value - 0.5) / (most - 0.5) * (WIDTH - LEFT - 230)
    down = lambda value: TOP + min(1.0, -math.log10(min(1.0, value)) / decades) * (HEIGHT - TOP - 50)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="12"><text x="{LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>']
    for power in range(decades + 1):
        y = down(10.0**-power)
        parts.append(f'<line x1="{LEFT}" x2="{across(most)}" y1="{y}" y2="{y}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">1e-{power}</text>')
    for half in range(1, round(most * 2) + 1):
        x = across(half / 2)
        parts.append(f'<text x="{x}" y="{HEIGHT - 30}" text-anchor="middle">{half / 2}</text>')
    floor = rows[0]["floor_missed"]
    if floor > 0:
        parts.append(f'<line x1="{LEFT}" x2="{across(most)}" y1="{down(floor)}" y2="{down(floor)}" stroke="#c00" stroke-dasharray="5 4"/>'
                     f'<text x="{across(most)}" y="{down(floor) - 4}" text-anchor="end" fill="#c00">outage floor</text>')
    names = sorted({row["contender"] for row in rows})
    for row in rows:
        colour = COLOURS[names.index(row["contender"]) % len(COLOURS)]
        parts.append(f'<circle cx="{across(row["datagrams"])}" cy="{down(row["missed_at_most"])}" r="5" stroke="{colour}" stroke-width="2" '
                     f'fill="{colour if row["missed"] else "none"}"><title>{html.escape(label(row))}</title></circle>')
    for index, name in enumerate(names):
        y = TOP + 16 * index
        parts.append(f'<circle cx="{WIDTH - 205}" cy="{y}" r="5" fill="{COLOURS[index % len(COLOURS)]}"/>'
                     f'<text x="{WIDTH - 192}" y="{y + 4}">{html.escape(name)}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 10}">datagrams per message (forward); share of messages missed; hollow: none missed, 95 % bound</text></svg>')
    return "".join(parts)
