/** When a cron expression is due, using the same parser as BullMQ. */
import { CronExpressionParser } from 'cron-parser'
import { CapfleetError } from '../../base/error.ts'
import { badParameter, quote } from '../query-parameters.ts'

export interface CronRule {
  /** Five fields: minute, hour, day of month, month, day of week. */
  readonly cron: string
  /** IANA name of the time zone that they refer to. */
  readonly cronZone: string
}

/** H is a minute that the parser picks at random, a different one each time it parses. */
const BY_CHANCE = /(^|[ ,])H([ ,/(]|$)/i

/** The first time after `afterMs`. Fails with bad-parameter for an expression that is invalid or never due. */
export function nextCronMs({ cron, cronZone }: CronRule, afterMs: number): number {
  if (BY_CHANCE.test(cron))
    throw badParameter('Cron', `must name a time; H (a random one) is not supported, got ${quote(cron)}`)
  try {
    const read = CronExpressionParser.parse(cron, { currentDate: new Date(afterMs), tz: cronZone })
    return read.next().getTime()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw badParameter(
      'Cron',
      `must be a valid cron expression that matches some time (${why}), got ${quote(cron)}`,
    )
  }
}

const HOUR_MS = 3_600_000

/**
 * The same for an expression that has been due before. If a clock is set back by half an hour, the parser finds
 * nothing after some times: this then searches from an hour or a day later.
 */
export function followingCronMs(rule: CronRule, afterMs: number): number {
  for (const skippedMs of [0, HOUR_MS]) {
    try {
      return nextCronMs(rule, afterMs + skippedMs)
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
    }
  }
  return nextCronMs(rule, afterMs + 24 * HOUR_MS)
}
