# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A certificate for servers that live as long as a test, and the kubeconfig that names one."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
import tempfile

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def general_name(text: str) -> x509.GeneralName:
    """Return an address or a name as certificates have them."""
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


class Certificate:
    """A key and the certificate that signs itself; `text` and `secret` are PEM.

    :param also: addresses and names that it is for, beside 127.0.0.1.
    """

    def __init__(self, name: str, also: tuple[str, ...] = ()) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        today = datetime.datetime.now(datetime.UTC)
        names = [general_name(text) for text in ("127.0.0.1", *also)]
        made = (
            x509.CertificateBuilder()
            .subject_name(named)
            .issuer_name(named)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(today - datetime.timedelta(days=1))
            .not_valid_after(today + datetime.timedelta(days=30))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        self.text = made.public_bytes(pem).decode()
        form = serialization.PrivateFormat.PKCS8
        self.secret = key.private_bytes(pem, form, serialization.NoEncryption()).decode()

    def context(self) -> ssl.SSLContext:
        """Return a server's context with it."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as both:
            both.write(self.secret + self.text)
            both.flush()
            made.load_cert_chain(both.name)
        return made


def kubeconfig(name: str, url: str, authority: str, token: str) -> str:
    """Return the text of a kubeconfig.

    :param name: of the cluster, its user and the context.
    :param authority: the certificate to trust, in PEM.
    """
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority.encode()).decode()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return yaml.safe_dump(config)
