/**
 * Counts, sizes and rates in readable form, the same on the page and in the command line. Sizes have binary units, rates
 * of a network have decimal ones.
 */

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const
const BIT_UNITS = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'] as const

/** "1,234,567": exact, whatever its size. */
export function countText(value: bigint | number | string): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** "1 packet", "1,234 packets" */
export function packetsText(value: bigint | number | string): string {
  return `${countText(value)} ${String(value) === '1' ? 'packet' : 'packets'}`
}

export function bytesText(value: bigint | number | string): string {
  return scaled(Number(value), 1_024, BYTE_UNITS)
}

export function bitRateText(bitsPerSecond: number): string {
  return scaled(bitsPerSecond, 1_000, BIT_UNITS)
}

export function percentText(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.1 ? 1 : 0)} %`
}

function scaled(value: number, step: number, units: readonly string[]): string {
  let index = 0
  let rest = value
  while (rest >= step && index < units.length - 1) {
    rest /= step
    index += 1
  }
  const digits = index === 0 || rest >= 100 ? 0 : rest >= 10 ? 1 : 2
  return `${rest.toFixed(digits)} ${units[index]}`
}
