/** The columns of a device's capture table; the gateway puts the device in front. */
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
 * A line of a table (RFC 4180) with its line end; undefined columns are empty. Texts come from devices and users: one
 * that a spreadsheet would evaluate gets an apostrophe in front.
 */
export function csvLine(columns: readonly unknown[]): string {
  return `${columns.map(csvField).join(',')}\n`
}

function csvField(value: unknown): string {
  const given = value === undefined || value === null ? '' : String(value)
  const text = typeof value === 'string' && isFormula(value) ? `'${value}` : given
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Characters with which a spreadsheet formula begins; numbers are excepted. */
const FORMULA_BEGINS: ReadonlySet<string> = new Set(['=', '+', '-', '@', '\t', '\r'])

function isFormula(text: string): boolean {
  return FORMULA_BEGINS.has(text.charAt(0)) && !Number.isFinite(Number(text))
}
