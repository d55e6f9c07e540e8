# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.admission.admission import Admission, AdmissionError, check
from ansible_collections.railops.rdma.tests.admission.samples import DOCUMENTED, NOT_OURS, REFUSED, multus, pool


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
