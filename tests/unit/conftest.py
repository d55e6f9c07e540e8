# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module that a test file is named after, as a host would; no test makes a check outside the list."""

from __future__ import annotations

import contextlib
import importlib
import json
from pathlib import Path

import pytest
from module_args import module_args
from returned import SEEN, missing, returned

from ansible_collections.railops.rdma.plugins.module_utils import _check, _management_network
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS

MODULES = "ansible_collections.railops.rdma.plugins.modules"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a worker of xdist saw modules return."""
    for name, keys in getattr(node, "workeroutput", {}).get("returned", {}).items():
        SEEN.setdefault(name, set()).update(keys)


def pytest_sessionfinish(session, exitstatus):
    """After all unit tests: fail when a module's RETURN names what no run returned."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["returned"] = {name: sorted(keys) for name, keys in SEEN.items()}
        return
    whole = [config.invocation_params.dir / path for path in config.args] == [Path(__file__).parent]
    # The slow ones return nothing that the others do not.
    whole = whole and not config.option.collectonly and not config.option.keyword
    whole = whole and config.option.markexpr in ("", "not slow")
    if whole and exitstatus == 0 and (found := missing()):
        # The command of all checks shows lines that begin so.
        print("", *(f"ERROR RETURN of {row}" for row in found), sep="\n")
        session.exitstatus = 1


@pytest.fixture(autouse=True)
def host_of_its_own():
    """Forget what the host of the test before said of its network."""
    _management_network.query.cache_clear()


@pytest.fixture(autouse=True)
def known_ids(monkeypatch):
    """Refuse a check whose id is not in IDS: hosts do not carry the list."""
    make = _check._made

    def known(name, *args, **more):
        assert name in IDS, f"The check {name!r} is not in IDS of _verdict/ids.py."
        return make(name, *args, **more)

    monkeypatch.setattr(_check, "_made", known)


@pytest.fixture
def params():
    """Return the parameters of every call; a test file gives its own, and may lay out its host on the way."""
    return {}


@pytest.fixture
def call(capsys, monkeypatch):
    """Return a function that runs a module by its name with parameters and returns its result."""
    with contextlib.suppress(ImportError):
        # A host returns warnings; once a test of actions has been imported, ansible-core would show them itself.
        internal = importlib.import_module("ansible.module_utils._internal")
        monkeypatch.setattr(internal, "is_controller", False, raising=False)

    def run(name, /, **params):
        module = importlib.import_module(f"{MODULES}.{name}")
        _management_network.query.cache_clear()
        with module_args(params), pytest.raises(SystemExit):
            module.main()
        return returned(name, json.loads(capsys.readouterr().out))

    return run


@pytest.fixture
def run_module(request, monkeypatch, params, call):
    """Return a function that runs the module with parameters and returns its result, of success or failure."""
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    name = request.path.stem.partition("_")[2]
    return lambda **more: call(name, **{**params, **more})


@pytest.fixture
def refused(run_module):
    """Return a function that runs the module, holds that it fails with these words and this fix, returns its result."""

    def run(*reported, fix="", **params):
        result = run_module(**params)
        assert result["failed"] is True
        assert [words for words in reported if words not in result["msg"]] == []
        assert fix in result.get("fix", "")
        return result

    return run
