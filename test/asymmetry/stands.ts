/** The whole product as separate processes: devices with recorders and captures, and gateways over them. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { writeSiteTraffic } from '../../src/demo/traffic/site-traffic.ts'
import { putUser } from '../../src/shared/auth/edit-users-file.ts'
import { createTempCertificate } from '../support/access/temp-certificate.ts'
import { OWN_LOOPBACK } from '../support/network/own-loopback.ts'
import { tempFolder } from '../support/temp-folder.ts'
import type { Scale } from './attack.ts'
import { OurProgram } from './our-program.ts'
import { isAlive } from './process-usage.ts'
import {
  ATTACKER_NAME,
  basic,
  HONEST_NAME,
  PASSWORD,
  type Stand,
  type StandKind,
  type Target,
} from './stand.ts'

export interface StandsOptions {
  readonly scale: Scale
  /** The URL of the gateways' device "evil". */
  readonly deviceUrl: string
}

/** The user name of the gateways at devices. */
const GATEWAY_NAME = 'gateway'
const SITES = [0, 1] as const
const START_NS = 1_793_610_000_000_000_000n
const DURATION_S = 60
const PACKETS = { full: 120_000, small: 30_000 } as const
/** Enough for the program itself, for a store of a few captures, and for a few dozen clients. */
const FEW_DESCRIPTORS = 200
/** The free space that a full store has in addition to its capture. */
const SPARE_BYTES = 64 << 20

interface StoredDevice {
  readonly name: string
  readonly folder: string
  readonly storePath: string
  readonly recorder: OurProgram
  /** With settings that all its appliances share. */
  readonly settings: Readonly<Record<string, unknown>>
}

export class Stands implements AsyncDisposable {
  readonly #owned = new AsyncDisposableStack()
  readonly #folder: string
  readonly #options: StandsOptions
  readonly #devices: StoredDevice[] = []
  readonly #traffic: string[] = []
  /** The stands, by target and kind. */
  readonly #stands = new Map<string, Stand>()
  readonly #programs = new Map<number, OurProgram>()
  readonly #appliances: OurProgram[] = []
  #started = 0

  private constructor(folder: string, options: StandsOptions) {
    this.#folder = folder
    this.#options = options
  }

  /** Two devices with captures; their appliances and the gateways are started on demand. */
  static async open(options: StandsOptions): Promise<Stands> {
    const folder = await tempFolder()
    const stands = new Stands(folder.path, options)
    stands.#owned.use(folder)
    try {
      await stands.#prepare()
    } catch (error) {
      await stands.#owned.disposeAsync()
      throw error
    }
    return stands
  }

  /** A running stand, or a new one. Stands of other kinds than this one and "plain" are ended. */
  async stand(target: Target, kind: StandKind): Promise<Stand> {
    await this.#endOthers(kind)
    const key = `${target} ${kind}`
    const known = this.#stands.get(key)
    if (known !== undefined && kind !== 'full-store' && isAlive(known.attackedPid)) return known
    const stand = await this.#newStand(target, kind)
    this.#stands.set(key, stand)
    return stand
  }

  /** Kills its program and everything that it is doing; the next request for it starts a new one. */
  async giveUp({ attackedPid }: Stand): Promise<void> {
    await this.#programs.get(attackedPid)?.kill()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }

  #newStand(target: Target, kind: StandKind): Promise<Stand> {
    if (target === 'gateway') return this.#gatewayStand(kind)
    return kind === 'full-store' ? this.#fullStoreStand() : this.#applianceStand(kind)
  }

