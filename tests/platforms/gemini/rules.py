"""What Gemini's API (v1beta) refuses, in its own words. Written apart from the adapter's own checks.

`refusal(body, model)` is None for a request that the API would take, else the message of its
INVALID_ARGUMENT. Where the real API is lenient, this is strict.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

TOP = {
    *("contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig"),
    *("cachedContent", "serviceTier", "store", "continuationToken"),
}
GENERATION = {
    *("maxOutputTokens", "temperature", "topP", "topK", "seed", "stopSequences", "candidateCount"),
    *("thinkingConfig", "responseMimeType", "responseSchema", "responseModalities", "mediaResolution"),
}
DATA = ("text", "functionCall", "functionResponse", "inlineData", "fileData")
PART = {*DATA, "thought", "thoughtSignature"}
INLINE = re.compile(r"image/(png|jpeg|webp|heic|heif)|application/pdf|audio/.+|video/.+|text/.+")
IN_RESPONSES = {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$")
BYPASS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
SCHEMA = {
    *("type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems"),
    *("properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern"),
    *("example", "anyOf", "propertyOrdering", "default", "minimum", "maximum"),
}
# What `parametersJsonSchema` is documented to hold.
JSON_SCHEMA = {
    *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items"),
    *("prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties"),
    *("additionalProperties", "required", "propertyOrdering", "default"),
}
TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
FORMATS = {
    "string": {"enum", "date-time"},
    "number": {"float", "double"},
    "integer": {"int32", "int64"},
}


class Refused(Exception):
    """The message of an INVALID_ARGUMENT."""


def signature(model: str, part: Json) -> str:
    """The signature that this server gives a part; good for that model and that part only."""
    signed = part.get("functionCall") or part.get("text", "")
    if isinstance(signed, dict):
        signed = {name: value for name, value in signed.items() if name != "id"}
    digest = hashlib.sha256(f"{model}\0{json.dumps(signed, sort_keys=True)}".encode()).digest()
    return base64.b64encode(digest).decode()


def is_strict(model: str) -> bool:
    """Whether this model checks signatures: Gemini 3 and later."""
    return not re.match(r"gemini-[12]\.|gemma", model)


def refusal(body: Json, model: str, context_tokens: int = 1_048_576) -> str | None:
    """Why the API refuses this body, or None."""
    try:
        _known(body, TOP, "")
        _system(body.get("systemInstruction"))
        _generation(body.get("generationConfig", {}))
        _tools(body.get("tools", []))
        _contents(body, model)
        _length(body, context_tokens)
    except Refused as refused:
        return str(refused)
    return None


def _known(value: Any, names: set[str], place: str) -> None:
    if not isinstance(value, dict):
        raise Refused(f"Invalid value at '{place}'")
    for name in value:
        if name not in names:
            at = f" at '{place}'" if place else ""
            raise Refused(f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')


def _system(instruction: Any) -> None:
    if instruction is None:
        return
    _known(instruction, {"role", "parts"}, "system_instruction")
    for number, part in enumerate(instruction["parts"]):
        _known(part, {"text"}, f"system_instruction.parts[{number}]")
        if not part["text"]:
            raise Refused("system_instruction.parts: text must not be empty")


def _generation(config: Json) -> None:
    _known(config, GENERATION, "generation_config")
    limit = config.get("maxOutputTokens")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise Refused("* GenerateContentRequest.generation_config.max_output_tokens: must be positive.")


# ---- contents


def _contents(body: Json, model: str) -> None:
    contents = body.get("contents")
    if not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    ids: set[str] = set()
    for index, content in enumerate(contents):
        place = f"contents[{index}]"
        _known(content, {"role", "parts"}, place)
        if content.get("role") not in ("user", "model"):
            raise Refused("Please use a valid role: user, model.")
        if not content.get("parts"):
            raise Refused(f"* GenerateContentRequest.{place}.parts: contents.parts must not be empty.")
        for number, part in enumerate(content["parts"]):
            _part(f"{place}.parts[{number}]", content["role"], part, model)
        _turns(index, contents, ids)
    if contents[-1]["role"] == "model":
        raise Refused("Please ensure that multiturn requests end with a user role or a function response.")
    if is_strict(model):
        _signed(contents)


def _part(place: str, role: str, part: Json, model: str) -> None:
    _known(part, PART, place)
    if sum(name in part for name in DATA) != 1:
        raise Refused(
            f"* GenerateContentRequest.{place}.data: "
            "required oneof field 'data' must have one initialized field"
        )
    if "text" in part and not part["text"] and "thoughtSignature" not in part:
        raise Refused(f"Unable to submit request because {place} must have a text parameter.")
    mine = {"functionCall", "thought", "thoughtSignature"} if role == "user" else {"functionResponse"}
    if mine & set(part):
        raise Refused(f"{place}: not allowed for role {role}")
    if (given := part.get("thoughtSignature")) is not None:
        _signature(place, given, part, model)
    if (call := part.get("functionCall")) is not None:
        _known(call, {"id", "name", "args"}, f"{place}.function_call")
        _name(call.get("name", ""))
        if not isinstance(call.get("args", {}), dict):
            raise Refused(f"Invalid value at '{place}.function_call.args' (type.googleapis.com/Struct)")
    if (answer := part.get("functionResponse")) is not None:
        _response(f"{place}.function_response", answer, model)
    if (data := part.get("inlineData")) is not None:
        _inline(f"{place}.inline_data", data)


def _signature(place: str, given: str, part: Json, model: str) -> None:
    if given in BYPASS:
        if "functionCall" not in part:
            raise Refused(f"{place}: the validator can be skipped for function calls only")
        return
    try:
        raw = base64.b64decode(given.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        raise Refused(
            f"Invalid value at '{place}.thought_signature' (TYPE_BYTES), Base64 decoding failed"
        ) from None
    if raw != base64.b64decode(signature(model, part)):
        raise Refused("Thought signature is not valid.")


def _response(place: str, answer: Json, model: str) -> None:
    _known(answer, {"id", "name", "response", "parts"}, place)
    _name(answer.get("name", ""))
    if not isinstance(answer.get("response"), dict):
        raise Refused(f"* {place}.response: must be an object")
    if "parts" in answer and not is_strict(model):
        raise Refused(f"* {place}.parts: multimodal function responses are not supported by this model")
    for number, part in enumerate(answer.get("parts", [])):
        _known(part, {"inlineData"}, f"{place}.parts[{number}]")
        _inline(f"{place}.parts[{number}].inline_data", part["inlineData"])
        if part["inlineData"]["mimeType"] not in IN_RESPONSES:
            raise Refused(f"Unsupported MIME type: {part['inlineData']['mimeType']}")


def _inline(place: str, data: Json) -> None:
    _known(data, {"mimeType", "data", "displayName"}, place)
    if not INLINE.fullmatch(data["mimeType"]):
        raise Refused(f"Unsupported MIME type: {data['mimeType']}")
    try:
        base64.b64decode(data["data"], validate=True)
    except binascii.Error:
        raise Refused(f"Invalid value at '{place}.data' (TYPE_BYTES), Base64 decoding failed") from None


def _of(content: Json, kind: str) -> list[Json]:
    return [part[kind] for part in content["parts"] if kind in part]


def _turns(index: int, contents: list[Json], ids: set[str]) -> None:
    """Calls and responses: adjacent, as many of these as of those, in the same order."""
    content = contents[index]
    before = contents[index - 1] if index else None
    calls, answers = _of(content, "functionCall"), _of(content, "functionResponse")
    if content["role"] == "model" and (before is None or before["role"] == "model"):
        raise Refused(
            "Please ensure that function call turn comes immediately after a user turn "
            "or after a function response turn."
        )
    asked = _of(before, "functionCall") if before is not None else []
    if answers and not asked:
        raise Refused(
            "Please ensure that function response turn comes immediately after a function call turn."
        )
    if asked and [(a["name"], a.get("id")) for a in answers] != [(c["name"], c.get("id")) for c in asked]:
        raise Refused(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn."
        )
    for call in calls:
        if "id" in call and (not call["id"] or call["id"] in ids):
            raise Refused(f"function call id {call['id']!r} is not unique")
        ids.add(call.get("id", ""))


def _signed(contents: list[Json]) -> None:
    """Every step of the current turn: it begins at the last user content that is no function response."""
    start = max(
        (i for i, one in enumerate(contents) if one["role"] == "user" and not _of(one, "functionResponse")),
        default=0,
    )
    for index in range(start, len(contents)):
        parts = [part for part in contents[index]["parts"] if "functionCall" in part]
        if parts and "thoughtSignature" not in parts[0]:
            raise Refused(
                "Function call is missing a thought_signature in functionCall parts. This is required for "
                "tools to work correctly, and missing thought_signature may lead to degraded model "
                f"performance. Additional data, function call `{parts[0]['functionCall']['name']}` , "
                f"position {index + 1}."
            )


# ---- tools


def _name(name: str) -> None:
    if not NAME.match(name):
        raise Refused(
            "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, "
            "0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
        )


def _tools(tools: list[Json]) -> None:
    names: list[str] = []
    for index, tool in enumerate(tools):
        _known(tool, {"functionDeclarations"}, f"tools[{index}]")
        for number, declaration in enumerate(tool["functionDeclarations"]):
            place = f"tools[{index}].function_declarations[{number}]"
            _known(declaration, {"name", "description", "parameters", "parametersJsonSchema"}, place)
            _name(declaration["name"])
            names.append(declaration["name"])
            if {"parameters", "parametersJsonSchema"} <= set(declaration):
                raise Refused(f"{place}: parameters and parameters_json_schema are mutually exclusive")
            if (schema := declaration.get("parameters")) is not None:
                _schema(f"{place}.parameters", schema)
                if schema["type"] != "object":
                    raise Refused(f"* {place}.parameters.type: must be OBJECT")
            if (schema := declaration.get("parametersJsonSchema")) is not None:
                _json_schema(f"{place}.parameters_json_schema", schema)
                if schema.get("type") != "object":
                    raise Refused(f"* {place}.parameters_json_schema: must describe an object")
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"Duplicate function declaration found: {name}")


def _schema(place: str, schema: Any) -> None:
    _known(schema, SCHEMA, place)
    if "anyOf" in schema:
        if set(schema) - {"anyOf", "description", "title", "nullable"}:
            raise Refused(f"* {place}.any_of: when using any_of, it must be the only field set")
        for number, one in enumerate(schema["anyOf"]):
            _schema(f"{place}.any_of[{number}]", one)
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise Refused(f"* {place}.type: must be specified, and one of {sorted(TYPES)}")
    _filled(place, kind, schema)
    if "format" in schema and schema["format"] not in FORMATS.get(kind, set()):
        raise Refused(f"* {place}.format: {schema['format']!r} is not supported for {kind.upper()} type")
    for name, one in schema.get("properties", {}).items():
        _schema(f"{place}.properties[{name}]", one)
    if "items" in schema:
        _schema(f"{place}.items", schema["items"])
    if "enum" in schema and (kind != "string" or not all(isinstance(v, str) and v for v in schema["enum"])):
        raise Refused(f"* {place}.enum: only allowed for STRING type, with values that are not empty")


def _json_schema(place: str, schema: Any) -> None:
    if isinstance(schema, bool):
        return
    _known(schema, JSON_SCHEMA, place)
    kinds = schema.get("type", [])
    if not {*([kinds] if isinstance(kinds, str) else kinds)} <= TYPES:
        raise Refused(f"* {place}.type: must be one of {sorted(TYPES)}")
    for value in schema.get("enum", []):
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise Refused(f"* {place}.enum: only strings and numbers are allowed")
    for at, one in _inner(schema):
        _json_schema(f"{place}.{at}", one)


def _inner(schema: Json) -> Iterator[tuple[str, Any]]:
    for group in ("properties", "$defs"):
        yield from ((f"{group}[{name}]", one) for name, one in schema.get(group, {}).items())
    for group in ("anyOf", "oneOf", "prefixItems"):
        yield from ((f"{group}[{number}]", one) for number, one in enumerate(schema.get(group, [])))
    yield from ((name, schema[name]) for name in ("items", "additionalProperties") if name in schema)


def _filled(place: str, kind: str, schema: Json) -> None:
    if kind == "object" and not schema.get("properties"):
        raise Refused(f"* {place}.properties: should be non-empty for OBJECT type")
    if kind == "array" and "items" not in schema:
        raise Refused(f"* {place}.items: missing field.")
    for number, name in enumerate(schema.get("required", [])):
        if name not in schema.get("properties", {}):
            raise Refused(f"* {place}.required[{number}]: property is not defined")


# ---- length


def tokens_of(body: Json) -> int:
    """What this server charges: four characters a token."""
    return len(json.dumps(body["contents"], ensure_ascii=False)) // 4


def _length(body: Json, context_tokens: int) -> None:
    count = tokens_of(body)
    if count > context_tokens:
        raise Refused(
            f"The input token count ({count}) exceeds the maximum number of tokens allowed "
            f"({context_tokens})."
        )
