"""Frames: whatever the pieces, the bodies come out as they went in; anything else is refused."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.worker.frames import HEAD, LARGEST, BrokenFrame, Unpacker, packed, read_frame, write_all

bodies = st.lists(st.binary(max_size=300), max_size=8)


@given(bodies, st.lists(st.integers(1, 40), min_size=1))
def test_bodies_survive_any_cut_into_pieces(wanted: list[bytes], cuts: list[int]) -> None:
    stream, frames, place = b"".join(map(packed, wanted)), Unpacker(), 0
    found: list[bytes] = []
    while place < len(stream):
        size = cuts[len(found) % len(cuts)]
        found += frames.feed(stream[place : place + size])
        place += size
    assert found == wanted
    assert not frames.midway


@given(bodies, st.integers(1, 50))
async def test_the_reader_gives_the_same_bodies_and_hears_a_cut(wanted: list[bytes], lost: int) -> None:
    stream = b"".join(map(packed, wanted))
    reader = asyncio.StreamReader()
    reader.feed_data(stream)
    reader.feed_eof()
    assert [await read_frame(reader) for _ in wanted] == wanted
    assert await read_frame(reader) is None
    cut = asyncio.StreamReader()
    last = packed(b"x" * 50)
    cut.feed_data(last[: len(last) - lost])
    cut.feed_eof()
    with pytest.raises(BrokenFrame, match="middle"):
        await read_frame(cut)


def test_a_frame_too_large_is_refused_on_both_sides() -> None:
    with pytest.raises(BrokenFrame, match="the most is"):
        packed(bytes(LARGEST + 1))
    with pytest.raises(BrokenFrame, match="is announced"):
        list(Unpacker().feed((LARGEST + 1).to_bytes(HEAD, "big")))


def test_writing_goes_on_until_everything_is_out() -> None:
    reading, writing = os.pipe()
    data, got = os.urandom(400_000), bytearray()

    def read() -> None:
        while piece := os.read(reading, 65536):
            got.extend(piece)

    thread = threading.Thread(target=read)
    thread.start()
    write_all(writing, data)
    os.close(writing)
    thread.join()
    os.close(reading)
    assert bytes(got) == data
