"""What a server offers and answers, as an agent has it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from gateway.messages import File, Image
from tests.platforms.mcp.play import PNG, by_name, call, serving, settings


async def test_names_hints_and_schemas_become_those_of_a_tool(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        tools = by_name(servers)
        add, write, put = (tools[f"mcp__house__{name}"] for name in ("add", "write", "put"))
        assert (add.safe, add.idempotent, add.unasked) == (True, True, False)
        assert (write.safe, write.idempotent, write.unasked) == (False, False, False)
        assert (put.safe, put.idempotent) == (False, True)
        assert add.description == "Add two numbers."
        assert set(add.input_schema["properties"]) == {"a", "b"}
        assert add.problems({"a": 1}) != []


async def test_the_hints_of_a_trusted_server_open_the_gate_for_what_reads_only(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a", trust=True), folder=tmp_path) as servers:
        tools = by_name(servers)
        assert [name for name, tool in tools.items() if tool.unasked] == [
            "mcp__house__add",
            "mcp__house__die_reading",
            "resource_list",
            "resource_read",
        ]


async def test_an_agent_has_the_servers_and_tools_that_it_names(tmp_path: Path) -> None:
    one, two = settings(tmp_path / "a"), settings(tmp_path / "b", "two", tools=("add", "d*"))
    async with serving(one, two, folder=tmp_path) as servers:
        assert {n for n in by_name(servers) if n.startswith("mcp__two")} == {
            f"mcp__two__{name}" for name in ("add", "die", "die_reading", "die_after")
        }
        assert set(by_name(servers, "house/add", "two/die")) == {"mcp__house__add", "mcp__two__die"}
        assert "resource_read" in by_name(servers, "two")
        assert "resource_read" not in by_name(servers, "two/add")


async def test_the_tools_are_the_same_object_until_they_change(tmp_path: Path) -> None:
    from gateway.tools.mcp import AgentTools

    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        source = AgentTools(servers, None)
        assert source.tools() is source.tools()


@pytest.mark.parametrize("era", ["newer", "legacy"])
async def test_a_list_that_changes_in_a_call_counts_from_the_next_step_on(tmp_path: Path, era: str) -> None:
    async with serving(settings(tmp_path / "a", "house", era), folder=tmp_path) as servers:
        assert "mcp__house__grown" not in by_name(servers)
        assert (await call(servers, "mcp__house__grow")).text == "ok"
        assert "mcp__house__grown" in by_name(servers)
        assert (await call(servers, "mcp__house__grown")).text == "grown up"


async def test_the_list_is_read_anew_after_a_reconnect(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        await call(servers, "mcp__house__grow")
        assert "mcp__house__grown" in by_name(servers)
        with pytest.raises(Exception, match="went away"):
            await call(servers, "mcp__house__die")
        await call(servers, "mcp__house__add", {"a": 1, "b": 1})
        assert "mcp__house__grown" not in by_name(servers)


async def test_pictures_and_sounds_are_files_and_never_base64(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        output = await call(servers, "mcp__house__picture")
        picture, sound = output.parts
        assert isinstance(picture, Image)
        assert isinstance(sound, File)
        assert (tmp_path / picture.path).read_bytes() == PNG
        assert (tmp_path / sound.path).read_bytes() == b"RIFFxxxx"
        assert (picture.media_type, sound.media_type, sound.size) == ("image/png", "audio/wav", 8)
        assert output.text.startswith("look\n[image: image-2.png (image/png, 28 bytes)]")
        assert "iVBOR" not in output.text


async def test_structured_content_errors_and_long_texts_arrive(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert "PATH" in json.loads((await call(servers, "mcp__house__environment")).text)
        failed = await call(servers, "mcp__house__fail")
        assert failed.is_error
        assert "it went wrong" in failed.text
        assert len((await call(servers, "mcp__house__big", {"size": 3_000_000})).text) == 3_000_000
        cut = await call(servers, "mcp__house__big", {"size": 5_000_000})
        assert cut.text.endswith("[cut here]")
        assert len(cut.text) < 4_000_100


async def test_a_process_gets_what_it_needs_and_no_secret_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-servers-0123456789")
    folder = tmp_path / "a"
    async with serving(settings(folder, env={"TEAM": "ops"}, cwd=tmp_path), folder=tmp_path) as servers:
        given = json.loads((await call(servers, "mcp__house__environment")).text)
        assert given["TEAM"] == "ops"
        assert "ANTHROPIC_API_KEY" not in given
        assert set(given) <= {
            *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER"),
            *("LOGNAME", "SHELL", "TERM", "TEAM", "PWD"),
        }


async def test_resources_are_listed_in_lines_and_read_by_address(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), settings(tmp_path / "b", "two"), folder=tmp_path) as servers:
        listed = (await call(servers, "resource_list")).text
        assert listed.startswith("house:\n- file:///picture.png  picture (image/png): A picture.\n")
        assert "- template: note://{name}  a_note (text/plain): A note by its name." in listed
        assert "\n\ntwo:\n" in listed
        read = await call(servers, "resource_read", {"server": "two", "uri": "note://x"})
        assert read.text == "the note x"
        (picture,) = (
            await call(servers, "resource_read", {"server": "house", "uri": "file:///picture.png"})
        ).parts
        assert (tmp_path / picture.path).read_bytes() == PNG
        with pytest.raises(Exception, match="'two' reports an error"):
            await call(servers, "resource_read", {"server": "two", "uri": "no://such"})


LISTED = """
import json, sys
TOOLS = {tools}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                  "serverInfo": {{"name": "x", "version": "1"}}}}
    elif asked.get("method") == "tools/list":
        at = int(asked.get("params", {{}}).get("cursor", 0))
        result = {{"tools": TOOLS[at : at + 2]}}
        if at + 2 < len(TOOLS):
            result["nextCursor"] = str(at + 2)
    elif asked.get("method") == "tools/call":
        result = {{"content": [{{"type": "text", "text": asked["params"]["name"]}}]}}
    elif "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"],
                           "error": {{"code": -32601, "message": "no such method"}}}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


async def test_c064_c065_odd_names_pages_and_bad_schemas(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.platforms.mcp.play import script

    plain = {"type": "object"}
    names = [
        "search.documents.by_semantic_similarity",
        "search/documents.by_semantic_similarity",
        "find people",
    ]
    tools = [{"name": name, "inputSchema": plain} for name in names]
    tools += [
        {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such type"}}}},
        {"name": "not an object", "inputSchema": {"type": "string"}},
        {"name": "x" * 200, "inputSchema": plain},
        {"name": names[0], "inputSchema": plain},
        {"name": "last", "inputSchema": plain},
    ]
    server = script(LISTED.format(tools=tools), name="enterprise-knowledge-base-production")
    with caplog.at_level(logging.WARNING, logger="gateway"):
        async with serving(server, folder=tmp_path) as servers:
            full = [f"mcp__enterprise-knowledge-base-production__{name}" for name in [*names, "last"]]
            assert list(by_name(servers)) == full
            assert [(await call(servers, name)).text for name in full] == [*names, "last"]
    left_out = [r.getMessage() for r in caplog.records if "left out" in r.getMessage()]
    assert len(left_out) == 4, left_out
