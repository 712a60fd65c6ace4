import type { LookupFunction } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ClientTls } from '../../shared/base/client-tls.ts'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { Secret } from '../../shared/base/secret.ts'
import { deviceVanished } from './device-failure.ts'
import type { DeviceKind, IgnorableParameter } from './device-kind.ts'

/** How a device compresses what the gateway itself fetches from it for a merge. */
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
  /** Default: detected from its answers. */
  readonly kind?: DeviceKind | undefined
  /** Download parameters that a third-party device ignores. Default: none that its kind supports. */
  readonly ignores?: readonly IgnorableParameter[] | undefined
  /** Connect to this address, whatever the URL's name resolves to. */
  readonly address?: string | undefined
  /** See Device.vanishedAt; default: never. */
  readonly vanishedAt?: Date | undefined
}

/** Options for net.connect, tls.connect and code that passes options on to them. */
export interface DeviceConnectOptions {
  readonly secureContext?: SecureContext
  readonly lookup?: LookupFunction
}

/** One appliance that the gateway knows, with the credentials that the gateway uses there. */
export class Device {
  readonly name: string
  /** The base address, possibly with a path, without user, query and trailing slash. */
  readonly url: URL
  readonly site: string | undefined
  readonly fetchCompression: FetchCompression
  /** undefined: detected from its answers. */
  readonly kind: DeviceKind | undefined
  readonly ignores: readonly IgnorableParameter[] | undefined
  /** Since when the device has been missing from its directory. Set by the fleet for its devices. */
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

  /** The Authorization header for this device; only for requests to it. */
  authorization(): string {
    return this.#authorization
  }

  /** The text with our credentials redacted, in case a device repeats them. */
  withoutSecrets(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '[secret]'), text)
  }

  get #secrets(): readonly string[] {
    const [, credentials = ''] = this.#authorization.split(' ')
    const options = this.#options
    const own = 'token' in options ? options.token.reveal() : options.password.reveal()
    return [credentials, own, encodeURIComponent(own)].filter((secret) => secret !== '')
  }

  /** Where connections to this device go, with the port. */
  get address(): string {
    return `${this.#options.address ?? this.url.hostname}:${this.url.port}`
  }

  /** Whether its address came from a directory. */
  get isDiscovered(): boolean {
    return this.#options.address !== undefined
  }

  /**
   * Why nothing may be sent to this device, or undefined. Once a device is missing from its directory, its address may
   * soon belong to a different one, which must neither receive the credentials nor be taken for this device.
   */
  get absence(): CapfleetError | undefined {
    return this.vanishedAt && deviceVanished(this.name, this.vanishedAt)
  }

  /** The same device, marked as missing from its directory. */
  vanished(vanishedAt: Date): Device {
    return new Device({ ...this.#options, vanishedAt })
  }

  /** Options that every connection to this device needs. */
  get connectOptions(): DeviceConnectOptions {
    this.#connectOptions ??= connectOptionsOf(this.#options)
    return this.#connectOptions
  }

  /** Path and query in the form for this device; `target` begins with a slash. */
  pathOf(target: string): string {
    return this.#basePath + target
  }

  /** Whether both are the same in everything that affects a request that may be sent. */
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

/** A name that was checked once must not resolve to a different address later. */
function always(address: string): LookupFunction {
  const family = address.includes(':') ? 6 : 4
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
}
