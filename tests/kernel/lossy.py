# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A port that loses some of what comes in, at random: five instructions of XDP, as long as they are held."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import socket
import struct
import typing as t

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import entered

# include/uapi/linux/bpf.h, if_link.h; the number of bpf(2)
PROG_LOAD, LINK_CREATE, PROG_TYPE_XDP, ATTACH_XDP, SKB_MODE = 5, 28, 6, 37, 2
NUMBERS = {"x86_64": 321, "aarch64": 280}


def _bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    found = libc.syscall(NUMBERS[platform.machine()], command, room, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def _program(percent: int) -> bytes:
    """Return the instructions: draw a number (helper 7), drop (1) below the limit, else pass (2)."""
    code = [(0x85, 0, 0, 7), (0x97, 0, 0, 100), (0x35, 0, 2, percent), (0xB7, 0, 0, 1), (0x95, 0, 0, 0)]
    code += [(0xB7, 0, 0, 2), (0x95, 0, 0, 0)]
    return b"".join(struct.pack("=BBhi", *step) for step in code)


@contextlib.contextmanager
def losing(space: str, interface: str, percent: int) -> t.Iterator[None]:
    """Let an interface of a namespace lose so many percent of the frames that come in."""
    code, gpl = ctypes.create_string_buffer(_program(percent)), ctypes.create_string_buffer(b"GPL")
    head = struct.pack("=IIQQ", PROG_TYPE_XDP, 7, ctypes.addressof(code), ctypes.addressof(gpl))
    with contextlib.ExitStack() as stack:
        try:
            program = _bpf(PROG_LOAD, head)
        except (OSError, KeyError) as exc:
            pytest.skip(f"this kernel takes no XDP program: {exc}")
        stack.callback(os.close, program)
        with entered(space):
            index = socket.if_nametoindex(interface)
            link = _bpf(LINK_CREATE, struct.pack("=4I", program, index, ATTACH_XDP, SKB_MODE))
        stack.callback(os.close, link)
        yield
