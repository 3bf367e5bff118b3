#!/usr/bin/env python3
"""Writes the types of both clients from the JSON Schemas in `config/schema`. With `--check`, says whether they are current."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCHEMAS = HERE.parent / "config" / "schema"
HEAD = "Written by clients/schema.py from config/schema: do not edit."
TS_TYPES = {"string": "string", "boolean": "boolean", "integer": "number", "number": "number", "null": "null",
            "object": "Record<string, unknown>"}
PY_TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "null": "None",
            "object": "dict[str, Any]"}
# Enumerations that have a name of their own.
NAMED = {"event": "EventKind", "verdict": "Verdict", "patched": "Target"}


def constant(name):
    """The name of the list of its words."""
    return {"EventKind": "EVENT_KINDS"}.get(name, f"{name.upper()}S")


class Language:
    """How a type is written in one language."""

    def __init__(self, types, any_type, list_of, map_of, literal):
        self.types, self.any_type, self.list_of = types, any_type, list_of
        self.map_of, self.literal = map_of, literal

    def type_of(self, name, schema):
        if "$ref" in schema:
            return schema["$ref"].rsplit("/", 1)[1]
        if "enum" in schema:
            return NAMED.get(name) or self.literal(schema["enum"])
        if schema.get("type") == "array":
            return self.list_of(self.type_of(name, schema["items"]))
        if "propertyNames" in schema:
            return self.map_of(NAMED[name])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " | ".join(self.types[kind] for kind in kinds) or self.any_type


TS = Language(TS_TYPES, "unknown", lambda item: f"{item}[]", lambda key: f"Partial<Record<{key}, unknown>>",
              lambda words: " | ".join(f'"{word}"' for word in words))
PY = Language(PY_TYPES, "Any", lambda item: f"list[{item}]", lambda key: f"dict[{key}, Any]",
              lambda words: f"Literal{json.dumps(words)}")


def objects():
    """The object types, each with its name."""
    event = json.loads((SCHEMAS / "canonical-event.schema.json").read_text())
    outcome = json.loads((SCHEMAS / "canonical-outcome.schema.json").read_text())
    # Another name of `event`.
    del event["properties"]["hook_event_name"]
    event["required"] = ["event", *event["required"]]
    return {"CanonicalEvent": event, **outcome["$defs"], "CanonicalOutcome": outcome}


def enumerations():
    """The lists of words, each with its name."""
    properties = objects()["CanonicalOutcome"]["properties"]
    return {name: properties[field].get("propertyNames", properties[field])["enum"] for field, name in NAMED.items()}


def typescript():
    lines = [f"// {HEAD}", ""]
    for name, words in enumerations().items():
        lines += [f"export const {constant(name)} = {json.dumps(words)} as const;",
                  f"export type {name} = (typeof {constant(name)})[number];", ""]
    for name, schema in objects().items():
        lines += [f"/** {schema['description']} */", f"export interface {name} {{"]
        for field, of in schema["properties"].items():
            optional = "" if field in schema["required"] else "?"
            lines += [f"  /** {of.get('description', '')} */", f"  {field}{optional}: {TS.type_of(field, of)};"]
        lines += ["}", ""]
    return "\n".join(lines[:-1]) + "\n"


def python():
    lines = [f'"""{HEAD}"""', "", "from __future__ import annotations", "",
             "from typing import Any, Literal, TypedDict", ""]
    for name, words in enumerations().items():
        lines += [f"{name} = Literal{json.dumps(words)}",
                  f"{constant(name)}: tuple[{name}, ...] = {json.dumps(words)}".replace("[\"", "(\"").replace("\"]", "\")")]
    for name, schema in objects().items():
        required = f"_{name}Required"
        if len(schema["required"]) == len(schema["properties"]):
            parts = [(name, "TypedDict", True)]
        else:
            parts = [(required, "TypedDict", True), (name, f"{required}, total=False", False)]
        for title, base, wanted in parts:
            lines += ["", "", f"class {title}({base}):"]
            lines += [] if title != name else [f'    """{schema["description"]}"""', ""]
            fields = {f: of for f, of in schema["properties"].items() if (f in schema["required"]) is wanted}
            for field, of in fields.items():
                lines += [f"    {field}: {PY.type_of(field, of)}", f'    """{of.get("description", "")}"""']
    return "\n".join(lines) + "\n"


def main():
    stale = []
    for path, text in [("typescript/src/schema.ts", typescript()), ("python/hookyard_client/_schema.py", python())]:
        path = HERE / path
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    sys.exit(f"not current: {', '.join(stale)}; run clients/schema.py" if stale else 0)


main()
