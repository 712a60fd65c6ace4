/** The order of the fleet's rows: by site, or by the values of a column. */
import type { DeviceReport } from '../base/devices.ts'

/** undefined: the device does not report it, and is placed last in both directions. */
type Value = string | number | bigint | undefined

/** In the order of the columns. */
const VALUES = {
  device: ({ name }) => name,
  health: ({ reachable }) => (reachable === null ? 1 : reachable ? 2 : 0),
  capture: ({ capture }) => capture?.state ?? undefined,
  rate: ({ capture }) => capture?.gbps ?? undefined,
  drops: ({ capture }) => capture?.drops ?? undefined,
  offset: ({ clockOffsetNs }) => (clockOffsetNs === null ? undefined : BigInt(clockOffsetNs)),
  oldest: oldestNs,
  kept: (device) => {
    const ns = oldestNs(device)
    return ns === undefined ? undefined : -ns
  },
  free: ({ storeFreeBytes }) => storeFreeBytes ?? undefined,
  streams: ({ slotsUsed }) => slotsUsed ?? undefined,
  waiting: ({ waiting }) => waiting ?? undefined,
} as const satisfies Readonly<Record<string, (device: DeviceReport) => Value>>

export type SortKey = keyof typeof VALUES

export const SORT_KEYS = Object.keys(VALUES) as readonly SortKey[]

export interface Sort {
  readonly key: SortKey
  readonly isDescending: boolean
}

/** The value of "sort" in the page's address: "free", or "-free" for the largest first. */
export function readSort(text = ''): Sort | undefined {
  const isDescending = text.startsWith('-')
  const key = SORT_KEYS.find((name) => name === text.slice(isDescending ? 1 : 0))
  return key === undefined ? undefined : { key, isDescending }
}

/** What a click on the heading of a column means: its smallest values first, then its largest, then by site again. */
export function nextSort(sort: Sort | undefined, key: SortKey): string | undefined {
  if (sort?.key !== key) return key
  return sort.isDescending ? undefined : `-${key}`
}

/** Devices with equal values keep their order. */
export function sorted(
  devices: readonly DeviceReport[],
  { key, isDescending }: Sort,
): readonly DeviceReport[] {
  const valueIn: (device: DeviceReport) => Value = VALUES[key]
  const direction = isDescending ? -1 : 1
  return devices.toSorted((one, other) => {
    const [a, b] = [valueIn(one), valueIn(other)]
    if (a === b) return 0
    if (a === undefined) return 1
    if (b === undefined) return -1
    return a < b ? -direction : direction
  })
}

function oldestNs({ oldestPacketNs }: DeviceReport): bigint | undefined {
  return oldestPacketNs === null || oldestPacketNs === '0' ? undefined : BigInt(oldestPacketNs)
}
