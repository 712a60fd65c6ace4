import { listText } from '../../../shared/base/list-text.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import type { DeviceClock } from './body.ts'

/** Fails with bad-parameter if the clock of a device is not known, so that Align cannot correct its timestamps. */
export function requireKnownClocks(
  devices: readonly string[],
  clockOf: (device: string) => DeviceClock | undefined,
): void {
  const unknown = devices.filter((device) => clockOf(device) === undefined)
  if (unknown.length === 0) return
  throw badParameter(
    'Align',
    `cannot correct the timestamps of ${listText(unknown)}: the gateway could not read the clock of ${unknown.length === 1 ? 'this device' : 'these devices'} (/api/v1/system/time_current); leave out Align, or ${unknown.length === 1 ? 'the device' : 'the devices'}`,
  )
}
