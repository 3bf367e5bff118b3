#!/usr/bin/env python3
"""Replaces keys, tokens and private keys in the messages of a model request by [REDACTED:kind].

Says nothing when there is nothing to redact.
"""
import json
import re
import sys

# Kind, pattern, and what stands before the secret and is kept. The first pattern that fits wins.
SECRETS = [
    ("private-key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"),
    ("aws-access-key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("aws-secret-key", r"(?P<kept>aws_secret_access_key[\"']?\s*[=:]\s*[\"']?)[A-Za-z0-9/+=]{40}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    # With a digit, so that names like `sk-fading-circle-spinner` stay.
    ("api-key", r"\bsk[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,}"),
    ("bearer-token", r"(?P<kept>\bbearer\s+)(?=[A-Za-z._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*"),
]
PATTERNS = [(kind, re.compile(pattern, re.DOTALL | re.IGNORECASE)) for kind, pattern in SECRETS]


def redact_text(text, found):
    for kind, pattern in PATTERNS:
        def mask(match, kind=kind):
            found.append(kind)
            return (match.groupdict().get("kept") or "") + "[REDACTED:" + kind + "]"

        text = pattern.sub(mask, text)
    return text


def redact(value, found):
    """Returns the value with every text in it redacted; the kinds found are added to `found`."""
    if isinstance(value, str):
        return redact_text(value, found)
    if isinstance(value, list):
        return [redact(item, found) for item in value]
    if isinstance(value, dict):
        return {key: redact(item, found) for key, item in value.items()}
    return value


def read_envelope():
    try:
        envelope = json.load(sys.stdin.buffer)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        sys.exit("secret-redactor: stdin holds no JSON object")
    return envelope


def main():
    request = read_envelope().get("model_request")
    messages = request.get("messages") if isinstance(request, dict) else None
    found = []
    redacted = redact(messages, found)
    if not found:
        return
    kinds = ", ".join(sorted(set(found)))
    print(json.dumps({
        "systemMessage": "Redacted %d secret(s) in the model request: %s." % (len(found), kinds),
        "hookSpecificOutput": {
            "hookEventName": "before_model_call",
            "patch": {"model_request": {"messages": redacted}},
        },
    }))


if __name__ == "__main__":
    main()
