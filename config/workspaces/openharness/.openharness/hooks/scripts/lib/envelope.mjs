// Reads the one JSON envelope a command hook gets on stdin, and writes its answer.
// A hook that has nothing to say writes nothing.

export async function readEnvelope(hook) {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  try {
    const envelope = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    if (isObject(envelope)) return envelope;
    throw new SyntaxError('not an object');
  } catch (error) {
    // Not the parser's own message: it may quote the event.
    console.error(`${hook}: stdin holds no JSON object (${error.name})`);
    process.exit(1);
  }
}

export function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function answer(output) {
  process.stdout.write(`${JSON.stringify(output)}\n`);
}
