import type { Source } from './source.ts'

const NAME = 'Capfleet-Aged-Out-Before'

/**
 * From when on no device of a merge has removed packets of the range, as the devices say; nothing
 * when none has.
 */
export function agedOutHeader(
  sources: readonly (Pick<Source, 'headers'> | undefined)[],
): Readonly<Record<string, string>> {
  const said = sources.map((source) => source?.headers[NAME.toLowerCase()] ?? '')
  const times = said.filter((text) => /^\d{1,20}$/.test(text)).map(BigInt)
  const [latest] = times.toSorted((a, b) => (a > b ? -1 : 1))
  return latest === undefined ? {} : { [NAME]: String(latest) }
}
