"""One small trace, written the way each exporter of OpenTelemetry spans writes it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_760_000_000_000_000_000
SERVICE = {"service.name": "desk"}
SCOPE = "my-agent"
CODES = {"UNSET": 0, "OK": 1, "ERROR": 2}


def spans() -> list[dict[str, Any]]:
    """An agent that calls two tools at once, one of which fails, and answers; times in ns from the start."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": "天気は?"}]}]
    calls = [
        {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"city": "東京", "n": 2}},
        {"type": "tool_call", "id": "c2", "name": "peek", "arguments": {}},
    ]
    done = [{"role": "assistant", "parts": [{"type": "text", "content": "晴れ"}]}]

    def chat(number: int, at: int, answer: Any, into: int, out: int) -> dict[str, Any]:
        said = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "m-1",
            "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False),
            "gen_ai.output.messages": json.dumps(answer, ensure_ascii=False),
            "gen_ai.usage.input_tokens": into,
            "gen_ai.usage.output_tokens": out,
            "gen_ai.request.temperature": 0.5,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.request.stream": True,
        }
        return {"id": number, "parent": 1, "name": "chat m-1", "at": at, "end": at + 400_000_000, "said": said}

    def tool(number: int, name: str, call_id: str, at: int, **more: Any) -> dict[str, Any]:
        said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
        return {
            "id": number,
            "parent": 1,
            "name": f"execute_tool {name}",
            "at": at,
            "end": at + 250_000_000,
            "said": said,
            **more,
        }

    look = tool(3, "look", "c1", 500_000_000, code="OK")
    look["said"] |= {"gen_ai.tool.call.arguments": '{"city": "東京", "n": 2}', "gen_ai.tool.call.result": "晴れ"}
    wrong = {"exception.type": "KeyError", "exception.message": "窓"}
    peek = tool(
        4, "peek", "c2", 600_000_000, code="ERROR", message="broken", events=[("exception", 700_000_000, wrong)]
    )
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk", "gen_ai.conversation.id": "k1"}
    return [
        chat(2, 1_000_000, [{"role": "assistant", "parts": calls}], 100, 20),
        look,
        peek,
        chat(5, 900_000_000, done, 150, 5),
        {"id": 1, "parent": 99, "name": "invoke_agent clerk", "at": 0, "end": 1_500_000_000, "said": agent},
    ]


def _hex(number: int) -> str:
    return f"{number:016x}"


def _base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def _any(value: Any, *, ints_as_text: bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value) if ints_as_text else value}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item, ints_as_text=ints_as_text) for item in value]}}
    return {"stringValue": value}


def _pairs(said: dict[str, Any], *, ints_as_text: bool = True) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any(value, ints_as_text=ints_as_text)} for key, value in said.items()]


def _otlp(span: dict[str, Any], *, binary: bool = False, numbers: bool = False) -> dict[str, Any]:
    ids = _base64 if binary else str
    time = (lambda ns: START + ns) if numbers else (lambda ns: str(START + ns))
    code = CODES[span.get("code", "UNSET")]
    status: dict[str, Any] = {} if code == 0 else {"code": code}
    if binary and code:
        status["code"] = f"STATUS_CODE_{span['code']}"
    if span.get("message"):
        status["message"] = span["message"]
    return {
        "traceId": ids(TRACE),
        "spanId": ids(_hex(span["id"])),
        "parentSpanId": ids(_hex(span["parent"])),
        "name": span["name"],
        "kind": "SPAN_KIND_INTERNAL" if binary else 1,
        "startTimeUnixNano": time(span["at"]),
        "endTimeUnixNano": time(span["end"]),
        "attributes": _pairs(span["said"], ints_as_text=not numbers),
        "events": [
            {"name": name, "timeUnixNano": time(at), "attributes": _pairs(said)}
            for name, at, said in span.get("events", ())
        ],
        "status": status,
    }


def _wrapped(listed: list[dict[str, Any]], outer: str = "scopeSpans", scope: str = "scope") -> dict[str, Any]:
    return {
        "resource": {"attributes": _pairs(SERVICE)},
        outer: [{scope: {"name": SCOPE, "version": "1"}, "spans": listed}],
    }


