"""Packed texts are told apart and found again, whatever they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pg_mdistinct.core.texts import TextIndex, Texts, digits, with_zero_bytes

# PostgreSQL's texts hold any character but this one; few letters make equal texts likely.
texts = st.lists(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=4)
    | st.text("ab", max_size=3)
)
seeds = st.integers(min_value=0, max_value=2**64 - 1)


@given(texts)
def test_texts_come_back(given: list[str]) -> None:
    packed = Texts.of(given)
    assert packed.decoded() == given
    backwards = packed.take(np.arange(len(given))[::-1])
    assert backwards.decoded() == given[::-1]
    again = Texts.separated(backwards.joined(), len(given))
    assert again.decoded() == given[::-1]


@given(texts, st.sampled_from(["\x01", "b", "ab", "aab", "\x01ab"]))
def test_what_stands_between_texts_becomes_a_zero_byte(given: list[str], between: str) -> None:
    packed = between.join(given).encode()
    assert with_zero_bytes(packed, between.encode()) == packed.replace(between.encode(), b"\0")


@given(texts)
def test_a_part_is_packed_without_the_rest(given: list[str]) -> None:
    middle = np.arange(len(given) // 3, len(given) * 2 // 3)
    assert (
        Texts.of(given).take(middle).joined()
        == "\0".join(given[len(given) // 3 : len(given) * 2 // 3]).encode()
    )


@given(texts, texts, seeds)
def test_equal_texts_are_found(given: list[str], wanted: list[str], seed: int) -> None:
    index = TextIndex(Texts.of(given), seed)
    assert index.first.tolist() == [given.index(text) for text in given]
    expected = [given.index(text) if text in given else -1 for text in wanted]
    assert index.find(Texts.of(wanted)).tolist() == expected


@given(st.lists(st.integers(min_value=0, max_value=2**31 - 1)))
def test_numbers_are_written_in_digits(given: list[int]) -> None:
    written = digits(np.array(given, dtype=np.int64), ",")
    assert [int(number) for number in written.split(",") if number] == given
    assert len(set(map(len, written.split(",")))) == 1
