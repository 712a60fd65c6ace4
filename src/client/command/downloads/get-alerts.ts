/** `capfleet get --alert`: the packets of each alert in a file of Suricata or Zeek. */
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTime } from '../../../shared/query/download/download-file-name.ts'
import { COMPRESSIONS, FILE_FORMATS, fileEndingOf } from '../../../shared/query/download/query-values.ts'
import { ipProtocolName } from '../../../shared/query/flow/ip-protocols.ts'
import { ClientFailure, type FailureKind, usageFailure } from '../../client-failure.ts'
import { type DownloadTarget, downloadTarget } from '../../download-target.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect } from '../access/connect.ts'
import type { MergedAlert } from '../alerts/alert-file.ts'
import { type AlertOptions, readAlerts } from '../alerts/alert-flags.ts'
import { AlertQueries, aboutOf } from '../alerts/alert-queries.ts'
import { exists } from '../output/output-file.ts'
import { type DownloadOptions, runDownload, STANDARD_OUTPUT } from './one-download.ts'

type GivenOptions = ConnectOptions & DownloadOptions & AlertOptions & { readonly alert: string }

interface AlertsRun {
  readonly capture: string | undefined
  readonly query: QueryPairs
  readonly signal: AbortSignal
}

/** Fails with a ClientFailure, in the end also for lines that could not be read and downloads that failed. */
export async function getAlerts(options: GivenOptions, { capture, query, signal }: AlertsRun): Promise<void> {
  const say = (text: string): void => {
    if (options.quiet !== true) process.stderr.write(`${text}\n`)
  }
  const given = await readAlerts(options, { result: 'download', capture, query, say })
  const client = await connect(options)
  const queries = new AlertQueries(client, { ...given, includesFuture: false, signal, say })
  await new AlertDownloads(client, { options, queries, common: given.common, signal, say }).run(given.alerts)
  given.refuseMistakes()
}

interface AlertDownloadsOptions {
  readonly options: GivenOptions
  readonly queries: AlertQueries
  /** Parameters that all downloads have. */
  readonly common: QueryPairs
  readonly signal: AbortSignal
  readonly say: (text: string) => void
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
    const { options, signal, queries, say } = this.#options
    const name = fileNameOf(alert, queries.of(alert))
    say(`${name}: ${aboutOf(alert, JSON.stringify)}`)
    const output = join(folder, name)
    if (options.force !== true && (await exists(output))) {
      say(`${name}: already exists; --force downloads it again`)
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

  async #targetOf(alert: MergedAlert): Promise<DownloadTarget> {
    return downloadTarget(undefined, await this.#options.queries.find(alert))
  }
}

/**
 * "20261102T085931.123456Z-20261102T090501.123456Z_tcp_192.0.2.1_51234_203.0.113.9_443.pcap": the range and the
 * conversation, so that a file with other packets has another name.
 */
function fileNameOf({ flow, isTunnelled }: MergedAlert, query: QueryPairs): string {
  const given = new Map(query)
  const givenOf = <Value extends string>(name: string, values: readonly Value[]) =>
    values.find((value) => given.get(name) === value)
  const compression = givenOf('Compression', COMPRESSIONS) ?? 'none'
  const format = givenOf('Format', FILE_FORMATS) ?? 'pcap'
  const words = [
    ['TSBegin', 'TSEnd'].map((name) => fileTime(BigInt(given.get(name) ?? 0))).join('-'),
    flow.protocol === undefined ? 'ip' : ipProtocolName(flow.protocol),
    ...[flow.source, flow.destination].flatMap(({ host, port }) => [host, port]),
    isTunnelled ? 'tunnel' : undefined,
  ]
  const name = words.filter((word) => word !== undefined).join('_')
  return `${name.replaceAll(':', '-')}${fileEndingOf({ format, compression })}`
}
