"""JSON that never changes a number: what no float can hold is refused."""

from __future__ import annotations

import json
import re
from typing import Any, Optional

from ._problem import bad_event

_LONGEST_NUMBER = 400
_NUMBER = re.compile(r"(-?)0*(\d*?)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")


class InexactNumber(ValueError):
    """A number in JSON that would be changed."""


def parse(text: str) -> Any:
    """Raises `InexactNumber`, or another `ValueError` or a `RecursionError` if it is no JSON."""
    return _DECODER.decode(text)


def event_bytes(event: Any) -> bytes:
    """An event as JSON. Raises a `Problem` if it has no such form."""
    try:
        return _ENCODER.encode(event).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise bad_event(error) from None


def _exact(number: str) -> float:
    value = float(number)
    # A float has fifteen digits in any case.
    if len(number) > 16 or "e" in number or "E" in number:
        if len(number) > _LONGEST_NUMBER or _digits(number) != _digits(repr(value)):
            raise InexactNumber(f"the number {number[:40]} cannot be kept as it is")
    return value


def _digits(number: str) -> Optional[tuple[str, str, int]]:
    """The digits of a number and its exponent, however it is written."""
    written = _NUMBER.fullmatch(number)
    if written is None:
        return None
    sign, whole, fraction, exponent = written.groups()
    fraction = fraction or ""
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return ("", "", 0)
    return (sign, kept, int(exponent or 0) - len(fraction) + len(digits) - len(kept))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_exact, parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
