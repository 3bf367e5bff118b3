// Prices are whole cents, so a total never carries a rounding error.
export function total(lines) {
  return lines.reduce((cents, line) => cents + line.cents * line.quantity, 0);
}
