#!/usr/bin/env python3
"""Writes the types of the clients from the JSON Schemas in `config/schema`. With `--check`, says whether they are current."""

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
GO_TYPES = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64", "null": "",
            "object": "map[string]json.RawMessage"}
# Enumerations that have a name of their own.
NAMED = {"event": "EventKind", "verdict": "Verdict", "patched": "Target"}


def constant(name):
    """The name of the list of its words."""
    return {"EventKind": "EVENT_KINDS"}.get(name, f"{name.upper()}S")


def go_name(field):
    return "".join("ID" if word == "id" else word.capitalize() for word in field.split("_"))


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
        return " | ".join(self.types[kind] for kind in kinds if self.types[kind]) or self.any_type


TS = Language(TS_TYPES, "unknown", lambda item: f"{item}[]", lambda key: f"Partial<Record<{key}, unknown>>",
              lambda words: " | ".join(f'"{word}"' for word in words))
PY = Language(PY_TYPES, "Any", lambda item: f"list[{item}]", lambda key: f"dict[{key}, Any]",
              lambda words: f"Literal{json.dumps(words)}")

# What an enumeration without a name allows is in the comment of its field.
GO = Language(GO_TYPES, "any", lambda item: f"[]{item}", lambda key: f"map[{key}]json.RawMessage", lambda words: "string")


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


def go_words(name, words):
    """An enumeration: texts, but of verdicts, so that no other text can be compared with one."""
    names = [go_name(word) if name == "Verdict" else f"{name.removeprefix('Event')}{go_name(word)}" for word in words]
    widest = max(map(len, names))
    first = "uint8" if name == "Verdict" else "string"
    lines = ["", f"// {name} is one of the constants below.", f"type {name} {first}", "", "// What there is.", "const ("]
    if name == "Verdict":
        lines += [f"\t{names[0]} {name} = iota + 1", *(f"\t{constant}" for constant in names[1:])]
        shown = f"[...]string{{{', '.join(map(json.dumps, ['', *words]))}}}"
    else:
        lines += [f"\t{constant.ljust(widest)} {name} = {json.dumps(word)}" for constant, word in zip(names, words)]
        shown = f"[...]{name}{{{', '.join(names)}}}"
    return [*lines, ")", "", f"var {constant(name).lower().replace('_kinds', 'Kinds')} = {shown}"]


def go_field(field, of, required):
    kind = GO.type_of(field, of)
    # What `omitempty` leaves out of neither.
    if field == "wait" or "$ref" in of and not required:
        kind = f"*{kind}"
    says = f" Of {', '.join(of['enum'])}." if "enum" in of and field not in NAMED else ""
    tag = field if required else f"{field},omitempty"
    return [f"\t// {of.get('description', '')}{says}", f'\t{go_name(field)} {kind} `json:"{tag}"`']


def go_writes(field, of, required):
    how = {"any": "value", "string": "text", "bool": "flag"}.get(GO.type_of(field, of), "text")
    value = f"string(e.{go_name(field)})" if field == "event" else f"e.{go_name(field)}"
    return f'\tw.{"must" if required else how}("{field}", {value})'


def go():
    lines = [f"// Code generated by clients/schema.py from config/schema. DO NOT EDIT.", "", "package hookyard", "",
             'import "encoding/json"']
    for name, words in enumerations().items():
        lines += go_words(name, words)
    for name, schema in objects().items():
        of, required = schema["properties"], schema["required"]
        title = {"CanonicalEvent": "Event", "CanonicalOutcome": "Answer"}.get(name, name)
        lines += ["", f"// {title}: {schema['description']}", f"type {title} struct {{"]
        lines += [line for field in of for line in go_field(field, of[field], field in required)]
        if title == "Event":
            lines += ["\t// What the schema has no field for.", '\tExtra map[string]any `json:"-"`']
        lines += ["}"]
        if title == "Event":
            # The kind first, for who reads lines.
            fields = ["event", *(field for field in of if field != "event")]
            lines += ["", "func (e *Event) write(w *writer) {", *(go_writes(field, of[field], field in required) for field in fields),
                      "\tw.extra(e.Extra)", "}"]
    return "\n".join(lines) + "\n"


def main():
    stale = []
    files = [("typescript/src/schema.ts", typescript()), ("python/hookyard_client/_schema.py", python()),
             ("go/schema.go", go())]
    for path, text in files:
        path = HERE / path
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    sys.exit(f"not current: {', '.join(stale)}; run clients/schema.py" if stale else 0)


main()
