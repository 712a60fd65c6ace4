import { rm } from 'node:fs/promises'
import { measureCommand } from '../report/measure-command.ts'
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
      await fleet.device(0)
      const output = () => Promise.resolve(`${traffic.packets} packets`)
      const take = () => fleet.importAndDelete(0, 'bench-import', path)
      return {
        inputBytes: traffic.bytes,
        ours: {
          label: 'import',
          run: async () => ({ seconds: (await take()).seconds, peakRssMiB: 0 }),
          output: async () => `${(await take()).packets} packets`,
        },
        peer: {
          label: 'cp and sync',
          run: async () => {
            const measure = await measureCommand('sh', ['-c', 'cp "$0" "$1" && sync "$1"', path, copy])
            await rm(copy)
            return measure
          },
          output,
        },
      }
    },
  },
]
