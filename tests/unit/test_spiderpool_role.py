# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role spiderpool decides by expressions: its variables, templated by Ansible itself."""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.template import Templar, trust_as_template

from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

Json = dict[str, t.Any]
ROLE = "roles/spiderpool"


def value(text: str, **given: t.Any) -> t.Any:
    """Return what an expression comes to in the role, for a user who set `given`."""
    known = {**content(f"{ROLE}/defaults/main.yml"), **content(f"{ROLE}/vars/main.yml"), **given}
    return Templar(loader=LOADER, variables=known).template(trust_as_template(text))


def release(chart: str, made: str) -> Json:
    """Return what the role has read of a release: helm's list, and the note of who made it."""
    listed = [{"chart": chart, "status": "deployed"}] if chart else []
    noted = [{"data": {"made": made}}] if made else []
    return {"__spiderpool_list": {"stdout": json.dumps(listed)}, "__spiderpool_marked": {"resources": noted}}


def installed(made: str = "true", **values: t.Any) -> Json:
    """Return what the role has read of a release of these values."""
    return {**release("spiderpool-1.2.3", made), "__spiderpool_current": {"stdout": json.dumps(values)}}


def planned(folder: Path, kind: str) -> Json:
    """Return the variable that names a plan with an attachment."""
    facts = {"kinds": ["SpiderMultusConfig"], "networks": {"declared": [{"attachment": kind, "routes": True}]}}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    (folder / "cluster").mkdir(exist_ok=True)
    (folder / "cluster/values.yaml").write_text("plugins: {installCNI: true}\n", encoding="utf-8")
    return {"spiderpool_plan_values": str(folder / "cluster/values.yaml")}


SWITCHES = (
    "installRdmaCNI",
    "installSriovCNI",
    "installibSriovCNI",
    "installIpoibCNI",
    "installVlanCNI",
    "installOvsCNI",
)
NEW = {**release("", ""), "__spiderpool_current": {}}


@pytest.mark.parametrize(
    ("kind", "on"),
    [
        ("macvlan", ()),
        ("ipvlan", ()),
        ("sriov", ("installRdmaCNI", "installSriovCNI")),
        ("ib-sriov", ("installibSriovCNI",)),
        ("ipoib", ("installIpoibCNI",)),
    ],
)
def test_only_what_the_plan_needs_comes_to_the_nodes(tmp_path: Path, kind: str, on: t.Any) -> None:
    given = {**NEW, **planned(tmp_path, kind)}
    values = value("{{ __spiderpool_plain_values }}", **given)["plugins"]
    assert values == {"installCNI": False, **{name: name in on for name in SWITCHES}}


@pytest.mark.parametrize(
    ("setting", "live", "replaced"),
    [
        ("auto", {}, False),
        ("auto", {"plugins": {"installCNI": True}}, True),
        ("auto", {"plugins": {"installCNI": False}}, False),
        ("true", {}, True),
        (True, {}, True),
        (False, {"plugins": {"installCNI": True}}, False),
        ("false", {"plugins": {"installCNI": True}}, False),
    ],
)
def test_standard_plugins_are_replaced_where_they_were_or_where_that_is_requested(
    tmp_path: Path, setting: t.Any, live: Json, replaced: bool
) -> None:
    given = {**installed(**live), **planned(tmp_path, "macvlan"), "spiderpool_install_cni": setting}
    values = value("{{ __spiderpool_plain_values }}", **given)["plugins"]
    assert values["installCNI"] is replaced
    # A release may say nothing of the other switches, and the chart's are on: no agent restarts for that.
    assert {values[name] for name in SWITCHES} == {True}
    others = {**installed("", **live), **planned(tmp_path, "macvlan")}
    assert value("{{ __spiderpool_plugins }}", **others)["installCNI"] is False, "a release of others is no reason"


