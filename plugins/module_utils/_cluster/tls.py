# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make keys and certificates for services in a cluster, and check existing certificates."""

from __future__ import annotations

import base64
import datetime
import traceback
import typing as t

CRYPTOGRAPHY_ERROR: str | None = None
try:
    from cryptography import __version__, x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.x509.oid import ExtendedKeyUsageOID

    # Before 41 it can neither check an issuer nor compare keys: each run would renew each certificate.
    if int(__version__.partition(".")[0]) < 41:
        CRYPTOGRAPHY_ERROR = f"cryptography {__version__} is older than 41"
except ImportError:
    CRYPTOGRAPHY_ERROR = traceback.format_exc()

DAYS = 3650
# A certificate that expires within so many days is renewed.
RENEW_DAYS = 60
KEYS = ("ca.crt", "tls.crt", "tls.key")


def dns_names(service: str, namespace: str) -> list[str]:
    """Return the names under which the API server calls a service."""
    return [service, *(f"{service}.{namespace}{end}" for end in ("", ".svc", ".svc.cluster.local"))]


def make(service: str, namespace: str) -> dict[str, str]:
    """Return the data of a TLS Secret: a self-signed certificate that can sign no other."""
    now = datetime.datetime.now(datetime.timezone.utc)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{service}.{namespace}.svc"[:64])])
    made = x509.CertificateBuilder().issuer_name(name).subject_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
    made = made.not_valid_after(now + datetime.timedelta(days=DAYS))
    names = x509.SubjectAlternativeName([x509.DNSName(text) for text in dns_names(service, namespace)])
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (names, False),
    ):
        made = made.add_extension(extension, critical=critical)
    public = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {name: base64.b64encode(text).decode() for name, text in zip(KEYS, (public, public, private))}


def fault(have: dict[str, str], service: str, namespace: str) -> str:
    """Return why the certificate in the data of a Secret must be renewed, or nothing."""
    if missing := [key for key in KEYS if not have.get(key)]:
        return f"{', '.join(missing)} missing"
    try:
        root, public, private = (base64.b64decode(have[key]) for key in KEYS)
        server = x509.load_pem_x509_certificate(public)
        authority = x509.load_pem_x509_certificate(root)
        key = serialization.load_pem_private_key(private, None)
        found = server.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = found.value.get_values_for_type(x509.DNSName)
        server.verify_directly_issued_by(authority)
    except Exception as exc:
        return f"not readable ({type(exc).__name__})"
    if key.public_key() != server.public_key():
        return "key and certificate do not belong together"
    if lacking := sorted(set(dns_names(service, namespace)) - set(names)):
        return f"not for {', '.join(lacking)}"
    end = min(_end(server), _end(authority))
    if end < datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=RENEW_DAYS):
        return f"valid only until {end:%Y-%m-%d}"
    return ""


def _end(certificate: t.Any) -> datetime.datetime:
    # Older releases of cryptography give a time without a zone.
    end = getattr(certificate, "not_valid_after_utc", None)
    if end is None:
        end = certificate.not_valid_after.replace(tzinfo=datetime.timezone.utc)
    return t.cast("datetime.datetime", end)


def make_ssh_key() -> tuple[bytes, bytes]:
    """Return a private and a public key in the formats of OpenSSH."""
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return private, key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
