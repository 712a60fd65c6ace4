import type { LookupFunction } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ClientTls } from '../../shared/base/client-tls.ts'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { Secret } from '../../shared/base/secret.ts'
import { deviceVanished } from './device-failure.ts'
import type { DeviceKind, IgnorableParameter } from './device-kind.ts'

/** How a device compresses what the gateway itself fetches of it for a merge. */
export const FETCH_COMPRESSIONS = ['none', 'zstd', 'fast'] as const
export type FetchCompression = (typeof FETCH_COMPRESSIONS)[number]

/** HTTP Basic, or a bearer token. */
export type DeviceCredentials =
  | { readonly user: string; readonly password: Secret }
  | { readonly token: Secret }

export interface DeviceOptions extends ClientTls {
  readonly name: string
  readonly url: string
  readonly site?: string | undefined
  readonly fetchCompression?: FetchCompression | undefined
  /** Default: as its answers show. */
  readonly kind?: DeviceKind | undefined
  /** Parameters of downloads that a third-party device passes over; default: none that its kind knows. */
  readonly ignores?: readonly IgnorableParameter[] | undefined
  /** Connect to this address, whatever the URL's name resolves to. */
  readonly address?: string | undefined
  /** As Device.vanishedAt; default: never. */
  readonly vanishedAt?: Date | undefined
}

/** For net.connect, tls.connect and whoever passes options on to them. */
export interface DeviceConnectOptions {
  readonly secureContext?: SecureContext
  readonly lookup?: LookupFunction
}

/** One appliance that the gateway knows, with the credentials that the gateway uses there. */
export class Device {
  readonly name: string
  /** The base address, perhaps with a path, without user, query and final slash. */
  readonly url: URL
  readonly site: string | undefined
  readonly fetchCompression: FetchCompression
  /** undefined: as its answers show. */
  readonly kind: DeviceKind | undefined
  readonly ignores: readonly IgnorableParameter[] | undefined
  /** Since when the directory that told of it does so no more. The fleet sets it for the devices that it has. */
  vanishedAt: Date | undefined
  #connectOptions: DeviceConnectOptions | undefined
  readonly #options: DeviceOptions & DeviceCredentials
  readonly #basePath: string
  /** Private, so that no log line or JSON body can show it. */
  readonly #authorization: string

  constructor(options: DeviceOptions & DeviceCredentials) {
    this.name = options.name
    this.url = new URL(options.url)
    this.#basePath = this.url.pathname.replace(/\/+$/, '')
    this.site = options.site
    this.fetchCompression = options.fetchCompression ?? 'none'
    this.kind = options.kind
    this.ignores = options.ignores
    this.vanishedAt = options.vanishedAt
    this.#options = options
    this.#authorization = authorizationOf(options)
  }

  /** Value of the Authorization header for this device; for requests to it only. */
  authorization(): string {
    return this.#authorization
  }

  /** The text without what the gateway logs in with, as a device may repeat it. */
  withoutSecrets(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '[secret]'), text)
  }

  get #secrets(): readonly string[] {
    const [, credentials = ''] = this.#authorization.split(' ')
    const options = this.#options
    const own = 'token' in options ? options.token.reveal() : options.password.reveal()
    return [credentials, own, encodeURIComponent(own)].filter((secret) => secret !== '')
  }

  /** Where connections to this device go to, with the port. */
  get address(): string {
    return `${this.#options.address ?? this.url.hostname}:${this.url.port}`
  }

  /** Whether a directory told of its address. */
  get isDiscovered(): boolean {
    return this.#options.address !== undefined
  }

  /**
   * Why nothing may be sent to this device; undefined: it may. Soon after a directory tells of it no more its address
   * can be another's, who must neither get its login nor be taken for it.
   */
  get absence(): CapfleetError | undefined {
    return this.vanishedAt && deviceVanished(this.name, this.vanishedAt)
  }

  /** The same device, of which its directory tells no more. */
  vanished(vanishedAt: Date): Device {
    return new Device({ ...this.#options, vanishedAt })
  }

  /** What every connection to this device must be made with. */
  get connectOptions(): DeviceConnectOptions {
    this.#connectOptions ??= connectOptionsOf(this.#options)
    return this.#connectOptions
  }

  /** Path and query as this device wants them; `target` begins with a slash. */
  pathOf(target: string): string {
    return this.#basePath + target
  }

  /** Whether both are the same in all that matters to a request, once it may be made. */
  equals(other: Device): boolean {
    const names = ['name', 'url', 'site', 'fetchCompression', 'kind', 'ca', 'cert', 'address'] as const
    if (this.#authorization !== other.#authorization) return false
    if (this.#options.key?.reveal() !== other.#options.key?.reveal()) return false
    if (String(this.ignores) !== String(other.ignores)) return false
    return names.every((name) => this.#options[name] === other.#options[name])
  }
}

function authorizationOf(credentials: DeviceCredentials): string {
  if ('token' in credentials) return `Bearer ${credentials.token.reveal()}`
  return `Basic ${Buffer.from(`${credentials.user}:${credentials.password.reveal()}`).toString('base64')}`
}

/** Certificates are parsed once, not for each connection. */
function connectOptionsOf({ ca, cert, key, address }: DeviceOptions): DeviceConnectOptions {
  return {
    ...(ca === undefined && cert === undefined
      ? {}
      : { secureContext: createSecureContext({ ca, cert, key: key?.reveal() }) }),
    ...(address === undefined ? {} : { lookup: always(address) }),
  }
}

/** A name that was checked once must not lead elsewhere when it is looked up again. */
function always(address: string): LookupFunction {
  const family = address.includes(':') ? 6 : 4
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
}
