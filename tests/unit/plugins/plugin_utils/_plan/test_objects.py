# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fnmatch
import re

import env
import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import short_name
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.names import (
    inject_value,
    interfaces_of,
    node_label,
    profiles,
)
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.facts import facts_of, node_labels
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import object_warnings, render_cluster
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.text import block
from ansible_collections.railops.rdma.tests.admission.admission import check
from ansible_collections.railops.rdma.tests.admission.mutate import mutate
from ansible_collections.railops.rdma.tests.unit.fabric_samples import (
    INJECT,
    OTHER,
    SAMPLES,
    SWAPPED,
    block_of,
    names,
    plan_of,
    rails,
    raw_of,
)
from ansible_collections.railops.rdma.tests.unit.schemas import server
from ansible_collections.railops.rdma.tests.unit.stored import check_device_config, server_fields_removed

CRDS = env.SHARED / "crds"
FILES = ("ippools.yaml", "multusconfigs.yaml", "reservedips.yaml", "sriovpolicies.yaml")
ALL = [pytest.param(sample, id=sample) for sample in SAMPLES]


def load(text):
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]


@pytest.fixture(scope="module")
def rendered():
    """Return (plan, files, objects) of a sample, made once."""
    made = {}

    def get(sample):
        if sample not in made:
            plan = plan_of(*SAMPLES[sample])
            files = render_cluster(plan)
            made[sample] = plan, files, [obj for name in FILES for obj in load(files[name])]
        return made[sample]

    return get


@pytest.mark.parametrize("sample", ALL)
def test_what_pods_get_is_what_the_configs_say(sample, rendered):
    plan, _files, objects = rendered(sample)
    facts = facts_of(plan)
    rows = [row for rows in facts["networks"].values() for row in rows]
    configs = of(objects, "SpiderMultusConfig")
    assert [row["name"] for row in rows] == [
        f"{plan.fabric.namespace}/{config['metadata']['name']}" for config in configs
    ]
    assert [row["rail"] for row in rows[: len(plan.fabric.rails)]] == [rail.name for rail in plan.fabric.rails]
    for row, config in zip(rows, configs, strict=True):
        spec = config["spec"]
        block = spec[spec["cniType"].replace("-", "")]
        resource = config["metadata"].get("annotations", {}).get("railops.io/rdma-resource")
        assert row["resource"] == (resource or block.get("rdmaResourceName") or block.get("resourceName"))
        assert row["ask"] == bool(resource)
        assert (row["attachment"], row["mtu"]) == (spec["cniType"], block.get("mtu", 0))
        assert (row["addresses"], row["routes"]) == (not spec["disableIPAM"], spec["enableCoordinator"])
        assert spec["disableIPAM"] == (set(block.get("ippools", ())) <= {"matchMasterSubnet"})


@pytest.mark.parametrize("sample", ALL)
def test_what_nodes_offer_is_what_device_plugin_and_policies_say(sample, rendered):
    plan, files, objects = rendered(sample)
    facts = facts_of(plan)
    plugin = yaml.safe_load(files["values.yaml"])["rdma"]["rdmaSharedDevicePlugin"]
    entries = plugin.get("deviceConfig", {}).get("configList", ())
    policies = [policy["spec"] for policy in of(objects, "SriovNetworkNodePolicy")]
    assert facts["own_device"] is not plugin["install"]
    wanted = {}
    names = set()
    for profile, nodes in profiles(plan).items():
        interfaces = interfaces_of(plan.fabric, nodes)
        wanted[profile] = {
            f"{entry['resourcePrefix']}/{entry['resourceName']}": entry["rdmaHcaMax"]
            for entry in entries
            if set(entry["selectors"]["ifNames"]) & set(interfaces)
        } | {
            f"{plan.fabric.resource_prefix}/{spec['resourceName']}": spec["numVfs"]
            for spec in policies
            if spec["nodeSelector"] == {node_label(plan.fabric): profile}
        }
        names |= {name for spec in policies for name in spec["nicSelector"]["pfNames"]}
    for config in of(objects, "SpiderMultusConfig"):
        master = config["spec"][config["spec"]["cniType"].replace("-", "")].get("master", [])
        names |= {master} if isinstance(master, str) else set(master)
    assert facts["resources"] == wanted
    assert facts["interfaces"] == sorted(names)
    assert {obj["kind"] for obj in objects} - {"SriovNetworkNodePolicy"} <= set(facts["kinds"])


