"""What `worker.py` has: that file is copied beside hooks as it is, and a hook that starts for each event has no time for types."""

from typing import Any, Callable, Mapping, Optional

def serve(hook: Callable[[dict[str, Any]], Optional[Mapping[str, Any]]], threads: Optional[int] = None) -> None:
    """Serves all events as a worker, and one event otherwise."""
