# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts stand-ins in the place of what tells whose host a text is of, and finds what is left of it. Asks nobody.

The same value has the same stand-in under one key. Addresses with a common prefix have stand-ins with a common prefix
of that length; an address or GUID that is made of a MAC address has one that is made of the MAC's stand-in.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import ipaddress
import re
import typing as t

from .._errors import RdmaError
from .allow import KNOWN, Allow

# Networks that everybody has: an address in them keeps these bits. The second ones stay as they are.
SHARED = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "2000::/3", "fd00::/8")
WHOLE = ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "100::/64", "3fff:ffff::1/128", "ff00::/8")
LINK_LOCAL = "fe80::/64"
KEPT, LINKS = [ipaddress.ip_network(text) for text in WHOLE], ipaddress.ip_network(LINK_LOCAL)
# How each of these begins: how long addresses are, how many bits, and the bits.
LEADING = {
    (item.max_prefixlen, place, int(item.network_address) >> (item.max_prefixlen - place))
    for item in (*map(ipaddress.ip_network, SHARED), *KEPT, LINKS)
    for place in range(item.prefixlen)
}
# How texts are taken apart when real values are looked for.
PARTS = (r"[\w.:/-]+", r"[\w-]+", r"[0-9a-f:]+", r"[\d.]+", r"[0-9a-z]+")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEX = "0123456789abcdef"
# What stands in the middle of a GUID that is made of a MAC address, and the bit of its first byte that is turned.
OF_A_MAC = {b"\xff\xfe": 2, b"\x03\x00": 0}
# A length behind an address, also as `ip -json` writes it.
PREFIXES = "".join(rf"(?<=\b{word}x)|" for word in ("en", "wl", "ww", "ib", "roce", "rdma"))
LENGTH = r'(?P<{0}>(?:/|","(?:src|dst|prefix)len":)(?P<{0}n>\d{{1,3}})(?!\d))?'
# In the order in which they are tried at each place.
PATTERNS = (
    r"(?P<uuid>(?<![0-9a-fA-F])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-fA-F]))",
    r"(?P<ipoib>(?<![\w:])(?:[0-9a-fA-F]{2}:){19}[0-9a-fA-F]{2}(?![\w:]))",
    r"(?P<pairs>(?<![\w-])(?<![\da-fA-F]:)[\da-fA-F]{2}(?P<dash>[:-])(?:[\da-fA-F]{2}(?P=dash)){4}[\da-fA-F]{2}(?!\w|[:-]\w))",
    r"(?P<kept>(?<![\w.])[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?!\w))",
    r"(?P<colons>(?<![\w:.])[\da-fA-F]{0,4}(?::[\da-fA-F]{0,4}){2,7}(?:(?:\.\d+){3})?(?![\w:]))" + LENGTH.format("six"),
    r"(?P<guid>(?<![\w:])(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}(?![\w:]))",
    # A mask is no GUID.
    r"(?P<number>\b0x(?![0f]{16}\b)(?=[0-9a-fA-F]*[1-9a-fA-F])(?:[0-9a-fA-F]{16}|[0-9a-fA-F]{12})\b)",
    r"(?P<dots>(?<![\w.])(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}(?![\w.]))",
    r"(?P<first>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3})-(?P<last>\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d)",
    # Behind a number and a dash it is a release.
    r"(?P<four>(?:(?<=\bv)|(?<![\w.])(?<!\d-))\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d))"
    + LENGTH.format("length")
    + r'(?P<cast>,"broadcast":"(?P<castip>[\d.]+))?',
    r"(?P<inet6>^[0-9a-f]{32}(?= [0-9a-f]{2} [0-9a-f]{2} ))",
    r"(?P<id>\b[0-9a-fA-F]{32}\b)",
    rf"(?P<bare>(?:{PREFIXES}(?<![0-9a-zA-Z])(?=[0-9a-fA-F]*[a-fA-F]))(?:[0-9a-f]{{12}}|[0-9A-F]{{12}})(?![0-9a-zA-Z]))",
    r"(?P<half>(?<![0-9a-zA-Z])(?![0f]{16})(?=[0-9a-f]*[a-f])[0-9a-f]{16}(?![0-9a-zA-Z]))",
    r"(?P<label>\b(?i:serial(?:[ _-]?(?:number|no))?|s/n)\b[\"']?\s*[:=]\s*[\"']?)(?P<serial>[\w][\w./-]{3,})",
)
# Matches nothing.
NOTHING = r"(?!)"


