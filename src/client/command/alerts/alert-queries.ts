/** The query for the packets of an alert: its conversation, its time, and the devices that saw it. */
import { type PivotMargins, pivotParameters, pivotRange } from '../../../shared/query/flow/pivot.ts'
import { visible } from '../../../shared/query/query-parameters.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import type { MergedAlert } from './alert-file.ts'
import { devicesThatSaw } from './seen-devices.ts'

export interface AlertQueriesOptions {
  readonly margins: PivotMargins
  /** Parameters that all of them have. */
  readonly common: QueryPairs
  /** Whether packets are included that are captured only after the query was made. */
  readonly includesFuture: boolean
  readonly signal: AbortSignal
  /** Prints what users should know. */
  readonly say: (text: string) => void
}

const DEVICE = 'Device'
/** What a search for addresses takes of the parameters of a download. */
const SEARCHED: ReadonlySet<string> = new Set([DEVICE, 'TSBegin', 'TSEnd', 'TSUnit'])
/** What it takes to compile the filter. */
const COMPILED: ReadonlySet<string> = new Set([...SEARCHED, 'FilterBPF'])
const DECAP = 'FilterBPFDecap'
/** From libpcap, whose error the device passes on. */
const WITHOUT_TAGS = 'no VLAN support'

export class AlertQueries {
  readonly #client: GatewayClient
  readonly #options: AlertQueriesOptions

  constructor(client: GatewayClient, options: AlertQueriesOptions) {
    this.#client = client
    this.#options = options
  }

  /** The query for all devices that were chosen. Equal alerts have equal ones, whatever devices saw. */
  of(alert: MergedAlert): QueryPairs {
    return this.#queryOf(alert, { isDecapsulated: this.#isDecapsulated })
  }

  /**
   * The query for the devices that saw the alert. libpcap refuses vlan for cooked and raw captures: if a device has some,
   * FilterBPFDecap finds the packets, too, except those around other packets. Fails with a ClientFailure.
   */
  async find(alert: MergedAlert): Promise<QueryPairs> {
    const query = await this.#narrowed(alert, this.of(alert))
    if (!(await this.#isRefused(query))) return query
    if (mayBeTunnel(alert.flow))
      throw new ClientFailure(
        'incomplete',
        `this conversation may be a tunnel, and some of the captures are cooked or raw: download it from these devices with --device and --bpf ${JSON.stringify(pivotParameters({ ...alert, isTunnelled: true }, this.#options.margins).FilterBPF)}, and from the others with --alert and --device`,
        { code: 'bad-bpf' },
      )
    this.#options.say(
      'cooked or raw captures have no VLAN tags to look for: the filter looks inside, so packets in tunnels are included',
    )
    return this.#queryOf(alert, { isDecapsulated: true })
  }

  /** Whether one of the devices cannot look for VLAN tags: for an estimate, each of them compiles the filter. */
  async #isRefused(query: QueryPairs): Promise<boolean> {
    if (query.some(([name]) => name === DECAP)) return false
    const { signal } = this.#options
    try {
      await this.#client.json('/v1/estimate', { query: query.filter(([name]) => COMPILED.has(name)), signal })
      return false
    } catch (error) {
      // The download meets all other failures, too.
      if (error instanceof ClientFailure) return error.message.includes(WITHOUT_TAGS)
      throw error
    }
  }

  get #isDecapsulated(): boolean {
    return this.#options.common.some(([name, value]) => name === DECAP && /^(1|true)$/i.test(value))
  }

  #queryOf(alert: MergedAlert, { isDecapsulated }: { readonly isDecapsulated: boolean }): QueryPairs {
    const { margins, common } = this.#options
    const own = pivotParameters(alert, margins, { isDecapsulated })
    const others = common.filter(([name]) => name !== DECAP)
    return [...others, ...Object.entries(own), ['TSUnit', 'nanos']]
  }

  /** Only from the devices that saw the conversation. Inside of tunnels, devices cannot search for addresses. */
  async #narrowed(alert: MergedAlert, query: QueryPairs): Promise<QueryPairs> {
    const { margins, includesFuture, signal } = this.#options
    const { source, destination } = alert.flow
    if (query.some(([name]) => name === DECAP)) return query
    const devices = await devicesThatSaw(
      this.#client,
      {
        hosts: [source.host, destination.host].filter((host) => host !== undefined),
        query: query.filter(([name]) => SEARCHED.has(name)),
        untilNs: includesFuture ? pivotRange(alert, margins).endNs : undefined,
      },
      signal,
    )
    if (devices === undefined) return query
    return [[DEVICE, devices.join(',')], ...query.filter(([name]) => name !== DEVICE)]
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

const TITLE_CHARACTERS_MAX = 120

/** The title of the alert, and how many more there are: its text may come from the network. */
export function aboutOf({ title, count }: MergedAlert, quoted: (text: string) => string = String): string {
  const short = title.length > TITLE_CHARACTERS_MAX ? `${title.slice(0, TITLE_CHARACTERS_MAX)}...` : title
  const shown = visible(quoted(short))
  return count === 1 ? shown : `${shown} and ${count - 1} more`
}
