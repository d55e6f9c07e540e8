# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is taken of the official client: little at first, all of it for whoever asks, and the usual way when it is built
otherwise."""

from __future__ import annotations

import datetime
import http.server
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

if importlib.util.find_spec("kubernetes") is None:
    pytest.skip("the Python package kubernetes is not there", allow_module_level=True)

from ansible_collections.railops.rdma.plugins.module_utils._cluster import library

USE = "from ansible_collections.railops.rdma.plugins.module_utils._cluster import library as used\n"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        pytest.param(
            f"{USE}import sys\nheavy = ('kubernetes.client.models.', 'kubernetes.client.api.')\n"
            "print(len([name for name in sys.modules if name.startswith(heavy)]))",
            "0",
            id="the-generated-classes-are-not-imported",
        ),
        pytest.param(
            f"{USE}import kubernetes, kubernetes.client\n"
            "from kubernetes import client, utils\n"
            "print(client.CoreV1Api.__name__, client.models.V1Pod is client.V1Pod,\n"
            "      client.ApiClient is used.ApiClient, kubernetes.dynamic.DynamicClient is used.DynamicClient,\n"
            "      kubernetes.__version__ != '', utils.__name__)",
            "CoreV1Api True True True True kubernetes.utils",
            id="whoever-asks-for-a-generated-class-gets-it-and-the-same-client",
        ),
        pytest.param(
            f"{USE}import kubernetes.client\n"
            "print(hasattr(kubernetes.client, 'Nonsense'), hasattr(kubernetes, '__nonsense__'))",
            "False False",
            id="what-no-package-has-is-missing-as-ever",
        ),
        pytest.param(
            f"import kubernetes as first\n{USE}"
            "import sys\nprint(sys.modules['kubernetes'] is first, 'V1Pod' in vars(first.client))",
            "True True",
            id="a-client-that-was-imported-before-stays-as-it-is",
        ),
        pytest.param(
            "import importlib\nreal = importlib.import_module\n"
            "def broken(name, *more):\n"
            "    if name == 'kubernetes.client.api_client':\n"
            "        raise AttributeError(name)\n"
            "    return real(name, *more)\n"
            "importlib.import_module = broken\n"
            f"{USE}import kubernetes\nprint(used.KUBERNETES_ERROR, 'V1Pod' in vars(kubernetes.client))",
            "None True",
            id="a-release-that-is-built-otherwise-is-imported-as-usual",
        ),
        pytest.param(
            "import sys\n"
            "class No:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name.partition('.')[0] == 'kubernetes':\n"
            "            raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, No())\n"
            f"{USE}print('ModuleNotFoundError' in used.KUBERNETES_ERROR)",
            "True",
            id="without-the-client-there-is-an-error-to-tell",
        ),
    ],
)
def test_what_is_imported(code: str, wanted: str) -> None:
    """Each in an interpreter of its own: what is imported there matters."""
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=known, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, wanted), done.stderr


class Answers:
    """A dynamic client that knows one version of one group."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.served = [
            {"name": "rows", "kind": "Row", "namespaced": True, "verbs": ["get"]},
            {"name": "rows/status", "kind": "Row", "namespaced": True, "verbs": ["get"]},
        ]

    def request(self, _method: str, path: str, **_options: t.Any) -> t.Any:
        self.asked.append(path)
        if path != "/apis/example.org/v1":
            raise library.ApiException(status=404)
        return {"resources": list(self.served)}


def test_only_the_group_in_question_is_asked_and_once() -> None:
    client = Answers()
    kinds = library.Kinds(client)
    found = kinds.get(api_version="example.org/v1", kind="Row")
    assert kinds.get(api_version="example.org/v1", kind="Row") is found
    assert (found.name, found.group_version, found.path(name="a", namespace="b")) == (
        "rows",
        "example.org/v1",
        "/apis/example.org/v1/namespaces/b/rows/a",
    )
    assert client.asked == ["/apis/example.org/v1"]


