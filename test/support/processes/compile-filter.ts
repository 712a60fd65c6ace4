import { spawnSync } from 'node:child_process'
import { bpfCompilerPath } from '../../../native/addon.ts'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

export interface CompiledFilter {
  readonly status: number | null
  readonly program: Buffer
  readonly message: string
}

/** Input of the filter compiler. */
export function compilerInput(expression: string, linkType = 1, snaplen = 262_144): Buffer {
  const prefix = Buffer.alloc(8)
  prefix.writeUInt32LE(linkType, 0)
  prefix.writeUInt32LE(snaplen, 4)
  return Buffer.concat([prefix, Buffer.from(expression)])
}

/** Runs the filter compiler like the appliance, but synchronously. */
export function compileFilter(expression: string, linkType?: number, snaplen?: number): CompiledFilter {
  const { status, stdout, stderr } = spawnSync(bpfCompilerPath, {
    input: compilerInput(expression, linkType, snaplen),
    timeout: WAIT_LIMIT_MS,
  })
  return { status, program: stdout, message: stderr.toString().trimEnd() }
}
