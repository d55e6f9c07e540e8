# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every module does around its work: read the parameters, refuse what is missing, and report."""

from __future__ import annotations

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._errors import RdmaError
from ._host_lock import RUN, acquire_host_lock


def rails_spec(**more: str) -> dict[str, t.Any]:
    """Return the specification of rails as far as modules need them that only find ports by them.

    :param more: the types of what else they have, such as `pci="str"`.
    """
    rail: dict[str, t.Any] = {name: {"type": "str", "required": True} for name in ("name", "interface")}
    rail.update({name: {"type": kind} for name, kind in more.items()})
    return {"type": "list", "elements": "dict", "options": rail}


def run_room(work: t.Callable[..., dict[str, t.Any]], spec: dict[str, t.Any], **more: t.Any) -> None:
    """Run a module whose work audits do in check mode: it takes the module, its options and `check_mode`."""
    run_module(lambda module: work(module, module.params, check_mode=module.check_mode), spec, **more)


def run_module(
    work: t.Callable[[AnsibleModule], dict[str, t.Any]],
    spec: dict[str, t.Any],
    needs: t.Iterable[tuple[str, str | None]] = (),
    **more: t.Any,
) -> None:
    """Run a module and end the process with its result, or with the error and its fix.

    :param work: does it and returns the result. `warnings` of the result are shown; `before` and `after` are the diff
        unless it brings a `diff` of its own.
    :param spec: the argument spec.
    :param needs: Python libraries, each with the traceback of its import, None where that worked.
    :param more: other arguments of AnsibleModule, such as required_if.
    """
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, **more)
    for library, error in needs:
        if error:
            module.fail_json(msg=f"{missing_required_lib(library)} [library_missing]", exception=error)
    try:
        if os.environ.get(RUN) and not module.check_mode:
            acquire_host_lock(os.environ[RUN])
        result = work(module)
    except RdmaError as exc:
        module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
    for text in result.pop("warnings", ()):
        module.warn(text)
    if "before" in result:
        result.setdefault("diff", {"before": result["before"], "after": result["after"]})
    if not module._diff:
        result.pop("diff", None)
    module.exit_json(**result)
