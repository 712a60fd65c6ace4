/** Our side of the capture bench: captures until its input ends, then says what the engine counted. */
import { once } from 'node:events'
import { LiveCapture } from '../../../native/live-capture.ts'

const [interfaceName = '', folder = ''] = process.argv.slice(2)
const MIB = 2 ** 20

const capture = await LiveCapture.open({
  ports: [
    { port: 0, interfaceName, threads: 1, ringBytes: 128 * MIB, snaplen: 262_144, isPromiscuous: true },
  ],
  segmentBytes: 2 ** 30,
  syncIntervalMs: 1000,
  queueBytes: 256 * MIB,
})
await capture.start(folder)
process.stderr.write('listening\n')
await once(process.stdin.resume(), 'end')
await capture.stop()
const [port] = capture.counts().ports
process.stdout.write(`${port?.storedPackets} ${(port?.ringDrops ?? 0n) + (port?.diskDrops ?? 0n)}\n`)
capture.close()