def test_threads_that_ask_together_all_find_their_kind() -> None:
    client = Answers()
    client.served = [{"name": f"rows{number}", "kind": f"Row{number}", "namespaced": True} for number in range(8)]
    ask = client.request

    def slow(method: str, path: str, **options: t.Any) -> t.Any:
        time.sleep(0.05)
        return ask(method, path, **options)

    client.request = slow  # type: ignore[method-assign]
    kinds = library.Kinds(client)
    start = threading.Barrier(8)

    def find(number: int) -> t.Any:
        start.wait(5)
        return kinds.get(api_version="example.org/v1", kind=f"Row{number}")

    with ThreadPoolExecutor(8) as pool:
        assert [found.name for found in pool.map(find, range(8))] == [f"rows{number}" for number in range(8)]
    assert len(client.asked) == 1


def test_a_kind_that_comes_later_is_found() -> None:
    client = Answers()
    kinds = library.Kinds(client)
    assert kinds.get(api_version="example.org/v1", kind="Late") is None
    client.served.append({"name": "lates", "kind": "Late", "namespaced": False})
    assert kinds.get(api_version="example.org/v1", kind="Late").name == "lates"


def test_a_group_that_is_not_served_has_no_kinds() -> None:
    assert library.Kinds(Answers()).get(api_version="example.org/v2", kind="Row") is None
    assert library.Kinds(Answers()).get(api_version="v1", kind="Pod") is None


class Stub(http.server.BaseHTTPRequestHandler):
    """Notes what it is sent, and refuses objects called bad."""

    seen: t.ClassVar[list[t.Any]]

    def log_message(self, *dummy: object) -> None:
        """Say nothing."""

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, dict(self.headers), body))
        data = json.dumps({"message": "no"}).encode()
        self.send_response(422 if "/bad" in self.path else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def stub() -> t.Iterator[tuple[str, list[t.Any]]]:
    """Give the address of a server and what it has seen."""
    seen: list[t.Any] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Stub,), {"seen": seen}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    server.server_close()


def patches(host: str, **more: t.Any) -> library.Patches:
    """Return patches to an address."""
    made = library.Configuration()
    made.host = host
    for name, value in more.items():
        setattr(made, name, value)
    return library.Patches(library.ApiClient(made))


def send(to: library.Patches, path: str, body: t.Any) -> None:
    to.send(
        path,
        library.encoded(body),
        "application/apply-patch+yaml",
        {"fieldManager": "a.b", "force": "true"},
        timeout=(5, 5),
    )


def test_a_patch_goes_where_the_client_would_send_it(stub: tuple[str, list[t.Any]]) -> None:
    host, seen = stub
    send(patches(f"{host}/k8s/clusters/c-1/"), "/api/v1/nodes/a", {"since": datetime.date(2026, 11, 21)})
    path, headers, body = seen[0]
    assert path == "/k8s/clusters/c-1/api/v1/nodes/a?fieldManager=a.b&force=true"
    assert (headers["Content-Type"], headers["Accept"]) == ("application/apply-patch+yaml", "application/json")
    assert body == {"since": "2026-11-21"}


def test_a_token_that_is_renewed_meanwhile_is_used(stub: tuple[str, list[t.Any]]) -> None:
    host, seen = stub
    tokens = iter(["old", "new"])

    def renew(made: t.Any) -> None:
        token = next(tokens)
        made.api_key.update({"BearerToken": f"Bearer {token}", "authorization": f"Bearer {token}"})

    to = patches(host, api_key={"BearerToken": "", "authorization": ""}, refresh_api_key_hook=renew)
    for _turn in range(2):
        send(to, "/api/v1/nodes/a", {})
    assert [headers["authorization"] for _path, headers, _body in seen] == ["Bearer old", "Bearer new"]


def test_what_the_api_refuses_is_the_clients_own_exception(stub: tuple[str, list[t.Any]]) -> None:
    with pytest.raises(library.ApiException) as caught:
        send(patches(stub[0]), "/api/v1/nodes/bad", {})
    assert caught.value.status == 422
    assert json.loads(caught.value.body) == {"message": "no"}


def test_a_proxy_without_tls_behind_it_is_told_the_whole_address(stub: tuple[str, list[t.Any]]) -> None:
    proxy, seen = stub
    send(patches("http://api.invalid:8080", proxy=proxy, proxy_headers={"proxy-authorization": "b"}), "/api/x", {})
    path, headers, _body = seen[0]
    assert path.startswith("http://api.invalid:8080/api/x?")
    assert (headers["proxy-authorization"], headers["Host"]) == ("b", "api.invalid:8080")
