import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImixTraffic, writeImixTraffic } from './imix-traffic.ts'

export interface BenchInput {
  /** Name of the set of files. */
  readonly name: string
  readonly paths: readonly string[]
  readonly traffic: ImixTraffic
}

const START_NS = 1_760_000_000_000_000_000n
const DAY_NS = 86_400_000_000_000n
const SEED = 1

/** The input files of the benches, made when first asked for; what the folder has already is used. */
export class BenchInputs {
  readonly #folder: string
  readonly #bytes: number

  /** `bytes` is the size of each set of files. */
  constructor(folder: string, bytes: number) {
    this.#folder = folder
    this.#bytes = bytes
  }

  /** One capture. */
  single(): Promise<BenchInput> {
    return this.#input('single', 1, { startNs: START_NS, burstPackets: 1 })
  }

  /** `count` captures, a day later, whose packets alternate at random in runs of `burstPackets`. */
  interleaved(count: number, burstPackets = 1): Promise<BenchInput> {
    const name = `interleaved-${count}-${burstPackets}`
    return this.#input(name, count, { startNs: START_NS + DAY_NS, burstPackets })
  }

  async #input(
    name: string,
    count: number,
    options: { startNs: bigint; burstPackets: number },
  ): Promise<BenchInput> {
    await mkdir(this.#folder, { recursive: true })
    const paths = Array.from({ length: count }, (_, i) => join(this.#folder, `${name}.${i}.pcap`))
    const summaryPath = join(this.#folder, `${name}.json`)
    const summary = await readFile(summaryPath, 'utf8').catch(() => undefined)
    if (summary !== undefined) return { name, paths, traffic: parseTraffic(summary) }
    process.stderr.write(`bench: making ${name}\n`)
    const traffic = await writeImixTraffic(paths, { seed: SEED, bytes: this.#bytes, ...options })
    // Written last: files without a summary are incomplete.
    await writeFile(
      summaryPath,
      JSON.stringify(traffic, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
    )
    return { name, paths, traffic }
  }
}

function parseTraffic(summary: string): ImixTraffic {
  const { packets, bytes, firstNs, lastNs } = JSON.parse(summary)
  return { packets, bytes, firstNs: BigInt(firstNs), lastNs: BigInt(lastNs) }
}
