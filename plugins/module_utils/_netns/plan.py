# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides how a host gets to an RDMA network namespace mode, now and at every boot. Reads and writes nothing.

Sources: drivers/infiniband/core/device.c (rdma_compatdev_set), modprobe.d(5), the kernel's module parameters.
"""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass, replace

from .._check import Check, by_role, compared
from .._errors import Problem

OWNED_FILE = "/etc/modprobe.d/zz-railops-rdma.conf"
PARAMETER = "ib_core.netns_mode"
DEFAULT_MODE = "shared"
# The value of the module's parameter for each mode.
NUMBERS = {"exclusive": 0, "shared": 1}
# How what the kernel takes for a boolean parameter begins (lib/kstrtox.c, kstrtobool: it looks no further).
FALSE_WORDS = ("0", "n", "f", "of")
TRUE_WORDS = ("1", "y", "t", "on")
# What the running kernel has of the RDMA subsystem.
LOADED, NOT_LOADED, TOO_OLD, ABSENT = "loaded", "not_loaded", "too_old", "absent"

Image = tuple[str, str]
"""The path of an initramfs to rebuild, and its kernel."""


@dataclass(frozen=True)
class Setting:
    """One place that sets the mode for the next time ib_core starts. `line` counts from 1; 0 = no lines."""

    path: str
    line: int
    mode: str


@dataclass(frozen=True)
class NetnsOptions:
    """The mode wanted; None: whatever holds without the owned file."""

    mode: str | None = None
    live: bool = True
    keep: bool = False
    """Whether the host keeps what it has: neither a plan nor a variable sets a mode."""

    @property
    def text(self) -> str | None:
        """The content of the owned file; None where it is not wanted."""
        return owned_text(self.mode) if self.mode else None


@dataclass(frozen=True)
class NetnsCurrent:
    """What is there. `settings` are in the order in which modprobe reads them: the last one counts."""

    support: str
    kernel: str = ""
    current: str | None = None
    builtin: bool = False
    owned_text: str | None = None
    settings: tuple[Setting, ...] = ()
    arguments: tuple[Setting, ...] = ()
    namespaces: int = 0
    images: tuple[Image, ...] = ()
    tool: str = ""
    """The path of iproute2's program rdma; empty where there is none."""


@dataclass(frozen=True)
class NetnsState:
    """The managed properties, for before and after."""

    current: str | None
    persistent: str
    file: str | None


@dataclass(frozen=True)
class NetnsPlan:
    """What will be done and what will be so afterwards. `blocker` is why the wanted mode cannot be reached."""

    want: NetnsOptions
    have: NetnsCurrent
    wanted: str
    before: NetnsState
    after: NetnsState
    images: tuple[Image, ...]
    conflicts: tuple[Setting, ...]
    blocker: Problem | None
    set_live: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything will change."""
        return self.before != self.after or bool(self.images)

    @property
    def tries_live(self) -> bool:
        """Whether to try the live change, also where namespaces were seen: the kernel decides."""
        possible = self.blocker is None and self.have.support == LOADED
        return self.want.live and possible and self.have.current not in (None, self.wanted)

    def ended(self, *, live: bool) -> NetnsPlan:
        """Return this plan as it turned out.

        :param live: whether the kernel took the live change; with other namespaces it says EBUSY.
        """
        current = self.wanted if live else self.before.current
        return replace(self, after=replace(self.after, current=current), set_live=live)

    @property
    def live(self) -> str:
        """What becomes of the running kernel: set, unchanged, busy, off (not asked for) or not_loaded."""
        if self.have.support != LOADED:
            return self.have.support
        if self.set_live:
            return "set"
        if self.after.current == self.wanted:
            return "unchanged"
        return "busy" if self.want.live else "off"

    @property
    def reboot_reasons(self) -> list[str]:
        """Why a reboot is needed; empty when none is, or when it would not help."""
        if self.after.current in (None, self.wanted) or self.after.persistent != self.wanted:
            return []
        why = "the kernel refuses the change while other network namespaces exist (EBUSY)"
        why = why if self.want.live else "a live change was not requested"
        return [
            f"RDMA namespace mode is {self.after.current}, wanted {self.wanted}: {why}; it is written for the next boot"
        ]


def parse_options(text: str, path: str) -> t.Iterator[Setting]:
    """Yield what a modprobe.d file says of ib_core's netns_mode, in order."""
    # A line goes on behind a backslash at its end.
    for line in re.finditer(r"(?:.*\\\n)*.*", text):
        words = line[0].replace("\\\n", " ").split()
        if len(words) > 2 and words[0] == "options" and words[1].replace("-", "_") == "ib_core":
            yield from _said(words[2:], "netns_mode", path, text.count("\n", 0, line.start()) + 1)


def parse_arguments(command_line: str) -> list[Setting]:
    """Return what a kernel command line says of ib_core's netns_mode, in order."""
    return list(_said(command_line.replace("-", "_").split(), PARAMETER, "/proc/cmdline", 0))


def _said(words: t.Iterable[str], name: str, path: str, line: int) -> t.Iterator[Setting]:
    """Yield what words say of a parameter.

    :param name: of the parameter.
    :param path: where the words stand, and `line` its line.
    """
    for word in words:
        key, _sep, value = word.partition("=")
        if key == name and (mode := mode_of(value)):
            yield Setting(path, line, mode)