def test_the_note_keeps_what_it_has() -> None:
    had = {"made": "true", "chart": "spiderpool-1.2.3", "calico": "[]"}
    given = installed()
    given["__spiderpool_marked"] = {"resources": [{"data": had}]}
    given["__spiderpool_survey"] = {"calico_set": {}}
    note = value("{{ __spiderpool_note_data }}", **given)
    assert note == {**had, "release": "spiderpool", "fabrics": "fabric"}
    given["__spiderpool_survey"] = {"calico_set": {"names": ["x"]}}
    assert json.loads(value("{{ __spiderpool_note_data }}", **given)["calico"]) == [{"names": ["x"]}]
    assert "calico" not in value(
        "{{ __spiderpool_note_data }}", **{**given, **NEW, "spiderpool_calico_autodetection": "false"}
    )


@pytest.mark.parametrize(
    ("components", "values", "plugins"),
    [
        ({}, {}, ["coordinator", "ifacer", "spiderpool", "multus", "passthru"]),
        ({"multus": "adopt"}, {}, ["coordinator", "ifacer", "spiderpool"]),
        ({}, {"multus": {"multusCNI": {"install": False}}}, ["coordinator", "ifacer", "spiderpool"]),
    ],
)
def test_an_adopted_multus_stays_with_its_plugins(components: Json, values: Json, plugins: list[str]) -> None:
    given = {**installed(**values), "spiderpool_components": components}
    assert value("{{ __spiderpool_own_plugins }}", **given) == plugins
    assert value("{{ __spiderpool_own_multus }}", **given) is ("multus" in plugins)


def test_plugins_that_a_node_may_have_had_are_listed() -> None:
    given = installed(plugins={"installCNI": True, "installOvsCNI": False, "installIpoibCNI": False})
    assert value("{{ __spiderpool_other_plugins }}", **given) == [
        "ib-sriov",
        "macvlan and other standard plugins",
        "rdma",
        "sriov",
        "vlan",
    ]


def agent(node: str | None, *conditions: tuple[str, str]) -> Json:
    """Return a pod of an agent."""
    rows = [{"type": kind, "status": status} for kind, status in conditions]
    return {"spec": {"nodeName": node} if node else {}, "status": {"conditions": rows} if rows else {}}


def test_a_node_whose_agent_is_not_ready_is_named() -> None:
    ready, not_ready = ("Ready", "True"), ("Ready", "False")
    pods = [
        agent("node4", not_ready),
        agent("node1", ("Initialized", "True"), ready),
        agent("node2", ("Initialized", "True"), not_ready),
        agent("node3"),
        agent("node4", ready),
        agent(None),
    ]
    given = {"__spiderpool_agents": {"resources": pods}}
    assert value("{{ __spiderpool_unready }}", **given) == ["node2", "node3"]
    assert value("{{ __spiderpool_unready }}", __spiderpool_agents={"skipped": True}) == []


def test_uninstalling_changes_two_values_of_the_release() -> None:
    own = {"multus": {"multusCNI": {"defaultCniCRName": "x"}}, "spiderpoolAgent": {"name": "a"}, "ipam": {"y": 1}}
    assert value("{{ __spiderpool_leaving_values }}", **installed(**own)) == {
        "multus": {"multusCNI": {"defaultCniCRName": "x", "uninstall": True}},
        "spiderpoolAgent": {
            "name": "a",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        },
        "ipam": {"y": 1},
    }


@pytest.mark.parametrize("named", [False, True])
def test_a_teardown_removes_plugins_that_no_configuration_names(tmp_path: Path, named: bool) -> None:
    tasks = content("playbooks/teardown.yml")[-2]["tasks"][0]["block"]
    found = [task for task in tasks if "ansible.builtin.find" in task or "ansible.builtin.file" in task]
    for name in ("multus", "spiderpool", "own"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/00-multus.conf").write_text('{"type": "multus"}\n', encoding="utf-8")
    kind = "multus" if named else "multus-of-others"
    (tmp_path / "conf/10-own.conf").write_text(f'{{\n  "type": "{kind}"}}\n', encoding="utf-8")
    stale = {"folder": str(tmp_path), "names": ["multus", "spiderpool"], "configurations": f"{tmp_path}/conf"}
    known = {"__site_stale": stale, "__site_cni_store": f"{tmp_path}/kept", "__site_cni_copied": {}}
    for words in ([],) if named else (["--check"], []):
        assert ("changed=1" in play_cni(tmp_path, found, known, *words)) is not named
    there = {name for name in ("multus", "spiderpool", "own") if (tmp_path / name).exists()}
    assert there == ({"multus", "spiderpool", "own"} if named else {"own"})


def play_cni(folder: Path, tasks: t.Any, known: Json, *words: str) -> str:
    """Play tasks on this machine, and return what ansible-playbook prints."""
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks, "vars": known}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    argv = ["ansible-playbook", "-i", "localhost,", "-c", "local", str(folder / "play.yml"), *words]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def programs_in(folder: Path) -> dict[str, tuple[str, int]]:
    """Return text and mode of each file that is not hidden."""
    return {
        path.name: (path.read_text(), path.stat().st_mode & 0o777)
        for path in (folder.iterdir() if folder.exists() else ())
        if not path.name.startswith(".")
    }


