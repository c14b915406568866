"""The session's folder: nothing leads out of it, and what is written is there whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ToolError
from gateway.messages import Json
from gateway.tools import files
from gateway.tools.base import CallContext
from gateway.tools.files import Room, file_tools
from gateway.tools.rooted import entries, read_bytes, steps, write_bytes

CONTEXT = CallContext(call_id="c1", session_id="s_1", turn_id="s_1.1", idempotency_key="s_1:c1")


class Sent:
    """What people have attached."""

    def __init__(self, *entries: Json) -> None:
        self._entries = entries

    async def of(self, session_id: str) -> Sequence[Json]:
        return self._entries if session_id == "s_1" else ()


class Desk:
    """The tools over a folder."""

    def __init__(self, data_dir: Path, *sent: Json) -> None:
        self.room = Room(data_dir, Sent(*sent))
        self.tools = {tool.name: tool for tool in file_tools(self.room)}
        self.folder = data_dir / "sessions" / "s_1"

    async def do(self, name: str, context: CallContext = CONTEXT, **args: Any) -> str:
        assert self.tools[name].problems(args) == []
        outcome = await self.tools[name].handler(args, context)
        assert isinstance(outcome, str)
        return outcome


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


OUTSIDE = [
    *("../secret.txt", "a/../../secret.txt", "/etc/passwd", "~/x", "..", ".", "", "a\\..\\b", "a\0b", "a\nb"),
    *("\u202etxt.exe", "a\x7fb", "a\u200bb"),
    *("/".join("a" * 13), "x" * 401),
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_could_lead_out_is_no_path(path: str) -> None:
    with pytest.raises(ToolError):
        steps(path)


@given(st.text(max_size=60))
def test_steps_never_hold_what_leads_out(path: str) -> None:
    try:
        parts = steps(path)
    except ToolError:
        return
    assert parts and not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)


def test_only_reading_is_safe_and_writing_may_be_repeated(desk: Desk) -> None:
    assert [(t.name, t.safe, t.idempotent) for t in desk.tools.values()] == [
        ("list_files", True, False),
        ("read_file", True, False),
        ("write_file", False, True),
    ]


async def test_what_is_written_is_listed_and_read_again(desk: Desk) -> None:
    assert await desk.do("list_files") == "There are no files yet."
    assert await desk.do("write_file", path="plan/a.md", content="# größe\n") == "wrote 10 bytes to plan/a.md"
    assert await desk.do("write_file", path="./plan//a.md", content="new") == "wrote 3 bytes to ./plan//a.md"
    assert await desk.do("list_files") == "plan/a.md (3 bytes)"
    assert await desk.do("read_file", path="plan/a.md") == "new"
    assert stat.S_IMODE((desk.folder / "plan/a.md").stat().st_mode) == 0o600
    with pytest.raises(ToolError, match="there is no file"):
        await desk.do("read_file", path="plan/b.md")
    with pytest.raises(ToolError, match="is no file"):
        await desk.do("read_file", path="plan")


async def test_a_long_text_comes_in_pieces_that_join_to_the_whole(desk: Desk) -> None:
    text = "".join(f"line {n}\n" for n in range(6_000))
    await desk.do("write_file", path="long.txt", content=text)
    pieces, offset = "", 0
    while offset < len(text):
        head, _, piece = (await desk.do("read_file", path="long.txt", offset=offset)).partition("\n")
        assert head == f"[characters {offset} to {offset + len(piece)} of {len(text)}]"
        pieces, offset = pieces + piece, offset + len(piece)
    assert pieces == text


async def test_binary_is_told_apart_from_text(desk: Desk) -> None:
    write_bytes(desk.folder, "a.png", b"\x89PNG\0")
    write_bytes(desk.folder, "b.txt", b"\xff\xfe")
    write_bytes(desk.folder, "c.txt", b"a\0b")
    assert await desk.do("read_file", path="a.png") == "a.png is no text: 5 bytes, image/png"
    assert "is no text" in await desk.do("read_file", path="b.txt")
    assert "is no text" in await desk.do("read_file", path="c.txt")


async def test_links_and_pipes_lead_nowhere(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    desk.folder.mkdir(parents=True)
    (desk.folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (desk.folder / "up").symlink_to(tmp_path)
    os.mkfifo(desk.folder / "pipe")
    for path in ("link.txt", "up/secret.txt", "pipe"):
        with pytest.raises(ToolError):
            await desk.do("read_file", path=path)
    for path in ("link.txt", "up/secret.txt", "pipe", "up/new/file.txt"):
        with pytest.raises(ToolError):
            await desk.do("write_file", path=path, content="overwritten")
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert not (tmp_path / "new").exists()
    assert await desk.do("list_files") == "There are no files yet."


async def test_another_sessions_folder_is_out_of_reach(desk: Desk) -> None:
    await desk.do("write_file", path="mine.txt", content="mine")
    other = CallContext(call_id="c1", session_id="s_2", turn_id="s_2.1", idempotency_key="s_2:c1")
    assert await desk.do("list_files", other) == "There are no files yet."
    for session in ("", "../s_1", "a/b", "."):
        nowhere = CallContext(call_id="c1", session_id=session, turn_id="", idempotency_key="")
        with pytest.raises(ToolError, match="outside of a session"):
            await desk.do("read_file", nowhere, path="mine.txt")


async def test_sizes_and_counts_have_limits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="a file has at most 1,000,000"):
        await desk.do("write_file", path="a", content="x" * 1_000_001)
    monkeypatch.setattr(files, "MOST_FILES", 2)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    await desk.do("write_file", path="a", content="12345")
    with pytest.raises(ToolError, match="at most 10 bytes together"):
        await desk.do("write_file", path="b", content="123456")
    await desk.do("write_file", path="b", content="12345")
    with pytest.raises(ToolError, match="2 files already"):
        await desk.do("write_file", path="c", content="")
    await desk.do("write_file", path="b", content="54321")  # over itself
    with pytest.raises(ToolError, match="at most 3 can be read"):
        read_bytes(desk.folder, "a", 3)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes(tmp_path, "a.txt", b"old")

    def fail(*args: Any, **more: Any) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(ToolError):
        write_bytes(tmp_path, "a.txt", b"new")
    assert read_bytes(tmp_path, "a.txt", 10) == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a.txt"]  # noqa: PTH208
    assert [entry.path for entry in entries(tmp_path, 10)] == ["a.txt"]


# ---- attachments

PDF: Json = {"path": "files/ab12.pdf", "name": "report.pdf", "media_type": "application/pdf"}
SECOND: Json = {"path": "files/cd34.pdf", "name": "../report.pdf", "media_type": "application/pdf"}
NOTE: Json = {"path": "files/ef56.txt", "name": "note.txt", "media_type": "text/plain"}
GONE: Json = {"path": "files/none.txt", "name": "gone.txt", "media_type": "text/plain"}


async def test_what_people_have_attached_is_read_and_not_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PDF, SECOND, NOTE, GONE)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "ab12.pdf").write_bytes(b"%PDF\0")
    (tmp_path / "files" / "cd34.pdf").write_bytes(b"%PDF\0two")
    (tmp_path / "files" / "ef56.txt").write_text("hello")
    (tmp_path / "files" / "other.txt").write_text("of another session")
    assert (await desk.do("list_files")).splitlines() == [
        "attachments/report.pdf (5 bytes, application/pdf)",
        "attachments/report-2.pdf (8 bytes, application/pdf)",
        "attachments/note.txt (5 bytes, text/plain)",
        "attachments/gone.txt (not here, text/plain)",
    ]
    assert await desk.do("read_file", path="attachments/note.txt") == "hello"
    assert await desk.do("read_file", path="files/ef56.txt") == "hello"  # as its message names it
    assert "is no text: 8 bytes" in await desk.do("read_file", path="attachments/report-2.pdf")
    for path in ("files/other.txt", "attachments/other.txt", "attachments/gone.txt", "attachments"):
        with pytest.raises(ToolError):
            await desk.do("read_file", path=path)
    with pytest.raises(ToolError, match="not changed"):
        await desk.do("write_file", path="attachments/note.txt", content="x")


# ---- previews


async def test_the_preview_shows_what_writing_would_change(desk: Desk) -> None:
    write = desk.tools["write_file"]
    new = write.previewed({"path": "a.txt", "content": "one\ntwo\n"}, "s_1")
    assert new.kind == "diff" and "+one" in new.text and "(no such file)" in new.text
    await desk.do("write_file", path="a.txt", content="one\ntwo\n")
    changed = write.previewed({"path": "a.txt", "content": "one\nthree\n"}, "s_1")
    assert "-two" in changed.text.splitlines() and "+three" in changed.text.splitlines()
    assert "changes nothing" in write.previewed({"path": "a.txt", "content": "one\ntwo\n"}, "s_1").text
    assert "too long" in write.previewed({"path": "a.txt", "content": "x\n" * 2_000}, "s_1").text
    write_bytes(desk.folder, "b.bin", b"\0")
    assert "no text" in write.previewed({"path": "b.bin", "content": "x"}, "s_1").text
    assert "an empty file" in write.previewed({"path": "c.txt", "content": ""}, "s_1").text
    assert "failed" in write.previewed({"path": "a.txt", "content": "x"}, "").text
