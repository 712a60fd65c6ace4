import { rm } from 'node:fs/promises'
import { startDemo, temporaryHome } from '../../support/processes/demo-process.ts'
import { type Measure, measureCommand } from '../report/measure-command.ts'
import { download, packetsOf, shellLine, withCpuOf } from '../sides/contenders.ts'
import { rangeTarget } from '../sides/stored-capture.ts'
import type { Contender, Row } from './row.ts'

/** How long a demo may take to start, in addition to its captures. */
const DEMO_START_SECONDS = 3

/** Importing a file into the store, with its index, compared with copying it on the same disk. */
export const imports: readonly Row[] = [
  {
    name: 'import',
    what: 'a sorted file into the store, cp on the same disk',
    make: async ({ inputs, fleet }) => {
      const { paths, traffic } = await inputs.single()
      const [path = ''] = paths
      const name = 'bench-import'
      const stored = download(name, await fleet.device(0), `/api/v1/pcap/single?StreamName=${name}`)
      const pid = await fleet.recorderPid(0)
      const take = async () => ({
        seconds: (await fleet.importAndDelete(0, name, path)).seconds,
        peakRssMiB: 0,
      })
      return {
        inputBytes: traffic.bytes,
        ours: {
          label: 'import',
          pid,
          run: () => withCpuOf(pid, take),
          output: async () => (await fleet.importAndDelete(0, name, path, stored.output)).found,
        },
        peer: copied(path),
      }
    },
  },
  {
    name: 'demo-start',
    what: `a demo with your captures until it is ready, cp and ${DEMO_START_SECONDS} s`,
    floor: 1,
    goal: 1,
    make: async ({ inputs }) => {
      const { paths, traffic } = await inputs.single()
      const [path = ''] = paths
      const peer = copied(path)
      const run = async () => {
        const copy = await peer.run()
        return { seconds: copy.seconds + DEMO_START_SECONDS, peakRssMiB: 0 }
      }
      return {
        inputBytes: traffic.bytes,
        ours: demoStart(path, rangeTarget({ beginNs: traffic.firstNs, endNs: traffic.lastNs + 1n })),
        peer: { ...peer, label: `${peer.label}, and ${DEMO_START_SECONDS} s`, run },
      }
    },
  },
]

function copied(path: string): Contender {
  const copy = `${path}.copy`
  return {
    label: 'cp and sync',
    run: async () => {
      const measure = await measureCommand('sh', ['-c', 'cp "$0" "$1" && sync "$1"', path, copy])
      await rm(copy)
      return measure
    },
    output: () => packetsOf(shellLine(['cat', path])),
  }
}

/** From the command to the line that says that it serves; `target` are the packets of the file. */
function demoStart(path: string, target: string): Contender {
  return {
    label: 'demo --import',
    run: async (): Promise<Measure> => {
      await using home = await temporaryHome()
      const startMs = performance.now()
      await using _demo = await startDemo(home.path, ['--import', path])
      return { seconds: (performance.now() - startMs) / 1000, peakRssMiB: 0 }
    },
    output: async () => {
      await using home = await temporaryHome()
      await using demo = await startDemo(home.path, ['--import', path])
      const { gatewayUrl, user, password } = demo.facts
      return await packetsOf(shellLine(['curl', '-fsS', '-u', `${user}:${password}`, gatewayUrl + target]))
    },
  }
}