class Scrub:
    """Replaces, and remembers what it replaced.

    :param key: all hosts of an archive have the same one. It is written nowhere; each host is told it and can keep it.
    :param names: of hosts, users and switches.
    :param serials: that stand somewhere without a word before them.
    """

    def __init__(self, key: str, names: t.Iterable[str] = (), serials: t.Iterable[str] = ()) -> None:
        self._key = hashlib.sha256(key.encode()).digest()
        self.found: dict[str, dict[str, str]] = {}
        self.kept: set[str] = set()
        known = [*((name, "name") for name in names), *((text, "serial") for text in serials)]
        # What our own tables are called by would destroy paths and keys, and tells nobody.
        self._words = {text.lower(): kind for text, kind in known if len(text) > 1 and text.lower() not in KNOWN}
        words = "|".join(re.escape(text) for text in sorted(self._words, key=len, reverse=True))
        word = rf"(?<![^\W_])(?i:{words})(?![^\W_])" if words else NOTHING
        self.allow = Allow(re.compile(word), lambda text: self.name(text, "label"))
        self._pattern = re.compile("|".join((f"(?P<word>{word})", *PATTERNS)), re.MULTILINE)
        for slow in ("_flip", "address"):
            setattr(self, slow, functools.lru_cache(maxsize=None)(getattr(self, slow)))

    def text(self, text: str) -> str:
        """Return a text with stand-ins, in one pass: no stand-in is replaced again."""
        return self._pattern.sub(self._replace, text)

    def label(self, text: str) -> str:
        """Return a name with stand-ins, also for the words in it that nobody has named; empty where it is no name."""
        return self.text(self.allow.label(text) or "")

    def address(self, text: str, length: int | None = None) -> str:
        """Return an address' stand-in; that of a network's first or last address by that length is one."""
        own = ipaddress.ip_address(text)
        width = own.max_prefixlen
        done = self._address(own)
        rest = (1 << width - (length if length is not None and length <= width else width)) - 1
        if not int(own) & rest:
            done = type(own)(int(done) & ~rest)
        elif width == 32 and int(own) & rest == rest:
            done = type(own)(int(done) | rest)
        return self._seen("address", str(own), str(done))

    def packed(self, data: bytes, length: int | None = None) -> bytes:
        """Return the stand-in of an address of four or sixteen bytes."""
        return ipaddress.ip_address(self.address(str(ipaddress.ip_address(data)), length)).packed

    def mac(self, data: bytes) -> bytes:
        """Return a MAC address' stand-in; addresses of one maker have stand-ins of one maker. Groups stay."""
        if data[0] & 1 or not any(data):
            return data
        own = self._maker(data[:3]) + self._draw("mac", data, 3)
        self._seen("mac", data.hex(":"), own.hex(":"))
        return own

    def guid(self, data: bytes) -> bytes:
        """Return the stand-in of a GUID or of the second half of an IPv6 address."""
        if int.from_bytes(data, "big") < 1 << 16:
            return data
        bit = OF_A_MAC.get(data[3:5])
        if bit is None:
            own = self._maker(data[:3]) + self._draw("guid", data, 5)
        else:
            mac = self.mac(bytes([data[0] ^ bit]) + data[1:3] + data[5:])
            own = bytes([mac[0] ^ bit]) + mac[1:3] + data[3:5] + mac[3:]
        self._seen("guid", data.hex(":", 2), own.hex(":", 2))
        return own

    def serial(self, text: str, kind: str = "serial") -> str:
        """Return a stand-in of the same form: digits for digits, letters for letters."""
        drawn = self._draw(kind, text.lower().encode(), len(text))
        return self._seen(kind, text, "".join(map(_alike, text, drawn)))

    def name(self, text: str, kind: str = "name") -> str:
        """Return the stand-in of a host's, user's or switch's name."""
        return self._seen(kind, text, f"name-{self._draw('name', text.lower().encode(), 4).hex()}")

    def _replace(self, match: re.Match[str]) -> str:
        text, kind = match[0], match.lastgroup
        groups = {key: value for key, value in match.groupdict().items() if value is not None}
        if groups.get("word"):
            return self.name(text) if self._words[text.lower()] == "name" else self.serial(text)
        if "kept" in groups or text in self.kept:
            return text
        if "serial" in groups:
            return groups["label"] + self.serial(groups["serial"])
        if "first" in groups:
            both = [self.text(groups[key]) for key in ("first", "last")]
            with contextlib.suppress(ValueError):
                both = [str(own) for own in sorted(map(ipaddress.ip_address, both))]
            return "-".join(both)
        if "uuid" in groups or "id" in groups:
            drawn = iter(self._draw("id", text.lower().replace("-", "").encode(), 32))
            return self._seen("id", text, "".join(char if char == "-" else HEX[next(drawn) % 16] for char in text))
        if "four" in groups or "colons" in groups:
            return self._written(groups)
        digits = re.sub(r"^0x|[^0-9a-fA-F]", "", text)
        data = bytes.fromhex(digits)
        if "ipoib" in groups:
            return (data[:4] + self.packed(data[4:])).hex(":")
        if "inet6" in groups:
            return self.packed(data).hex()
        own = (self.mac(data) if len(data) == 6 else self.guid(data)).hex()
        own = own.upper() if digits.isupper() else own
        digit = iter(own)
        # The same marks between the digits.
        body = text[2:] if kind == "number" else text
        return text[: len(text) - len(body)] + "".join(next(digit) if char.lower() in HEX else char for char in body)

    def _written(self, groups: dict[str, str]) -> str:
        """Return an address in the form in which it was written, or a GUID that looks like one."""
        text = groups.get("four") or groups["colons"]
        more = groups.get("length") or groups.get("six") or ""
        count = groups.get("lengthn") or groups.get("sixn")
        if "cast" in groups and count:
            more += groups["cast"][: -len(groups["castip"])]
            with contextlib.suppress(ValueError):
                more += self.address(groups["castip"], int(count))
        if re.fullmatch(r"(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}", text):
            return self.guid(bytes.fromhex(text.replace(":", ""))).hex(":", 2) + more
        try:
            own = ipaddress.ip_address(self.address(text, int(count) if count else None))
        except ValueError:
            return text + more
        full = own.version == 6 and re.fullmatch(r"(?:[0-9a-fA-F]{4}:){7}[0-9a-fA-F]{4}", text)
        return (own.packed.hex(":", 2) if full else str(own)) + more

    def _address(self, own: t.Any) -> t.Any:
        if any(own.version == item.version and own in item for item in KEPT):
            return own
        if own.version == 6 and own.ipv4_mapped:
            return type(own)(0xFFFF << 32 | int(self._address(own.ipv4_mapped)))
        value, width, done = int(own), own.max_prefixlen, 0
        for place in range(width):
            bit = value >> (width - 1 - place) & 1
            done = done << 1 | (bit ^ self._flip(width, place, value >> (width - place)))
        low = own.packed[8:]
        if width == 128 and (low[3:5] in OF_A_MAC or own in LINKS):
            done = done >> 64 << 64 | int.from_bytes(self.guid(low), "big")
        return type(own)(done)

    def _flip(self, width: int, place: int, before: int) -> int:
        """Whether the bit behind these bits is turned: it depends on them alone, which keeps common prefixes.

        :param place: how many bits are before it.
        """
        # An address' place in its network stays, and with it what a gateway or the first address is.
        if place >= width - (8 if width == 32 else 16) or (place >= 64 and not before & (1 << (place - 64)) - 1):
            return 0
        if (width, place, before) in LEADING:
            return 0
        if (width, place - 1, before >> 1) in LEADING:
            return 1  # no address is its own stand-in
        return self._draw("bit", f"{width} {place} {before}".encode(), 1)[0] & 1

    def _maker(self, data: bytes) -> bytes:
        drawn = self._draw("maker", data, 3)
        # The two lowest bits say that it is no group's, and whether somebody chose it.
        return bytes([drawn[0] & 0xFC | data[0] & 3]) + drawn[1:]

    def _draw(self, kind: str, data: bytes, size: int) -> bytes:
        return hashlib.shake_256(self._key + kind.encode() + b"\0" + data).digest(size)

    def _seen(self, kind: str, real: str, own: str) -> str:
        self.found.setdefault(kind, {}).update({real: own} if real != own else {})
        return own


