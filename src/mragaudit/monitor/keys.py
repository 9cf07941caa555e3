"""Keys of the store: untrusted ids encoded, one hash tag a user, so that a user's keys share a cluster slot.

{prefix}:{u.<user hash>}:vol|ret|lev|sens|base|state|colls|held|allow  one user
{prefix}:{u.<user hash>}:cov|own|hll:<collection>[:<slot>]             one user in one collection
{prefix}:{c.<collection>}:size                                         a collection's size
{prefix}:{t.<tenant hash>}:active                                      a tenant's users by last query
{prefix}:{t.<tenant hash>}:seen:<collection>[:<slot>]                  what all of them retrieved
{prefix}:alerts                                                        stream of alerts
{prefix}:secret                                                        key of the user hashes, unless configured
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache

HASH_BYTES = 15
QUERY_BYTES = 12
READABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
READABLE_DOCUMENT_BYTES = 64
CACHED_NAMES = 1_024


def user_hash(secret: bytes, *, tenant: str, user: str) -> str:
    """Return the keyed hash (HMAC-SHA-256, 120 bits) that stands for a user in keys, logs and sinks."""
    message = len(tenant.encode()).to_bytes(4, "big") + tenant.encode() + user.encode()
    return _text(hmac.new(secret, message, hashlib.sha256).digest()[:HASH_BYTES])


def digest(text: str, *, size: int = HASH_BYTES) -> str:
    """Return a short digest of an id of any length and alphabet."""
    return _text(hashlib.blake2b(text.encode(), digest_size=size).digest())


@lru_cache(maxsize=CACHED_NAMES)
def encode_name(name: str) -> str:
    """Return an id of a collection or tenant as part of a key: readable where it is harmless, else a digest."""
    return f"n.{name}" if READABLE.fullmatch(name) else f"h.{digest(name)}"


def encode_document(doc_id: str) -> str:
    """Return a document id as a set member: itself up to 64 bytes, else a digest."""
    return f"d:{doc_id}" if len(doc_id.encode()) <= READABLE_DOCUMENT_BYTES else f"h:{digest(doc_id)}"


def decode_document(member: str) -> str:
    """Return the document id of a set member; a digest is marked as one."""
    return member[2:] if member.startswith("d:") else f"(digest {member[2:]})"


def encode_query(query_id: str) -> str:
    """Return a query id as a set member of fixed size (96 bits: it only has to be unique)."""
    return digest(query_id, size=QUERY_BYTES)


@dataclass(frozen=True, slots=True)
class UserKeys:
    """The keys of one user."""

    prefix: str
    user: str
    """The user's hash."""

    def key(self, name: str) -> str:
        """Return the key of one of the user's structures."""
        return f"{self.prefix}:{{u.{self.user}}}:{name}"

    def of_collection(self, name: str, collection: str) -> str:
        """Return the key of a structure that exists once a collection; `collection` is encoded already."""
        return self.key(f"{name}:{collection}")


def size_key(prefix: str, collection: str) -> str:
    """Return the key of a collection's size; `collection` is encoded already."""
    return f"{prefix}:{{c.{collection}}}:size"


def tenant_key(prefix: str, *, tenant: str, name: str) -> str:
    """Return the key of one of a tenant's structures; `tenant` is encoded already."""
    return f"{prefix}:{{t.{tenant}}}:{name}"


def secret_key(prefix: str) -> str:
    """Return the key under which the secret of user hashes is kept when none is configured."""
    return f"{prefix}:secret"


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
