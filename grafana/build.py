#!/usr/bin/env python3
"""Writes the dashboards. A dashboard is declared in source/, as rows of panels.

grafana/build.py           writes grafana/dashboards
grafana/build.py --check   says whether they are what it would write
"""

import json
import sys
from pathlib import Path

from source.hook_detail import hook_detail
from source.internals import internals
from source.overview import overview


def main():
    folder = Path(__file__).parent / "dashboards"
    wrong = []
    for name, build in {"overview": overview, "hook-detail": hook_detail, "internals": internals}.items():
        path, text = folder / f"{name}.json", json.dumps(build(), indent=1, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong.append(path.name)
    if wrong:
        sys.exit(f"not what grafana/build.py writes: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
