"""The test server refuses what Gemini's API refuses; else the adapter's tests would prove nothing."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.platforms.gemini.replies import Fail, Say, call, text
from tests.platforms.gemini.rules import BYPASS, Json, refusal, signature
from tests.platforms.gemini.server import GeminiServer

NEW, OLD = "gemini-3-test", "gemini-2.5-test"
SAY = [{"text": "hi"}]
USE = [call("t", {}, model=NEW)]
PLAIN = [call("t", {})]
ANSWER: list[Json] = [{"functionResponse": {"name": "t", "response": {"output": "x"}}}]
TEXT: Json = {"type": "string"}


def body(*contents: Any, **more: Any) -> Json:
    roles = ("user", "model")
    turns = [{"role": roles[index % 2], "parts": parts} for index, parts in enumerate(contents)]
    return {"contents": turns or [{"role": "user", "parts": SAY}], **more}


def tool(**declaration: Any) -> Json:
    return body(tools=[{"functionDeclarations": [{"name": "t", **declaration}]}])


def schema(**property: Any) -> Json:
    return tool(parameters={"type": "object", "properties": {"a": property}})


def json_schema(**property: Any) -> Json:
    return tool(parametersJsonSchema={"type": "object", "properties": {"a": property}})


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def test_ordinary_requests_are_taken() -> None:
    assert refusal(body(), NEW) is None
    assert refusal(body(SAY, USE, ANSWER, SAY, SAY), NEW) is None
    assert refusal(body(SAY, PLAIN, ANSWER), OLD) is None
    assert refusal(body(SAY, [{**PLAIN[0], "thoughtSignature": BYPASS[0]}], ANSWER), NEW) is None
    # Steps of earlier turns are not looked at.
    earlier = body(SAY, PLAIN, ANSWER)["contents"] + [user(*SAY)]
    assert refusal({"contents": earlier}, NEW) is None
    signed = [{**USE[0], "thoughtSignature": USE[0]["thoughtSignature"].replace("+", "-").replace("/", "_")}]
    assert refusal(body(SAY, signed, ANSWER), NEW) is None
    assert refusal(json_schema(anyOf=[{"type": ["string", "null"]}, {"enum": [1]}]), NEW) is None
    assert refusal(schema(type="array", items=TEXT, nullable=True), NEW) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (body(temperature=1.0), 'Unknown name "temperature"'),
        (body(generationConfig={"max_tokens": 1}), "Unknown name \"max_tokens\" at 'generation_config'"),
        (body(generationConfig={"maxOutputTokens": 0}), "must be positive"),
        (body(systemInstruction={"parts": [{"text": ""}]}), "text must not be empty"),
        ({"contents": []}, "contents is not specified"),
        ({"contents": [{"role": "assistant", "parts": SAY}]}, "valid role"),
        (body([]), "contents.parts must not be empty"),
        (body([{}]), "required oneof field 'data'"),
        (body([{**SAY[0], "inlineData": {}}]), "required oneof field 'data'"),
        (body([{"text": ""}]), "must have a text parameter"),
        (body([{**SAY[0], "foo": 1}]), "Unknown name \"foo\" at 'contents[0].parts[0]'"),
        (body(USE), "not allowed for role user"),
        (body(SAY, ANSWER), "not allowed for role model"),
        (body(SAY, SAY), "multiturn requests end with a user role"),
        (body(SAY, USE), "multiturn requests end with a user role"),
        (body(SAY, USE, SAY), "number of function response parts"),
        (body(SAY, USE, ANSWER * 2), "number of function response parts"),
        (body(SAY, [*USE, *PLAIN], ANSWER), "number of function response parts"),
        (body(SAY, [call("t", {}, id="1", model=NEW)], ANSWER), "number of function response parts"),
        (body(ANSWER), "function response turn comes immediately after"),
        ({"contents": [user(*SAY), *2 * [{"role": "model", "parts": USE}]]}, "function call turn comes"),
        ({"contents": [{"role": "model", "parts": SAY}, user(*SAY)]}, "function call turn comes"),
        (body(SAY, PLAIN, ANSWER), "missing a thought_signature in functionCall parts"),
        (body(SAY, [*PLAIN, *USE], [*ANSWER, *ANSWER]), "missing a thought_signature"),
        (body(SAY, [{**SAY[0], "thoughtSignature": "????"}], SAY), "Base64 decoding failed"),
        (body(SAY, [{**USE[0], "thoughtSignature": "YWJj"}], ANSWER), "Thought signature is not valid"),
        (body(SAY, [{**SAY[0], "thoughtSignature": BYPASS[0]}], SAY), "for function calls only"),
        (body(SAY, [call("t", {}, model="gemini-3-other")], ANSWER), "Thought signature is not valid"),
        (body(SAY, [call("1t", {}, model=NEW)], ANSWER), "Invalid function name"),
        (body(SAY, [call("t", [1], model=NEW)], ANSWER), "function_call.args"),
        (body(SAY, USE, [{"functionResponse": {"name": "t", "response": "x"}}]), "must be an object"),
        (body([{"inlineData": {"mimeType": "image/gif", "data": ""}}]), "Unsupported MIME type"),
        (body([{"inlineData": {"mimeType": "image/png", "data": "?"}}]), "Base64 decoding failed"),
        (tool(name="x" * 65), "Invalid function name"),
        (tool(name="a b"), "Invalid function name"),
        (body(tools=[{"functionDeclarations": [{"name": "t"}] * 2}]), "Duplicate function declaration"),
        (tool(strict=True), 'Unknown name "strict"'),
        (tool(parameters={"type": "object", "properties": {}}), "should be non-empty"),
        (tool(parameters=TEXT), "must be OBJECT"),
        (schema(const="a"), 'Unknown name "const"'),
        (schema(), "type: must be specified"),
        (schema(type=["string", "null"]), "type"),
        (schema(type="array"), "items: missing field"),
        (schema(type="integer", enum=[1]), "only allowed for STRING"),
        (schema(type="string", format="uri"), "is not supported for STRING"),
        (schema(type="string", anyOf=[TEXT]), "must be the only field set"),
        (json_schema(const="a"), 'Unknown name "const"'),
        (json_schema(type="str"), "must be one of"),
        (json_schema(enum=[None]), "only strings and numbers"),
        (tool(parametersJsonSchema={"$schema": "x", "type": "object"}), 'Unknown name "$schema"'),
        (tool(parametersJsonSchema=TEXT), "must describe an object"),
        (body([{"text": "x" * 5_000_000}]), "The input token count (12500"),
    ],
)
def test_a_wrong_request_is_refused_in_the_api_s_words(wrong: Json, says: str) -> None:
    said = refusal(wrong, NEW)
    assert said is not None
    assert says in said


def test_pictures_in_responses_are_for_new_models_only() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "YQ=="}}
    answer = {"functionResponse": {**ANSWER[0]["functionResponse"], "parts": [picture]}}
    assert refusal(body(SAY, USE, [answer]), NEW) is None
    said = refusal(body(SAY, PLAIN, [answer]), OLD)
    assert said is not None
    assert "not supported by this model" in said


def test_a_signature_is_good_for_its_part_and_its_model_only() -> None:
    part = {"text": "a"}
    others = [signature(NEW, {"text": "b"}), signature(OLD, part), signature(NEW, call("a", {}))]
    assert signature(NEW, part) not in others


async def ask(server: GeminiServer, sent: Any, *, model: str = NEW, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.post(
            f"{server.base_url}/v1beta/models/{model}:generateContent",
            json=sent,
            headers={"x-goog-api-key": server.key} | headers,
        )


async def test_the_server_answers_plain_json_and_errors_in_the_api_s_shape() -> None:
    async with GeminiServer() as server:
        server.script += [Say(parts=(text("hello"), call("t", {"a": 1}))), Fail(status=503, say="busy")]
        whole = (await ask(server, body())).json()
        assert whole["candidates"][0]["content"]["parts"][-1] == call("t", {"a": 1})
        assert whole["candidates"][0]["finishReason"] == "STOP"
        busy = await ask(server, body())
        assert busy.status_code == 503
        assert busy.json()["error"] == {"code": 503, "message": "busy", "status": "UNAVAILABLE"}
        wrong = await ask(server, body([]))
        assert (wrong.status_code, wrong.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
        bad_key = (await ask(server, body(), **{"x-goog-api-key": "no"})).json()["error"]
        assert bad_key["details"][0]["reason"] == "API_KEY_INVALID"
        assert (await ask(server, body(), model="gemini-none")).status_code == 404
        assert len(server.accepted) == 2
        assert len(server.refused) == 1