def _snake(value: Any) -> Any:
    def name(key: str) -> str:
        return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)

    if isinstance(value, dict):
        return {name(key): _snake(item) for key, item in value.items()}
    return [_snake(item) for item in value] if isinstance(value, list) else value


def otlp_json() -> str:
    """One export request."""
    return json.dumps({"resourceSpans": [_wrapped([_otlp(span) for span in spans()])]})


def otlp_lines() -> str:
    """The collector's file exporter: a request a line, the trace spread over them."""
    return "".join(
        json.dumps({"resourceSpans": [_wrapped([_otlp(span)])]}, ensure_ascii=False) + "\n" for span in spans()
    )


def otlp_snake_case() -> str:
    """protobuf's JSON with the field names of the .proto file."""
    return json.dumps({"resource_spans": [_snake(_wrapped([_otlp(span) for span in spans()]))]}, indent=1)


def otlp_base64() -> str:
    """protobuf's own JSON: bytes in base64, enums by name."""
    return json.dumps({"resourceSpans": [_wrapped([_otlp(span, binary=True) for span in spans()])]})


def otlp_library() -> str:
    """The old name of scopes."""
    wrapped = _wrapped([_otlp(s) for s in spans()], "instrumentationLibrarySpans", "instrumentationLibrary")
    return json.dumps({"resourceSpans": [wrapped]})


def tempo_batches() -> str:
    """Tempo's export: times and whole numbers as numbers."""
    return json.dumps({"batches": [_wrapped([_otlp(span, numbers=True)]) for span in spans()]})


def tempo_trace() -> str:
    """Tempo's newer answer (API v2)."""
    return json.dumps({"trace": {"resourceSpans": [_wrapped([_otlp(s, binary=True) for s in spans()])]}, "metrics": {}})


def jaeger() -> str:
    """Jaeger's UI: microseconds, tags, references."""

    def tag(key: str, value: Any) -> dict[str, Any]:
        kind = {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
        return {
            "key": key,
            "type": kind,
            "value": value if kind != "string" or isinstance(value, str) else json.dumps(value),
        }

    listed: list[dict[str, Any]] = []
    for span in spans():
        said = {**span["said"], "otel.scope.name": SCOPE, "span.kind": "internal"}
        if span.get("code"):
            said |= {"otel.status_code": span["code"]}
            said |= {"error": True, "otel.status_description": span["message"]} if span["code"] == "ERROR" else {}
        listed.append(
            {
                "traceID": TRACE,
                "spanID": _hex(span["id"]),
                "operationName": span["name"],
                "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": _hex(span["parent"])}],
                "startTime": (START + span["at"]) // 1000,
                "duration": (span["end"] - span["at"]) // 1000,
                "tags": [tag(key, value) for key, value in said.items()],
                "logs": [
                    {
                        "timestamp": (START + at) // 1000,
                        "fields": [tag("event", name), *(tag(k, v) for k, v in s.items())],
                    }
                    for name, at, s in span.get("events", ())
                ],
                "processID": "p1",
                "warnings": None,
            }
        )
    processes = {"p1": {"serviceName": SERVICE["service.name"], "tags": []}}
    return json.dumps(
        {"data": [{"traceID": TRACE, "spans": listed, "processes": processes}], "total": 0, "errors": None}
    )


def _iso(ns: int) -> str:
    time = datetime.fromtimestamp((START + ns) // 1_000_000_000, UTC).replace(
        microsecond=(START + ns) // 1000 % 1_000_000
    )
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _console(span: dict[str, Any]) -> dict[str, Any]:
    status = {"status_code": span.get("code", "UNSET")}
    if span.get("message"):
        status["description"] = span["message"]
    return {
        "name": span["name"],
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{_hex(span['id'])}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{_hex(span['parent'])}",
        "start_time": _iso(span["at"]),
        "end_time": _iso(span["end"]),
        "status": status,
        "attributes": span["said"],
        "events": [{"name": n, "timestamp": _iso(at), "attributes": s} for n, at, s in span.get("events", ())],
        "links": [],
        "resource": {"attributes": SERVICE, "schema_url": ""},
    }


def python_console() -> str:
    """Python's console exporter: pretty objects one after the other."""
    return "".join(json.dumps(_console(span), indent=4) + "\n" for span in spans())


