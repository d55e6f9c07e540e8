# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/images/demo.svg, an animated terminal, from the output of the demo.

picture.py           run the demo and write the picture
picture.py FILE      take the output from a file
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parents[1] / "docs/images/demo.svg"
ROWS, COLUMNS, HEIGHT = 26, 104, 17
STEP = re.compile(r" done +([\d.]+) s$")
COLORS = (("✗|DEVIATION|➤", "#ff7b72"), ("●|PASS|done", "#7ee787"), (r"fix:.*|^\d\. .*|^railops.*", "#79c0ff"))


def line(text: str) -> str:
    """Return a line as SVG text, colored."""
    cut = html.escape(text if len(text) <= COLUMNS else f"{text[: COLUMNS - 1]}…")
    for pattern, color in COLORS:
        cut = re.sub(pattern, lambda found, color=color: f'<tspan fill="{color}">{found[0]}</tspan>', cut)
    return cut


def picture(output: str) -> str:
    """Return the animation: each line appears in its turn, and the window scrolls."""
    lines = [text.rstrip() for text in output.split("\n  report ")[0].splitlines()]
    at, now = [], 0.0
    for text in lines:
        took = STEP.search(text)
        now += min(2.0, 0.3 + float(took[1]) / 5) if took else 0.12
        at.append(now)
    total = now + 8
    frames, shown, scroll = [], [], ["0%{transform:translateY(0)}"]
    for number, (text, when) in enumerate(zip(lines, at, strict=True)):
        percent = 100 * when / total
        frames.append(f"@keyframes l{number}{{0%,{percent:.2f}%{{opacity:0}}{percent + 0.01:.2f}%,100%{{opacity:1}}}}")
        if number >= ROWS:
            up = (number - ROWS + 1) * HEIGHT
            scroll.append(f"{percent - 0.01:.2f}%{{transform:translateY(-{up - HEIGHT}px)}}")
            scroll.append(f"{percent:.2f}%,100%{{transform:translateY(-{up}px)}}")
        place = f'y="{(number + 1) * HEIGHT}" style="animation-name:l{number}"'
        shown += [f'<text x="0" {place}>{line(text)}</text>'] if text else []
    width, tall = COLUMNS * 8, ROWS * HEIGHT
    style = (
        f"text{{font:13px ui-monospace,monospace;fill:#e6edf3;white-space:pre;animation:{total:.1f}s infinite}}"
        f".s{{animation:scroll {total:.1f}s infinite}}@keyframes scroll{{{''.join(scroll)}}}{''.join(frames)}"
        f"@media(prefers-reduced-motion){{text,.s{{animation:none}}.s{{transform:translateY(-{up}px)}}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 24} {tall + 24}" role="img" '
        f'aria-label="Terminal: make demo">\n<style>{style}</style>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n<svg x="12" y="10" width="{width}" '
        f'height="{tall + 6}"><g class="s">\n{chr(10).join(shown)}\n</g></svg>\n</svg>\n'
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        printed = Path(sys.argv[1]).read_text(encoding="utf-8")
    else:
        printed = subprocess.run([sys.executable, HERE / "demo.py"], capture_output=True, text=True, check=True).stdout
    PICTURE.write_text(picture(printed.replace(str(PICTURE.parents[2]), "~/rdma")), encoding="utf-8")
