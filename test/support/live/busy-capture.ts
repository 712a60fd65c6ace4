/** A recorder and an appliance in separate processes: packets arrive while clients download. */
import { join } from 'node:path'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { GreedyReaders } from '../clients/greedy-readers.ts'
import type { CaptureWire } from '../network/capture-wire.ts'
import { sendPackets } from '../packets/packet-sender.ts'
import { ApplianceProcess } from '../processes/appliance-process.ts'
import { RecorderProcess } from '../processes/recorder-process.ts'
import { APPLIANCE_PASSWORD } from '../suite-secrets.ts'
import { tempFolder } from '../temp-folder.ts'

export interface BusyCaptureOptions {
  readonly wire: CaptureWire
  /** File that is sent, and downloaded meanwhile. */
  readonly traffic: string
  readonly rounds: number
  /** 0 = as fast as the sender can. */
  readonly packetsPerSecond: number
  /** One client for each of these values of Compression. */
  readonly readers: readonly string[]
}

export interface BusyCapture {
  readonly sent: bigint
  readonly stored: bigint
  /** Drops as reported by the recorder. */
  readonly drops: bigint
  readonly seconds: number
  /** Downloads while packets were sent. */
  readonly downloads: number
  readonly downloadedBytes: number
}

const MIB = 2 ** 20

/** Fails if a download fails. */
export async function captureWhileReading(options: BusyCaptureOptions): Promise<BusyCapture> {
  const { wire, traffic, rounds, packetsPerSecond, readers } = options
  await using folder = await tempFolder()
  await putUser(join(folder.path, 'users.yaml'), { name: 'full', role: 'full' }, APPLIANCE_PASSWORD)
  const port = { port: 0, interface: wire.interfaceName, ringBytes: 128 * MIB }
  const capture = { ports: [port], segmentBytes: 256 * MIB, syncIntervalMs: 1_000 }
  await using recorder = await RecorderProcess.start({ wire, folder: folder.path, capture })
  await recorder.client.importCapture({ name: 'stored', files: [traffic] })
  await using appliance = await ApplianceProcess.start(recorder.configPath)
  const path = `${appliance.url}/api/v1/pcap/single?StreamName=stored`
  const urls = readers.map((compression) => `${path}&Compression=${compression}`)
  await recorder.client.startCapture('busy')
  await using clients = await GreedyReaders.start({ urls, user: `full:${APPLIANCE_PASSWORD}` })
  const [before, beganMs] = [clients.downloaded, performance.now()]
  const sent = await sendPackets('tx0', traffic, { rounds, packetsPerSecond, namespace: wire.sender })
  const [after, endedMs] = [clients.downloaded, performance.now()]
  const stopped = await recorder.client.stopCapture(false)
  return {
    sent,
    stored: stopped.packets,
    drops: stopped.drops,
    seconds: (endedMs - beganMs) / 1_000,
    downloads: after.downloads - before.downloads,
    downloadedBytes: after.bytes - before.bytes,
  }
}
