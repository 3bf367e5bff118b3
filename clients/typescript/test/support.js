/** A daemon, a stub of one, and the cases that all clients share. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const CONFORMANCE = fileURLToPath(new URL("../../conformance/", import.meta.url));

export const cases = (name) => JSON.parse(readFileSync(`${CONFORMANCE}${name}.json`, "utf8"));

export class Directory {
  path = mkdtempSync(join(tmpdir(), "hookyard-client-"));

  remove() {
    rmSync(this.path, { recursive: true });
  }
}

/** The daemon of `HOOKYARD_PROGRAM`, or of the PATH, with a workspace of the conformance suite. */
export class Daemon {
  constructor(directory, workspace = "workspace") {
    this.workspace = `${CONFORMANCE}${workspace}`;
    this.directory = directory.path;
    this.lines = `${this.directory}/lines.sock`;
    this.socket = `${this.directory}/hookyard.sock`;
    this.token = "0123456789abcdef0123456789abcdef";
    writeFileSync(`${this.directory}/token`, this.token, { mode: 0o600 });
    writeFileSync(`${this.directory}/hookyard.yaml`, "trust: off\ndata: null\n");
  }

  async start() {
    const program = process.env.HOOKYARD_PROGRAM ?? "hookyard";
    const { directory, lines, socket } = this;
    const words = ["serve", "--config", "hookyard.yaml", "--home", directory, "--workspace", this.workspace,
      "--socket", socket, "--set", `listen.lines=${lines}`, "--tcp", "127.0.0.1:0", "--token-file", "token",
      "--exit-when-idle", "2m", "--log", "human"];
    const log = `${directory}/log`;
    this.child = spawn(program, words, { cwd: directory, stdio: ["ignore", "ignore", openSync(log, "w")] });
    await until(() => {
      this.url = /listening on .* and (http:\S+):/.exec(readFileSync(log, "utf8"))?.[1];
      assert.equal(this.child.exitCode, null, readFileSync(log, "utf8"));
      return this.url;
    });
  }

  async kill() {
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }

  /** The ways to it. */
  addresses() {
    const { lines, socket, url, token } = this;
    return { lines: { lines }, socket: { socket }, url: { url, token } };
  }
}

/** The stub of the conformance suite, which listens in a directory. */
export async function startStub(directory) {
  const child = spawn("python3", [`${CONFORMANCE}stub.py`, directory.path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return { end: () => child.stdin.end() };
}

/** Waits until a condition holds. */
export async function until(condition) {
  for (const end = Date.now() + 60_000; !(await condition()); await sleep(5)) assert(Date.now() < end, "waited a minute");
}
