/** One line of a table with columns of these widths. */
export function printCells(cells: readonly string[], widths: readonly number[]): void {
  process.stdout.write(`${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' ')}\n`)
}