def cni_play(folder: Path, **settings: t.Any) -> tuple[t.Any, Json]:
    """Return the play of the playbook hosts that copies CNI plugins, and its variables."""
    (play,) = (row for row in content("playbooks/hosts.yml") if row["name"].startswith("Keep the CNI plugins"))
    localhost = {
        "spiderpool_install_cni": "true",
        "spiderpool_values": {"global": {"cniBinHostPath": f"{folder}/bin"}},
        "fabric_kubeconfig": f"{folder}/kubeconfig",
        **settings,
    }
    known = {**play["vars"], "__site_localhost": localhost, "__site_cni_store": f"{folder}/state/cni"}
    return play, known


def test_plugins_that_spiderpool_replaces_are_copied_once_and_restored(tmp_path: Path) -> None:
    bin_, kept = tmp_path / "bin", tmp_path / "state/cni"
    for name, mode in (("macvlan", 0o755), ("portmap", 0o750), ("calico", 0o755)):
        machines.put(tmp_path, f"bin/{name}", f"{name} of the node")
        (bin_ / name).chmod(mode)
    machines.put(tmp_path, "lib/ptp", "ptp of the node")
    (bin_ / "ptp").symlink_to("../lib/ptp")
    before = programs_in(bin_)
    _play, known = cni_play(tmp_path)
    tasks = content("playbooks/tasks/keep_cni.yml")
    assert "changed=3" in play_cni(tmp_path, tasks, known, "--check", "--diff")
    assert not kept.exists()
    assert "changed=3" in play_cni(tmp_path, tasks, known)
    assert programs_in(kept) == {name: before[name] for name in ("macvlan", "portmap", "ptp")}

    for name in ("macvlan", "portmap", "ptp", "vlan"):
        (bin_ / name).write_text("the chart's", encoding="utf-8")
    teardown = content("playbooks/teardown.yml")[-2]
    modules = {f"ansible.builtin.{name}" for name in ("find", "file", "copy", "stat")}
    back = [task for task in teardown["tasks"][0]["block"] if modules & task.keys()]
    without = {"__site_stale": {"names": []}, "__site_cni_store": str(kept)}
    later = [{"block": tasks, "vars": known}, {"block": back, "vars": without}]
    assert "changed=0" in play_cni(tmp_path, later, {}), "a later run keeps the copies; Spiderpool is still there"
    assert programs_in(kept) == {name: before[name] for name in ("macvlan", "portmap", "ptp")}
    gone = {"folder": str(bin_), "names": [], "configurations": str(tmp_path)}
    for words in (["--check", "--diff"], []):
        assert "changed=2" in play_cni(tmp_path, back, {**without, "__site_stale": gone}, *words)
        assert kept.exists() is bool(words)
    assert (bin_ / "ptp").is_symlink()
    assert programs_in(bin_) == {**before, "vlan": ("the chart's", 0o644)}


