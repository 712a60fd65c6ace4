/** The groups of the system status, which are also used for telemetry. */

import type { Caller } from '../../src/shared/base/caller.ts'
import { productVersion } from '../../src/shared/base/product-version.ts'
import { type ApplianceParts, nowNs } from '../appliance-parts.ts'
import { withoutStorePath } from '../request/hidden-path.ts'
import { captureGroup } from './capture-group.ts'
import { catGroup } from './cat-group.ts'
import { diskGroup, ioGroup } from './disk-groups.ts'
import { fanGroup, powerGroup, temperatureGroup } from './hwmon-groups.ts'
import { describePorts, linkGroup } from './link-group.ts'
import { otherGroup } from './other-group.ts'
import { ptpGroup } from './ptp-group.ts'
import type { StatusGroup } from './status-group.ts'

export interface StatusReading {
  /** Epoch seconds. */
  readonly timestamp: number
  readonly ver: string
  /** By name, in the order of the API, each with the members common to all groups. */
  readonly groups: Readonly<Record<string, StatusGroup>>
}

/** Built from readings in memory, without waiting. */
export function readStatus(parts: ApplianceParts): StatusReading {
  const timestamp = Math.floor(Date.now() / 1000)
  const ver = productVersion()
  const groups = Object.entries(readGroups(parts)).map(([subsystem, members]) => [
    subsystem,
    { module: 'system', subsystem, timestamp, ver, ...members },
  ])
  return { timestamp, ver, groups: Object.fromEntries(groups) }
}

/** Users' queries and their progress: everything about a running download except that there is one, and its kind. */
const QUERY_MEMBERS = /^cat_\d_(?!Enable$|Mode$)/
/** Names given by users. */
const NAME_MEMBERS = /^(CaptureName|CaptureMessage)$/

/**
 * The groups as the caller may see them; `undefined` is an anonymous caller. Members keep their types: without the
 * scope audit:read queries are empty, and for anonymous callers names are too.
 */
export function shownGroups(
  groups: StatusReading['groups'],
  caller: Pick<Caller, 'scopes'> | undefined,
): StatusReading['groups'] {
  if (caller?.scopes.has('audit:read')) return groups
  const isEmpty = (name: string) =>
    QUERY_MEMBERS.test(name) || (caller === undefined && NAME_MEMBERS.test(name))
  const emptied = Object.entries(groups).map(([subsystem, members]) => {
    const shown = Object.entries(members).map(([name, value]) => [
      name,
      isEmpty(name) ? emptyOf(value) : value,
    ])
    return [subsystem, Object.fromEntries(shown)]
  })
  return Object.fromEntries(emptied)
}

function emptyOf(value: StatusGroup[string]): StatusGroup[string] {
  if (typeof value === 'string') return ''
  if (typeof value === 'boolean') return false
  return typeof value === 'bigint' ? 0n : 0
}

/** Reads all groups, in the order of the API. */
function readGroups({
  config,
  serial,
  sensors,
  slots,
}: ApplianceParts): Readonly<Record<string, StatusGroup>> {
  const hwmon = sensors.hwmon.value
  const spaces = sensors.spaces.value
  const report = sensors.capture.value
  return {
    temperature: temperatureGroup(hwmon),
    fan: fanGroup(hwmon),
    disk: diskGroup({ spaces, disks: sensors.disks.value, health: sensors.diskHealth.value }),
    link: linkGroup(sensors.links.value),
    io: ioGroup(sensors.diskIo.value),
    capture: captureGroup(
      report && { ...report, message: withoutStorePath(report.message, config.store) },
      sensors.stored.value,
    ),
    power: powerGroup(hwmon, sensors.supplies.value),
    other: otherGroup({
      host: sensors.host.value,
      store: spaces?.get('Store0'),
      serial,
      portConfig: describePorts(sensors.links.value),
      version: productVersion(),
    }),
    cat: catGroup({
      readersBySlot: slots.readersBySlot,
      figuresOf: (reader) => sensors.rates.figuresOf(reader),
    }),
    ptp: ptpGroup(sensors.clocks.value, nowNs()),
  }
}
