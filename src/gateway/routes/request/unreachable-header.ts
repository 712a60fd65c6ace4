/** Many clients accept heads of at most 16 KiB, and a fleet may have hundreds of devices that do not answer. */
const BYTES_MAX = 1_024

/** The value of Capfleet-Unreachable: "a, b, c", or "a, b, and 496 more" if all names are too long for a header. */
export function unreachableHeader(devices: readonly string[]): string {
  const all = devices.join(', ')
  if (all.length <= BYTES_MAX) return all
  const more = (count: number) => `and ${count} more`
  const shown: string[] = []
  let bytes = more(devices.length).length
  for (const device of devices) {
    bytes += device.length + ', '.length
    if (bytes > BYTES_MAX) break
    shown.push(device)
  }
  return [...shown, more(devices.length - shown.length)].join(', ')
}
