import { rm } from 'node:fs/promises'
import { measureCommand } from '../report/measure-command.ts'
import { download, packetsOf, shellLine, withCpuOf } from '../sides/contenders.ts'
import type { Row } from './row.ts'

/** A file into the store, with its index, against a copy of the file on the same disk. */
export const imports: readonly Row[] = [
  {
    name: 'import',
    what: 'a sorted file into the store, cp on the same disk',
    make: async ({ inputs, fleet }) => {
      const { paths, traffic } = await inputs.single()
      const [path = ''] = paths
      const copy = `${path}.copy`
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
        peer: {
          label: 'cp and sync',
          run: async () => {
            const measure = await measureCommand('sh', ['-c', 'cp "$0" "$1" && sync "$1"', path, copy])
            await rm(copy)
            return measure
          },
          output: () => packetsOf(shellLine(['cat', path])),
        },
      }
    },
  },
]
