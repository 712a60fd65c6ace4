/** `capfleet get --alert`: the packets of each alert in a file of Suricata or Zeek. */
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { fileTime } from '../../../shared/query/download-file-name.ts'
import { ipProtocolName } from '../../../shared/query/ip-protocols.ts'
import { PIVOT_MARGINS, pivotParameters } from '../../../shared/query/pivot.ts'
import { visible } from '../../../shared/query/query-parameters.ts'
import { type Compression, ENCODING_FILES, encodingOf } from '../../../shared/query/query-values.ts'
import { resolveTimeZone } from '../../../shared/query/time-zone.ts'
import { ClientFailure, type FailureKind, usageFailure } from '../../client-failure.ts'
import { type DownloadTarget, downloadTarget } from '../../download-target.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect } from '../access/connect.ts'
import { exists } from '../output/output-file.ts'
import { AlertFile, counted, type MergedAlert, shownFile } from './alert-file.ts'
import { type DownloadOptions, nameOf, runDownload, STANDARD_OUTPUT } from './one-download.ts'
import { devicesThatSaw } from './seen-devices.ts'

export interface AlertOptions {
  readonly alert?: string
  readonly before?: string
  readonly after?: string
  readonly alertsMax?: string
}

const FROM_AN_ALERT = 'From an alert:'
const ALERTS_MAX = 100

export function addAlertFlags(command: Command): void {
  command
    .optionsGroup(FROM_AN_ALERT)
    .option(
      '--alert <file>',
      "the packets of each alert in this file: Suricata's eve.json, or conn.log, notice.log and others of Zeek in JSON; " +
        'both directions, also with VLAN tags; "-": standard input; several alerts need -o <folder>',
    )
    .option('--before <time>', `how much before the alert or its flow; default: ${PIVOT_MARGINS.before}`)
    .option('--after <time>', `how much after it; default: ${PIVOT_MARGINS.after}`)
    .option(
      '--alerts-max <count>',
      `how many downloads the file may need; overlapping alerts of a conversation share one; default: ${ALERTS_MAX}`,
    )
}

/** Flags that have no effect without --alert are mistakes. */
export function refuseAlertFlags({ before, after, alertsMax }: AlertOptions): void {
  if (before !== undefined)
    throw usageFailure('--before belongs to --alert; the end of a time range is --end')
  if (after !== undefined)
    throw usageFailure('--after belongs to --alert; the begin of a time range is --begin')
  if (alertsMax !== undefined) throw usageFailure('--alerts-max belongs to --alert')
}

type GivenOptions = ConnectOptions & DownloadOptions & AlertOptions & { readonly alert: string }

interface AlertsRun {
  readonly capture: string | undefined
  readonly query: QueryPairs
  readonly signal: AbortSignal
}

/** Parameters that the alerts determine, and the flags that give them. */
const DETERMINED: Readonly<Record<string, string>> = {
  TSBegin: '--begin and --last',
  TSEnd: '--end',
  TSUnit: '--unit',
  Start: '--start',
  Stop: '--stop',
  FilterBPF: '--bpf',
  Follow: '--follow',
}

/** Fails with a ClientFailure, in the end also for lines that could not be read and downloads that failed. */
export async function getAlerts(options: GivenOptions, { capture, query, signal }: AlertsRun): Promise<void> {
  if (capture !== undefined)
    throw usageFailure('--alert finds packets by time; leave out the name of the capture')
  const determined = query.find(([name]) => name in DETERMINED)
  if (determined !== undefined)
    throw usageFailure(
      `--alert makes the time range and the filter itself; leave out ${DETERMINED[determined[0]]}`,
    )
  const client = await connect(options)
  const file = await AlertFile.read(options.alert, {
    ...marginsOf(options),
    alertsMax: countOf(options.alertsMax),
    zone: zoneOf(query),
  })
  const name = shownFile(options.alert)
  for (const note of file.notes)
    if (options.quiet !== true) process.stderr.write(`${name}: ${visible(note)}\n`)
  if (file.alerts.length === 0) throw usageFailure(`${name} has no alert with an address and a time`)
  const common = query.filter(([parameter]) => parameter !== 'TSZone')
  await new AlertDownloads(client, { options, common, signal }).run(file.alerts)
  if (file.mistakes > 0)
    throw new ClientFailure(
      'incomplete',
      `${counted(file.mistakes, 'line')} of ${name} could not be read; the packets of the others are complete`,
      { code: 'bad-alerts' },
    )
}

