# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the cluster tests: the API double, or the real cluster that RAILOPS_TEST_KUBECONFIG names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import typing as t
import uuid
from pathlib import Path

import env
import kubernetes
import plays
import programs
import pytest
import tools
import yaml
from admission import Webhooks
from api_double import ApiDouble
from kubernetes import client
from kubernetes import config as kube_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError
from module_args import module_args
from node_folders import NodeFolders
from returned import returned
from tools import chart_copy

from ansible_collections.railops.rdma.plugins.modules import cluster_objects

Json = dict[str, t.Any]

SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
REAL = os.environ.get("RAILOPS_TEST_KUBECONFIG")
# Beside that API nodes and kubelets are simulated (simulated.py): node1 to node8, and pods that run at once.
SIMULATED = bool(os.environ.get("RAILOPS_TEST_SIMULATED"))


def pytest_report_header() -> str:
    """Say what the tests stand on."""
    crds = "upstream's CRDs" if programs.CRDS.is_dir() else "STUB CRDs (../shared/crds is not there)"
    try:
        chart = f"Spiderpool's chart {programs.chart()}"
    except programs.MissingError:
        chart = "the STUB chart tests/cluster/chart (RAILOPS_TEST_CHART names a real one)"
    api = f"the cluster of {REAL}" if REAL else f"the API double with {crds}"
    return f"cluster: {api}; {chart}; the client {kubernetes.__version__}"


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Return the variables with which ansible runs this checkout."""
    path = f"{env.environment(None)}:{os.environ['PATH']}"
    tree = str(env.tree())
    return {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": tree,
        "ANSIBLE_COLLECTIONS_PATH": tree,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
    }


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker with which a test says why it cannot run on a real cluster."""
    config.addinivalue_line("markers", "only_double(reason): needs the API double, and why")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take switches for who runs the tests in two halves: on the double, and on a real cluster."""
    parser.addoption("--real-only", action="store_true", help="leave out what cannot run on a real cluster")
    parser.addoption("--double-only", action="store_true", help="leave out what --real-only keeps")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what would only be skipped, or what the other half runs, if asked."""
    chosen = {name: config.getoption(f"--{name}-only") for name in ("real", "double")}
    if any(chosen.values()):
        double = {"double", "scripted", "probe"}
        gone = [item for item in items if bool(double & set(getattr(item, "fixturenames", ()))) == chosen["real"]]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> None:
    """Skip on a real cluster, with the reason, what needs scripted faults or the double's inside."""
    if REAL:
        marker = request.node.get_closest_marker("only_double")
        pytest.skip(f"only on the API double: {marker.args[0] if marker else 'needs scripted faults'}")


@pytest.fixture
def double(scripted: None) -> t.Iterator[ApiDouble]:
    """Give a running double with two nodes."""
    with ApiDouble(nodes=["node1", "node2"], admit=Webhooks()) as made:
        made.put("v1", "Namespace", "spiderpool")
        yield made


@pytest.fixture
def nodes(double: ApiDouble) -> NodeFolders:
    """Give the folders of the nodes, in a test whose double plays them."""
    return t.cast("NodeFolders", double.folders)


def dynamic(kubeconfig: Path) -> DynamicClient:
    """Return the plain client. What kinds there are it keeps in a file: the next API of that address has others."""
    with tempfile.TemporaryDirectory(prefix="rr-discovery-") as name:
        return DynamicClient(kube_config.new_client_from_config(str(kubeconfig)), cache_file=f"{name}/kinds")


