/** When each gateway noticed that devices failed or came back, according to its own health data. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ScaleLoad } from './scale-load.ts'

export interface Watched {
  readonly devices: readonly number[]
  readonly isUp: boolean
  /** When this happened (Date.now()). */
  readonly sinceMs: number
}

interface ShownDevice {
  readonly name: string
  readonly reachable: boolean | null
  readonly since: string | null
}

const LOOK_MS = 1_000
const LONGEST_MS = 60_000

/** How long it took, for each gateway and device that noticed; after a minute the others count as late. */
export async function watchHealth(
  load: ScaleLoad,
  watched: Watched,
): Promise<{ readonly tookMs: readonly number[]; readonly lateDevices: readonly string[] }> {
  const found = await Promise.all(load.options.gateways.map((url) => watchOne(load, url, watched)))
  return {
    tookMs: found.flatMap(({ tookMs }) => tookMs),
    lateDevices: found.flatMap(({ lateDevices }) => lateDevices),
  }
}

async function watchOne(load: ScaleLoad, url: string, { devices, isUp, sinceMs }: Watched) {
  const names = new Set(devices.map((device) => `d${device}`))
  const endMs = performance.now() + LONGEST_MS
  for (;;) {
    const body = await load.call('/v1/devices', url, '/v1/devices')
    const shown = (JSON.parse(body) as { devices: readonly ShownDevice[] }).devices
    const seen = shown.filter(({ name, reachable }) => names.has(name) && reachable === isUp)
    if (seen.length === names.size || performance.now() > endMs) {
      const seenNames = new Set(seen.map(({ name }) => name))
      return {
        // A device that was seen before may have been probed when its answer was on its way.
        tookMs: seen.map(({ since }) => Math.max(0, Date.parse(since ?? '') - sinceMs)),
        lateDevices: [...names.difference(seenNames)],
      }
    }
    await delay(LOOK_MS)
  }
}
