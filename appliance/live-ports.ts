import type { LivePort } from '../native/live-capture.ts'
import { CapfleetError } from '../src/base/error.ts'
import type { CapturePortConfig } from './capture-config.ts'
import { FilterCompiler } from './filter-compiler.ts'

const ETHERNET = 1

/** The configured ports as the engine takes them. Fails with bad-config when a filter does not compile. */
export async function livePorts(ports: readonly CapturePortConfig[]): Promise<readonly LivePort[]> {
  const compiler = new FilterCompiler()
  return await Promise.all(
    ports.map(
      async ({ interface: interfaceName, promiscuous: isPromiscuous, filter: text, ...port }, index) => {
        const filter =
          text === '' ? undefined : await compile(compiler, text, `capture.ports[${index}].filter`)
        return { ...port, interfaceName, isPromiscuous, filter }
      },
    ),
  )
}

async function compile(compiler: FilterCompiler, expression: string, setting: string): Promise<Uint8Array> {
  try {
    return await compiler.compile({ expression, linkType: ETHERNET }, new AbortController().signal)
  } catch (cause) {
    if (!(cause instanceof CapfleetError) || cause.code !== 'bad-bpf') throw cause
    throw new CapfleetError('bad-config', `${setting}: ${cause.message}`, { cause })
  }
}
