import type { LivePort } from '../../../native/live-capture.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { CompileQueue } from '../../compile/compile-queue.ts'
import { FilterCompiler } from '../../compile/filter-compiler.ts'
import type { CapturePortConfig } from '../../settings/capture-config.ts'

const ETHERNET = 1

/** The configured ports in the form for the engine. Fails with bad-config if a filter does not compile. */
export async function livePorts(configs: readonly CapturePortConfig[]): Promise<readonly LivePort[]> {
  const compiler = new FilterCompiler(new CompileQueue())
  const ports: LivePort[] = []
  for (const [index, config] of configs.entries()) {
    const { interface: interfaceName, promiscuous: isPromiscuous, filter: text, ...port } = config
    const filter = text === '' ? undefined : await compile(compiler, text, `capture.ports[${index}].filter`)
    ports.push({ ...port, interfaceName, isPromiscuous, filter })
  }
  return ports
}

/** The recorder's compiler has no other users. */
const RECORDER = { user: 'recorder', id: 'recorder' }

async function compile(compiler: FilterCompiler, expression: string, setting: string): Promise<Uint8Array> {
  try {
    const request = { caller: RECORDER, signal: new AbortController().signal }
    return await compiler.compile({ expression, linkType: ETHERNET }, request)
  } catch (cause) {
    if (!(cause instanceof CapfleetError) || cause.code !== 'bad-bpf') throw cause
    throw new CapfleetError('bad-config', `${setting}: ${cause.message}`, { cause })
  }
}