def of(objects, kind):
    return [obj for obj in objects if obj["kind"] == kind]


@pytest.mark.parametrize("sample", ALL)
def test_admission_takes_every_object(sample, rendered):
    _plan, _files, objects = rendered(sample)
    assert check(objects) == []


@pytest.mark.parametrize("sample", ALL)
def test_objects_are_in_the_servers_normal_form(sample, rendered):
    for obj in rendered(sample)[2]:
        assert server_fields_removed(mutate(obj)) == obj


@pytest.mark.parametrize("sample", ALL)
def test_objects_are_named_and_owned(sample, rendered):
    plan, _files, objects = rendered(sample)
    seen = set()
    for obj in objects:
        metadata = obj["metadata"]
        assert metadata["labels"] == {
            "app.kubernetes.io/managed-by": "railops.rdma",
            "railops.io/fabric": plan.fabric.name,
        }
        assert len(metadata["name"]) <= 63
        assert "." not in metadata["name"]
        key = obj["kind"], metadata["name"]
        assert key not in seen
        seen.add(key)
        assert metadata.get("namespace") == (
            None if obj["kind"] in ("SpiderIPPool", "SpiderReservedIP") else plan.fabric.namespace
        )


@pytest.mark.parametrize("sample", [sample for sample in ALL if sample.id not in ("ib links", "lid only")])
def test_each_config_finds_the_pools_of_its_rail_on_every_node(sample, rendered):
    plan, _files, objects = rendered(sample)
    assert plan.fabric.families
    assert plan.nodes
    pools = of(objects, "SpiderIPPool")
    for config in of(objects, "SpiderMultusConfig"):
        spec = config["spec"]
        body = spec[{"ib-sriov": "ibsriov"}.get(spec["cniType"], spec["cniType"])]
        rail = next(
            index
            for index, rail in enumerate(plan.fabric.rails)
            if re.fullmatch(rf"{plan.fabric.name}-{rail.name}(-p[0-9a-f]{{6}})?", config["metadata"]["name"])
        )
        for family in plan.fabric.families:
            patterns = body["ippools"][f"ipv{family}"]
            found = [pool for pool in pools if any(fnmatch.fnmatch(pool["metadata"]["name"], p) for p in patterns)]
            for node in plan.nodes:
                own = [pool for pool in found if node.name in pool["spec"].get("nodeName", [node.name])]
                subnet = str(block_of(plan, node.zone, rail, family).subnet(node.slot))
                assert own
                assert {pool["spec"]["subnet"] for pool in own} == {subnet}
            for pool in found:
                nets = {
                    str(block_.aggregate) if not block_.per_node else str(block_.subnet(node.slot))
                    for block_ in plan.blocks
                    for node in plan.nodes_of(block_.zone)
                    if (block_.rail, block_.family) == (rail, family)
                }
                assert pool["spec"]["subnet"] in nets, "the pool of another rail"


@pytest.mark.parametrize("sample", ALL)
def test_helm_values_fit_the_attachment(sample, rendered):
    plan, files, objects = rendered(sample)
    values = yaml.safe_load(files["values.yaml"])
    virtual = plan.fabric.attachment in ("sriov", "ib-sriov")
    plugin = values["rdma"]["rdmaSharedDevicePlugin"]
    assert values["sriov"]["install"] is virtual
    assert plugin["install"] is not virtual
    assert values["ipam"]["spiderSubnet"]["enable"] is False
    assert bool(of(objects, "SriovNetworkNodePolicy")) is virtual
    if virtual:
        resources = {policy["spec"]["resourceName"] for policy in of(objects, "SriovNetworkNodePolicy")}
    else:
        assert check_device_config(plugin["deviceConfig"]) == []
        resources = {entry["resourceName"] for entry in plugin["deviceConfig"]["configList"]}
    named = set()
    for config in of(objects, "SpiderMultusConfig"):
        cni = config["spec"]["cniType"]
        body = config["spec"][{"ib-sriov": "ibsriov"}.get(cni, cni)]
        if cni == "ipoib":
            # No field of its own; Spiderpool injects no resource there.
            named.add(config["metadata"]["annotations"]["railops.io/rdma-resource"])
        else:
            named.add(body.get("resourceName") or body["rdmaResourceName"])
    assert named == {f"{plan.fabric.resource_prefix}/{resource}" for resource in resources}


