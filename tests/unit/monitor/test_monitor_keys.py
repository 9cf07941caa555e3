"""Keys of the store: golden values, and nothing that one id could do to another's."""

from __future__ import annotations

import pytest

from mragaudit.monitor.keys import (
    UserKeys,
    decode_document,
    encode_document,
    encode_name,
    encode_query,
    secret_key,
    size_key,
    tenant_key,
    user_hash,
)


def test_a_users_hash_stays_the_same_for_the_same_secret() -> None:
    """HMAC-SHA-256 with key `k` over 00000001, `t`, `u`: its first 15 bytes in URL-safe base 64."""
    assert user_hash(b"k", tenant="t", user="u") == "mFKQZLvIsYrDe_uWk-vC"


def test_another_secret_gives_another_hash() -> None:
    assert user_hash(b"k", tenant="t", user="u") != user_hash(b"K", tenant="t", user="u")


def test_tenant_and_user_are_not_run_together() -> None:
    assert user_hash(b"k", tenant="ab", user="c") != user_hash(b"k", tenant="a", user="bc")


@pytest.mark.parametrize("name", ["kb", "KB-2.final_v1", "0", "a" * 48])
def test_a_harmless_name_stays_readable(name: str) -> None:
    assert encode_name(name) == f"n.{name}"


@pytest.mark.parametrize("name", ["", " ", "a:b", "{a}", "a b", ".kb", "-kb", "a" * 49, "é", "a\n", "a\0", "*"])
def test_any_other_name_is_a_digest(name: str) -> None:
    encoded = encode_name(name)
    assert encoded.startswith("h.")
    assert len(encoded) == 22
    assert set(encoded[2:]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_name_cannot_pass_for_the_digest_of_another() -> None:
    assert encode_name(encode_name("a:b")) != encode_name("a:b")


@pytest.mark.parametrize("doc_id", ["a", "d:a", "h:a", "+", "x" * 64, "é" * 32])
def test_a_document_id_of_up_to_64_bytes_is_itself(doc_id: str) -> None:
    assert encode_document(doc_id) == f"d:{doc_id}"
    assert decode_document(encode_document(doc_id)) == doc_id


@pytest.mark.parametrize("doc_id", ["x" * 65, "é" * 33])
def test_a_longer_document_id_is_a_digest_and_said_to_be_one(doc_id: str) -> None:
    encoded = encode_document(doc_id)
    assert encoded.startswith("h:")
    assert len(encoded) == 22
    assert decode_document(encoded) == f"(digest {encoded[2:]})"


def test_a_document_cannot_pass_for_the_digest_of_another() -> None:
    assert encode_document(encode_document("x" * 65)) != encode_document("x" * 65)


@pytest.mark.parametrize("query_id", ["", "q", "x" * 10_000, "é"])
def test_a_query_id_has_a_fixed_size(query_id: str) -> None:
    assert len(encode_query(query_id)) == 16


def test_keys_are_as_documented() -> None:
    keys = UserKeys("p", "HASH")
    assert keys.key("vol") == "p:{u.HASH}:vol"
    assert keys.of_collection("cov", "n.kb") == "p:{u.HASH}:cov:n.kb"
    assert size_key("p", "n.kb") == "p:{c.n.kb}:size"
    assert tenant_key("p", tenant="n.default", name="active") == "p:{t.n.default}:active"
    assert secret_key("p") == "p:secret"