@pytest.mark.parametrize(
    "settings",
    [
        {"spiderpool_install_cni": "auto"},
        {"spiderpool_values": {"plugins": {"installCNI": False}}},
        {"fabric_ipam": "nv-ipam"},
        {"fabric_attachment": "none"},
        {"cluster_components": {"spiderpool": "adopt"}},
        {"fabric_kubeconfig": ""},
    ],
)
def test_no_plugin_is_copied_where_this_run_replaces_none(tmp_path: Path, settings: Json) -> None:
    # The Helm value wins over the option.
    more = {"spiderpool_install_cni": "auto", "spiderpool_values": {"plugins": {"installCNI": True}}}
    for given, copied in (({}, True), (settings, False), (more, True)):
        play, known = cni_play(tmp_path, **given)
        assert value(play["hosts"], **known) == ("gpu_nodes" if copied else "localhost:!localhost")


def test_a_teardown_that_finds_no_release_restores_what_an_earlier_one_left() -> None:
    tasks = {task["name"]: task for task in content(f"{ROLE}/tasks/uninstall.yml")[-1]["block"]}
    stale = tasks["Uninstall | Name the CNI plugins to the hosts' part"]["ansible.builtin.set_fact"][
        "__spiderpool_stale"
    ]
    given = {**NEW, "spiderpool_values": {"global": K3S}}
    assert value(stale["folder"], **given) == K3S["cniBinHostPath"]
    assert value(stale["names"], **given) == [], "they may be another tool's by now"


CALICO = {"name": "calico-node", "env": [{"name": "IP_AUTODETECTION_METHOD", "value": "kubernetes-internal-ip"}]}


@pytest.mark.parametrize("method", ["kubernetes-internal-ip", "can-reach=192.0.2.1"])
def test_a_setting_of_calico_that_is_no_longer_managed_stays_unchanged(method: str) -> None:
    box = {**CALICO, "env": [{"name": "IP_AUTODETECTION_METHOD", "value": method}, {"name": "X", "valueFrom": {}}]}
    now = {"resources": [{"spec": {"template": {"spec": {"containers": [{"name": "other"}, box]}}}}]}
    given = {
        "__spiderpool_calico": {"kind": "DaemonSet", "names": ["IP_AUTODETECTION_METHOD"]},
        "__spiderpool_calico_now": now,
    }
    assert value("{{ __spiderpool_calico_ours }}", **given) is (method == "kubernetes-internal-ip")


def test_a_setting_of_the_operator_that_is_still_managed_goes_back() -> None:
    name = "nodeAddressAutodetectionV4"
    for mine in ({"kubernetes": "NodeInternalIP"}, {"firstFound": True}):
        now = {"resources": [{"spec": {"calicoNetwork": {name: mine, "bgp": "Enabled"}}}]}
        given = {"__spiderpool_calico": {"kind": "Installation", "names": [name]}, "__spiderpool_calico_now": now}
        assert value("{{ __spiderpool_calico_ours }}", **given) is ("kubernetes" in mine)


def test_another_fabric_keeps_calicos_setting() -> None:
    names = {"fabric": "a", "zone": "z", "leaf-rail1": "l", "out-of-service": "all"}
    labels = {f"fabric.railops.io/{name}": text for name, text in names.items()}
    given: Json = {"__spiderpool_calico_nodes": {"resources": [{"metadata": {"labels": labels}}, {"metadata": {}}]}}
    given["__spiderpool_calico_locks"] = {"resources": [{"metadata": {"name": "railops-fabric-lock"}}]}
    given["__spiderpool_marked"] = {"resources": [{"data": {"fabrics": "fabric"}}]}
    assert value("{{ __spiderpool_calico_why }}", **given) == []
    labels["fabric.railops.io/other"] = "declared"
    given["__spiderpool_calico_locks"]["resources"].append({"metadata": {"name": "railops-third-lock"}})
    given["__spiderpool_marked"]["resources"][0]["data"]["fabrics"] = "fabric fourth third"
    assert value("{{ __spiderpool_calico_why }}", **given, spiderpool_calico_stays=["hosts"]) == [
        "hosts",
        "nodes have labels of another fabric: other",
        "another fabric is in the cluster: third",
        "the teardown of another fabric has not reached all of its hosts: fourth",
    ]


SETS = {
    "resources": [
        {"metadata": {"name": "calico-node", "namespace": "calico-system"}},
        {"metadata": {"name": "x", "namespace": "ml"}},
    ]
}


