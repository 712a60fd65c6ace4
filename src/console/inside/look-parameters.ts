/** How a look inside asks for packets; by that its receipts are known, which nobody takes for their downloads. */

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
