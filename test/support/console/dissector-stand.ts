/** A fleet with the traffic of two sites, and a browser whose page has the dissector. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeSiteTraffic } from '../../../src/demo/traffic/site-traffic.ts'
import { type SmallFleet, startSmallFleet } from '../processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'
import { USER_PASSWORD } from '../suite-secrets.ts'
import { tempFolder } from '../temp-folder.ts'
import { CHROMIUM, ConsoleBrowser, missingForConsole, type OpenPage, signIn } from './console-browser.ts'

const START_NS = 1_793_610_000_000_000_000n
const DURATION_S = 60
const PACKETS = 1_400

export const DISSECTED_RANGE = `TSBegin=${START_NS}&TSEnd=${START_NS + 120_000_000_000n}`

/** Skip reason for tests of the dissector, or false. */
export function missingForDissector(): string | false {
  const isBuilt = existsSync(join(REPOSITORY_ROOT, 'dist-dissector', '.built'))
  return missingForConsole() || skipWithout(isBuilt, 'the dissector is not built: node .ci/setup.mjs')
}

export class DissectorStand implements AsyncDisposable {
  readonly fleet: SmallFleet
  readonly browser: ConsoleBrowser
  /** The traffic of each device, as a PCAP file. */
  readonly captures: Readonly<Record<'east' | 'west', Buffer>>
  readonly #owned: AsyncDisposableStack

  private constructor(
    parts: Pick<DissectorStand, 'fleet' | 'browser' | 'captures'>,
    owned: AsyncDisposableStack,
  ) {
    this.fleet = parts.fleet
    this.browser = parts.browser
    this.captures = parts.captures
    this.#owned = owned
  }

  /** `packets` of each site, at least. */
  static async create(packets = PACKETS): Promise<DissectorStand> {
    await using building = new AsyncDisposableStack()
    const captures = { east: await siteTraffic(0, packets), west: await siteTraffic(1, packets) }
    const captureOf = (name: string) => ({ 'east-first': captures.east, 'west-first': captures.west })[name]
    const fleet = building.use(await startSmallFleet([], captureOf))
    const browser = building.use(await ConsoleBrowser.launch(CHROMIUM))
    return new DissectorStand({ fleet, browser, captures }, building.move())
  }

  get url(): string {
    return `${this.fleet.gateway.url}/`
  }

  /** A page of a user who may download. */
  async open(): Promise<OpenPage> {
    const viewport = { width: 1_440, height: 900 }
    const opened = await this.browser.open(this.url, { colorScheme: 'dark', viewport })
    await signIn(opened.page, { user: 'user', password: USER_PASSWORD })
    return opened
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}

async function siteTraffic(site: 0 | 1, packets: number): Promise<Buffer> {
  await using folder = await tempFolder()
  const path = join(folder.path, 'traffic.pcap')
  await writeSiteTraffic(path, { site, seed: 1, startNs: START_NS, durationS: DURATION_S, packets })
  return readFile(path)
}