class Live:
    """What is in the cluster and what others do to it, over the plain client: double and real cluster answer alike."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = dynamic(kubeconfig)

    def of(self, kind: str, api_version: str = SPIDERPOOL) -> t.Any:
        return self.client.resources.get(api_version=api_version, kind=kind)

    def objects(self, kind: str, api_version: str = "v1", **query: str) -> dict[str, Json]:
        """Return the objects of a kind by name; none when the kind is not served."""
        try:
            found = self.of(kind, api_version).get(**query).to_dict()["items"]
        except (ResourceNotFoundError, NotFoundError):
            return {}
        return {item["metadata"]["name"]: item for item in found}

    def managed(self, kind: str, fabric: str = "fabric") -> dict[str, Json]:
        """Return the objects of a kind of Spiderpool's that carry the fabric's label."""
        return self.objects(kind, SPIDERPOOL, label_selector=f"railops.io/fabric={fabric}")

    def versions(self, fabric: str) -> dict[str, str]:
        return {
            f"{kind}/{name}": item["metadata"]["resourceVersion"]
            for kind in ("SpiderIPPool", "SpiderMultusConfig", "SpiderReservedIP")
            for name, item in self.managed(kind, fabric).items()
        }

    def patch(self, kind: str, name: str, patch: Json, manager: str = "kubectl-edit", namespace: str = "") -> None:
        where = {"namespace": namespace} if namespace else {}
        content = "application/merge-patch+json"
        api = "apps/v1" if kind in ("DaemonSet", "Deployment") else SPIDERPOOL
        self.of(kind, api).patch(body=patch, name=name, content_type=content, field_manager=manager, **where)

    def allocate(self, pool: str, addresses: t.Iterable[str]) -> None:
        """Give addresses of a pool to pods, as Spiderpool writes it down; none gives all back."""
        taken = {address: {"pod": f"default/app-{address}", "podUid": f"uid-{address}"} for address in addresses}
        # Where nothing is lent there is no such field, and only then does the real controller let go of a pool.
        status = {"allocatedIPCount": len(taken), "allocatedIPs": json.dumps(taken) if taken else None}
        content = "application/merge-patch+json"
        self.of("SpiderIPPool").status.patch(body={"status": status}, name=pool, content_type=content)

    def json_patch(self, kind: str, name: str, patch: list[Json], namespace: str) -> None:
        """Change what a merge cannot."""
        content = "application/json-patch+json"
        self.of(kind, "apps/v1").patch(body=patch, name=name, namespace=namespace, content_type=content)

    def down(self, node: str) -> None:
        """Let a node go down, as the node lifecycle controller writes it when a kubelet is silent."""
        self._ready("Node", node, "Unknown")
        for pod in self.of("Pod", "v1").get(field_selector=f"spec.nodeName={node}").items:
            self._ready("Pod", pod.metadata.name, "False", pod.metadata.namespace)

    def up(self, node: str) -> None:
        """Let it come back; its kubelet then looks after its pods again."""
        self._ready("Node", node, "True")
        for pod in self.of("Pod", "v1").get(field_selector=f"spec.nodeName={node}").items:
            self._ready("Pod", pod.metadata.name, "True", pod.metadata.namespace)

    def _ready(self, kind: str, name: str, status: str, namespace: str = "") -> None:
        where = {"namespace": namespace} if namespace else {}
        condition = {"type": "Ready", "status": status, "reason": "Simulated", "message": ""}
        self.of(kind, "v1").status.patch(
            body={"status": {"conditions": [condition]}},
            name=name,
            content_type="application/strategic-merge-patch+json",
            **where,
        )

    def phase(self) -> str:
        """Return the phase of the coordinator."""
        found = self.of("SpiderCoordinator").get(name="default").to_dict()
        return str((found.get("status") or {}).get("phase", ""))

    def until(self, true: t.Callable[[], bool], seconds: float = 300) -> None:
        """Wait for something that a controller does."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.2)

    def served(self, kind: str, api_version: str) -> bool:
        """Say whether the API serves a kind."""
        try:
            return bool(self.of(kind, api_version).get(limit=1))
        except (ResourceNotFoundError, NotFoundError):
            return False

    def log(self, namespace: str, pod: str) -> str:
        """Return the log of a pod."""
        core = client.CoreV1Api(self.client.client)
        return str(core.read_namespaced_pod_log(pod, namespace))

    def clear(self, fabric: str) -> None:
        """Give back what a fabric's pools have lent."""
        for name, item in self.managed("SpiderIPPool", fabric).items():
            if (item.get("status") or {}).get("allocatedIPCount"):
                self.allocate(name, ())


