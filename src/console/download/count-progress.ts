/** An exact count of the selection: the gateway's answer, line by line. */
import type { z } from 'zod'
import type { FLEET_COUNT_LINES } from '../../shared/contract/count-lines.ts'
import { openAnswer, Problem } from '../base/ask-gateway.ts'
import { linesOf } from '../base/body-lines.ts'
import { TEXTS } from '../texts.ts'

type CountLine = z.infer<(typeof FLEET_COUNT_LINES)[keyof typeof FLEET_COUNT_LINES]>
type CountEnd = z.infer<typeof FLEET_COUNT_LINES.end>

interface DeviceCount {
  readonly packets: string
  /** undefined: hidden from callers with a filter. */
  readonly checkedBytes?: string | undefined
  readonly rangeBytes?: string | undefined
}

export interface CountProgress {
  readonly byDevice: ReadonlyMap<string, DeviceCount>
  /** Why devices did not answer, by name. */
  readonly failures: ReadonlyMap<string, string>
  /** undefined: it is still counted. */
  readonly end: CountEnd | undefined
}

export const NOTHING_COUNTED: CountProgress = { byDevice: new Map(), failures: new Map(), end: undefined }

/** `show` is called as the answer arrives. Fails with a Problem, also if the answer breaks off. */
export async function askCount(
  query: string,
  signal: AbortSignal,
  show: (progress: CountProgress) => void,
): Promise<void> {
  const { body } = await openAnswer(`v1/count?${query}`, { signal })
  let progress = NOTHING_COUNTED
  if (body !== null)
    for await (const line of linesOf(body)) {
      progress = withCountLine(progress, line)
      show(progress)
    }
  if (progress.end === undefined)
    throw new Problem({ code: 'broken-off', status: 0, detail: TEXTS.download.count.brokenOff })
}

/** What is counted after this line. Throws the Problem of a line with an error about no device. */
export function withCountLine(progress: CountProgress, text: string): CountProgress {
  const line = JSON.parse(text) as CountLine
  if ('end' in line) return { ...progress, end: line }
  if ('error' in line) {
    const { detail, code } = line.error
    if (!('device' in line)) throw new Problem({ code, detail, status: 0 })
    return { ...progress, failures: new Map([...progress.failures, [line.device, detail]]) }
  }
  return { ...progress, byDevice: new Map([...progress.byDevice, [line.device, line]]) }
}

/** The packets so far, and the share of the stored bytes that was read, if it is known. A running capture grows meanwhile. */
export function countedSoFar({ byDevice }: CountProgress): {
  readonly packets: bigint
  readonly share: number | undefined
} {
  const counts = [...byDevice.values()]
  const sum = (name: keyof DeviceCount) => counts.reduce((before, one) => before + BigInt(one[name] ?? 0), 0n)
  const rangeBytes = sum('rangeBytes')
  return {
    packets: sum('packets'),
    share: rangeBytes === 0n ? undefined : Math.min(1, Number(sum('checkedBytes')) / Number(rangeBytes)),
  }
}
