"""Which member of a request a refusal names, in the words of the servers that there are."""

import json

import pytest

from rea_edge.endpoint.refusals import refused_member
from rea_edge.members import INSTEAD, SPARED, kept

from .servers import failure, raw_server, reply, says


def openai(message: str, param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}})


@pytest.mark.parametrize(
    ("body", "name"),
    [
        pytest.param(
            openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
                   " instead.", "max_tokens"), "max_tokens", id="OpenAI, reasoning models"),
        pytest.param(openai("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1)"
                            " value is supported.", "temperature"), "temperature", id="OpenAI, a value"),
        pytest.param(openai("Unsupported value: 'stream' does not support true with this model."), "stream",
                     id="OpenAI, stream"),
        pytest.param(openai("Unrecognized request argument supplied: stream_options"), "stream_options", id="Azure"),
        pytest.param(openai("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model",
                            "response_format"), "response_format", id="OpenAI, older models"),
        pytest.param(openai("not supported", "response_format.json_schema"), "response_format", id="a path in param"),
        pytest.param(json.dumps({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', "
                                 "'stream_options'), 'msg': 'Extra inputs are not permitted'}]", "code": 400}),
                     "stream_options", id="vLLM"),
        pytest.param(json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "grammar"],
                                             "msg": "Extra inputs are not permitted", "input": "root ::= x"}]}),
                     "grammar", id="FastAPI, Mistral"),
        pytest.param(openai("Extra inputs are not permitted, field: 'stream_options', value: {'include_usage': True}"),
                     "stream_options", id="Fireworks"),
        pytest.param('{"error":{"message":"Invalid JSON payload received. Unknown name \\"stream_options\\": Cannot find'
                     ' field.","code":400}}', "stream_options", id="Gemini"),
        pytest.param('{"error":"json: unknown field \\"grammar\\""}', "grammar", id="Go"),
        pytest.param("unknown field `stop`, expected one of `model`, `max_tokens`, `temperature`", "stop", id="Rust"),
        pytest.param(openai("property 'grammar' is unsupported"), "grammar", id="Groq"),
        pytest.param(openai("This model does not support response format `json_schema`. See supported models"),
                     "response_format", id="Groq, schemas"),
        pytest.param(openai("This response_format type is unavailable now"), "response_format", id="DeepSeek"),
        pytest.param('{"error":{"code":500,"message":"Unsupported param: tool_choice"}}', "tool_choice", id="llama.cpp"),
        pytest.param("streaming is not supported", "stream", id="a proxy"),
        pytest.param("`temperature` is deprecated for this model.", "temperature", id="Anthropic"),
        pytest.param(openai("Unsupported parameter: 'max_completion_tokens'. Did you mean 'max_tokens'?"),
                     "max_completion_tokens", id="the other name"),
        # These refuse something else.
        pytest.param(openai("max_tokens is too large: 9999. This model supports at most 4096.", "max_tokens"), "",
                     id="a value too large"),
        pytest.param("[{'type': 'greater_than_equal', 'loc': ('body', 'max_tokens'), 'msg': 'must be at least 1'}]", "",
                     id="a value too small"),
        pytest.param(openai("Failed to parse grammar"), "", id="a bad grammar"),
        pytest.param(openai("Cannot use custom grammar constraints with tools."), "", id="a grammar beside tools"),
        pytest.param("registry.ollama.ai/library/gemma does not support tools", "", id="tools"),
        pytest.param("unknown model 'x'; please stop and stream something else", "", id="words of every day"),
        pytest.param("unknown field 'x' in " + "y" * 80 + " {'temperature': 0.2}", "", id="an echo of the request"),
        pytest.param("", "", id="nothing"),
        pytest.param("[" * 5000, "", id="nested rubbish"),
    ],
)  # fmt: skip
def test_a_refusal_names_a_member(body: str, name: str) -> None:
    assert refused_member(body.encode()) == name


@pytest.mark.parametrize(
    ("status", "kind"), [("400 Bad", "parameter_refused"), ("422 No", "parameter_refused"), ("401 Key", "unauthorized")]
)
def test_the_failure_has_a_name_of_its_own_and_tells_the_member(status: str, kind: str) -> None:
    with raw_server(says(reply(b"unknown field 'grammar'", status=status))) as url:
        error = failure(url)
    assert (error.kind, error.retryable) == (kind, False)
    assert error.parameter == ("grammar" if kind == "parameter_refused" else "")


def test_an_error_inside_200_tells_it_too() -> None:
    with raw_server(says(reply(openai("Unrecognized request argument supplied: stream_options").encode()))) as url:
        error = failure(url)
    assert (error.kind, error.parameter) == ("parameter_refused", "stream_options")


def test_no_question_is_ever_without_a_token_cap() -> None:
    whole = {"max_tokens": 5, "stream": True, "stream_options": {}, "stop": []}
    assert kept(whole, ()) == whole
    assert kept(whole, SPARED) == {"max_completion_tokens": 5}
    assert not SPARED & set(INSTEAD.values())


def test_without_a_stream_no_option_of_it_is_sent() -> None:
    assert kept({"stream": True, "stream_options": {}, "stop": []}, ["stream"]) == {"stop": []}