@pytest.fixture
def live(kubeconfig: Path) -> Live:
    """Give the plain client."""
    return Live(kubeconfig)


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the kubeconfig of the API under test."""
    if REAL:
        return Path(REAL)
    made: ApiDouble = request.getfixturevalue("double")
    return made.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def restricted(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path) -> t.Iterator[t.Callable[[str], str]]:
    """Give a function: the kubeconfig of an identity that may do anything with Spiderpool's kinds but one.

    It names the plural, with `:write` when reading is allowed. On a real cluster it is a service account of its own.
    """
    if not REAL:
        double: ApiDouble = request.getfixturevalue("double")

        def forbid(what: str) -> str:
            double.forbidden.add(what)
            return str(kubeconfig)

        yield forbid
        return
    api = kube_config.new_client_from_config(REAL)
    account = Account(api)

    def made(what: str) -> str:
        return str(account.made(what, Path(REAL), tmp_path / "restricted"))

    yield made
    account.removed()


class Account:
    """A service account of a test with the role that it has."""

    def __init__(self, api: client.ApiClient) -> None:
        self.name = f"rr-test-{uuid.uuid4().hex[:8]}"
        self._core = client.CoreV1Api(api)
        self._rbac = client.RbacAuthorizationV1Api(api)
        self._api = api

    def made(self, forbidden: str, complete: Path, path: Path) -> Path:
        """Make it and write its kubeconfig."""
        plural, _colon, only = forbidden.partition(":")
        free = {"spiderippools", "spiderreservedips", "spidermultusconfigs"} - {plural}
        read = ["get", "list", "watch"]
        rules: list[Json] = [
            {"apiGroups": ["spiderpool.spidernet.io"], "resources": sorted(free), "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": read},
        ]
        if only:
            rules.append({"apiGroups": ["spiderpool.spidernet.io"], "resources": [plural], "verbs": read})
        return self.given(rules, complete, path)

    def given(self, rules: list[Json], complete: Path, path: Path) -> Path:
        """Make it with these rules and write its kubeconfig."""
        meta = {"metadata": {"name": self.name}}
        self._core.create_namespaced_service_account("default", meta)
        self._rbac.create_cluster_role({**meta, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name}
        self._rbac.create_cluster_role_binding({**meta, "subjects": [subject], "roleRef": role})
        request = {"spec": {"audiences": None, "expirationSeconds": 3600}}
        given = self._core.create_namespaced_service_account_token(self.name, "default", request)
        text = yaml.safe_load(complete.read_text(encoding="utf-8"))
        text["users"] = [{"name": row["name"], "user": {"token": given.status.token}} for row in text["users"]]
        path.write_text(yaml.safe_dump(text), encoding="utf-8")
        return path

    def removed(self) -> None:
        """Take all of it away."""
        self._rbac.delete_cluster_role_binding(self.name)
        self._rbac.delete_cluster_role(self.name)
        self._core.delete_namespaced_service_account(self.name, "default")


@pytest.fixture
def ending(kubeconfig: Path) -> t.Iterator[str]:
    """Give a namespace that is being deleted and cannot end: it holds something with a finalizer."""
    name = f"rr-ending-{uuid.uuid4().hex[:6]}"
    core = client.CoreV1Api(kube_config.new_client_from_config(str(kubeconfig)))
    core.create_namespace({"metadata": {"name": name}})
    held = {"metadata": {"name": "held", "finalizers": ["railops.io/test"]}}
    core.create_namespaced_config_map(name, held)
    core.delete_namespace(name)
    yield name
    core.patch_namespaced_config_map("held", name, {"metadata": {"finalizers": None}})


Run = t.Callable[..., Json]


@pytest.fixture
def module(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs a module in this process; a failure is a result with `failed`."""

    def run(which: t.Any, check: bool = False, **params: t.Any) -> Json:
        given = {"kubeconfig": str(kubeconfig), **params, "_ansible_check_mode": check, "_ansible_diff": True}
        with module_args(given), pytest.raises(SystemExit):
            which.main()
        *before, last = capsys.readouterr().out.splitlines()
        if before:
            print("\n".join(before))
        return returned(which.__name__.rpartition(".")[2], json.loads(last))

    return run


@pytest.fixture
def objects(module: Run) -> Run:
    """Give a function that runs cluster_objects."""

    def run(definitions: list[Json] | None = None, check: bool = False, **params: t.Any) -> Json:
        return module(cluster_objects, check, **{"definitions": definitions or [], "retry_seconds": 5, **params})

    return run


@pytest.fixture(scope="session")
def installed() -> None:
    """Install Spiderpool's real chart where its controller can be started; elsewhere what is there must do."""
    if not (SIMULATED and os.environ.get("RAILOPS_TEST_SPIDERPOOL")):
        return
    tools.install_spiderpool(Path(str(REAL)))


@pytest.fixture(scope="session")
def spiderpool(installed: None) -> None:
    """Skip where Spiderpool's own controller does not run."""
    if not os.environ.get("RAILOPS_TEST_SPIDERPOOL"):
        pytest.skip(programs.lacking("webhooks") or "needs Spiderpool's real controller: make test CHECK=api")


