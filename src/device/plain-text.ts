/**
 * A text of a device as one line without control characters, cut at `lengthMax` characters; undefined
 * for anything else, and for nothing. What a terminal or a log shows of it is what it is.
 */
export function plainText(value: unknown, lengthMax: number): string | undefined {
  if (typeof value !== 'string') return undefined
  const line = value.slice(0, lengthMax).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  const text = line.toWellFormed().trim()
  return text === '' ? undefined : text
}
