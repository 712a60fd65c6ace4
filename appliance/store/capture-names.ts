import { BASE_NAME, BASE_NAME_RULE } from '../../src/shared/query/capture-name-rule.ts'
import { badParameter, quote } from '../../src/shared/query/query-parameters.ts'

/** Checks a name. Fails with bad-parameter. */
export function checkBaseName(name: string): void {
  if (BASE_NAME.test(name)) return
  throw badParameter('StreamName', `must be ${BASE_NAME_RULE}, got ${quote(name)}`)
}

/**
 * Full names for a capture that starts now, in the order in which they are tried: with the minute, with the second,
 * then numbered starting at 2; in the device's zone. Never ends.
 */
export function* fullCaptureNames(
  baseName: string,
  startNs: bigint,
  timeZone: string,
): Generator<string, never> {
  const { date, minute, second } = localTime(startNs, timeZone)
  const byMinute = `${baseName}_${date}_${minute}`
  yield byMinute
  const bySecond = `${byMinute}_${second}`
  yield bySecond
  for (let number = 2; ; number++) yield `${bySecond}_${number}`
}

function localTime(ns: bigint, timeZone: string) {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
  const parts: Record<string, string> = {}
  for (const { type, value } of format.formatToParts(Number(ns / 1_000_000n))) parts[type] = value
  return {
    date: `${parts.year}${parts.month}${parts.day}`,
    minute: `${parts.hour}${parts.minute}`,
    second: `${parts.second}`,
  }
}
