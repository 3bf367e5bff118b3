// The trust in the hooks of a workspace: what they run, what has changed since a person has agreed to it, and the agreement.
import { useState } from "preact/hooks";
import { type ApiError, change, get } from "./api";
import { changes } from "./diff";
import { plural } from "./format";
import { Difference, Empty, Failure, Section } from "./parts";
import { asError } from "./state";
import type { FileContent, ReviewedFile, ReviewedHook, TrustReview } from "./types";

const TONES: Record<string, [string, string]> = { trusted: ["●", "good"], untrusted: ["✕", "bad"], modified: ["✕", "bad"], missing: ["✕", "bad"] };

/// A button that does something at its second click.
function Sure({ label, really, tone, act }: { label: string; really: string; tone: string; act: () => Promise<void> }) {
  const [state, setState] = useState<"idle" | "sure" | "busy">("idle");
  const click = async () => {
    if (state === "idle") return setState("sure");
    setState("busy");
    await act();
    setState("idle");
  };
  return (
    <button type="button" class={state === "idle" ? tone : "danger"} disabled={state === "busy"} onClick={() => void click()} onBlur={() => state === "sure" && setState("idle")}>
      {state === "idle" ? label : really}
    </button>
  );
}

/// The text of a file, or what stands in its place.
function shownText(content: FileContent | null): string | null {
  if (content === null) return null;
  return content.text ?? `(${content.unshown})\nSHA-256 ${content.sha256}`;
}

function FileReview({ file }: { file: ReviewedFile }) {
  const { path, before, now } = file;
  const said = before === null ? "new" : now === null ? "gone" : before.executable === now.executable ? "changed" : now.executable ? "is a program now" : "is no program any more";
  const lines = changes(shownText(before), shownText(now));
  return (
    <>
      <h4>
        {path} <span class="quiet">{said}</span>
      </h4>
      {(before?.unshown ?? now?.unshown) && (
        <p class="bad">
          <span aria-hidden="true">⚠ </span>Not all of it is shown here: {now?.unshown ?? before?.unshown}.
        </p>
      )}
      {lines.length > 0 ? <Difference label={`${path}: changes`} lines={lines} /> : <p class="quiet">{now?.text === "" ? "It is empty." : "Its text is the same."}</p>}
    </>
  );
}

function HookReview({ it, files, revoke }: { it: ReviewedHook; files: ReviewedFile[]; revoke: (hook: string) => Promise<void> }) {
  const [sign, tone] = TONES[it.state] ?? ["✕", "bad"];
  const isTrusted = it.state === "trusted";
  const isGone = it.now === null && it.problem === null;
  const [before, now] = isTrusted ? [null, it.now] : [it.before, it.now];
  const terms = changes(before?.terms.join("\n") ?? null, now?.terms.join("\n") ?? null);
  const definition = changes(before?.definition ?? null, now?.definition ?? null);
  const changed = it.files.flatMap((at) => files[at]?.path ?? []);
  const body = (
    <>
      {it.problem && (
        <p class="bad">
          <span aria-hidden="true">✕ </span>Nobody can agree to it: {it.problem}.
        </p>
      )}
      {isGone && <p>It is gone. Whoever agrees to that has it forgotten: nothing stands in its place then.</p>}
      {(it.problem === null || it.before === null) && terms.length > 0 && <Difference label={`${it.hook}: what it gets and when it counts`} lines={terms} />}
      {it.problem === null && definition.length > 0 && <Difference label={`${it.hook}: definition`} lines={definition} />}
      {changed.length > 0 && <p class="sub">Its files that are new or changed, below: {changed.join(", ")}</p>}
    </>
  );
  return (
    <li>
      <div class="stage-head">
        <h3>{it.hook}</h3>
        <span class={tone}>
          <span aria-hidden="true">{sign} </span>
          {it.state}
        </span>
        {it.before !== null && <Sure label={`Revoke trust in ${it.hook}`} really={`Really revoke trust in ${it.hook}`} tone="" act={() => revoke(it.hook)} />}
      </div>
      {isTrusted ? (
        <details>
          <summary>What was agreed to</summary>
          {body}
        </details>
      ) : (
        body
      )}
    </li>
  );
}

function Agreement({ review, agree }: { review: TrustReview; agree: () => Promise<void> }) {
  const open = review.hooks.filter((it) => it.state !== "trusted");
  const wanted = open.filter((it) => it.problem === null);
  if (review.hooks.length === 0) return <Empty>No hook of this workspace needs trust.</Empty>;
  if (open.length === 0) return <p class="good">Everything is trusted as it is.</p>;
  if (wanted.length === 0) return <p>Mend the files first, then look again.</p>;
  const unseen = review.files.filter((file) => file.now?.unshown).length;
  return (
    <p>
      {unseen > 0 && (
        <strong class="bad">
          <span aria-hidden="true">⚠ </span>
          {plural(unseen, "file")} above cannot be shown here: read {unseen === 1 ? "it" : "them"} before you agree.{" "}
        </strong>
      )}
      <Sure label="Agree to exactly this" really={`Really agree: ${plural(wanted.length, "hook")}`} tone="main" act={agree} />
      <span class="sub">
        It covers all of the hooks above. If anything of them has changed since you looked, nothing is agreed to. Digest <code>{review.digest}</code>
      </span>
    </p>
  );
}

/// What may be agreed to in a workspace; `after` is called when something was.
export function TrustSection({ id, after }: { id: string; after: () => void }) {
  const [review, setReview] = useState<TrustReview | undefined>();
  const [failed, setFailed] = useState<ApiError | undefined>();
  const [said, setSaid] = useState("");
  const path = `/v1/workspaces/${encodeURIComponent(id)}/trust`;
  const ask = async (asked: Promise<TrustReview>, done: string) => {
    setSaid("");
    try {
      setReview(await asked);
      setFailed(undefined);
      setSaid(done);
      if (done !== "") after();
    } catch (error) {
      setFailed(asError(error));
    }
  };
  const look = () => ask(get<TrustReview>(path), "");
  const agree = () => ask(change<TrustReview>("POST", path, { digest: review?.digest }), "Agreed. What you saw is what runs.");
  const revoke = (hook: string) => ask(change<TrustReview>("DELETE", `${path}?${new URLSearchParams({ hook })}`), `The trust in ${hook} is taken back.`);
  const again = (
    <button type="button" onClick={() => void look()}>
      {review ? "Look again" : "Show what the hooks run, and what has changed"}
    </button>
  );
  return (
    <Section title="Trust" aside={again}>
      <p role="status" class="good">
        {said}
      </p>
      {failed && failed.status !== 401 && <Failure error={failed} again={() => void look()} />}
      {review && !review.enforced && <Empty>Trust is switched off in the settings: hooks run without it.</Empty>}
      {review && (
        <>
          <ul class="stages">
            {review.hooks.map((it) => (
              <HookReview key={it.hook} it={it} files={review.files} revoke={revoke} />
            ))}
          </ul>
          {review.files.length > 0 && (
            <>
              <h3>Files that are new or changed</h3>
              {review.files.map((file, index) => (
                <FileReview key={index} file={file} />
              ))}
            </>
          )}
          <Agreement review={review} agree={agree} />
        </>
      )}
    </Section>
  );
}
