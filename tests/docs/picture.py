# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw docs/images/rails.svg: what a rail is, and what each step changes. Narrow, so that a phone shows it readable.

python3 tests/docs/picture.py            write it
python3 tests/docs/picture.py --check    say whether it is what this script writes
"""

from __future__ import annotations

import typing as t
from xml.sax.saxutils import escape

from made import CHECKOUT, main

FILE = CHECKOUT / "docs/images/rails.svg"
SIZE = (480, 716)  # pixels
BODY = 15  # of its words; a phone makes 10 of it
RAILS = ("rail1", "rail2", "rail3", "rail4")
HOSTS = ("node1", "node2")
# Told apart without red and green, and by their names.
COLOURS = ("#0072b2", "#e69f00", "#56b4e9", "#8c4a8c")
INK, PAPER, LINE, SOFT = "#1b1f24", "#ffffff", "#8c959f", "#f3f5f7"
STEPS = (
    ("plan", "writes files alone", ("plan/<fabric>/ in your git:", "every address, once"), SOFT),
    (
        "site, hosts",
        "①  on every node",
        ("drivers, RDMA mode", "address, table, rule, MTU", "files for the next boot"),
        "#e3f0fa",
    ),
    ("site, cluster", "②  in Kubernetes", ("Spiderpool, pools,", "networks of pods,", "labels of nodes"), "#fdf1dc"),
    (
        "site, verify",
        "③  over every rail",
        ("traffic host to host", "a verdict, rail by rail", "audit: compares only"),
        "#f1e6f1",
    ),
)
TITLE = "Two hosts with four rails each, the leaves that the rails lead to, and what each step changes"


def text(x: float, y: float, said: str, *, bold: bool = False, middle: bool = False) -> str:
    """Return a line of text; `y` is its base line."""
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{BODY}"{weight} text-anchor="{"middle" if middle else "start"}"'
    return f'<text {place} fill="{INK}">{escape(said)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str = PAPER) -> str:
    """Return a box with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" stroke="{LINE}" '
        'stroke-width="1"/>'
    )


def port(host: int, rail: int) -> tuple[float, float]:
    """Return where a rail leaves a host."""
    return 296, 76 + 165 * host + 28 * rail


def leaf(rail: int) -> tuple[float, float]:
    """Return the left edge of a rail's leaf, at its middle."""
    return 372, 70 + 82 * rail


def hosts() -> t.Iterator[str]:
    """Yield both hosts: pods, GPUs, and the NIC of each rail."""
    for number, name in enumerate(HOSTS):
        top = 40 + 165 * number
        yield box(12, top, 284, 150, SOFT)
        yield text(22, top + 21, f"{name}  ①", bold=True)
        yield box(20, top + 32, 100, 108, "#fdf1dc")
        yield text(70, top + 56, "pods", middle=True, bold=True)
        for line, said in enumerate(("an address", "on each", "rail  ②")):
            yield text(70, top + 78 + 20 * line, said, middle=True)
        for rail, label in enumerate(RAILS):
            x, y = port(number, rail)
            yield box(x - 168, y - 13, 168, 26, "#e3f0fa")
            yield f'<circle cx="{x - 156:g}" cy="{y:g}" r="5" fill="{COLOURS[rail]}"/>'
            yield text(x - 146, y + 5, f"{label}: GPU {rail}, NIC")


def leaves() -> t.Iterator[str]:
    """Yield the leaves, with the cables of their rails below them."""
    for rail, label in enumerate(RAILS):
        x, y = leaf(rail)
        for number in range(len(HOSTS)):
            left, height = port(number, rail)
            yield (
                f'<path d="M{left:g} {height:g} C{left + 44:g} {height:g} {x - 44:g} {y:g} {x:g} {y:g}" fill="none" '
                f'stroke="{COLOURS[rail]}" stroke-width="3"/>'
            )
        yield box(x, y - 28, 96, 56)
        yield text(x + 10, y - 5, f"leaf {rail + 1}", bold=True)
        yield text(x + 10, y + 15, f"all {label}")
    yield text(334, 56, "③", middle=True)


def steps() -> t.Iterator[str]:
    """Yield what each step changes."""
    for number, (name, where, lines, fill) in enumerate(STEPS):
        x, y = 12 + 232 * (number % 2), 380 + 144 * (number // 2)
        yield box(x, y, 224, 134, fill)
        yield text(x + 10, y + 24, name, bold=True)
        yield text(x + 10, y + 48, where)
        for offset, said in enumerate(lines):
            yield text(x + 10, y + 74 + 20 * offset, said)
    yield text(12, 682, "teardown takes ① and ② back. Leaves are yours:")
    yield text(12, 703, "plan writes gateways and routes for the network team.")


def drawn() -> str:
    """Return the picture."""
    width, height = SIZE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{TITLE}" font-family="sans-serif">'
    )
    paper = f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>'
    titles = (text(12, 28, "hosts", bold=True), text(372, 28, "leaves", bold=True))
    parts = (head, f"<title>{TITLE}</title>", paper, *titles, *leaves(), *hosts(), *steps(), "</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    main([(FILE, drawn())])
