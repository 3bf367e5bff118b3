"""Sessions of an agent for comparison: once with its own hooks, once with the same hooks through hookyard.

The model is `model.py`, so nothing is asked over the network. Each session has a directory and a home of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def arguments(usage, client):
    """The agent, hookyard, and the wanted part of the names of cases; leaves if the client is not installed."""
    given = sys.argv[1:]
    agent = shutil.which(given[0] if given else client)
    hookyard = shutil.which(given[1] if len(given) > 1 else "hookyard")
    for what, found in (client, agent), ("hookyard", hookyard):
        if not found:
            print(f"skipped: there is no {what} here; {usage}")
            sys.exit(0)
    return str(Path(agent).resolve()), str(Path(hookyard).resolve()), given[2] if len(given) > 2 else ""


def says(**answer):
    """A command that prints an answer."""
    return "cat > /dev/null; echo '" + json.dumps(answer) + "'"


class Session:
    """One session of the agent, in a directory of its own."""

    def __init__(self, hookyard):
        self.hookyard = hookyard
        self.place = Path(tempfile.mkdtemp(prefix="agents-"))
        self.project = self.place / "project"
        self.home = self.place / "home"
        self.processes = []
        self.project.mkdir()
        self.home.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    def start(self, *command, **more):
        process = subprocess.Popen(command, **more)
        self.processes.append(process)
        return process

    def model(self, turns, thinks=0):
        """Starts the model with these turns, which thinks for so many seconds before each. Returns its port."""
        (self.place / "turns.json").write_text(json.dumps(turns))
        script = Path(__file__).with_name("model.py")
        process = self.start(sys.executable, str(script), str(self.place / "turns.json"), str(self.place / "requests"),
                             str(thinks), stdout=subprocess.PIPE, text=True)
        return process.stdout.readline().strip()

    def relay(self, dialect, *more):
        """Has a daemon run the hooks of the project, with these settings. Returns the command that relays events to it."""
        socket = self.place / "socket"
        elsewhere = self.place / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        home = ["--home", str(elsewhere)]
        settings = [part for setting in ("trust=off", "data=null", *more) for part in ("--set", setting)]
        log = self.place / "daemon.log"
        with log.open("w") as written:
            daemon = self.start(
                self.hookyard, "serve", "--workspace", str(self.project), "--socket", str(socket), *home, *settings,
                env={"PATH": os.environ["PATH"]}, stdout=written, stderr=written)
        deadline = time.monotonic() + 60
        while not self.is_ready(socket):
            if daemon.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the daemon does not start: {log.read_text()}")
            time.sleep(0.05)
        return f"{self.hookyard} relay --dialect {dialect} --socket {socket} --if-down block"

    def is_ready(self, socket):
        """Whether the daemon has loaded its workspaces: it answers before, and cases remove hook files that it has read."""
        status = subprocess.run([self.hookyard, "status", "--json", "--socket", str(socket)], capture_output=True)
        return status.returncode == 0 and json.loads(status.stdout)["phase"] == "ready"

    def agent(self, command, environment, written=""):
        """Runs the agent in the project with this on its standard input."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return subprocess.run(command, cwd=self.project, env={**base, **environment}, input=written,
                              capture_output=True, text=True, timeout=240)

    def run(self, command, environment, written=""):
        """Runs the agent in the project with this on its standard input. Returns its exit code."""
        return self.agent(command, environment, written).returncode

    def requests(self):
        """What the model was asked."""
        log = self.place / "requests"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def ran(self):
        """What the tools wrote to the file `ran` of the project."""
        ran = self.project / "ran"
        return ran.read_text().split() if ran.exists() else []

    def plain(self, text):
        """A text without what differs from one session to the next."""
        return re.sub(r"(\\n|\s)+", " ", text.replace(str(self.place), "")).strip()


def compare(cases, wanted, run, known=()):
    """Runs each case in both ways and prints whether it came out the same. `known` names those that must differ."""
    wrong = 0
    for name, *case in cases:
        if wanted not in name:
            continue
        direct = run(*case, through=False)
        relayed = run(*case, through=True)
        is_same = direct == relayed
        is_right = is_same != (name in known)
        wrong += not is_right
        print(("same     " if is_same else "different") + ("" if is_right else "!"), name, flush=True)
        if not is_same:
            print(f"  directly         {direct}\n  through hookyard {relayed}", flush=True)
    sys.exit(wrong > 0)