def test_sriov_config_isolates_rdma_and_its_policy_selects_labeled_nodes(rendered):
    plan, _files, objects = rendered("sriov-roce")
    config, policy = of(objects, "SpiderMultusConfig")[0], of(objects, "SriovNetworkNodePolicy")[0]
    assert config["spec"]["sriov"]["rdmaIsolation"] is True
    assert config["spec"]["sriov"]["resourceName"] == "spidernet.io/fabric_rail1"
    assert policy["spec"]["nodeSelector"] == {"fabric.railops.io/fabric": "declared"}
    assert (policy["spec"]["numVfs"], policy["spec"]["resourceName"]) == (8, "fabric_rail1")
    assert node_labels(plan) == [{"labels": {"fabric.railops.io/fabric": "declared"}, "nodes": names(8)}]


def test_reserved_ranges_that_spiderpool_would_expand_are_left_out(rendered):
    plan, _files, objects = rendered("reserved")
    four, six = of(objects, "SpiderReservedIP")
    assert four["spec"]["ips"] == ["10.0.0.1", "172.17.0.5-172.17.0.9", "172.17.2.40"]
    assert six["spec"] == {"ipVersion": 6, "ips": ["fd00::1"]}
    assert any("1 reserved range " in text for text in object_warnings(plan))


# --- nodes whose interfaces have other names --------------------------------------------------------------------------


def test_other_names_get_configs_and_an_injection_value_of_their_own(rendered):
    plan, files, objects = rendered("names differ")
    configs = of(objects, "SpiderMultusConfig")
    values = {config["metadata"]["annotations"][INJECT["key"]] for config in configs}
    assert len(configs) == 16
    assert len(values) == 2
    declared, other = node_labels(plan)
    assert (declared["nodes"], other["nodes"]) == (["node1", "node2"], ["node4"])
    assert set(declared["labels"].values()) == {"declared"}
    (profile,) = other["labels"].values()
    own = {config["metadata"]["name"]: config for config in configs}[f"fabric-rail1-{profile}"]
    assert own["spec"]["macvlan"]["master"] == ["eth100"]
    assert own["metadata"]["annotations"][INJECT["key"]] == f"rails-{profile}"
    # One ConfigMap serves all nodes, and no name means two rails: one resource with both names.
    plugin = yaml.safe_load(files["values.yaml"])["rdma"]["rdmaSharedDevicePlugin"]["deviceConfig"]["configList"]
    assert plugin[0]["selectors"]["ifNames"] == ["ens1np0", "eth100"]
    assert any("node4" in text and profile in text for text in object_warnings(plan))


def test_a_name_that_means_two_rails_gets_resources_of_its_own(rendered):
    plugin = yaml.safe_load(rendered("names swapped")[1]["values.yaml"])
    plugin = plugin["rdma"]["rdmaSharedDevicePlugin"]["deviceConfig"]["configList"]
    assert all(len(entry["selectors"]["ifNames"]) == 1 for entry in plugin)
    assert len({entry["resourceName"] for entry in plugin}) == 24


def test_sriov_keeps_one_config_a_rail_and_one_policy_a_profile(rendered):
    objects = rendered("sriov names swapped")[2]
    assert len(of(objects, "SpiderMultusConfig")) == 8
    policies = of(objects, "SriovNetworkNodePolicy")
    assert len(policies) == 24
    assert len({policy["spec"]["resourceName"] for policy in policies}) == 8
    assert len({policy["spec"]["nodeSelector"]["fabric.railops.io/fabric"] for policy in policies}) == 3


def test_a_profile_depends_on_nothing_but_the_names():
    before = render_cluster(plan_of(raw_of(), ["node1", SWAPPED, OTHER]))
    after = render_cluster(plan_of(raw_of(), ["node1", OTHER]))
    assert len(load(after["multusconfigs.yaml"])) == 16
    kept = {config["metadata"]["name"] for config in load(after["multusconfigs.yaml"])}
    assert kept < {config["metadata"]["name"] for config in load(before["multusconfigs.yaml"])}


