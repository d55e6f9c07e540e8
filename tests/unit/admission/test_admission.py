# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.tests.admission.admission import Admission, AdmissionError, check
from ansible_collections.railops.rdma.tests.admission.mutate import (
    FINALIZER,
    INJECT_RDMA,
    mutate,
)
from ansible_collections.railops.rdma.tests.admission.samples import (
    DOCUMENTED,
    NORMAL,
    NOT_OURS,
    REFUSED,
    multus,
    policy,
    pool,
)
from ansible_collections.railops.rdma.tests.unit.stored import check_device_config


def refusal(obj, *existing):
    with pytest.raises(AdmissionError) as caught:
        Admission(existing).create(obj)
    return caught.value


# --- what the upstream documents themselves get wrong; the real webhook's answers -------------------------------------


@pytest.mark.parametrize(("obj", "message"), [*DOCUMENTED, *REFUSED, *NOT_OURS])
def test_mistakes_of_the_upstream_documents_and_other_bad_objects_are_refused(obj, message):
    assert message in refusal(obj).message


def test_the_documents_correct_examples_are_accepted():
    assert check([multus("macvlan"), pool(nodeName=["node1"], multusName=["spiderpool/rail1"])]) == []


# --- mutation -------------------------------------------------------------------------------------------------------


def test_mutation_of_a_pool_is_the_webhooks():
    made = mutate(pool(ips=["172.17.0.9", "172.17.0.5-172.17.0.7", "172.17.0.6-172.17.0.8"]))
    assert made["metadata"]["finalizers"] == [FINALIZER]
    assert made["metadata"]["labels"] == {"ipam.spidernet.io/ippool-cidr": "172-17-0-0-27"}
    assert made["spec"] == {
        "subnet": "172.17.0.0/27",
        "ips": ["172.17.0.5-172.17.0.9"],
        "gateway": "172.17.0.1",
        "ipVersion": 4,
        "default": False,
        "disable": False,
    }


@pytest.mark.parametrize("cni", ["macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib"])
def test_mutation_of_a_config_fills_its_block(cni):
    made = mutate(multus(cni, annotations={INJECT_RDMA: "gpu"}))
    block = made["spec"][{"ib-sriov": "ibsriov"}.get(cni, cni)]
    assert (made["metadata"]["labels"], made["spec"]["coordinator"]["mode"]) == ({INJECT_RDMA: "gpu"}, "auto")
    assert made["spec"]["enableCoordinator"] is True
    assert made["spec"]["chainCNIJsonData"] == []
    assert block["ippools"]["matchMasterSubnet"] is False
    if cni in ("macvlan", "ipvlan", "sriov"):
        assert (block["vlanID"], block["mtu"]) == (0, 0)
    if cni == "ib-sriov":
        assert (block["rdmaIsolation"], block["pkey"]) == (True, "")


@pytest.mark.parametrize(
    "obj",
    NORMAL,
    ids=lambda obj: f"{obj['kind']}-{obj.get('spec', {}).get('cniType', '')}",
)
def test_mutating_twice_is_mutating_once(obj):
    before = json.dumps(obj)
    once = mutate(obj)
    assert mutate(once) == once
    assert json.dumps(obj) == before, "the argument was changed"


# --- pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"subnet": "172.17.0.0"}, "nothing to mutate", id="no prefix"),
        pytest.param({"subnet": "172.17.0.0/33"}, "nothing to mutate", id="prefix too long"),
        pytest.param({"subnet": "172.17.0.0/27", "ipVersion": 6}, "invalid CIDR format in IPv6", id="family"),
        pytest.param({"ipVersion": 5}, "Unsupported value", id="version 5"),
        pytest.param({"ips": ["172.17.0.3 - 172.17.0.5"]}, "invalid IP range format", id="spaces"),
        pytest.param({"ips": ["172.17.0.0/28"]}, "invalid IP range format", id="CIDR in ips"),
        pytest.param({"ips": ["172.17.0.03"]}, "invalid IP range format", id="leading zero"),
        pytest.param({"ips": ["172.17.0.256"]}, "invalid IP range format", id="no address"),
        pytest.param({"ips": ["2001:db8::1"]}, "invalid IP range format in IPv4", id="other family"),
        pytest.param({"ips": ["172.17.0.9-172.17.0.8", "172.17.0.4"]}, "failed to merge", id="reversed among others"),
        pytest.param({"gateway": "172.17.1.1"}, "not pertains to the 'spec.subnet'", id="gateway outside"),
        pytest.param({"gateway": "nonsense"}, "invalid IP", id="gateway nonsense"),
        pytest.param({"gateway": "172.17.0.3"}, "conflicts with 'spec.gateway' 172.17.0.3", id="gateway in ips"),
        pytest.param({"ips": "172.17.0.3"}, "Invalid type: expected list", id="ips no list"),
        pytest.param({"default": "false"}, "Invalid type: expected bool", id="bool as text"),
    ],
)
def test_a_bad_pool_is_refused(spec, message):
    assert message in refusal(pool(**spec)).message


