// The page: who is signed in, and which of the pages is shown.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, hasToken, onOtherTab, onSignedOut, signIn, signOut } from "./api";
import { longDuration } from "./format";
import { NowPage } from "./now";
import { Failure } from "./parts";
import { SettingsPage } from "./settings";
import { address, useAsked, useLive, usePlace } from "./state";
import type { Session, Status } from "./types";
import { showUnseen } from "./visible";
import { WhatPage } from "./what";
import { WhatIfPage } from "./whatif";
import { WhyPage } from "./why";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const PAGES: [string, string][] = [
  ["now", "Now"],
  ["why", "Why"],
  ["what-if", "What if"],
  ["runs-what", "What runs"],
  ["settings", "Settings"],
];

/// The secret of a link in the address, which is forgotten at once: it must not stay in the history.
function takeCode(): string | undefined {
  const found = /^#sign-in=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (found !== undefined) history.replaceState(undefined, "", "/#/now");
  return found;
}

const code = takeCode();

type Access = { state: "asking" } | { state: "out"; error?: ApiError } | { state: "in"; session: Session };

async function access(): Promise<Access> {
  try {
    // Also if somebody is signed in: they may have asked for more rights.
    if (code !== undefined) return { state: "in", session: await signIn(code) };
    return hasToken() ? { state: "in", session: await get<Session>("/v1/page/session") } : { state: "out" };
  } catch (error) {
    const failed = error instanceof ApiError ? error : new ApiError(0, "page", String(error), "load the page again");
    return failed.status === 401 ? { state: "out" } : { state: "out", error: failed };
  }
}

function SignedOut({ error }: { error: ApiError | undefined }) {
  return (
    <main class="signed-out">
      <h1>hookyard</h1>
      {error && <Failure error={error} />}
      <p>Sign in with a link from a terminal on the machine of the daemon:</p>
      <pre>hookyard ui</pre>
      <p>
        It may be used once, within two minutes. With <code>hookyard ui --control</code> the page may also cancel runs, show what events carry, and agree to hooks.
      </p>
    </main>
  );
}

function SignedIn({ session }: { session: Session }) {
  const place = usePlace();
  const live = useLive();
  const status = useAsked<Status>("/v1/status", 3000);
  const main = useRef<HTMLElement>(null);
  const page = place.path[0] ?? "now";
  const title = PAGES.find(([name]) => name === page)?.[1] ?? "Not found";
  const where = place.path.join("/");
  const first = useRef(true);
  useEffect(() => {
    document.title = `${[place.path[1], title].filter(Boolean).join(" · ")} · hookyard`;
    // A screen reader says where the reader is now.
    if (!first.current) main.current?.focus();
    first.current = false;
    scrollTo(0, 0);
  }, [where]);
  const lost = live.error ?? status.error;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to the content
      </a>
      <header>
        <strong class="brand">hookyard</strong>
        <nav aria-label="Pages">
          {PAGES.map(([name, text]) => (
            <a key={name} href={address([name])} {...(name === page ? { "aria-current": "page" as const } : {})}>
              {text}
            </a>
          ))}
        </nav>
        <div class="about">
          {status.value && (
            <span title={`version ${status.value.version}`}>
              {status.value.node} · {status.value.phase} · up {longDuration(status.value.uptime_ms)}
            </span>
          )}
          <span class="right">{session.right === "control" ? "may control" : "may read"}</span>
          <button type="button" onClick={() => void signOut().catch(() => {})}>
            Sign out
          </button>
        </div>
      </header>
      <div class="lost" role="status">
        {lost && lost.status !== 401 && (
          <p class="notice warn">
            <span aria-hidden="true">⚠ </span>
            <strong>{lost.message}</strong>: {lost.hint}. What you see may be old; the page tries again.
          </p>
        )}
      </div>
      <main id="main" ref={main} tabIndex={-1}>
        {page === "now" && <NowPage live={live} status={status.value} right={session.right} />}
        {page === "why" && <WhyPage place={place} right={session.right} />}
        {page === "what-if" && <WhatIfPage place={place} right={session.right} />}
        {page === "runs-what" && <WhatPage place={place} status={status.value} right={session.right} />}
        {page === "settings" && <SettingsPage right={session.right} />}
        {title === "Not found" && (
          <>
            <h1>Not found</h1>
            <p>
              This page does not exist. <a href={address(["now"])}>See what happens now</a>.
            </p>
          </>
        )}
      </main>
    </>
  );
}

function App() {
  const [current, setCurrent] = useState<Access>({ state: "asking" });
  useEffect(() => {
    onSignedOut(() => setCurrent({ state: "out" }));
    onOtherTab(() => location.reload());
    void access().then(setCurrent);
  }, []);
  // As in the file, which is drawn before this program is read.
  if (current.state === "asking") {
    return (
      <main class="signed-out">
        <h1>hookyard</h1>
      </main>
    );
  }
  return current.state === "out" ? <SignedOut error={current.error} /> : <SignedIn session={current.session} />;
}

const root = document.getElementById("page");
if (root) {
  showUnseen();
  root.replaceChildren();
  render(<App />, root);
}
