/** What tools of the AI SDK take and give, and how the SDK is told that they may not. */
import { asSchema, jsonSchema } from "ai";
import { refusal } from "./shared.js";
/** What is thrown in place of an output if hooks say no. The SDK tells the model the message. */
export class Refused extends Error {
    name = "Refused";
}
/** Throws `Refused`, or `Halted`, unless a call or its output may go on. */
export function check(outcome, isAgreed = false) {
    const refused = refusal(outcome, isAgreed);
    if (refused !== undefined)
        throw new Refused(refused);
}
/** A schema whose valid inputs are those that `judge` returns. It throws to refuse one: the SDK then takes the call for invalid. */
export function judgedSchema(given, judge) {
    const schema = asSchema(given);
    const validate = async (value) => {
        const read = (await schema.validate?.(value)) ?? { success: true, value };
        return read.success ? { success: true, value: await judge(read.value) } : read;
    };
    return jsonSchema(() => schema.jsonSchema, { validate });
}
/** What a tool returns, or the last of what it yields: nobody sees a part of it before hooks do. */
export async function last(output) {
    let value = await output;
    if (typeof value?.[Symbol.asyncIterator] === "function")
        for await (value of value)
            ;
    return value;
}
/** Whether a person has agreed to a call. */
export function isApproved(messages, toolCallId) {
    const parts = messages.flatMap(({ content }) => content);
    const ids = parts.filter((part) => part.type === "tool-approval-request" && part.toolCallId === toolCallId).map((part) => part.approvalId);
    return parts.some(({ type, approvalId, approved }) => type === "tool-approval-response" && approved && ids.includes(approvalId));
}
