/** The demo's live capture. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { describeError } from '../shared/base/program.ts'
import type { DemoDevice } from './demo-home.ts'

const LIVE_NAME = 'live'

export interface LiveCapture {
  readonly device: string
  /** Full name. */
  readonly captureName: string
}

/**
 * Starts a new capture on the device, replacing those of earlier runs. A failure is reported and leaves the demo with
 * its stored captures. REQUIRES: its recorder is running and has a capture port.
 */
export async function startLiveCapture(device: DemoDevice): Promise<LiveCapture | undefined> {
  const recorder = new RecorderClient(device.store)
  try {
    // The recorder continues a capture that an earlier run did not get to stop.
    if ((await recorder.captureReport()).name !== '') await recorder.stopCapture(true)
    for (const name of await readdir(join(device.store, 'captures')))
      if (name.startsWith(`${LIVE_NAME}_`)) await recorder.deleteCapture(name)
    const { name } = await recorder.startCapture(LIVE_NAME)
    return { device: device.name, captureName: name }
  } catch (error) {
    process.stderr.write(`capfleet: no live capture: ${describeError(error)}\n`)
    return undefined
  }
}
