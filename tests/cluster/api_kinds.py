# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds that the API double serves: the built-in ones as a table, the others from CRDs."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from api_fields import FREE, META
from programs import CRDS

HERE = Path(__file__).resolve().parent
# The project's own minimal description of the kinds: names and scopes, any field let through.
STUB_CRDS = HERE / "chart/crds"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass
class Kind:
    """One resource of one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    status: bool = True
    short: tuple[str, ...] = ()
    custom: bool = False
    schema: dict[str, t.Any] = field(
        default_factory=lambda: {"type": "object", "properties": {"metadata": META}, **FREE}
    )

    @property
    def api_version(self) -> str:
        """Return `v1` or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version


def _declared(**properties: t.Any) -> dict[str, t.Any]:
    return {
        "type": "object",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": META, **properties},
    }


_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_SCHEMAS = {
    "ConfigMap": _declared(data=_TEXTS, binaryData=_TEXTS, immutable={"type": "boolean"}),
    "Namespace": _declared(spec=FREE, status=FREE),
}
# group/version: kind, plural, namespaced, short names
_TABLE = """
v1                              ConfigMap                       configmaps                      yes cm
v1                              Secret                          secrets                         yes
v1                              Namespace                       namespaces                      no  ns
v1                              ServiceAccount                  serviceaccounts                 yes sa
v1                              Service                         services                        yes svc
v1                              Pod                             pods                            yes po
v1                              Node                            nodes                           no  no
v1                              Event                           events                          yes ev
apps/v1                         Deployment                      deployments                     yes deploy
apps/v1                         ReplicaSet                      replicasets                     yes rs
apps/v1                         DaemonSet                       daemonsets                      yes ds
batch/v1                        Job                             jobs                            yes
rbac.authorization.k8s.io/v1    Role                            roles                           yes
rbac.authorization.k8s.io/v1    RoleBinding                     rolebindings                    yes
rbac.authorization.k8s.io/v1    ClusterRole                     clusterroles                    no
rbac.authorization.k8s.io/v1    ClusterRoleBinding              clusterrolebindings             no
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration  validatingwebhookconfigurations no
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration    mutatingwebhookconfigurations   no
apiextensions.k8s.io/v1         CustomResourceDefinition        customresourcedefinitions       no  crd
coordination.k8s.io/v1          Lease                           leases                          yes
"""


def built_in() -> list[Kind]:
    """Return the kinds that every API server has and that helm, the clients and the roles ask for."""
    kinds = []
    for row in _TABLE.strip().splitlines():
        api, kind, plural, namespaced, *short = row.split()
        group, _slash, version = api.rpartition("/")
        made = Kind(group, version, kind, plural, namespaced == "yes", short=tuple(short))
        if kind in _SCHEMAS:
            made.schema = _SCHEMAS[kind]
        kinds.append(made)
    return kinds


def from_crd(crd: dict[str, t.Any]) -> list[Kind]:
    """Return the kinds of a CustomResourceDefinition, one a served version."""
    spec = crd["spec"]
    names = spec["names"]
    kinds = []
    for version in spec["versions"]:
        if not version.get("served", True):
            continue
        schema = dict((version.get("schema") or {}).get("openAPIV3Schema") or FREE)
        schema["properties"] = {
            **(schema.get("properties") or {}),
            "metadata": META,
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
        }
        kinds.append(
            Kind(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                spec["scope"] == "Namespaced",
                status="status" in (version.get("subresources") or {}),
                short=tuple(names.get("shortNames") or ()),
                custom=True,
                schema=schema,
            )
        )
    return kinds


def crd(
    group: str,
    plural: str,
    kind: str,
    version: str = "v1",
    *,
    scope: str = "Cluster",
    schema: dict[str, t.Any] | None = None,
    **more: t.Any,
) -> dict[str, t.Any]:
    """Return the CustomResourceDefinition of a kind.

    :param schema: without one it takes any field.
    :param more: fields of its one version.
    """
    free = {"type": "object", **FREE}
    made = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or free}, **more}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [made]},
    }


def crd_folder() -> Path:
    """Return the folder of CRDs to serve: upstream's when there, else the project's stubs."""
    return CRDS if CRDS.is_dir() else STUB_CRDS


def read_crds(folder: Path) -> list[dict[str, t.Any]]:
    """Return the CustomResourceDefinitions in the files of a folder."""
    found = []
    for path in sorted(folder.glob("*.y*ml")):
        with path.open(encoding="utf-8") as stream:
            found += [document for document in yaml.load_all(stream, yaml.CSafeLoader) if document]
    return found
