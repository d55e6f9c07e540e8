# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lossless RoCE on one host: read, plan, write, and report."""

from __future__ import annotations

import contextlib
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._cabling.host import ask_lldpd
from .._check import by_role, compared, deviation
from .._errors import RdmaError
from .._files import Sysfs
from .._management_network import read_management_network
from .._module import rails_spec
from .._ports import ports_of
from . import plan as planning
from .device import Nic
from .files import SETTINGS, QosFiles, unit_of
from .leaf import AWAY, DECLARED, choose, existing_pfc, leaf_check, undeclared_check
from .policy import OPTIONS, switch_values

SPEC = {
    # Read by the action plugin, on the controller.
    "plan_dir": {"type": "path"},
    "rails": rails_spec(),
    "out_of_service": {"type": "list", "elements": "dict"},
    "network": {"type": "str", "choices": ["roce", "infiniband"], "default": "roce"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    **OPTIONS,
    "unsupported": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    "replace": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
}


FLAPS = "the link goes down for a moment when flow control changes"
IP_LINK = "Look with `ip -br link`; declare the name or PCI address in fabric_interfaces. [interface_not_found]"


class QosRun:
    """One run over all interfaces of the host: read, plan, then write."""

    def __init__(self, params: dict[str, t.Any], files: QosFiles, *, check_mode: bool) -> None:
        self.params, self.files, self.sysfs = params, files, Sysfs()
        # A preview comes before drivers and names: what is not there yet is reported, and no reason to stop.
        self.check_mode = check_mode
        self.warnings: list[str] = []
        self.missing: list[tuple[str, str]] = []
        self.recorded = files.settings()
        self.policy, self.source = choose(params)
        named = [] if self.source == AWAY else params["rails"] or []
        self.rails = {self.sysfs.kernel_name(rail["interface"]): rail["name"] for rail in named}
        if self.source != AWAY and not self.rails:
            raise RdmaError("No rail is named, so nothing would be lossless.", "Give plan_dir, or rails. [qos_no_rail]")
        out = [] if self.source == AWAY else params["out_of_service"] or []
        self.last = {rail: row[0] for rail, row in ports_of().items()}  # of the last run: a lost card has no altname
        idle = {name for row in out for name in (self.sysfs.kernel_name(row["interface"]), self.last.get(row["name"]))}
        self.retained = {name: entry for name, entry in self.recorded.items() if name in idle}
        # What we set earlier and the fabric no longer has goes back to what it was.
        left = [name for name in self.recorded if name not in self.retained]
        self.nics = {name: Nic(name) for name in [*self.rails, *left]}
        self.values: dict[str, dict[str, t.Any]] = {}
        self.plans: dict[str, planning.NicPlan] = {}

    @property
    def writes(self) -> dict[str, planning.NicPlan]:
        """The plans that are carried out: of interfaces whose values the site has declared, and of those that leave."""
        return {name: plan for name, plan in self.plans.items() if self.source == DECLARED or name not in self.rails}

    def read(self) -> None:
        """Read every interface and plan it."""
        self.nics = {name: nic for name, nic in self.nics.items() if nic.exists(f"/sys/class/net/{name}")}
        if missing := [name for name in self.rails if name not in self.nics]:
            last = {name: self.last.get(self.rails[name]) for name in missing}
            unknown = [name for name, port in last.items() if not port or self.sysfs.exists(f"/sys/class/net/{port}")]
            if unknown:
                self._refuse(f"Interfaces of the fabric do not exist: {', '.join(unknown)}.", IP_LINK, missing=unknown)
            self.missing = [(self.rails.pop(name), name) for name in missing]
            # A lost card keeps its record and its unit until it is back.
            self.retained.update({nic: row for nic, row in self.recorded.items() if nic in (*missing, *last.values())})
        for name, nic in self.nics.items():
            values = self.values[name] = nic.read()
            entry = self.recorded.get(name, {})
            restored = name not in self.rails and (entry.get("original") or {}).get("pfc") is not None
            if restored and values["backend"] is None:
                problem = f"{name}: flow control cannot be read, and is to be restored: {values['problem']}."
                raise RdmaError(problem, "Repair what it names, then run again. [qos_unreadable]", interface=name)
            if name in self.rails:
                self.plans[name] = planning.plan_nic(self.policy, values, entry)
            else:
                self.plans[name] = planning.plan_restore(entry.get("original"), entry.get("dscps", []), values)
        if self.source == DECLARED:
            self._refuse_unsupported()
            self._refuse_existing()

    def _refuse_existing(self) -> None:
        """Refuse an interface with another paused unmanaged priority: it would lose its lossless queue."""
        other = {
            name: existing_pfc(name, self.plans[name].before)
            for name in self.rails
            if name not in self.recorded and self.plans[name].before["pfc"] not in (None, [], list(self.policy.pfc))
        }
        if other and not self.params["replace"]:
            self._refuse(
                f"{'; '.join(other.values())}, and not by this collection; the inventory declares priority "
                f"{self.policy.priority} and DSCP {self.policy.dscp}.",
                "Declare what the switches have in fabric_lossless, or set "
                "lossless_roce_replace to true to take these interfaces over: their links go down for a moment. "
                "[qos_existing]",
                interfaces=other,
            )

    def refuse_management_network(self) -> None:
        """Refuse interfaces that carry the host's own network, unless forced."""
        if not self.rails or self.params["force"]:
            return
        management_network = read_management_network(self.sysfs)
        if protected := [name for name in sorted(self.rails) if management_network.why(name)]:
            raise RdmaError(
                f"{', '.join(protected)} carries a default route or Ansible's connection: changing flow control could"
                " cut this host off.",
                "Remove it from the fabric's interfaces, or set force to true. [qos_protected]",
                interfaces=protected,
            )

    def _refuse_unsupported(self) -> None:
        bad = {name: self.values[name]["problem"] for name in self.rails if self.values[name]["backend"] is None}
        if bad and self.params["unsupported"] == "fail":
            listed = "; ".join(f"{name} ({why})" for name, why in bad.items())
            self._refuse(
                f"No priority flow control can be set on {listed}.",
                "Install a driver with DCB (mlx5_core in the kernel, or DOCA-OFED with mlnx_qos) by the role"
                " rdma_driver; on test machines without such NICs set unsupported to report. [qos_unsupported]",
                interfaces=bad,
            )

    def _refuse(self, problem: str, fix: str, **facts: t.Any) -> None:
        if not self.check_mode:
            raise RdmaError(problem, fix, **facts)
        self.warnings.append(f"The real run would stop here as things are now: {problem} {fix}")

    def settings(self, *, started: bool = False) -> dict[str, t.Any]:
        """Return what the settings file has to hold: while a run writes (`started`), also what earlier runs set."""
        if self.source != DECLARED:
            return {name: entry for name, entry in self.recorded.items() if name in self.rails or name in self.retained}
        found = dict(self.retained)
        options = {name: self.params[name] for name in OPTIONS if self.params[name] is not None}
        for name in self.rails:
            plan = self.plans[name]
            if not plan.boot:
                continue
            old = self.recorded.get(name, {})
            before = old if started else {}
            found[name] = {
                "original": old.get("original") or {key: now for key, now in plan.before.items() if now is not None},
                "dscps": sorted({*before.get("dscps", []), *self.policy.entries}),
                "options": {**options, **before.get("options", {})},
            }
        return found

    def write(self) -> None:
        """Write down what was there, write every operation, and read back. When one fails, all is as it was before."""
        record = self.files.read(SETTINGS)
        self.files.record(self.settings(started=True))
        started: list[str] = []
        try:
            for name, plan in self.writes.items():
                if plan.operations:
                    started.append(name)
                    for operation in plan.operations:
                        self.nics[name].write(operation)
                    self._read_back(name, self.nics[name], plan)
        except RdmaError as exc:
            if left := [name for name in started if not self._take_back(name)]:
                note = f"{', '.join(left)} could not be restored; the record of the earlier values stays."
            else:
                self.files.put(SETTINGS, record)
                note = "What this run had set before is rolled back, on all interfaces."
            raise RdmaError(f"{exc.problem} {note}", exc.fix, **exc.facts) from exc

    def _take_back(self, name: str) -> bool:
        """Make an interface what it was before this run; return whether it is."""
        nic, before = self.nics[name], self.plans[name].before
        entries = {*self.policy.entries, *self.recorded.get(name, {}).get("dscps", [])}
        back = planning.plan_restore(before, entries, nic.read())
        for operation in back.operations:
            with contextlib.suppress(RdmaError):
                nic.write(operation)
        return planning.state_of(nic.read()) == back.after

    def _read_back(self, name: str, nic: Nic, plan: planning.NicPlan) -> None:
        if bad := planning.differences(plan, nic.read()):
            listed = "; ".join(f"{key} is {found}, not {wanted}" for key, (wanted, found) in bad.items())
            raise RdmaError(
                f"{name} did not keep what was set: {listed}.",
                "Stop the program that sets it: lldpad, the firmware's DCBX (LLDP_NB_DCBX_P1 and DCBX_WILLING_P1 of"
                " mlxconfig), or a script from another guide (rdma-qos.service). [qos_not_kept]",
                interface=name,
                differences={key: {"wanted": wanted, "found": found} for key, (wanted, found) in bad.items()},
            )


def report(run: QosRun, files: list[t.Any]) -> dict[str, t.Any]:
    """Return the result of the module."""
    writes = run.writes
    changes = [f"{name}: {kind} {value}" for name, plan in writes.items() for kind, value in plan.operations]
    changes += [f"{'remove' if change.content is None else 'write'} {change.path}" for change in files]
    strict = run.params["unsupported"] == "fail"
    checks = [
        check
        for name, rail in run.rails.items()
        if run.source == DECLARED
        for check in planning.checks_of(
            rail, run.plans[name], name, run.values[name]["problem"], ets=run.policy.ets is not None, strict=strict
        )
    ]
    for rail, name in run.missing:
        checks.append(deviation("roce_pfc", name, None, f"There is no interface {name}.", IP_LINK, rail=rail))
    notes = []
    if run.source == DECLARED:
        received = ask_lldpd()
        checks += [leaf_check(run.policy, rail, name, *received) for name, rail in run.rails.items()]
    elif run.source != AWAY:
        undeclared = undeclared_check({name: run.plans[name].before for name in run.rails})
        notes.append(f"{undeclared['cause']} {undeclared['fix']}")
        checks.append(undeclared)
    if run.settings():
        wanted = "settings that the next boot restores"
        seen = [change.path for change in files] or "all files as wanted"
        cause, fix = "Files differ or are missing.", by_role("lossless_roce")
        checks.append(compared("roce_persistence", wanted, seen, cause, fix, good=not files))
    before = {name: planning.view(plan.before) for name, plan in run.plans.items()}
    after = {**before, **{name: planning.view(plan.after) for name, plan in writes.items()}}
    return {
        "changed": bool(changes),
        "changes": changes,
        "interfaces": {
            name: {
                "backend": run.values[name]["backend"],
                "driver": run.values[name]["driver"],
                "before": before[name],
                "after": after[name],
            }
            for name, plan in run.plans.items()
        },
        "switch": switch_values(run.policy) if run.source == DECLARED else [],
        "disruptions": {name: [FLAPS] for name, plan in writes.items() if plan.flaps},
        "notes": notes,
        "checks": checks,
        "before": before,
        "after": after,
    }


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Read, plan, write unless in check mode, and report."""
    doing = QosRun(params, QosFiles(module=module), check_mode=check_mode)
    doing.refuse_management_network()
    doing.read()
    settings = doing.settings()
    units = {
        name: doing.files.unit_text(doing.nics[name], doing.plans[name].boot)
        if name in doing.rails and doing.source == DECLARED
        else doing.files.read(unit_of(name))
        for name in settings
    }
    changes = doing.files.wanted_changes(settings, units)
    if not check_mode:
        doing.write()
        doing.files.apply(changes)
        if any(change.path != SETTINGS for change in changes):
            # A host without a running systemd (a container, an image build) reads the units when it boots.
            doing.files.run(["systemctl", "daemon-reload"])
    return {**report(doing, changes), "warnings": doing.warnings}
