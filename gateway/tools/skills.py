"""Skills: folders with a SKILL.md that say how something is done here.

The layout is the open Agent Skills format: YAML front matter with a name, equal to the folder's, and a
description; below it Markdown. The model sees an index of them in its system prompt, and reads a body
with the tool `Skill` when it needs one. Nothing in a skill is run by reading it.

The index is made once, when the program starts, so that the prompt stays the same byte for byte; bodies
are read from disk whenever they have changed.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gateway.errors import ConfigError, ToolError
from gateway.messages import Json
from gateway.tools.base import CallContext, Tool
from gateway.tools.rooted import entries, read_bytes

SKILL_TOOL = "Skill"
FILE = "SKILL.md"
MOST_BYTES = 256 * 1024  # of a SKILL.md
MOST_FILE_BYTES = 1024 * 1024  # of another file of a skill
MOST_FILES_LISTED = 50
CHARACTERS = 4  # of one token, roughly
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_FIELDS: Final = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Skill:
    """One skill. `folder` is absolute, links followed. Its body is kept until the file changes."""

    name: str
    description: str
    folder: Path
    _body: str = field(default="", repr=False)
    _stamp: tuple[int, int, int] = (0, 0, 0)

    def body(self) -> str:
        """The Markdown below the front matter, as it is on disk now. Raises ToolError."""
        path = self.folder / FILE
        try:
            there = path.stat()
        except OSError as error:
            raise ToolError(f"the skill {self.name!r} is gone: its {FILE} cannot be read") from error
        stamp = (there.st_mtime_ns, there.st_size, there.st_ino)
        if stamp != self._stamp:
            try:
                read = read_skill(path)
            except ConfigError as error:
                raise ToolError(f"the skill {self.name!r} cannot be read now: {error.problem}") from error
            self._body, self._stamp = read._body, stamp
        return self._body


# ---- reading folders


def load_skills(folders: Iterable[tuple[str, Path]]) -> tuple[Skill, ...]:
    """The skills of these folders (each with the key that names it), sorted by name. A folder is a skill
    itself, or holds folders that are. Raises ConfigError for the first problem."""
    found: dict[str, Skill] = {}
    for key, folder in folders:
        for path in _skill_files(key, folder):
            skill = read_skill(path)
            if skill.name in found:
                there = found[skill.name].folder
                raise ConfigError(str(path), f"there is a skill {skill.name!r} in {there} too", "rename one")
            found[skill.name] = skill
    return tuple(found[name] for name in sorted(found))


def _skill_files(key: str, folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(key, "there is no such folder", f"looked for {folder}")
    if (folder / FILE).is_file():
        return [folder / FILE]
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    for path in (folder, *inside):
        names = {entry.name for entry in path.iterdir()}
        wrong = next((name for name in names if name.lower() == FILE.lower() and name != FILE), None)
        if wrong and FILE not in names:
            raise ConfigError(str(path / wrong), "is not the name of a skill's file", f"rename it {FILE}")
    paths = [path / FILE for path in inside if (path / FILE).is_file()]
    if not paths:
        raise ConfigError(key, f"there is no skill in {folder}", f"a skill is a folder NAME with a {FILE}")
    return paths


def read_skill(path: Path) -> Skill:
    """One skill from its SKILL.md. Raises ConfigError that names the file and the mend."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(
                str(path), f"has more than {MOST_BYTES:,} bytes", "move details into files beside it"
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "is not UTF-8 text", "save it as UTF-8") from error
    head, body = _split(path, text)
    folder = path.parent.resolve()
    front = _front_matter(path, head)
    _check(path, front, {folder.name, path.parent.name})
    name, description = front["name"], " ".join(front["description"].split())
    return Skill(name=name, description=description, folder=folder, _body=body)


def _split(path: Path, text: str) -> tuple[str, str]:
    """The front matter and the body."""
    lines = text.replace("\r\n", "\n").split("\n")
    mend = "begin it with a line ---, then name: and description:, then a line ---"
    if lines[0].rstrip() != "---":
        raise ConfigError(str(path), "has no front matter", mend)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip("\n")
    raise ConfigError(str(path), "its front matter does not end", "close it with a line ---")


