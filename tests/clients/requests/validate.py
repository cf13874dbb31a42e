"""Validates recorded request bodies against the parameter types of the providers' own SDKs.

    python validate.py FOLDER       every *.json must be {"api": …, "body": …} with a valid body
    python validate.py --self-test  the samples: valid ones pass, invalid ones fail where they say

Prints a line for each file, and exits with 1 if a body is not valid. Fields that the types do not know are errors.
"""

import functools
import json
import sys
import typing
from pathlib import Path

# The SDKs accept any iterable, which pydantic validates only while it is iterated over: not here. In a request, it is
# a list.
typing.Iterable = typing.List

import anthropic._models
import anthropic._types
import openai._models
import openai._types
from anthropic.types import message_create_params as messages
from anthropic.types.beta import message_create_params as beta_messages
from google.genai import types as gemini
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core.core_schema import is_instance_schema
from typing_extensions import is_typeddict

# From Python 3.13 on, it is a protocol, for which pydantic has no schema.
for module in (anthropic._types, openai._types):
    if isinstance(module.SequenceNotStr, type) and typing.get_origin(module.SequenceNotStr) is None:
        module.SequenceNotStr.__get_pydantic_core_schema__ = classmethod(
            lambda _, source, handler: handler(typing.List[typing.get_args(source)])
        )

# Some parameters also accept the objects that an answer was parsed into. Those allow any field, and no JSON has them.
for module in (anthropic._models, openai._models):
    module.BaseModel.__get_pydantic_core_schema__ = classmethod(lambda kind, *_: is_instance_schema(kind))


class GeminiBody(BaseModel):
    """The body of generateContent, of which the SDK has types for the parts only."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    contents: typing.List[gemini.Content]
    system_instruction: typing.Optional[gemini.Content] = None
    tools: typing.Optional[typing.List[gemini.Tool]] = None
    tool_config: typing.Optional[gemini.ToolConfig] = None
    generation_config: typing.Optional[gemini.GenerationConfig] = None
    safety_settings: typing.Optional[typing.List[gemini.SafetySetting]] = None
    cached_content: typing.Optional[str] = None
    continuation_token: typing.Optional[str] = None
    service_tier: typing.Optional[str] = None
    store: typing.Optional[bool] = None


TYPES = {
    "anthropic": (messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming),
    "anthropic-beta": (beta_messages.MessageCreateParamsNonStreaming, beta_messages.MessageCreateParamsStreaming),
    "openai-responses": (responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming),
    "openai-chat": (chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming),
    "gemini": (GeminiBody, GeminiBody),
}

# What compatible servers add to the messages of the assistant, and want to have back.
REASONING = ("reasoning_content", "reasoning", "reasoning_details")

# By default, pydantic ignores fields that a TypedDict does not have. Arbitrary types are open files, for uploads.
for name, module in list(sys.modules.items()):
    if name.startswith(("anthropic.types", "openai.types")):
        for member in list(vars(module).values()):
            if is_typeddict(member):
                member.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@functools.cache
def adapter(kind):
    return TypeAdapter(kind)


def official(api, body):
    """The body without what only compatible servers know."""
    if api != "openai-chat" or not isinstance(body.get("messages"), list):
        return body
    strip = lambda message: (
        {name: value for name, value in message.items() if name not in REASONING}
        if isinstance(message, dict) and message.get("role") == "assistant"
        else message
    )
    return {**body, "messages": [strip(message) for message in body["messages"]]}


def problems(api, body):
    """The wrong fields of a body: their paths and what is wrong with them."""
    if api not in TYPES:
        return [("api", f"{api!r} is not one of {', '.join(TYPES)}")]
    if not isinstance(body, dict):
        return [("body", "is not an object")]
    kind = TYPES[api][bool(body.get("stream"))]
    body = official(api, body)
    try:
        adapter(kind).validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        return list(dict.fromkeys((path(body, each), each["msg"]) for each in relevant(error.errors())))
    return []


def relevant(errors):
    """Without the errors of union members that the value does not mean: those whose type or role differs."""
    foreign = {
        each["loc"][:-1]
        for each in errors
        if each["loc"] and each["loc"][-1] in ("type", "role") and each["type"] in ("literal_error", "missing")
    }
    # Members that only parsed objects fit never mean the value.
    kept = [
        each
        for each in errors
        if each["type"] != "needs_python_object"
        and not any(each["loc"][: len(prefix)] == prefix for prefix in foreign if prefix)
    ]
    kept = kept or errors
    # The error that is deepest in the value is the one of the member that fits best.
    deepest = max(len(each["loc"]) for each in kept)
    return [each for each in kept if len(each["loc"]) == deepest or each["type"] in ("extra_forbidden", "missing")]


def path(body, error):
    """The path of an error in the value, without the names of union members."""
    steps, value = [], body
    for step in error["loc"]:
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        elif step != error["loc"][-1] or error["type"] not in ("missing", "extra_forbidden"):
            continue
        steps.append(str(step))
    return ".".join(steps) or "body"


def report(name, found):
    if not found:
        print(f"ok      {name}")
    for where, what in found:
        print(f"WRONG   {name}: {where}: {what}")


def validate(folder):
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        print(f"{folder} has no *.json")
        return 1
    failed = 0
    for file in files:
        recorded = json.loads(file.read_text(encoding="utf-8"))
        found = problems(recorded.get("api"), recorded.get("body"))
        report(file.name, found)
        failed += bool(found)
    print(f"{len(files) - failed} of {len(files)} request bodies are valid")
    return int(failed > 0)


def self_test():
    samples = Path(__file__).parent / "samples"
    failed = validate(samples / "valid")
    for file in sorted((samples / "invalid").glob("*.json")):
        recorded = json.loads(file.read_text(encoding="utf-8"))
        found = problems(recorded["api"], recorded["body"])
        if recorded["wrong"] not in [where for where, _ in found]:
            print(f"WRONG   {file.name}: expected an error at {recorded['wrong']}, and found {found}")
            failed = 1
    return failed


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) != 1:
        sys.exit(__doc__)
    sys.exit(self_test() if arguments == ["--self-test"] else validate(arguments[0]))
