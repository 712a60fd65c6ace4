/**
 * The words of TSMode: which clock the timestamps of a download come from, the capture hardware's own ("nic") or one
 * that a switch has written into the packets.
 */
export const TIME_SOURCES = [
  'nic',
  'vendorA7130',
  'vendorA7150_overwrite',
  'vendorA7150_insert',
  'vendorA7280_eth64',
  'vendorA7280_mac48',
  'vendorB_erspan3',
  'vendorB3550',
] as const

export type TimeSource = (typeof TIME_SOURCES)[number]

/** Additional spellings of TSMode from a program's configuration (tsModeAliases). */
export type TimeSourceAliases = Readonly<Record<string, TimeSource>>

/**
 * The source that `word` means, or undefined for an unknown word. An alias cannot change the meaning of a word of the
 * API.
 */
export function timeSourceOf(word: string, aliases: TimeSourceAliases = {}): TimeSource | undefined {
  const known = TIME_SOURCES.find((source) => source === word)
  return known ?? (Object.hasOwn(aliases, word) ? aliases[word] : undefined)
}