@pytest.fixture
def controllers() -> None:
    """Skip beside a real API of the tests' own that has neither controller manager nor scheduler."""
    if SIMULATED and (why := programs.lacking("controllers")):
        pytest.skip(why)


@pytest.fixture
def webhooks() -> None:
    """Skip beside a real API of the tests' own that has no Spiderpool."""
    if SIMULATED and not os.environ.get("RAILOPS_TEST_SPIDERPOOL"):
        pytest.skip(programs.lacking("webhooks"))


class Playbook:
    """Runs plays over localhost with the collection's roles against the API under test."""

    def __init__(self, folder: Path, environment: dict[str, str], kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.values: Json = {}
        self._environment = environment

    def written(self, play: list[Json]) -> Path:
        """Write a play over localhost and return its file."""
        path = self.folder / "play.yml"
        base = {"fabric_kubeconfig": str(self.kubeconfig), **self.values}
        whole = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": base, "tasks": play}]
        path.write_text(json.dumps(whole), encoding="utf-8")
        return path

    def start(self, play: list[Json]) -> subprocess.Popen[bytes]:
        """Begin to run tasks: the caller ends it."""
        argv = ["ansible-playbook", str(self.written(play))]
        with (self.folder / "said").open("w", encoding="utf-8") as log:
            return subprocess.Popen(argv, env=self._environment, cwd=self.folder, stdout=log, stderr=log)

    def run(self, play: list[Json], *arguments: str, ok: bool = True) -> Ran:
        """Run tasks and return what came of it."""
        return self._ran([str(self.written(play)), *arguments], ok=ok)

    def shipped(self, name: str, *arguments: str, ok: bool = True, **values: t.Any) -> Ran:
        """Run a playbook of the collection."""
        base = {"fabric_kubeconfig": str(self.kubeconfig), **self.values, **values}
        return self._ran([name if "/" in name else f"railops.rdma.{name}", "-e", json.dumps(base), *arguments], ok=ok)

    def _ran(self, words: list[str], *, ok: bool) -> Ran:
        done = subprocess.run(
            ["ansible-playbook", *words],
            capture_output=True,
            text=True,
            env=self._environment,
            cwd=self.folder,
            timeout=900,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout + done.stderr)
        assert (ran.code == 0) == ok, ran.text[-6000:]
        return ran

    def role(self, name: str, *arguments: str, tasks_from: str = "main", ok: bool = True, **values: t.Any) -> Ran:
        """Run a role of the collection."""
        task: Json = {"include_role": {"name": f"railops.rdma.{name}", "tasks_from": tasks_from}, "vars": values}
        return self.run([task], *arguments, ok=ok)


class Ran(t.NamedTuple):
    """What a playbook said."""

    code: int
    text: str

    @property
    def changed(self) -> int:
        """Return how many tasks changed something."""
        found = re.search(r"changed=(\d+)", self.text)
        return int(found[1]) if found else -1

    def changed_tasks(self) -> list[str]:
        """Return the names of tasks that changed something."""
        names = []
        name = ""
        for line in self.text.splitlines():
            if line.startswith("TASK ["):
                name = line[6 : line.rindex("]")]
            elif line.startswith("changed:"):
                names.append(name)
        return names


@pytest.fixture
def playbook(tmp_path: Path, environment: dict[str, str], kubeconfig: Path) -> Playbook:
    """Give a runner of playbooks; helm is real, the chart too where it is at hand."""
    made = Playbook(tmp_path, environment, kubeconfig)
    made.values = {
        "spiderpool_helm": str(tools.helm()),
        "spiderpool_chart_file": str(chart_copy(tmp_path / "chart")),
        "fabric_plan_dir": str(tmp_path / "plan"),
        "spiderpool_timeout": 300 if REAL else 20,
    }
    return made


@pytest.fixture(scope="session")
def plans(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> t.Callable[[str], Path]:
    """Give a function that plans an example inventory once."""
    folder = tmp_path_factory.mktemp("plans")
    return lambda inventory: plays.planned(inventory, folder / inventory, environment)


@pytest.fixture
def exclusive(playbook: plays.Playbook, plans: t.Callable[[str], Path]) -> None:
    """Let the playbook read the plan and the variables of the example fabric."""
    plays.use(playbook, plans("exclusive"), "exclusive")


@pytest.fixture
def maybe_double(request: pytest.FixtureRequest) -> ApiDouble | None:
    """Give the double, or None on a real cluster: what only the double can show is then not checked."""
    return None if REAL else request.getfixturevalue("double")
