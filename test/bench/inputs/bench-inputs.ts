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
/** The needle flow of imix-traffic.ts. */
const NEEDLE_HOST = '10.99.99.99'
/** The number of packets of each source, from lines like "IP 10.1.2.3.443 > ...". */
const COUNT_SOURCES =
  '$1 == "IP" { split($2, part, "."); count[part[1] "." part[2] "." part[3] "." part[4]]++ } END { for (host in count) print host, count[host] }'

export interface InputSizes {
  /** The size of each set of files except the single one. */
  readonly bytes: number
  readonly singleBytes: number
  /** A folder of captures that replace the single one. */
  readonly own?: string | undefined
}

/** The input files of the benches, made when first needed; files that the folder already has are used. */
export class BenchInputs {
  readonly #folder: string
  readonly #sizes: InputSizes
  /** The digest of the joined captures, once it is known. */
  #facts: PcapFacts | undefined

  constructor(folder: string, sizes: InputSizes) {
    this.#folder = folder
    this.#sizes = sizes
  }

  /** One capture. */
  single(): Promise<BenchInput> {
    const { own, singleBytes } = this.#sizes
    if (own !== undefined) return this.#joined(own)
    const name = `single-${singleBytes / 2 ** 20}`
    return this.#input(name, 1, { startNs: START_NS, burstPackets: 1, bytes: singleBytes })
  }

  /** `count` captures, a day later, whose packets alternate at random in runs of `burstPackets`. */
  interleaved(count: number, burstPackets = 1): Promise<BenchInput> {
    const name = `interleaved-${count}-${burstPackets}`
    const { bytes } = this.#sizes
    return this.#input(name, count, { startNs: START_NS + DAY_NS, burstPackets, bytes })
  }

  /** A host of the single capture with few packets; if the capture is given by the user, the rarest IPv4 host. */
  async needleHost(): Promise<string> {
    if (this.#sizes.own === undefined) return NEEDLE_HOST
    const [path = ''] = (await this.single()).paths
    const addresses = `${shellLine(['tcpdump', '-nntqr', path, 'ip'])} 2>/dev/null | awk '${COUNT_SOURCES}'`
    const [host] = (await shellOutput(`${addresses} | sort -n -k2 | sed -n 1p`)).split(' ')
    if (!host) throw new Error('these captures have no host of IPv4 to look for')
    return host
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
    options: { startNs: bigint; burstPackets: number; bytes: number },
  ): Promise<BenchInput> {
    await mkdir(this.#folder, { recursive: true })
    const paths = Array.from({ length: count }, (_, i) => join(this.#folder, `${name}.${i}.pcap`))
    const summaryPath = join(this.#folder, `${name}.json`)
    const summary = await readFile(summaryPath, 'utf8').catch(() => undefined)
    if (summary !== undefined) return { name, paths, traffic: parseTraffic(summary) }
    process.stderr.write(`bench: making ${name}\n`)
    const traffic = await writeImixTraffic(paths, { seed: SEED, ...options })
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
