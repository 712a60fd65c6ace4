// A device that is replaced by another appliance while it is exported.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { DeviceLine } from '../../../support/devices/device-line.ts'
import { ExportWorld, type ShownExport, WHOLE_RANGE } from '../../../support/exports/export-world.ts'
import { startTempWorker, type TempWorker } from '../../../support/processes/temp-worker.ts'

describe('an export whose device moves', () => {
  let world: ExportWorld
  let worker: TempWorker

  before(async () => {
    world = await ExportWorld.create({ captureBytes: 4_000_000, exports: { deviceRetryS: 1 } })
    worker = await startTempWorker(world.gateway)
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  })
  beforeEach(() => leadTo(world.device('west').line.url))

  /** Gives the device west this URL in the worker's configuration. */
  async function leadTo(url: string): Promise<void> {
    const { config } = world.gateway
    const devices = config.devices.map((device) => (device.name === 'west' ? { ...device, url } : device))
    await worker.reload({ ...config, devices })
  }

  /** An export during which west changes to `url`. */
  async function exportOver(url: string): Promise<ShownExport> {
    const { line } = world.device('west')
    line.hold(2_500_000)
    const id = await world.ordered(`${WHOLE_RANGE}&OnMissing=partial`)
    // Spans of it have been written, and others have not.
    await line.untilHeld()
    await leadTo(url)
    line.isDown = true
    line.release()
    const shown = await world.ended(id)
    line.isDown = false
    return shown
  }

  test('to another address is whole', async () => {
    await using moved = await DeviceLine.start(world.device('west').appliance.url)
    const shown = await exportOver(moved.url)
    assert.equal(shown.state, 'complete', JSON.stringify(shown))
    const [file] = await world.files(shown)
    assert.ok(file?.equals(await world.directRange(WHOLE_RANGE)))
  })

  test('to another appliance has no packet of it', async () => {
    const { state, devices } = await exportOver(world.device('north').line.url)
    assert.equal(state, 'partial')
    const missing = devices.map(({ device, missing }) => [device, missing.map(({ error }) => error.code)])
    assert.deepEqual(missing, [
      ['east', []],
      ['north', []],
      ['west', ['device-replaced']],
    ])
  })
})
