/** A device of the stand as a caller reaches it on one of the three routes. */
import { type HttpAnswer, httpGet, httpOpen, type OpenAnswer } from '../support/http-get.ts'
import type { TempAppliance } from '../support/processes/temp-appliance.ts'
import type { Caller, RouteName } from './claim.ts'
import type { DeviceName } from './contract-captures.ts'
import type { ContractStand } from './contract-stand.ts'

export interface AskOptions {
  /** Default: full. */
  readonly as?: Caller | undefined
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** An answer as the device gave it: at the root, without the gateway's envelope. */
export interface Seen extends HttpAnswer {
  readonly text: string
}

/** Paths of the gateway itself, which take no Device=. */
const OWN_PATH = /^\/(v1|devices|metrics|livez|readyz|docs|openapi(\.json)?)(\/|\?|$)/
/** The gateway finds the one device that holds the capture. */
const FOUND_BY_NAME = /^\/+((api\/v1\/)?pcap\/(single|splittime|del)|stream\/s(size|time))(\?|$)/

export class Place {
  readonly stand: ContractStand
  readonly route: RouteName
  readonly device: DeviceName

  constructor(stand: ContractStand, route: RouteName, device: DeviceName) {
    this.stand = stand
    this.route = route
    this.device = device
  }

  /** The device itself, whatever the route. */
  get appliance(): TempAppliance {
    return this.stand.appliances[this.device]
  }

  /** Base address of the route. */
  get base(): string {
    if (this.route === 'device') return this.appliance.url
    return this.stand.gateway.url + (this.route === 'below' ? `/devices/${this.device}` : '')
  }

  /** The prefix of links in the answers of this route. */
  get linkBase(): string {
    return this.route === 'fleet' ? `/devices/${this.device}` : ''
  }

  headersOf(caller: Caller): Readonly<Record<string, string>> {
    if (caller === 'nobody') return {}
    if (this.route !== 'device') return this.stand.gateway.as[caller]
    return { authorization: `Basic ${btoa(this.appliance.credentials(caller))}` }
  }

  /** "name:password" for curl. */
  credentialsOf(caller: Exclude<Caller, 'nobody'>): string {
    return atob((this.headersOf(caller).authorization ?? '').slice('Basic '.length))
  }

  urlOf(target: string): string {
    const isWhole = this.route !== 'fleet' || OWN_PATH.test(target) || FOUND_BY_NAME.test(target)
    if (isWhole || /[?&]Device=/.test(target)) return this.base + target
    return `${this.base}${target}${target.includes('?') ? '&' : '?'}Device=${this.device}`
  }

  async ask(target: string, options: AskOptions = {}): Promise<Seen> {
    const answer = await httpGet(this.urlOf(target), this.#options(options))
    const body = this.route === 'fleet' ? withoutEnvelope(answer.body) : answer.body
    const text = body.toString('utf8')
    return { ...answer, body, text, json: () => JSON.parse(text) as Record<string, unknown> }
  }

  /** The answer, with its body unread. */
  open(target: string, options: AskOptions = {}): Promise<OpenAnswer> {
    return httpOpen(this.urlOf(target), this.#options(options))
  }

  /** The answer of a download through the gateway. */
  async receiptOf(headers: HttpAnswer['headers']): Promise<Record<string, unknown>> {
    const root = new Place(this.stand, 'fleet', this.device)
    return (await root.ask(`/v1/requests/${headers['capfleet-request-id']}`)).json()
  }

  #options({ as = 'full', method, headers }: AskOptions) {
    return {
      headers: { te: 'trailers', ...this.headersOf(as), ...headers },
      ...(method === undefined ? {} : { method }),
    }
  }
}

/** The answer of the only device in {"Devices":[{Device, Status, Body}]}; any other body unchanged. */
function withoutEnvelope(body: Buffer): Buffer {
  if (!body.subarray(0, 12).equals(Buffer.from('{"Devices":['))) return body
  const { Devices } = JSON.parse(body.toString('utf8')) as { Devices: readonly Record<string, unknown>[] }
  const [only, ...others] = Devices
  if (only === undefined || others.length > 0 || !('Body' in only)) return body
  return Buffer.from(typeof only.Body === 'string' ? only.Body : JSON.stringify(only.Body))
}