function marginsOf({ before, after }: AlertOptions) {
  return { before: before ?? PIVOT_MARGINS.before, after: after ?? PIVOT_MARGINS.after }
}

function countOf(text: string | undefined): number {
  if (text === undefined) return ALERTS_MAX
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw usageFailure(`--alerts-max must be a number from 1 to 999999, got ${JSON.stringify(text)}`)
}

function zoneOf(query: QueryPairs): string | undefined {
  const [, zone] = query.find(([name]) => name === 'TSZone') ?? []
  return zone === undefined ? undefined : resolveTimeZone(zone, 'TSZone')
}

interface AlertDownloadsOptions {
  readonly options: GivenOptions
  /** Parameters that all downloads have. */
  readonly common: QueryPairs
  readonly signal: AbortSignal
}

/** After these, the next download can succeed. */
const SINGLE_FAILURES: ReadonlySet<FailureKind> = new Set(['not-found', 'busy', 'device', 'incomplete'])

/** One after the other: each takes a stream of every device. */
class AlertDownloads {
  readonly #client: GatewayClient
  readonly #options: AlertDownloadsOptions

  constructor(client: GatewayClient, options: AlertDownloadsOptions) {
    this.#client = client
    this.#options = options
  }

  async run(alerts: readonly MergedAlert[]): Promise<void> {
    const folder = await this.#folder()
    const [only] = alerts
    if (folder === undefined && only !== undefined && alerts.length === 1) return await this.#runOne(only)
    if (folder === undefined)
      throw usageFailure(
        `${alerts.length} alerts become ${alerts.length} files; give a folder for them, such as -o alerts/`,
      )
    await mkdir(folder, { recursive: true })
    const failures: ClientFailure[] = []
    for (const alert of alerts) {
      const failure = await this.#runInto(folder, alert)
      if (failure !== undefined) failures.push(failure)
    }
    const [first] = failures
    if (first === undefined) return
    throw new ClientFailure(first.kind, `${failures.length} of ${alerts.length} downloads failed`, {
      code: first.code,
    })
  }