# --- names ------------------------------------------------------------------------------------------------------------


def test_names_are_shortened_as_the_design_says():
    assert short_name("fabric-rail1-v4-node1") == "fabric-rail1-v4-node1"
    assert short_name("a" * 63) == "a" * 63
    assert re.fullmatch(r"a{54}-[0-9a-f]{8}", short_name("a" * 64))
    assert re.fullmatch(r"fabric-rail1-v4-gpu1-example-com-[0-9a-f]{8}", short_name("fabric-rail1-v4-gpu1.example.com"))
    assert short_name("a.b") != short_name("a-b")


@pytest.mark.parametrize("length", [1, 40, 55, 56, 63])
def test_injection_values_stay_label_values(length):
    made = inject_value("v" * length, "p0a1b2c")
    assert len(made) <= 63
    assert made.endswith("p0a1b2c") or "-p0a1b2c-" in made


@pytest.mark.parametrize(
    ("raw", "nodes", "message"),
    [
        pytest.param(raw_of(name="f" * 50), ["a"], "characters shorter", id="no room for the wildcard"),
        pytest.param(
            raw_of(rails=[{"name": "r", "interface": "a"}, {"name": "r-v4-x", "interface": "b"}]),
            ["a"],
            "would catch the pools of",
            id="wildcard over two rails",
        ),
        pytest.param(
            raw_of(node_prefix=18, supernets=["10.0.0.0/8"], rails=rails(1)),
            ["a", "a-part2"],
            "as that of node",
            id="two nodes with one pool name",
        ),
    ],
)
def test_names_that_would_collide_are_refused(raw, nodes, message):
    with pytest.raises(InputError, match=message):
        render_cluster(plan_of(raw, nodes))


def test_the_order_of_an_injected_pod_is_reported():
    assert object_warnings(plan_of(raw_of(), ["a"])) == ()
    bad = plan_of(raw_of(rails=[{"interface": "ens2np0"}, {"interface": "ens10np0"}]), ["a"])
    assert "rail2, rail1" in object_warnings(bad)[0]


def test_yaml_of_any_json_reads_back():
    value = {
        "a": ["x", "1", "1.5", "on", "null", "", "~", "-", "a: b", "# no", "é", "2026-11-20", "1:30", "*a", "{"],
        "yes": {"b": [[1, 2], [], {}, {"c": None, "d": [{"e": True}]}]},
        "0x10": 1.5,
    }
    assert yaml.safe_load(block(value)) == value


# --- the real CRDs ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not CRDS.is_dir(), reason=env.NO_CRDS)
def test_the_real_crds_take_every_object_and_know_every_field(rendered):
    pytest.importorskip("jsonschema")
    wrong = server(*sorted(CRDS.glob("*.yaml")))
    found = [
        (sample, obj["kind"], problem) for sample in SAMPLES for obj in rendered(sample)[2] for problem in wrong(obj)
    ]
    assert found == []


def test_rails_in_vlans_are_stacked_on_the_hosts_interface_and_never_on_ifacers():
    tagged = {"vlan": 100, "rails": [{"interface": "ens1np0"}, {"interface": "ens2np0", "vlan": 102}]}
    made = plan_of(raw_of(**tagged), names(2))
    configs = of(list(yaml.safe_load_all(render_cluster(made)["multusconfigs.yaml"])), "SpiderMultusConfig")

    assert [config["spec"]["macvlan"]["master"] for config in configs] == [["ens1np0.100"], ["ens2np0.102"]]
    # With a VLAN here, or two masters, Spiderpool chains its plugin ifacer, which refuses one VLAN on two interfaces.
    assert {config["spec"]["macvlan"]["vlanID"] for config in configs} == {0}
    plugin = yaml.safe_load(render_cluster(made)["values.yaml"])["rdma"]["rdmaSharedDevicePlugin"]["deviceConfig"]
    assert [entry["selectors"]["ifNames"] for entry in plugin["configList"]] == [["ens1np0"], ["ens2np0"]]
    virtual = render_cluster(plan_of(raw_of(attachment="sriov", **tagged), names(2)))["multusconfigs.yaml"]
    assert [config["spec"]["sriov"]["vlanID"] for config in yaml.safe_load_all(virtual)] == [100, 102]