def _front_matter(path: Path, text: str) -> dict[str, Any]:
    import yaml  # here, because only who has skills pays for it

    try:
        _refuse_twice(path, yaml.compose(text, Loader=yaml.SafeLoader))
        front = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 2}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        mend = "a value with a colon or another sign in it is put into quotes"
        raise ConfigError(f"{path}{where}", f"its front matter is not YAML: {problem}", mend) from error
    if not isinstance(front, dict):
        raise ConfigError(str(path), "its front matter holds no keys", "write name: and description:")
    return front


def _refuse_twice(path: Path, node: Any) -> None:
    """YAML takes the last of two equal keys, and nobody would notice."""
    seen: set[str] = set()
    for key, _ in node.value if getattr(node, "id", "") == "mapping" else ():
        if str(key.value) in seen:
            raise ConfigError(f"{path}, line {key.start_mark.line + 2}", f"{key.value}: is there twice")
        seen.add(str(key.value))


def _check(path: Path, front: dict[str, Any], folders: set[str]) -> None:
    where = str(path)
    name = front.get("name")
    if not isinstance(name, str) or not name.strip():
        mend = f"write name: {path.parent.name}" if name is None else "put it into quotes"
        raise ConfigError(where, "name is missing" if name is None else "name is no text", mend)
    if not _NAME.fullmatch(name) or len(name) > 64:
        mend = "1 to 64 of a-z, 0-9 and single hyphens between them"
        raise ConfigError(where, f"name: {name!r} is no name of a skill", mend)
    if name not in folders:
        folder = path.parent.name
        raise ConfigError(where, f"name: {name!r} is not its folder's name, {folder!r}", "make them the same")
    _text(where, front, "description", 1024, required=True)
    _text(where, front, "license", None)
    _text(where, front, "compatibility", 500)
    metadata = front.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise ConfigError(where, "metadata is no mapping", "write it as lines of key: value below metadata:")
    tools = front.get("allowed-tools")
    listed = isinstance(tools, list) and all(isinstance(one, str) for one in tools)
    if tools is not None and not isinstance(tools, str) and not listed:
        raise ConfigError(where, "allowed-tools is no list of names", "separate them with spaces")
    for key in sorted(map(str, front.keys() - _FIELDS)):
        close = difflib.get_close_matches(key, sorted(_FIELDS), n=1)
        meant = f", did you mean {close[0]}?" if close else ""
        _log.warning("%s: %s is no field of a skill and is not used%s", where, key, meant)


def _text(where: str, front: dict[str, Any], key: str, most: int | None, *, required: bool = False) -> None:
    value = front.get(key)
    if value is None and not required:
        return
    if value is None:
        raise ConfigError(where, f"{key} is missing", "say in one or two sentences what it does and when")
    if not isinstance(value, str):
        raise ConfigError(where, f"{key} is no text", "put it into quotes")
    if not value.strip():
        raise ConfigError(where, f"{key} is empty", "say in one or two sentences what it does and when")
    if most is not None and len(value) > most:
        raise ConfigError(where, f"{key} has {len(value)} characters", f"at most {most}")


# ---- the index

_HEAD = (
    f"Skills say how things are done here. When a task fits one, read it first with the tool {SKILL_TOOL} "
    "and follow it."
)
_BY_NAME = "Further skills, by name: "


