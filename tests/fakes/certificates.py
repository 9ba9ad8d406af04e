"""A certificate authority of a test's own, and what it signs."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=1)


class Authority:
    """Signs for 127.0.0.1 and for clients; its files lie in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("test authority")
        whole = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = self._written("ca", whole.public_bytes(Encoding.PEM))

    def serving(self, *, clients_only: bool = False) -> ssl.SSLContext:
        """Return what a server on 127.0.0.1 needs; with ``clients_only`` it lets in none without a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        context.load_cert_chain(*self._issue("server", alternative))
        if clients_only:
            context.load_verify_locations(self.file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self) -> tuple[Path, Path]:
        """Return the files of a client's certificate and key."""
        return self._issue("client", x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))

    def _issue(self, name: str, extension: x509.ExtensionType) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_named(name), key, extension, critical=False)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return self._written(name, certificate.public_bytes(Encoding.PEM)), self._written(f"{name}-key", plain)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, *, critical: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _LIFE)
            .not_valid_after(now + _LIFE)
            .add_extension(extension, critical=critical)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if critical:  # the authority itself; strict verifiers want its purpose stated
            usage = dict.fromkeys(_USES, False) | {"key_cert_sign": True, "crl_sign": True}
            builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def _written(self, name: str, content: bytes) -> Path:
        path = self._directory / f"{name}.pem"
        path.write_bytes(content)
        return path


_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
