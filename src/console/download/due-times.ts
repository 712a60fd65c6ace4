/** When a schedule that is being typed would run. Loaded when it is needed, because the parser of Cron is large. */

import { SCHEDULE_PARAMETERS } from '../../shared/query/download/export-options.ts'
import { followingCronMs, nextCronMs } from '../../shared/query/time/cron-times.ts'
import { messageOf, Problem } from '../base/ask-gateway.ts'
import { NS_PER_MS } from '../base/instants.ts'

const SHOWN_TIMES = 3

interface TypedSchedule {
  readonly cron: string
  /** Empty: the gateway's. */
  readonly cronZone: string
}

interface DueOptions {
  /** The gateway's time zone. */
  readonly timeZone: string
  readonly afterMs: number
}

/** The next times in epoch nanoseconds. Fails with a Problem that names the parameter, as the gateway would. */
export function dueTimes(
  { cron, cronZone }: TypedSchedule,
  { timeZone, afterMs }: DueOptions,
): readonly bigint[] {
  const { cron: when, cronZone: where } = SCHEDULE_PARAMETERS
  const zone = read(where.name, () =>
    cronZone === '' ? timeZone : where.type.read(cronZone, where.name, {}),
  )
  return read(when.name, () => {
    const rule = { cron: when.type.read(cron, when.name, {}) ?? cron, cronZone: zone ?? timeZone }
    const times = [nextCronMs(rule, afterMs)]
    while (times.length < SHOWN_TIMES) times.push(followingCronMs(rule, times.at(-1) ?? afterMs))
    return times.map((ms) => BigInt(ms) * NS_PER_MS)
  })
}

function read<Value>(param: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    throw new Problem({ code: 'bad-parameter', status: 400, detail: messageOf(error), param })
  }
}
