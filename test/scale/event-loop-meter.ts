/** Loaded into each gateway of a scale run: writes one line per second with the delay of its event loop. */
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface LoopDelay {
  readonly atMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

const RESOLUTION_MS = 10
const LINE_MS = 1_000
const NS_PER_MS = 1e6

const path = process.env.EVENT_LOOP_DELAYS
if (path !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // The measurement is the time between two ticks; a loop without delay shows that of the resolution.
  const late = (ns: number) => Math.max(0, ns / NS_PER_MS - RESOLUTION_MS)
  setInterval(() => {
    const line: LoopDelay = {
      atMs: Date.now(),
      p50Ms: late(histogram.percentile(50)),
      p99Ms: late(histogram.percentile(99)),
      maxMs: late(histogram.max),
    }
    histogram.reset()
    appendFileSync(path, `${JSON.stringify(line)}\n`)
  }, LINE_MS).unref()
}
