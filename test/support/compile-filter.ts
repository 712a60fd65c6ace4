import { spawnSync } from 'node:child_process'
import { bpfCompilerPath } from '../../native/addon.ts'

export interface CompiledFilter {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly program: Buffer
  readonly message: string
}

/** Runs the filter compiler as the appliance does, but waits for it. */
export function compileFilter(expression: string, linkType = 1, snaplen = 262_144): CompiledFilter {
  const prefix = Buffer.alloc(8)
  prefix.writeUInt32LE(linkType, 0)
  prefix.writeUInt32LE(snaplen, 4)
  const { status, signal, stdout, stderr } = spawnSync(bpfCompilerPath, {
    input: Buffer.concat([prefix, Buffer.from(expression)]),
    timeout: 10_000,
  })
  return { status, signal, program: stdout, message: stderr.toString().trimEnd() }
}
