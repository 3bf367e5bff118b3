/** What the adapters have in common. */
export const placeOf = (place, context) => (typeof place === "function" ? place(context) : place);
/** A hook ended the run. It comes out where the host has started the run, in some frameworks as the cause of another error. */
export class Halted extends Error {
    name = "Halted";
}
/** The halt in an error of a framework, or undefined: it is another error. */
export function haltIn(error) {
    if (error instanceof Halted)
        return error;
    if (typeof error !== "object" || error === null)
        return undefined;
    return haltIn(error.error ?? error.cause ?? undefined);
}
/** What the model is told in place of a result, or undefined: go on. Throws `Halted` if the run ends. */
export function refusal(outcome, isApproved = false) {
    const { verdict, proceeds, reason } = outcome;
    if (verdict === "halt")
        throw new Halted(reason ?? "a hook ended the run");
    return proceeds || (verdict === "ask" && isApproved) ? undefined : told(outcome);
}
/** The reason of an outcome that does not proceed, with the notes for the model. */
export function told({ reason, notes }) {
    const forModel = notes.filter(({ kind }) => kind === "additional_context").map(({ text }) => text);
    return [reason ?? "a hook blocked this", ...forModel].join("\n");
}
/** Whether hooks changed something: then `payload` takes its place. */
export const isPatched = ({ patched }) => Object.keys(patched ?? {}).length > 0;
