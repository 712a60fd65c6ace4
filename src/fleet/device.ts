/** One appliance that the gateway knows, with the credentials that the gateway uses there. */
export class Device {
  readonly name: string
  /** Without user, query and final slash; may have a path. */
  readonly url: URL
  readonly site: string | undefined
  /** Private, so that no log line or JSON body can show it. */
  readonly #authorization: string

  constructor(options: {
    readonly name: string
    readonly url: string
    readonly user: string
    readonly password: string
    readonly site?: string | undefined
  }) {
    this.name = options.name
    this.url = new URL(options.url)
    this.site = options.site
    this.#authorization = `Basic ${Buffer.from(`${options.user}:${options.password}`).toString('base64')}`
  }

  /** Value of the Authorization header for this device; for requests to it only. */
  authorization(): string {
    return this.#authorization
  }

  /** Path and query as this device wants them; `target` begins with a slash. */
  pathOf(target: string): string {
    return this.url.pathname.replace(/\/+$/, '') + target
  }
}