def _alike(char: str, byte: int) -> str:
    others = next((some for some in (HEX[:10], LETTERS, LETTERS.lower()) if char in some), char)
    return others[byte % len(others)]


def spellings(kind: str, real: str) -> set[str]:
    """Return the ways in which a value may be written, in lower case."""
    if kind not in ("address", "guid", "id", "mac"):
        return {real.lower()}
    data = ipaddress.ip_address(real).packed if kind == "address" else bytes.fromhex(re.sub("[:-]", "", real))
    # Four bytes without marks are any number.
    more = {data.hex(), "0x" + data.hex(), data.hex(":", 2), data.hex(".", 2)} if len(data) > 4 else set()
    return {real.lower(), data.hex(":"), data.hex("-"), *more}


def leaks(real: t.Mapping[str, t.Iterable[str]], places: t.Iterable[tuple[str, str]]) -> list[str]:
    """Return what is still there of real values, each as its kind and place: the values themselves are not repeated.

    It looks for the values, whatever stands around them, and knows none of the patterns above.

    :param real: values by kind.
    :param places: what each place is called, and its text.
    """
    wanted = {word: kind for kind, values in real.items() for value in values for word in spellings(kind, value)}
    wanted = {word: kind for word, kind in wanted.items() if len(word) > (5 if word.isdigit() else 2)}
    found = []
    for place, text in places:
        text = text.lower()
        words = {word for part in PARTS for word in re.findall(part, text)}
        words |= {word.strip(".:/-") for word in words}
        for run in re.findall(r"[0-9a-f]{13,}", re.sub("(?:en|wl|ww|ib|roce|rdma)x", " ", text)):
            words |= {run[place : place + size] for size in (12, 16, 32) for place in range(len(run) - size + 1)}
        found += sorted({f"{wanted[word]} in {place}" for word in words & wanted.keys()})
    return found


