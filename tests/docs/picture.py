# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw docs/images/rails.svg: what a rail is, and what each step changes.

python3 tests/docs/picture.py            write it
python3 tests/docs/picture.py --check    say whether it is what this script writes
"""

from __future__ import annotations

import sys
import typing as t
from pathlib import Path
from xml.sax.saxutils import escape

FILE = Path(__file__).resolve().parents[2] / "docs/images/rails.svg"
SIZE = (960, 580)  # pixels
RAILS = ("rail1", "rail2", "rail3", "rail4")
HOSTS = ("node1", "node2")
# Told apart without red and green, and by their names.
COLOURS = ("#0072b2", "#e69f00", "#56b4e9", "#8c4a8c")
INK, PAPER, LINE, SOFT = "#1b1f24", "#ffffff", "#8c959f", "#f3f5f7"
STEPS = (
    ("plan", "writes files, touches nothing", ("plan/<fabric>/ in your git:", "every address, once"), SOFT),
    (
        "site, hosts",
        "①  on every node",
        ("drivers, RDMA mode", "address, table, rule, MTU", "files for the next boot"),
        "#e3f0fa",
    ),
    ("site, cluster", "②  in Kubernetes", ("Spiderpool, pools, networks", "labels of nodes"), "#fdf1dc"),
    (
        "site, verify",
        "③  over every rail",
        ("traffic host to host", "a verdict, rail by rail", "audit: compares only"),
        "#f1e6f1",
    ),
)
TITLE = "Two hosts with four rails each, the leaves that the rails lead to, and what each step changes"


def text(x: float, y: float, said: str, *, size: int = 16, bold: bool = False, anchor: str = "start") -> str:
    """Return a line of text; `y` is its base line."""
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size}"{weight} text-anchor="{anchor}"'
    return f'<text {place} fill="{INK}">{escape(said)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str = PAPER) -> str:
    """Return a box with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" stroke="{LINE}" '
        'stroke-width="1"/>'
    )


def port(host: int, rail: int) -> tuple[float, float]:
    """Return where a rail leaves a host."""
    return 416, 78 + 165 * host + 28 * rail


def leaf(rail: int) -> tuple[float, float]:
    """Return the left edge of a rail's leaf, at its middle."""
    return 660, 72 + 82 * rail


def hosts() -> t.Iterator[str]:
    """Yield both hosts: pods, GPUs, and the NIC of each rail."""
    for number, name in enumerate(HOSTS):
        top = 42 + 165 * number
        yield box(30, top, 386, 150, SOFT)
        yield text(44, top + 22, name, bold=True)
        yield box(44, top + 38, 112, 98, "#fdf1dc")
        yield text(100, top + 62, "pods", anchor="middle", bold=True)
        yield text(100, top + 84, "an address on", size=14, anchor="middle")
        yield text(100, top + 100, "each rail  ②", size=14, anchor="middle")
        for rail, label in enumerate(RAILS):
            x, y = port(number, rail)
            yield box(x - 248, y - 13, 248, 26, "#e3f0fa")
            yield f'<circle cx="{x - 235:g}" cy="{y:g}" r="5" fill="{COLOURS[rail]}"/>'
            yield text(x - 223, y + 5, f"{label}: GPU {rail}, NIC ens{rail + 1}np0  ①", size=14)


def leaves() -> t.Iterator[str]:
    """Yield the leaves, with the cables of their rails below them."""
    for rail, label in enumerate(RAILS):
        x, y = leaf(rail)
        for number in range(len(HOSTS)):
            left, height = port(number, rail)
            yield (
                f'<path d="M{left:g} {height:g} C{left + 110:g} {height:g} {x - 110:g} {y:g} {x:g} {y:g}" fill="none" '
                f'stroke="{COLOURS[rail]}" stroke-width="3"/>'
            )
        yield box(x, y - 28, 270, 56)
        yield text(x + 14, y - 6, f"leaf {rail + 1}", bold=True)
        yield text(x + 14, y + 14, f"all of {label}: gateways, one aggregate", size=13)
    yield text(540, 52, "③", size=20, anchor="middle")


def steps() -> t.Iterator[str]:
    """Yield what each step changes."""
    for number, (name, where, lines, fill) in enumerate(STEPS):
        x, y = 30 + 228 * number, 400
        yield box(x, y, 216, 136, fill)
        yield text(x + 12, y + 24, name, bold=True)
        yield text(x + 12, y + 48, where, size=14)
        for offset, said in enumerate(lines):
            yield text(x + 12, y + 74 + 20 * offset, said, size=14)
    last = "teardown takes ① and ② back. Leaves are yours: plan writes tables for the network team."
    yield text(30, 564, last, size=14)


def drawn() -> str:
    """Return the picture."""
    width, height = SIZE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{TITLE}" font-family="sans-serif">'
    )
    paper = f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>'
    titles = (text(30, 28, "hosts", bold=True), text(660, 28, "leaves (switches)", bold=True))
    parts = (head, f"<title>{TITLE}</title>", paper, *titles, *leaves(), *hosts(), *steps(), "</svg>")
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the picture, or compare it."""
    if "--check" not in sys.argv:
        FILE.write_text(drawn(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != drawn():
        sys.exit(f"{FILE.name} is older than what draws it: python3 tests/docs/picture.py")


if __name__ == "__main__":
    main()
