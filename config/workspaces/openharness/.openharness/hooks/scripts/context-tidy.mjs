#!/usr/bin/env node
// Takes empty messages and repeated system messages out of a context that has just been built.

import { answer, isObject, readEnvelope } from './lib/envelope.mjs';

const isEmpty = ({ content }) => (typeof content === 'string' ? content.trim() === '' : Array.isArray(content) && content.length === 0);
// A message that calls tools may well have no text.
const callsTools = ({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0;

function tidied(messages) {
  const seen = new Set();
  return messages.filter((message) => {
    if (!isObject(message)) return true;
    if (isEmpty(message) && !callsTools(message)) return false;
    if (message.role !== 'system') return true;
    const text = JSON.stringify(message.content);
    if (seen.has(text)) return false;
    seen.add(text);
    return true;
  });
}

const envelope = await readEnvelope('context-tidy');
const messages = envelope.context?.messages;
if (Array.isArray(messages)) {
  const kept = tidied(messages);
  if (kept.length < messages.length) {
    answer({
      systemMessage: `Took ${messages.length - kept.length} empty or repeated message(s) out of the context.`,
      hookSpecificOutput: { hookEventName: 'after_context_build', patch: { context: { messages: kept } } },
    });
  }
}
