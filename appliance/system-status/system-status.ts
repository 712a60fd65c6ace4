/** /api/v1/system/status (API section 2.5): built from readings in memory, it waits for nothing. */
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import { takeNoParameters } from '../finish-parameters.ts'
import { captureGroup } from './capture-group.ts'
import { catGroup } from './cat-group.ts'
import { diskGroup } from './disk-group.ts'
import { toExactJson } from './exact-json.ts'
import { fanGroup } from './fan-group.ts'
import { ioGroup } from './io-group.ts'
import { linkGroup } from './link-group.ts'
import { otherGroup } from './other-group.ts'
import { describePorts } from './port-config.ts'
import { powerGroup } from './power-group.ts'
import { productVersion } from './product-version.ts'
import { ptpGroup } from './ptp-group.ts'
import type { StatusGroup } from './status-group.ts'
import { temperatureGroup } from './temperature-group.ts'

export async function answerStatus(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  const timestamp = Math.floor(Date.now() / 1000)
  const ver = productVersion()
  const groups = Object.entries(readGroups(parts)).map(([subsystem, members]) => [
    subsystem,
    { module: 'system', subsystem, timestamp, ver, ...members },
  ])
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson({ timestamp, ver, ...Object.fromEntries(groups) })
}

/** In the order of the API. */
function readGroups({ config, sensors, slots }: ApplianceParts): Readonly<Record<string, StatusGroup>> {
  const hwmon = sensors.hwmon.value
  const spaces = sensors.spaces.value
  return {
    temperature: temperatureGroup(hwmon),
    fan: fanGroup(hwmon),
    disk: diskGroup({ spaces, disks: sensors.disks.value, health: sensors.diskHealth.value }),
    link: linkGroup(sensors.links.value),
    io: ioGroup(sensors.diskIo.value),
    capture: captureGroup(sensors.capture.value, sensors.stored.value),
    power: powerGroup(hwmon, sensors.supplies.value),
    other: otherGroup({
      host: sensors.host.value,
      store: spaces?.get('Store0'),
      serial: config.serial,
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
