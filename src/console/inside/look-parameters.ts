/**
 * The parameters of the packet view's requests, which also identify its receipts, so that they are not listed as the
 * user's downloads.
 */

export interface LookSize {
  /** At most, of each device and in all. */
  readonly packetsMax: number
  readonly sliceBytes: number
}

/** The rows of the table, which shows addresses and the first bytes. */
export const TABLE_SIZE: LookSize = { packetsMax: 200, sliceBytes: 256 }

/** What Wireshark reads in a browser within seconds. Packets are whole, except jumbo frames. */
export const DISSECTED_SIZE: LookSize = { packetsMax: 10_000, sliceBytes: 2_048 }

export function lookPairs({ packetsMax, sliceBytes }: LookSize): readonly (readonly [string, string])[] {
  return [
    ['MaxPackets', String(packetsMax)],
    ['Slice', String(sliceBytes)],
    ['Compression', 'zstd'],
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
