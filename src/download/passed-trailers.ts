/** Trailers of a device that say something of the packets, and so hold for a relayed body too. */
const PASSED_TRAILERS = [
  'Capfleet-Packets',
  'Capfleet-Corrupt-Blocks',
  'Capfleet-TS-Fallbacks',
  'Capfleet-Late-Packets',
  'Capfleet-Truncated',
  'Capfleet-Next-Ns',
] as const

type PassedTrailer = (typeof PASSED_TRAILERS)[number]

/** Those that only the gateway knows. */
const OWN_TRAILERS = [
  'Capfleet-Complete',
  'Capfleet-Status',
  'Capfleet-Bytes',
  'Capfleet-Missing',
  'Capfleet-Duplicates',
  'Capfleet-Sha256',
] as const

/** Every trailer that a download of ours can have, for its head. */
export const TRAILER_NAMES = [...OWN_TRAILERS, ...PASSED_TRAILERS].join(', ')

/** What a device sent of them; only whole numbers, a device is not trusted. */
export function passedTrailers(
  trailers: Readonly<Record<string, string>>,
): Partial<Record<PassedTrailer, string>> {
  const passed: Partial<Record<PassedTrailer, string>> = {}
  for (const name of PASSED_TRAILERS) {
    const value = trailers[name.toLowerCase()] ?? ''
    if (/^\d{1,20}$/.test(value)) passed[name] = value
  }
  return passed
}

/** Counts that add up over devices. */
const SUMMED_TRAILERS = ['Capfleet-Corrupt-Blocks', 'Capfleet-TS-Fallbacks', 'Capfleet-Late-Packets'] as const

/** The same of a body that several devices are merged into, save its own packet count. */
export function mergedTrailers(
  all: readonly Readonly<Record<string, string>>[],
  own: { readonly nextNs: bigint | undefined },
): Partial<Record<PassedTrailer, string>> {
  const passed = all.map(passedTrailers)
  const merged: Partial<Record<PassedTrailer, string>> = {}
  for (const name of SUMMED_TRAILERS) {
    merged[name] = String(passed.reduce((sum, trailers) => sum + BigInt(trailers[name] ?? 0), 0n))
  }
  const nextNs = own.nextNs ?? firstNextNs(passed)
  merged['Capfleet-Truncated'] = nextNs === undefined ? '0' : '1'
  if (nextNs !== undefined) merged['Capfleet-Next-Ns'] = String(nextNs)
  return merged
}

/** A device ends at MaxPackets too; when it alone had packets, it is the one that knows what follows. */
function firstNextNs(passed: readonly Partial<Record<PassedTrailer, string>>[]): bigint | undefined {
  const [first] = passed
    .flatMap((trailers) => trailers['Capfleet-Next-Ns'] ?? [])
    .map(BigInt)
    .sort((a, b) => (a < b ? -1 : 1))
  return first
}