def real_of(known: t.Mapping[str, t.Iterable[str]], scrub: Scrub) -> dict[str, set[str]]:
    """Return all real values: those that the host has been asked for, and those that were replaced.

    What stays as it is on purpose is none: `scrub` has no stand-in for it.

    :param known: by kind.
    """
    found = {kind: set(values) for kind, values in scrub.found.items() if kind != "label"}
    for kind, values in known.items():
        for value in values:
            with contextlib.suppress(ValueError):
                if (kind == "address" and scrub.address(value) == value) or (kind == "name" and value.lower() in KNOWN):
                    continue
                found.setdefault(kind, set()).add(value)
    return found


def refuse(found: list[str]) -> None:
    """Refuse what real values were found in.

    :raises RdmaError: with the places, and not the values.
    """
    if found:
        raise RdmaError(
            f"The record still has something real in {len(found)} places: {'; '.join(found[:10])}.",
            "Nothing was kept. Run again: each run draws other stand-ins, and one may equal a real value. If it stays,"
            " report these places. [record_leaks]",
        )


def parts_of(name: str) -> set[str]:
    """Return a host's name with its first part and its domain; an address is none."""
    first, _dot, domain = name.partition(".")
    return set() if re.fullmatch(r"[\d.]+|.*:.*", name) else {name, first, *([domain] if "." in domain else ())}
