/**
 * The parameters of the packet view's requests, which also identify its receipts, so that they are not listed as the
 * user's downloads.
 */

export const PACKETS_MAX = 200

export const LOOK_PAIRS = [
  ['MaxPackets', String(PACKETS_MAX)],
  ['Slice', '256'],
  ['Compression', 'zstd'],
] as const

export function isLook({ path, query }: { readonly path: string; readonly query: string }): boolean {
  const given = new URLSearchParams(query)
  return path.startsWith('/devices/') && LOOK_PAIRS.every(([name, value]) => given.get(name) === value)
}
