# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the counters of a port say: errors, discards, flaps, or what sound fabrics have as well. Pure."""

from __future__ import annotations

import re

# InfiniBand specification 16.1.3.5 (counters/), and the drivers' own: drivers/infiniband/hw/{mlx5/counters,
# bnxt_re/hw_counters,irdma/verbs}.c and mlx5/core/en_stats.c of Linux.
ERRORS = frozenset(
    (
        "excessive_buffer_overrun_errors",
        "link_error_recovery",
        "local_ack_timeout_err",
        "local_link_integrity_errors",
        "max_retry_exceeded",
        "port_rcv_constraint_errors",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_constraint_errors",
        "req_rnr_retries_exceeded",
        "req_transport_retries_exceeded",
        "retry_exceeded_err",
        "roce_adp_retrans_to",
        "rx_crc_errors",
        "rx_crc_errors_phy",
        "rx_errors",
        "rx_frame_errors",
        "rx_icrc_encapsulated",
        "rx_in_range_len_errors_phy",
        "rx_roce_errors",
        "rx_symbol_err_phy",
        "symbol_error",
        "tx_carrier_errors",
        "tx_errors",
        "tx_errors_phy",
        "tx_pause_storm_error_events",
        "tx_roce_errors",
        "unrecoverable_err",
    )
)
"""They stay still on a sound rail."""

DISCARDS = re.compile(
    r"(rx|tx)_discards_phy|rx_prio\d_(buf_|cong_)?discards?|(rx|tx)_roce_discards|ip[46]InDiscards|VL15_dropped"
)
"""Packets dropped for lack of buffer space: none in a lossless class, a few in others."""

BENIGN = frozenset(
    (
        "duplicate_request",
        "implied_nak_seq_err",
        "oos_drop_count",
        "out_of_buffer",
        "out_of_seq_request",
        "out_of_sequence",
        "packet_seq_err",
        "port_xmit_discards",
        "rcvd_seq_err",
        "rx_out_of_buffer",
        "rx_out_of_buffer_drop",
        "seq_err_naks_rcvd",
        "to_retransmits",
    )
)
"""They grow on sound fabrics too: adaptive routing puts packets out of order, slow receivers run out of buffers."""

FLAPS = frozenset(("carrier_down_count", "link_down_events_phy", "link_downed"))


def kind_of(counter: str) -> str | None:
    """Return the check that a counter belongs to; None for one that says nothing of health."""
    known = {"port_errors": ERRORS, "port_order": BENIGN, "port_flaps": FLAPS}
    found = next((check for check, names in known.items() if counter in names), None)
    return found or ("port_discards" if DISCARDS.fullmatch(counter) else None)
