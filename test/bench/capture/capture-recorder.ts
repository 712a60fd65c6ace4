/** Our side of the capture bench: `capture-recorder.ts <folder> <interface> ...` captures until its input ends. */
import { once } from 'node:events'
import { LiveCapture } from '../../../native/live-capture.ts'

const [folder = '', ...interfaceNames] = process.argv.slice(2)
const MIB = 2 ** 20

const capture = await LiveCapture.open({
  ports: interfaceNames.map((interfaceName, port) => ({
    port,
    interfaceName,
    threads: 1,
    ringBytes: 128 * MIB,
    snaplen: 262_144,
    isPromiscuous: true,
  })),
  segmentBytes: 2 ** 30,
  syncIntervalMs: 1000,
  queueBytes: 256 * MIB,
})
await capture.start(folder)
process.stderr.write('listening\n')
await once(process.stdin.resume(), 'end')
await capture.stop()
capture.close()