  /** undefined if --output names no folder. */
  async #folder(): Promise<string | undefined> {
    const { output } = this.#options.options
    if (output === undefined || output === STANDARD_OUTPUT) return undefined
    const isThere = await stat(output).catch(() => undefined)
    return output.endsWith('/') || isThere?.isDirectory() === true ? output : undefined
  }

  async #runOne(alert: MergedAlert): Promise<void> {
    const { options, signal } = this.#options
    await runDownload(this.#client, await this.#targetOf(alert), { options, signal })
  }

  /** Returns a failure that affects no other alert. */
  async #runInto(folder: string, alert: MergedAlert): Promise<ClientFailure | undefined> {
    const { options, signal, common } = this.#options
    const name = fileNameOf(alert, common)
    this.#say(`${name}: ${aboutOf(alert)}`)
    const output = join(folder, name)
    if (options.force !== true && (await exists(output))) {
      this.#say(`${name}: already exists; --force downloads it again`)
      return undefined
    }
    try {
      await runDownload(this.#client, await this.#targetOf(alert), {
        options: { ...options, output },
        signal,
      })
      return undefined
    } catch (error) {
      if (!(error instanceof ClientFailure) || !SINGLE_FAILURES.has(error.kind)) throw error
      process.stderr.write(`capfleet: ${name}: ${error.message} [${error.code}]\n`)
      return error
    }
  }

  #say(text: string): void {
    if (this.#options.options.quiet !== true) process.stderr.write(`${text}\n`)
  }

  /**
   * libpcap refuses vlan for cooked and raw captures; FilterBPFDecap finds the packets there, too, except those around
   * other packets.
   */
  async #targetOf(alert: MergedAlert): Promise<DownloadTarget> {
    const target = await this.#narrowed(alert, this.#queryOf(alert, { isDecapsulated: this.#isDecapsulated }))
    try {
      await nameOf(this.#client, target, this.#options.signal)
      return target
    } catch (error) {
      if (!(error instanceof ClientFailure) || !error.message.includes(WITHOUT_TAGS)) throw error
      if (mayBeTunnel(alert.flow))
        throw new ClientFailure(
          'incomplete',
          `this conversation may be a tunnel, and some of the captures are cooked or raw: download it from these devices with --device and --bpf ${JSON.stringify(pivotParameters({ ...alert, isTunnelled: true }, marginsOf(this.#options.options)).FilterBPF)}, and from the others with --alert and --device`,
          { code: 'bad-bpf' },
        )
      this.#say(
        'cooked or raw captures have no VLAN tags to look for: the filter looks inside, so packets in tunnels are included',
      )
      return downloadTarget(undefined, this.#queryOf(alert, { isDecapsulated: true }))
    }
  }

  get #isDecapsulated(): boolean {
    return this.#options.common.some(([name, value]) => name === DECAP && /^(1|true)$/i.test(value))
  }

  #queryOf(alert: MergedAlert, { isDecapsulated }: { readonly isDecapsulated: boolean }): QueryPairs {
    const { options, common } = this.#options
    const own = pivotParameters(alert, marginsOf(options), { isDecapsulated })
    const others = common.filter(([name]) => name !== DECAP)
    return [...others, ...Object.entries(own), ['TSUnit', 'nanos']]
  }

  /** Only from the devices that saw the conversation. Inside of tunnels, devices cannot search for addresses. */
  async #narrowed({ flow }: MergedAlert, query: QueryPairs): Promise<DownloadTarget> {
    const asked = query.filter(([name]) => SEARCHED.has(name))
    const hosts = [flow.source.host, flow.destination.host].filter((host) => host !== undefined)
    const devices = query.some(([name]) => name === DECAP)
      ? undefined
      : await devicesThatSaw(this.#client, { hosts, query: asked }, this.#options.signal)
    if (devices === undefined) return downloadTarget(undefined, query)
    const others = query.filter(([name]) => name !== DEVICE)
    return downloadTarget(undefined, [[DEVICE, devices.join(',')], ...others])
  }
}

/** The packets of these are looked into by FilterBPFDecap. */
const TUNNEL_PROTOCOLS: ReadonlySet<number> = new Set([4, 41, 47])
const TUNNEL_PORTS: ReadonlySet<number> = new Set([2152, 4789, 4790, 5247, 6081, 8472])
const [UDP, UDP_LITE] = [17, 136]

function mayBeTunnel({ protocol, source, destination }: MergedAlert['flow']): boolean {
  if (protocol === undefined || TUNNEL_PROTOCOLS.has(protocol)) return true
  if (protocol !== UDP && protocol !== UDP_LITE) return false
  const ports = [source.port, destination.port]
  return (
    ports.every((port) => port === undefined) ||
    ports.some((port) => port !== undefined && TUNNEL_PORTS.has(port))
  )
}

const DEVICE = 'Device'
/** What a search for addresses takes of the parameters of a download. */
const SEARCHED: ReadonlySet<string> = new Set([DEVICE, 'TSBegin', 'TSEnd', 'TSUnit'])
const DECAP = 'FilterBPFDecap'
/** From libpcap, whose error the device passes on. */
const WITHOUT_TAGS = 'no VLAN support'

/** "20261102T090001.123456Z_tcp_192.0.2.1_51234_203.0.113.9_443.pcap". */
function fileNameOf({ firstNs, flow }: MergedAlert, query: QueryPairs): string {
  const [, compression = 'none'] = query.find(([name]) => name === 'Compression') ?? []
  const words = [
    fileTime(firstNs),
    flow.protocol === undefined ? 'ip' : ipProtocolName(flow.protocol),
    ...[flow.source, flow.destination].flatMap(({ host, port }) => [host, port]),
  ]
  const name = words.filter((word) => word !== undefined).join('_')
  return `${name.replaceAll(':', '-')}${ENCODING_FILES[encodingOf(compression as Compression)].ending}`
}

/** Quoted: the text of an alert may come from the network. */
function aboutOf({ title, count }: MergedAlert): string {
  const shown = visible(JSON.stringify(title.length > 120 ? `${title.slice(0, 120)}...` : title))
  return count === 1 ? shown : `${shown} and ${count - 1} more`
}