  /** A gateway that is not attacked would still probe the attacking device. */
  async #endOthers(kind: StandKind): Promise<void> {
    for (const [key, { attackedPid }] of this.#stands) {
      if (key.endsWith(' plain') || key.endsWith(` ${kind}`)) continue
      this.#stands.delete(key)
      await this.#programs.get(attackedPid)?.[Symbol.asyncDispose]()
    }
  }

  async #prepare(): Promise<void> {
    for (const name of [HONEST_NAME, ATTACKER_NAME])
      await putUser(this.#usersPath, { name, role: 'user' }, PASSWORD)
    await putUser(this.#usersPath, { name: GATEWAY_NAME, role: 'full' }, PASSWORD)
    await writeFile(join(this.#folder, 'password'), `${PASSWORD}\n`)
    for (const site of SITES) {
      const file = join(this.#folder, `site${site}.pcap`)
      const packets = PACKETS[this.#options.scale]
      await writeSiteTraffic(file, { site, seed: 1, startNs: START_NS, durationS: DURATION_S, packets })
      this.#traffic.push(file)
      const device = await this.#startDevice(`d${site}`, file, {})
      // Runs without packets, because it has no port. Lists and event listeners may be sensitive to it.
      await new RecorderClient(device.storePath).startCapture('running')
      this.#devices.push(device)
    }
  }

  get #usersPath(): string {
    return join(this.#folder, 'users.yaml')
  }

  async #startDevice(name: string, traffic: string, retention: object): Promise<StoredDevice> {
    const folder = join(this.#folder, name)
    await mkdir(folder)
    const storePath = join(folder, 'store')
    const settings = {
      deviceName: name,
      listen: { host: OWN_LOOPBACK, port: 0 },
      store: storePath,
      timeZone: 'UTC',
      auth: { users: this.#usersPath, anonymousMetrics: true },
      imports: { segmentBytes: 4 << 20 },
      // A nearly full disk must not cause captures to be removed.
      retention: { minFreeBytes: 0, ...retention },
      // At a lower priority than all other programs of this machine, the result would depend on those.
      priority: { readers: 'normal' },
    }
    const recorder = await this.#start('recorder', folder, settings)
    await new RecorderClient(storePath).importCapture({ name: 'traffic', files: [traffic] })
    return { name, folder, storePath, recorder, settings }
  }

  async #applianceStand(kind: StandKind): Promise<Stand> {
    const device = this.#device(0)
    const appliance = await this.#start(
      'appliance',
      device.folder,
      await this.#special(device.settings, kind),
      kind,
    )
    return this.#describe('appliance', appliance, device, [device.recorder.pid])
  }

  /** A separate device, whose store is nearly full. */
  async #fullStoreStand(): Promise<Stand> {
    const maxBytes = PACKETS[this.#options.scale] * 1_000 + SPARE_BYTES
    const device = await this.#startDevice(`full${this.#started}`, this.#traffic[0] ?? '', { maxBytes })
    const appliance = await this.#start('appliance', device.folder, device.settings)
    // The recorder is attacked: it reads the file.
    const stand = this.#describe('appliance', appliance, device, [appliance.pid])
    return { ...stand, attackedPid: device.recorder.pid }
  }

  async #gatewayStand(kind: StandKind): Promise<Stand> {
    for (const device of this.#devices.slice(this.#appliances.length))
      this.#appliances.push(await this.#start('appliance', device.folder, device.settings))
    const password = { file: join(this.#folder, 'password') }
    const devices = this.#devices.map(({ name }, index) => ({
      name,
      url: this.#appliances[index]?.url,
      user: GATEWAY_NAME,
      password,
    }))
    const evil = { name: 'evil', url: this.#options.deviceUrl, user: 'x', password, fetchCompression: 'zstd' }
    const settings = {
      listen: { port: 0 },
      home: join(this.#folder, `gateway${this.#started}`),
      timeZone: 'UTC',
      auth: { users: this.#usersPath, anonymousMetrics: true },
      devices: [...devices, evil],
      // Frequently, so that a device's attack on probes falls into the time of the attack.
      health: { intervalS: 1 },
    }
    const gateway = await this.#start('gateway', this.#folder, await this.#special(settings, kind), kind)
    const behind = [...this.#appliances, ...this.#devices.map(({ recorder }) => recorder)]
    const pids = behind.map(({ pid }) => pid)
    const stand = this.#describe('gateway', gateway, this.#device(0), pids)
    return { ...stand, devicePath: '/devices/d0' }
  }

  async #special<Settings extends object>(settings: Settings, kind: StandKind): Promise<Settings> {
    if (kind !== 'tls') return settings
    const { cert, key } = this.#owned.use(await createTempCertificate())
    return { ...settings, listen: { port: 0, tls: { cert, key } } }
  }

  async #start(
    program: 'gateway' | 'appliance' | 'recorder',
    folder: string,
    settings: object,
    kind: StandKind = 'plain',
  ): Promise<OurProgram> {
    this.#started += 1
    const path = join(folder, `${program}${this.#started}`)
    await writeFile(`${path}.yaml`, stringify(settings))
    const started = this.#owned.use(
      await OurProgram.start({
        args: [program, '--config', `${path}.yaml`],
        logPath: `${path}.log`,
        descriptors: kind === 'few-descriptors' ? FEW_DESCRIPTORS : undefined,
      }),
    )
    this.#programs.set(started.pid, started)
    return started
  }

  #device(index: number): StoredDevice {
    const device = this.#devices[index]
    if (device === undefined) throw new RangeError(`there is no device ${index}`)
    return device
  }

  #describe(
    target: Target,
    attacked: OurProgram,
    { storePath }: StoredDevice,
    behindPids: readonly number[],
  ): Stand {
    const range = (beginNs: bigint, endNs: bigint): string => `TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos`
    const second = 1_000_000_000n
    return {
      target,
      url: attacked.url,
      attackedPid: attacked.pid,
      behindPids,
      devicePath: '',
      attacker: basic(ATTACKER_NAME, PASSWORD),
      honest: basic(HONEST_NAME, PASSWORD),
      wholeRange: range(START_NS, START_NS + BigInt(2 * DURATION_S) * second),
      shortRange: range(START_NS + 20n * second, START_NS + 22n * second),
      storePath,
    }
  }
}
