/** The cases that all clients share, at a daemon and at a stub of one. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, EVENT_KINDS, fake } from "../dist/index.js";
import { cases, Daemon, Directory, startStub } from "./support.js";

const method = (kind) => kind.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

const subset = (whole, part) => Object.fromEntries(Object.keys(part).map((key) => [key, whole[key]]));

describe("conformance", () => {
  const directory = new Directory();
  const daemon = new Daemon(directory);
  let runs = 0;

  before(() => daemon.start());
  after(async () => {
    await daemon.kill();
    directory.remove();
  });

  test("every kind of event has a method and its fields", async () => {
    const kinds = cases("events").map(({ kind }) => kind);
    assert.deepEqual(kinds, [...EVENT_KINDS]);
    const yard = fake();
    const place = { run: "r", session: "s", workspace: "w", cwd: "/c", id: "e", wait: true };
    const sent = { run_id: "r", session_id: "s", workspace_id: "w", cwd: "/c", event_id: "e", wait: true };
    for (const { kind, with: fields, sent: own } of cases("events")) {
      const outcome = await yard[method(kind)]({ ...place, ...fields });
      assert.equal(outcome.event, kind);
      assert.deepEqual(yard.events.at(-1), { event: kind, ...sent, ...own });
    }
    await yard.agentStopping({ run: "r" });
    assert.deepEqual(yard.events.at(-1), { event: "agent_stopping", run_id: "r", session_id: "r" });
  });

  for (const door of ["lines", "socket", "url"]) {
    test(`every kind of event is answered, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      for (const { kind, with: fields, payload } of cases("events")) {
        const outcome = await yard[method(kind)]({ run: `kinds-${door}-${kind}`, ...fields });
        assert.deepEqual([outcome.verdict, outcome.problem, outcome.payload], ["proceed", undefined, payload], kind);
      }
      yard.close();
    });

    for (const { name, command, expect } of cases("outcomes")) {
      test(`${name}, ${door}`, async () => {
        const yard = await connect(daemon.addresses()[door]);
        const outcome = await yard.beforeToolDispatch({ run: `run-${++runs}`, tool: { name: "Bash", input: { command } } });
        assert.deepEqual(subset(outcome, expect), expect);
        assert.equal(outcome.problem, undefined);
        yard.close();
      });
    }
  }

  for (const ifDown of ["block", "allow"]) {
    describe(`a daemon with faults, ${ifDown}`, () => {
      const stubs = new Directory();
      let stub;
      before(async () => (stub = await startStub(stubs)));
      after(() => {
        stub.end();
        stubs.remove();
      });

      for (const [number, faulty] of cases("faults").entries()) {
        for (const door of ["lines", "http"]) {
          test(`${faulty.name}, ${door}`, () => judge(faulty, `${stubs.path}/${number}.${door}`, door, ifDown));
        }
      }
    });
  }
});

async function judge({ run = "r", id, input = { command: "ls" }, timeout = 60, retry_for = 30, problem, expect }, path, door, ifDown) {
  const told = [];
  const options = { ifDown, timeoutMs: timeout * 1000, retryForMs: retry_for * 1000, onProblem: (...report) => told.push(report) };
  const yard = await connect({ [door === "lines" ? "lines" : "socket"]: path, ...options });
  const outcome = await yard.beforeToolDispatch({ run, id, tool: { name: "Bash", input } });
  yard.close();
  if (expect) {
    assert.equal(outcome.problem, undefined);
    assert.deepEqual(subset(outcome, expect), expect);
    return;
  }
  const { code, ...words } = problem;
  assert([code].flat().includes(outcome.problem?.code), outcome.problem?.code);
  assert.deepEqual(subset(outcome.problem, words), words);
  const goesOn = ifDown === "allow" && code !== "unknown_verdict";
  assert.deepEqual([outcome.verdict, outcome.proceeds, outcome.payload], [goesOn ? "proceed" : "block", goesOn, input]);
  assert(outcome.reason.includes(outcome.problem.message) && outcome.reason.includes(outcome.problem.hint), outcome.reason);
  assert.deepEqual(told, [[outcome.problem, outcome]]);
}