def tokens(text: str) -> int:
    """An estimate, never below what it is for everyday English."""
    return -(-len(text) // CHARACTERS)


def index(skills: Sequence[Skill], budget: int) -> str:
    """The part of the system prompt that names the skills, of at most `budget` tokens: as many as fit with
    their description, then names alone, then how many are left. The same skills give the same bytes. Empty
    without skills, and where not even the head fits."""
    ordered = sorted(skills, key=lambda skill: skill.name)
    if not ordered:
        return ""
    room = budget * CHARACTERS
    whole = _index(ordered, len(ordered), len(ordered))
    if len(whole) <= room:
        return whole
    # As many descriptions as leave room for all other names; without any, as many names as fit.
    for described in range(len(ordered) - 1, -1, -1):
        text = _index(ordered, described, len(ordered))
        if len(text) <= room:
            return text
    for named in range(len(ordered) - 1, -1, -1):
        text = _index(ordered, 0, named)
        if len(text) <= room:
            return text
    return ""


def _index(ordered: Sequence[Skill], described: int, named: int) -> str:
    lines = [_HEAD, *(f"- {skill.name}: {skill.description}" for skill in ordered[:described])]
    names = ", ".join(skill.name for skill in ordered[described:named])
    if names:
        lines.append(f"{_BY_NAME}{names}")
    if left := len(ordered) - max(described, named):
        lines.append(f"{left} more: ask by name.")
    return "\n".join(lines)


# ---- arguments

_PLACE: Final = re.compile(
    r"\\(?P<kept>\$(?:ARGUMENTS\b|[1-9](?!\d)))|\$(?:(?P<all>ARGUMENTS)\b|(?P<one>[1-9])(?!\d))"
)


def with_arguments(body: str, args: str) -> str:
    """The body with `$ARGUMENTS` replaced by all of `args` and `$1` to `$9` by its words (quotes keep words
    together). A number without a word stays as it stands, and so does what follows a backslash, which
    goes. What was put in is not looked at again. Arguments that no place asks for come at the end."""
    words = _words(args)
    used = False

    def put(found: re.Match[str]) -> str:
        nonlocal used
        if found["kept"]:
            return found["kept"]
        if found["all"]:
            used = True
            return args
        place = int(found["one"]) - 1
        if place >= len(words):
            return found[0]
        used = True
        return words[place]

    text = _PLACE.sub(put, body)
    return text if used or not args.strip() else f"{text}\n\nARGUMENTS: {args}"


def _words(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:  # a quote that is not closed is a quote
        return args.split()


# ---- the tool


def skill_tool(skills: Sequence[Skill]) -> Tool:
    """The tool `Skill` over these skills."""
    known = {skill.name: skill for skill in skills}

    async def run(args: Json, context: CallContext) -> str:
        skill = known.get(args["skill"])
        if skill is None:
            close = difflib.get_close_matches(args["skill"], sorted(known), n=1)
            meant = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(sorted(known))}"
            raise ToolError(f"there is no skill {args['skill']!r}{meant}")
        file = args.get("file", "")
        if file:
            return await asyncio.to_thread(_read_file, skill, file)
        return await asyncio.to_thread(_read_body, skill, args.get("args", ""))

    return Tool(
        name=SKILL_TOOL,
        description="Read a skill: instructions for a kind of task. Follow what it says.",
        input_schema={
            "type": "object",
            "properties": {
                "skill": {"type": "string", "description": "the skill's name, as listed"},
                "args": {"type": "string", "default": "", "description": "what the skill is to work on"},
                "file": {
                    "type": "string",
                    "default": "",
                    "description": "instead of the instructions, a file of the skill that they mention, "
                    "such as references/guide.md",
                },
            },
            "required": ["skill"],
            "additionalProperties": False,
        },
        handler=run,
        safe=True,
        system="skill",
    )


def _read_body(skill: Skill, args: str) -> str:
    body = with_arguments(skill.body(), args)
    files = [entry.path for entry in entries(skill.folder, MOST_FILES_LISTED + 1) if entry.path != FILE]
    if not files:
        return body
    more = "" if len(files) <= MOST_FILES_LISTED else " and more"
    listed = ", ".join(files[:MOST_FILES_LISTED]) + more
    return (
        f"{body}\n\n[Files of this skill, read with {SKILL_TOOL}(skill={skill.name!r}, file=...): {listed}]"
    )


def _read_file(skill: Skill, path: str) -> str:
    data = read_bytes(skill.folder, path, MOST_FILE_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(f"{path!r} is no text: {len(data):,} bytes")
    return text
