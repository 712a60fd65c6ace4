/** `capfleet export create --alert`: an export for each alert in a file of Suricata or Zeek. */
import { createHash } from 'node:crypto'
import { ClientFailure, type FailureKind } from '../../client-failure.ts'
import type { Export } from '../../followed-export.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect } from '../access/connect.ts'
import { counted, type MergedAlert } from '../alerts/alert-file.ts'
import { type AlertOptions, readAlerts } from '../alerts/alert-flags.ts'
import { AlertQueries, aboutOf } from '../alerts/alert-queries.ts'
import { print } from '../common/list-output.ts'
import { watchToEnd } from './export-watch.ts'
import { placeOrder } from './place-order.ts'

export interface AlertExportOptions extends ConnectOptions, AlertOptions {
  readonly watch?: boolean
  /** Whether to order what was ordered before. */
  readonly force?: boolean
}

interface AlertExportsRun {
  readonly capture: string | undefined
  readonly query: QueryPairs
  readonly signal: AbortSignal
}

/**
 * Prints the id of each export. Fails with a ClientFailure, in the end also for lines that could not be read and exports
 * that could not be ordered; with --watch, also for those that failed.
 */
export async function exportAlerts(
  options: AlertExportOptions & { readonly alert: string },
  { capture, query, signal }: AlertExportsRun,
): Promise<void> {
  const given = await readAlerts(options, { result: 'export', capture, query, say })
  const client = await connect(options)
  const queries = new AlertQueries(client, { ...given, includesFuture: true, signal, say })
  const orders = new AlertOrders(client, { queries, isForced: options.force === true, signal })
  const { ids, failures } = await orders.place(given.alerts)
  if (options.watch === true) failures.push(...(await watchAll(client, ids, signal)))
  const [first] = failures
  if (first !== undefined)
    throw new ClientFailure(
      first.kind,
      `${failures.length} of ${counted(given.alerts.length, 'export')} failed`,
      {
        code: first.code,
      },
    )
  given.refuseMistakes()
}

interface AlertOrdersOptions {
  readonly queries: AlertQueries
  readonly isForced: boolean
  readonly signal: AbortSignal
}

/** After these, the next order can succeed. */
const SINGLE_FAILURES: ReadonlySet<FailureKind> = new Set(['not-found', 'device', 'incomplete'])
/** These have no packets: the same alert is ordered again. */
const LOST_STATES: ReadonlySet<Export['state']> = new Set(['failed', 'cancelled'])
const REASON = 'Reason'

/** Equal alerts with equal parameters are ordered once, as long as the gateway remembers their keys. */
class AlertOrders {
  readonly #client: GatewayClient
  readonly #options: AlertOrdersOptions

  constructor(client: GatewayClient, options: AlertOrdersOptions) {
    this.#client = client
    this.#options = options
  }

  /** Prints the id of each export as soon as it is known. */
  async place(
    alerts: readonly MergedAlert[],
  ): Promise<{ readonly ids: readonly string[]; readonly failures: ClientFailure[] }> {
    const ids: string[] = []
    const failures: ClientFailure[] = []
    for (const alert of alerts) {
      const about = aboutOf(alert, JSON.stringify)
      try {
        const { id, state } = await this.#order(alert)
        ids.push(id)
        say(`export ${id} (${state}): ${about}`)
        await print(`${id}\n`)
      } catch (error) {
        if (!(error instanceof ClientFailure)) throw error
        if (error.kind === 'busy') throw afterOthers(error, ids.length, alerts.length)
        if (!SINGLE_FAILURES.has(error.kind)) throw error
        say(`capfleet: ${about}: ${error.message} [${error.code}]`)
        failures.push(error)
      }
    }
    return { ids, failures }
  }

  async #order(alert: MergedAlert): Promise<Export> {
    const { queries, isForced, signal } = this.#options
    const order = { query: withReason(await queries.find(alert), alert), signal }
    if (isForced) return await placeOrder<Export>(this.#client, PATH, order)
    const key = keyOf(queries.of(alert))
    for (let attempt = 1; ; attempt += 1) {
      const known = await this.#orderOnce({ ...order, key: `${key}.${attempt}` })
      if (known !== undefined && !LOST_STATES.has(known.state)) return known
    }
  }

  /** The export of this key, also if devices saw something else when it was ordered. undefined: it was removed. */
  async #orderOnce(order: {
    readonly query: QueryPairs
    readonly key: string
    readonly signal: AbortSignal
  }): Promise<Export | undefined> {
    try {
      return await placeOrder<Export>(this.#client, PATH, order)
    } catch (error) {
      if (!(error instanceof ClientFailure)) throw error
      if (error.code === 'unknown-export') return undefined
      const { exportId } = error.facts
      if (exportId === undefined) throw error
      return await this.#find(exportId)
    }
  }

  async #find(id: string): Promise<Export | undefined> {
    const { signal } = this.#options
    try {
      return (await this.#client.json<Export>(`${PATH}/${encodeURIComponent(id)}`, { signal })).value
    } catch (error) {
      if (error instanceof ClientFailure && error.code === 'unknown-export') return undefined
      throw error
    }
  }
}

const PATH = '/v1/exports'

function keyOf(query: QueryPairs): string {
  return `alert-${createHash('sha256').update(JSON.stringify(query)).digest('hex')}`
}

/** Lists of exports show it. */
function withReason(query: QueryPairs, alert: MergedAlert): QueryPairs {
  if (query.some(([name]) => name === REASON)) return query
  return [...query, [REASON, aboutOf(alert)]]
}

function afterOthers(failure: ClientFailure, ordered: number, all: number): ClientFailure {
  const advice = `${ordered} of ${all} are ordered; the same command orders the others later`
  return new ClientFailure(failure.kind, `${failure.message}; ${advice}`, failure.facts)
}

/** The failures of those that did not end well. */
async function watchAll(
  client: GatewayClient,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly ClientFailure[]> {
  const failures: ClientFailure[] = []
  for (const id of ids) {
    try {
      await watchToEnd(client, id, signal)
    } catch (error) {
      if (!(error instanceof ClientFailure) || error.kind === 'access') throw error
      say(`capfleet: export ${id}: ${error.message} [${error.code}]`)
      failures.push(error)
    }
  }
  return failures
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
