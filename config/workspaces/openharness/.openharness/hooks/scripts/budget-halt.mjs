#!/usr/bin/env node
// Halts the run when one model call has used more tokens than SHOP_TOKEN_BUDGET allows.

import { answer, readEnvelope } from './lib/envelope.mjs';

const envelope = await readEnvelope('budget-halt');
const budget = Number(process.env.SHOP_TOKEN_BUDGET || 50000);
if (!(budget > 0)) {
  console.error('budget-halt: SHOP_TOKEN_BUDGET is not a positive number');
  process.exit(1);
}
const usage = envelope.model_response?.usage;
const used = usage?.total_tokens ?? usage?.totalTokens;
if (typeof used === 'number' && used > budget) {
  answer({
    continue: false,
    stopReason: `the model call used ${used} tokens, the budget is ${budget}`,
    systemMessage: `Run ${envelope.run_id ?? '(unknown)'} was halted over its token budget.`,
  });
}