def python_lines() -> str:
    """``span.to_json(indent=None)``, one a line."""
    return "".join(json.dumps(_console(span)) + "\n" for span in spans())


def node() -> str:
    """Node's ReadableSpan as JSON: times as pairs of seconds and nanoseconds."""

    def pair(ns: int) -> list[int]:
        return list(divmod(START + ns, 1_000_000_000))

    listed = [
        {
            "name": span["name"],
            "kind": 0,
            "spanContext": {"traceId": TRACE, "spanId": _hex(span["id"]), "traceFlags": 1},
            "parentSpanContext": {"traceId": TRACE, "spanId": _hex(span["parent"]), "traceFlags": 1},
            "startTime": pair(span["at"]),
            "endTime": pair(span["end"]),
            "duration": list(divmod(span["end"] - span["at"], 1_000_000_000)),
            "status": {
                "code": CODES[span.get("code", "UNSET")],
                **({"message": span["message"]} if "message" in span else {}),
            },
            "attributes": span["said"],
            "events": [{"name": n, "time": pair(at), "attributes": s} for n, at, s in span.get("events", ())],
            "resource": {"attributes": SERVICE},
            "instrumentationScope": {"name": SCOPE},
        }
        for span in spans()
    ]
    return json.dumps(listed)


def node_flat() -> str:
    """Node's span of version 1: ids beside the name."""
    listed = []
    for value in json.loads(node()):
        context, parent = value.pop("spanContext"), value.pop("parentSpanContext")
        value["instrumentationLibrary"] = value.pop("instrumentationScope")
        listed.append(
            {**value, "traceId": context["traceId"], "spanId": context["spanId"], "parentSpanId": parent["spanId"]}
        )
    return "".join(json.dumps(value) + "\n" for value in listed)


def go_stdout() -> str:
    """Go's stdout exporter."""

    def typed(said: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = {bool: "BOOL", int: "INT64", float: "FLOAT64", list: "STRINGSLICE"}
        return [{"Key": k, "Value": {"Type": kinds.get(type(v), "STRING"), "Value": v}} for k, v in said.items()]

    def context(number: int) -> dict[str, Any]:
        return {"TraceID": TRACE, "SpanID": _hex(number), "TraceFlags": "01", "TraceState": "", "Remote": False}

    out = ""
    for span in spans():
        value = {
            "Name": span["name"],
            "SpanContext": context(span["id"]),
            "Parent": context(span["parent"]),
            "SpanKind": 1,
            "StartTime": _iso(span["at"]),
            "EndTime": _iso(span["end"]),
            "Attributes": typed(span["said"]),
            "Events": [{"Name": n, "Attributes": typed(s), "Time": _iso(at)} for n, at, s in span.get("events", ())]
            or None,
            "Links": None,
            "Status": {"Code": span.get("code", "UNSET").title(), "Description": span.get("message", "")},
            "Resource": typed(SERVICE),
            "InstrumentationScope": {"Name": SCOPE, "Version": "", "SchemaURL": ""},
        }
        out += json.dumps(value, indent="\t") + "\n"
    return out


def flat() -> str:
    """A flat list, as tests and small exporters write it."""
    listed = [
        {
            "trace_id": TRACE,
            "span_id": _hex(span["id"]),
            "parent_span_id": _hex(span["parent"]),
            "name": span["name"],
            "start_time": START + span["at"],
            "end_time": START + span["end"],
            "attributes": span["said"],
            "scope": {"name": SCOPE},
            "resource": {"attributes": SERVICE},
            "status": {"code": span.get("code", "UNSET"), "message": span.get("message")},
            "span_events": [
                {"event_name": n, "timestamp": START + at, "attributes": s} for n, at, s in span.get("events", ())
            ],
        }
        for span in spans()
    ]
    return json.dumps(listed, ensure_ascii=False)


CONTAINERS = {
    make.__name__: make
    for make in (
        otlp_json,
        otlp_lines,
        otlp_snake_case,
        otlp_base64,
        otlp_library,
        tempo_batches,
        tempo_trace,
        jaeger,
        python_console,
        python_lines,
        node,
        node_flat,
        go_stdout,
        flat,
    )
}