@pytest.mark.parametrize("other", ["172.17.0.0/24", "172.17.0.0/28", "172.17.0.16/28", "172.17.0.0/16", "0.0.0.0/0"])
def test_subnets_that_nest_are_refused_from_both_sides(other):
    first = pool("other", subnet=other, ips=[], gateway=None)
    assert f"overlap with IPPool other which 'spec.subnet' is {other}" in refusal(pool(), first).message
    assert "overlap with IPPool rail1-node1" in refusal(first, pool()).message


def test_pools_of_one_subnet_have_disjoint_addresses():
    first = pool("a", ips=["172.17.0.3-172.17.0.10"])
    assert check([first, pool("b", ips=["172.17.0.11-172.17.0.30"])]) == []
    assert "overlap with IPPool a in IP ranges [172.17.0.9-172.17.0.10]" in (
        refusal(pool("b", ips=["172.17.0.9-172.17.0.30"]), first).message
    )


def test_update_keeps_subnet_and_allocated_addresses():
    admission = Admission()
    stored = admission.create(pool())
    stored["status"] = {"allocatedIPs": json.dumps({"172.17.0.9": {"pod": "ai/train-0", "podUid": "u"}})}
    with pytest.raises(AdmissionError, match=r"spec\.subnet: Forbidden: is not changeable"):
        admission.update(stored, pool(subnet="172.17.0.0/26"))
    with pytest.raises(AdmissionError, match=r"172\.17\.0\.9 that is being used by Pod ai/train-0"):
        admission.update(stored, pool(ips=["172.17.0.10-172.17.0.30"]))
    narrowed = admission.update(stored, pool(ips=["172.17.0.9-172.17.0.30"]))
    assert narrowed["spec"]["ips"] == ["172.17.0.9-172.17.0.30"]
    # What the narrowed pool gave up is free now, what it kept is not.
    assert admission.create(pool("b", ips=["172.17.0.3-172.17.0.8"]), dry_run=True)
    with pytest.raises(AdmissionError, match="overlap with IPPool rail1-node1"):
        admission.create(pool("b", ips=["172.17.0.8-172.17.0.9"]))


# --- the other kinds --------------------------------------------------------------------------------------------------


def test_policies_share_an_interface_only_on_different_nodes():
    assert "overlapped with existing policy rail1" in refusal(policy("b"), policy()).message
    assert check([policy(), policy("b", nodeSelector={"kubernetes.io/os": "windows"})]) == []


# --- the device plugin ------------------------------------------------------------------------------------------------

ENTRY = {"resourceName": "rail1", "resourcePrefix": "spidernet.io", "rdmaHcaMax": 100}


@pytest.mark.parametrize(
    ("config", "place"),
    [
        pytest.param({"configList": []}, "configList", id="empty"),
        pytest.param({"configList": None}, "configList", id="null"),
        pytest.param({"configList": [ENTRY]}, "configList[0]", id="selects nothing"),
        pytest.param(
            {"configList": [{**ENTRY, "selectors": {"ifNames": "ens1np0"}}]},
            "configList[0].selectors.ifNames",
            id="text for a list",
        ),
        pytest.param(
            {"configList": [{**ENTRY, "selectors": {"ifNames": ["a"]}}] * 2}, "configList[1].resourceName", id="twice"
        ),
        pytest.param(
            {"configList": [{**ENTRY, "resourceName": "rail-1", "devices": ["a"]}]},
            "configList[0].resourceName",
            id="hyphen",
        ),
        pytest.param(
            {"configList": [{**ENTRY, "rdmaHcaMax": -1, "devices": ["a"]}]}, "configList[0].rdmaHcaMax", id="negative"
        ),
        pytest.param(
            {"configList": [{**ENTRY, "selectors": {"linkTypes": ["eth"]}}]},
            "configList[0].selectors.linkTypes",
            id="link type",
        ),
        pytest.param(
            {"periodicUpdateInterval": -1, "configList": [{**ENTRY, "devices": ["a"]}]},
            "periodicUpdateInterval",
            id="interval",
        ),
    ],
)
def test_a_bad_device_config_is_refused(config, place):
    assert place in check_device_config(config)


def test_a_good_device_config_passes():
    config = {"periodicUpdateInterval": 300, "configList": [{**ENTRY, "selectors": {"ifNames": ["ens1np0"]}}]}
    assert check_device_config(config) == []


def test_newer_cards_are_given_to_the_operator_as_the_chart_writes_them():
    text = (Path(__file__).parents[3] / "roles/spiderpool/defaults/main.yml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)["spiderpool_extra_nics"]
    # The template prints each item as a line of the ConfigMap: a mapping would become Go's own text.
    rows = [re.fullmatch(r'Nvidia_mlx5_ConnectX-\d+: "15b3 (\w{4}) 101e"', row) for row in given]
    assert all(rows)
    assert {row[1] for row in rows} >= {"1023", "1025"}