@pytest.mark.parametrize(
    ("chosen", "include", "exclude"),
    [
        ("all", [], ["calico-system", "kube-system", "secret", "spiderpool"]),
        (["all"], [], ["calico-system", "kube-system", "secret", "spiderpool"]),
        (
            ["ml", "kube-system", "calico-system", "secret"],
            ["ml"],
            ["calico-system", "kube-system", "secret", "spiderpool"],
        ),
    ],
)
def test_injected_namespaces(chosen: t.Any, include: list[str], exclude: list[str]) -> None:
    given = {**NEW, "__spiderpool_sets": SETS, "spiderpool_inject_namespaces_exclude": ["secret"]}
    values = value("{{ __spiderpool_switch_values }}", **given, spiderpool_inject_namespaces=chosen)
    inject = values["spiderpoolController"]["podResourceInject"]
    assert inject == {"enabled": True, "namespacesInclude": include, "namespacesExclude": exclude}


def test_no_choice_leaves_injection_to_the_plan() -> None:
    assert "podResourceInject" not in value("{{ __spiderpool_switch_values }}", **NEW)["spiderpoolController"]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        pytest.param({}, False, id="by networks"),
        pytest.param({"fabric_inject": {"key": "k", "value": "v"}}, True, id="by injection"),
        pytest.param({"rail_objects_test_attach": "inject", "rail_objects_test_namespace": "ml"}, False, id="there"),
        pytest.param({"rail_objects_test_attach": "inject", "spiderpool_inject_namespaces": "all"}, False, id="all"),
    ],
)
def test_a_choice_without_the_test_applications_namespace_is_refused_where_that_is_injected(
    given: Json, refused: bool
) -> None:
    tasks = {task["name"]: task for task in content(f"{ROLE}/tasks/preflight.yml")}
    task = tasks["Preflight | Assert that the test application is injected"]
    known = {"spiderpool_inject_namespaces": ["ml"], **NEW, "__spiderpool_sets": SETS, **task["vars"], **given}
    applies = all(value("{{ " + row + " }}", **known) for row in task["when"])
    assert (applies and not value("{{ " + task["ansible.builtin.assert"]["that"] + " }}", **known)) is refused
    assert "rail_objects_test_namespace" in value(task["ansible.builtin.assert"]["fail_msg"], **known)


@pytest.mark.parametrize(
    ("done", "stays"), [(["node1", "node2"], []), (["node1"], ["node2"]), (None, ["node1", "node2"])]
)
def test_calicos_setting_stays_while_a_host_may_have_rails(done: list[str] | None, stays: list[str]) -> None:
    """With --tags cluster, or after a host that failed, not all of them have come to the end of their part."""
    play = content("playbooks/teardown.yml")[-1]
    task = play["tasks"][0]
    groups = {"gpu_nodes": ["node1", "node2"], **({} if done is None else {"railops_without_rails": done})}
    why = value("{{ spiderpool_calico_stays }}", **task["vars"], groups=groups)
    assert why == ([f"these hosts may have rails: {', '.join(stays)}"] if stays else [])
    assert play["tags"] == ["cluster", "hosts"]
    (hosts,) = content("playbooks/teardown.yml")[-2]["tasks"]
    assert "ansible.builtin.group_by" in hosts["block"][-1], "the last that a host does"
    given = {"ansible_limit": "localhost,node1", "__site_calico": True}
    for ran in ({}, {"__site_stay": {}}):
        is_reported = value(f"{{{{ {hosts['block'][-2]['when']} }}}}", **given, hostvars={"localhost": ran})
        assert is_reported is not bool(ran), "the cluster's part removes what else stays"


K3S = {"cniConfHostPath": "/var/lib/rancher/k3s/agent/etc/cni/net.d", "cniBinHostPath": "/var/lib/rancher/k3s/data/cni"}


