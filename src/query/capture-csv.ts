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

/** A line of a table (RFC 4180) with its line end; columns that are undefined are empty. */
export function csvLine(columns: readonly unknown[]): string {
  return `${columns.map(csvField).join(',')}\n`
}

function csvField(value: unknown): string {
  const text = value === undefined || value === null ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