def mode_of(value: str) -> str | None:
    """Return the mode that a value of the boolean parameter means; None for one the kernel would refuse."""
    text = value.strip("\"'").lower()
    if text.startswith(FALSE_WORDS):
        return "exclusive"
    # None means true.
    return "shared" if not text or text.startswith(TRUE_WORDS) else None


def owned_text(mode: str) -> str:
    """Return the exact content of the owned file."""
    return (
        "# Written by railops.rdma (module rdma_netns): do not edit; to remove it, set state: absent.\n"
        f"# RDMA network namespace mode: {mode}\n"
        f"options ib_core netns_mode={NUMBERS[mode]}\n"
    )


def plan_netns(want: NetnsOptions, have: NetnsCurrent) -> NetnsPlan:
    """Return how to get to the wanted mode."""
    before = NetnsState(have.current, _effective(list(have.settings), have), have.owned_text)
    if want.keep:
        return NetnsPlan(want, have, before.current or before.persistent, before, before, (), (), None)
    existing = [item for item in have.settings if item.path != OWNED_FILE]
    settings = list(existing)
    if want.mode:
        settings.append(Setting(OWNED_FILE, 3, want.mode))
        settings.sort(key=lambda item: (os.path.basename(item.path), item.line))
    persistent = _effective(settings, have)
    wanted = want.mode or persistent
    blocker = _blocker(want, have, wanted, persistent)
    conflicts = tuple(item for item in [*existing, *have.arguments] if item.mode != wanted)
    plan = NetnsPlan(want, have, wanted, before, before, (), conflicts, blocker)
    if blocker is not None:
        return plan
    images = () if have.builtin else have.images
    plan = replace(plan, after=NetnsState(have.current, persistent, want.text), images=images)
    return plan.ended(live=plan.tries_live and have.namespaces == 0)


def _effective(settings: list[Setting], have: NetnsCurrent) -> str:
    # modprobe puts the kernel command line's options behind those of its files; a built-in ib_core sees no file.
    effective = [*([] if have.builtin else settings), *have.arguments]
    return effective[-1].mode if effective else DEFAULT_MODE


def _blocker(want: NetnsOptions, have: NetnsCurrent, wanted: str, persistent: str) -> Problem | None:
    """Return the conflicts with the wanted mode, each with its fix.

    :param persistent: the expected mode of the next boot.
    """
    loaded = have.support == LOADED
    if want.live and loaded and have.current not in (None, wanted) and not have.tool:
        text = "The program rdma is missing: a live change of the RDMA namespace mode needs it."
        fix = "Install iproute2 (EL: iproute), or set rdma_host_live to false (live: false) and reboot. [rdma_missing]"
    elif want.mode and have.support == ABSENT:
        text = f"Kernel {have.kernel} has no RDMA subsystem: there is no ib_core module for it."
        fix = (
            "Install its RDMA modules or the vendor's driver (role rdma_driver), or boot a kernel that has them. "
            "[rdma_kernel_missing]"
        )
    elif want.mode and have.support == TOO_OLD and wanted == "exclusive":
        text = f"The RDMA subsystem of kernel {have.kernel} has no network namespace mode: exclusive is not available."
        fix = (
            "Boot kernel 5.3 or newer, or install MLNX_OFED 4.7 or newer; or use an attachment of mode shared. "
            "[netns_unknown]"
        )
    elif not want.mode or persistent == wanted:
        return None
    elif have.arguments:
        number = NUMBERS[have.arguments[-1].mode]
        text = f"The kernel command line sets {PARAMETER}={number}, which overrides modprobe.d."
        fix = (
            f"Remove it from the boot loader's configuration, or make it {PARAMETER}={NUMBERS[wanted]}, and "
            "reboot. [netns_cmdline]"
        )
    elif have.builtin:
        text = f"ib_core is built into kernel {have.kernel}, so modprobe.d cannot set its mode."
        fix = (
            f"Add {PARAMETER}={NUMBERS[wanted]} to the kernel command line in the boot loader and reboot. "
            "[netns_built_in]"
        )
    else:
        winner = [item for item in have.settings if item.path != OWNED_FILE][-1]
        text = f"{winner.path} line {winner.line} sets ib_core to {winner.mode} and is read after {OWNED_FILE}."
        fix = f"Remove netns_mode from {winner.path}; the tool that wrote it must stop writing it. [netns_modprobe]"
    return Problem("host", text, fix)


def checks(plan: NetnsPlan, observed: NetnsState) -> list[Check]:
    """Return the mode in force and the mode of the next boot, each against the plan.

    :param observed: `plan.before` for a look without touching (an audit), `plan.after` after a run.
    """
    if plan.want.keep:
        return []
    blocker = plan.blocker
    fix = blocker.fix if blocker else by_role("rdma_host,reboot" if plan.reboot_reasons else "rdma_host")
    current_cause = blocker.problem if blocker else "; ".join(plan.reboot_reasons)
    unwritten = "" if observed.file == plan.after.file else f"{OWNED_FILE} does not have the wanted content"
    manual = f"the running kernel was set to {observed.current} after ib_core started; the next start has {plan.wanted}"
    running = compared(
        "rdma_netns_current",
        plan.wanted,
        observed.current or plan.have.support,
        current_cause or unwritten or manual,
        fix,
        good=plan.have.support == NOT_LOADED or observed.current == plan.wanted,
    )
    next_boot = compared(
        "rdma_netns_persistent", plan.wanted, observed.persistent, blocker.problem if blocker else unwritten, fix
    )
    return [running, next_boot]