@pytest.mark.parametrize(
    ("given", "there", "install", "needs"),
    [
        ({}, True, "auto", ["macvlan"]),
        ({"fabric_attachment": "sriov"}, True, "auto", ["tuning"]),
        ({"fabric_network": "infiniband"}, True, "auto", []),
        ({"spiderpool_install_cni": "true"}, True, "true", ["macvlan"]),
        ({"spiderpool_values": {"plugins": {"installCNI": True}}}, True, True, ["macvlan"]),
        ({"spiderpool_values": {"global": K3S}}, True, "auto", ["macvlan"]),
        ({"fabric_ipam": "nv-ipam"}, True, "", ["macvlan"]),
        ({}, False, "", ["macvlan"]),
        ({"fabric_attachment": "none"}, True, "", []),
    ],
)
def test_what_a_host_reports_of_cni_before_the_first_change(
    given: Json, there: bool, install: object, needs: list[str]
) -> None:
    tasks = {task["name"]: task for task in content("playbooks/preflight.yml")[0]["tasks"]}
    site_cni = tasks["Check each host for conflicts"]["vars"]["__site_cni"]
    known = {**given, "hostvars": {"localhost": given}, "__site_cluster": {"there": there}}
    known |= {
        "__site_values": given.get("spiderpool_values", {}),
        "__site_pods": given.get("fabric_attachment") != "none",
    }
    folder = given.get("spiderpool_values", {}).get("global", {}).get("cniBinHostPath", "")
    whole = {"install": install, "needs": needs, "programs": folder}
    assert {key: value(site_cni[key], **known) for key in whole} == whole


WEBHOOKS = "sriov.operatorConfig."


@pytest.mark.parametrize(
    ("device", "given", "extra"),
    [
        ("", {}, {}),
        ("sriov", {}, {"enableOperatorWebhook": 5732}),
        (
            "ib-sriov",
            {"spiderpool_values": {"sriov": {"operatorConfig": {"enableInjector": True}}}},
            {"enableInjector": 5731, "enableOperatorWebhook": 5732},
        ),
        ("sriov", {"spiderpool_values": {"sriov": {"operatorConfig": {"enableOperatorWebhook": False}}}}, {}),
        ("sriov", {"cluster_components": {"sriov_operator": "adopt"}}, {}),
    ],
)
def test_host_ports_of_the_sriov_operator_are_those_of_its_webhooks(device: str, given: Json, extra: Json) -> None:
    (play, *_rest) = content("playbooks/preflight.yml")
    tasks = {task["name"]: task for task in play["tasks"]}
    site_cni = tasks["Check each host for conflicts"]["vars"]["__site_cni"]
    known = {**play["vars"], "hostvars": {"localhost": given}, "__site_cluster": {"there": True}}
    ports = value(site_cni["ports"], **{**known, "__site_own_device": device})
    assert {name[len(WEBHOOKS) :]: port for name, port in ports.items() if name.startswith(WEBHOOKS)} == extra
    assert ports["spiderpoolAgent.httpPort"] == 5710


def test_a_teardown_that_a_host_ends_says_that_calicos_setting_stays(tmp_path: Path) -> None:
    """The play that would put it back does not begin then. A host that did not answer before ends nothing."""
    text = json.dumps(content("playbooks/teardown.yml")[-3:])
    name = "railops.rdma.rail_network"
    assert f'"name": "{name}"' in text
    ends = tmp_path / "roles/ends/tasks/main.yml"
    ends.parent.mkdir(parents=True)
    ends.write_text("- {ansible.builtin.fail: {msg: no}, when: inventory_hostname == 'node2'}\n", encoding="utf-8")
    play = tmp_path / "play.yml"
    play.write_text(text.replace(f'"name": "{name}"', '"name": "ends"'), encoding="utf-8")
    inventory = tmp_path / "inventory.yml"
    local = "ansible_connection: local, site_host_roles: [rail_network]"
    lost = (
        "node0: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 9, __site_routes: {unreachable: true}}"
    )
    text = f"gpu_nodes: {{hosts: {{{lost}, node1: , node2: }}, vars: {{{local}}}}}\n"
    inventory.write_text(text, encoding="utf-8")
    argv = ["ansible-playbook", "-i", str(inventory), str(play)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Restore Calico's setting" not in done.stdout
    output = " ".join((done.stdout + done.stderr).split())
    assert "node2 may have rails. Where this collection changed Calico's address detection, that stays until" in output
    assert "node1 may have rails" not in output
