/** How many packets captures lose per second, from two reports of each device. */
import { useRef } from 'preact/hooks'
import type { DeviceReport } from '../base/devices.ts'

/** What one report said, and the rate since the one before. */
export interface DropCount {
  readonly captureName: string | null
  readonly atMs: number
  readonly drops: number
  /** undefined: only one report so far. */
  readonly perS: number | undefined
}

export type DropCounts = ReadonlyMap<string, DropCount>

/** A new capture counts from 0 again. Devices without a count of drops are left out. */
export function countedDrops(before: DropCounts, devices: readonly DeviceReport[]): DropCounts {
  return new Map(
    devices.flatMap(({ name, probedAt, capture }) => {
      if (probedAt === null || capture === null || capture.drops === null) return []
      const now = { captureName: capture.name, atMs: Date.parse(probedAt), drops: capture.drops }
      const last = before.get(name)
      if (last === undefined || last.captureName !== now.captureName || now.drops < last.drops)
        return [[name, { ...now, perS: undefined }] as const]
      if (now.atMs <= last.atMs) return [[name, last] as const]
      const perS = ((now.drops - last.drops) * 1_000) / (now.atMs - last.atMs)
      return [[name, { ...now, perS }] as const]
    }),
  )
}

/** While the page is open. */
export function useDropCounts(devices: readonly DeviceReport[]): DropCounts {
  const counts = useRef<{ readonly of: readonly DeviceReport[]; readonly counts: DropCounts }>(undefined)
  if (counts.current?.of !== devices)
    counts.current = { of: devices, counts: countedDrops(counts.current?.counts ?? new Map(), devices) }
  return counts.current.counts
}
