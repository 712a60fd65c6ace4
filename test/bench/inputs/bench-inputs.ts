import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shellOutput } from '../report/measure-command.ts'
import { type PcapFacts, pcapFacts, shellLine } from '../sides/contenders.ts'
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
  readonly #own: string | undefined
  /** Of the joined captures, once they are. */
  #facts: PcapFacts | undefined

  /** `bytes` is the size of each set of files; `own` is a folder of captures that take the place of `single`. */
  constructor(folder: string, bytes: number, own?: string) {
    this.#folder = folder
    this.#bytes = bytes
    this.#own = own
  }

  /** One capture. */
  single(): Promise<BenchInput> {
    if (this.#own !== undefined) return this.#joined(this.#own)
    return this.#input('single', 1, { startNs: START_NS, burstPackets: 1 })
  }

  /** `count` captures, a day later, whose packets alternate at random in runs of `burstPackets`. */
  interleaved(count: number, burstPackets = 1): Promise<BenchInput> {
    const name = `interleaved-${count}-${burstPackets}`
    return this.#input(name, count, { startNs: START_NS + DAY_NS, burstPackets })
  }

  /** All captures of a folder as one file, in the order of time. */
  async #joined(own: string): Promise<BenchInput> {
    await mkdir(this.#folder, { recursive: true })
    const names = (await readdir(own)).filter((name) => /\.(pcap|pcapng|cap)(\.gz|\.zst)?$/.test(name)).sort()
    if (names.length === 0) throw new Error(`there is no .pcap or .pcapng file in ${own}`)
    const path = join(this.#folder, 'own.pcap')
    const sources = names.map((name) => join(own, name))
    if (this.#facts === undefined) {
      process.stderr.write(`bench: joining ${names.length} captures of ${own}\n`)
      await shellOutput(shellLine(['mergecap', '-F', 'nsecpcap', '-w', path, ...sources]))
    }
    this.#facts ??= await pcapFacts(shellLine(['cat', path]))
    const { digest, bytes, firstNs, lastNs } = this.#facts
    const traffic = { packets: digest.packets, bytes, firstNs: BigInt(firstNs), lastNs: BigInt(lastNs) }
    return { name: 'own', paths: [path], traffic }
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
