/** The table of captures as a device gives it; the gateway puts the device in front. */
export const CAPTURE_COLUMNS = [
  'StreamName',
  'StartTS',
  'EndTS',
  'PacketCnt',
  'ByteCnt',
  'State',
  'Type',
  'Desc',
] as const

/**
 * A line of a table (RFC 4180) with its line end; columns that are undefined are empty. Texts are of devices and users:
 * one that a spreadsheet would calculate begins with an apostrophe.
 */
export function csvLine(columns: readonly unknown[]): string {
  return `${columns.map(csvField).join(',')}\n`
}

function csvField(value: unknown): string {
  const given = value === undefined || value === null ? '' : String(value)
  const text = typeof value === 'string' && isFormula(value) ? `'${value}` : given
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** What a spreadsheet begins a formula with; a number is none. */
const FORMULA_BEGINS: ReadonlySet<string> = new Set(['=', '+', '-', '@', '\t', '\r'])

function isFormula(text: string): boolean {
  return FORMULA_BEGINS.has(text.charAt(0)) && !Number.isFinite(Number(text))
}
