/**
 * The parameters of the packet view's requests, which also identify its receipts, so that they are not listed as the
 * user's downloads.
 */

export interface LookSize {
  /** At most, of each device and in all. */
  readonly packetsMax: number
  readonly sliceBytes: number
  /** Of each device, at most. Undefined: the others are limit enough. */
  readonly bytesMax: number | undefined
}

/** The rows of the table, which shows addresses and the first bytes. */
export const TABLE_SIZE: LookSize = { packetsMax: 200, sliceBytes: 256, bytesMax: undefined }

/** What Wireshark reads in a browser within seconds: whole packets, also jumbo frames, so that it can reassemble streams. */
export const DISSECTED_SIZE: LookSize = { packetsMax: 10_000, sliceBytes: 12_288, bytesMax: 32 << 20 }

export function lookPairs({
  packetsMax,
  sliceBytes,
  bytesMax,
}: LookSize): readonly (readonly [string, string])[] {
  return [
    ['MaxPackets', String(packetsMax)],
    ['Slice', String(sliceBytes)],
    ['Compression', 'zstd'],
    ...(bytesMax === undefined ? [] : ([['MaxBytes', String(bytesMax)]] as const)),
  ]
}

export function isLook({ path, query }: { readonly path: string; readonly query: string }): boolean {
  const given = new URLSearchParams(query)
  return (
    path.startsWith('/devices/') &&
    [TABLE_SIZE, DISSECTED_SIZE].some((size) =>
      lookPairs(size).every(([name, value]) => given.get(name) === value),
    )
  )
}
