/**
 * JSON for members that the API shows as numbers and that can exceed 2^53. A bigint is written with all its digits; if
 * a double could not hold it, it is accompanied by an exact string `<name>Exact`, because most JSON readers round.
 */
export function toExactJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member === 'bigint') return rawNumber(member)
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return withExactStrings(member)
  })
}

function withExactStrings(members: object): object {
  const entries = Object.entries(members).flatMap(([name, member]: [string, unknown]) =>
    typeof member === 'bigint' && !isSafe(member)
      ? [
          [name, member],
          [`${name}Exact`, String(member)],
        ]
      : [[name, member]],
  )
  return isRaw(members) ? members : Object.fromEntries(entries)
}

function isSafe(value: bigint): boolean {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
}

/** ECMAScript's JSON.rawJSON, which the type declarations lack so far. */
interface RawJson {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}
const rawJson = JSON as unknown as RawJson

function rawNumber(value: bigint): object {
  return rawJson.rawJSON(String(value))
}

function isRaw(value: object): boolean {
  return rawJson.isRawJSON(value)
}
