/** A real identity provider on loopback: a service logs in with its secret and gets an access token, a signed JWT. */

import { generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

const AUDIENCE = 'https://capfleet.example'
const CLIENT = { id: 'collector', secret: 'collector-secret-for-tests-only' }

export class OidcServer implements AsyncDisposable {
  readonly audience = AUDIENCE
  /** Requests for its keys. */
  keyReads = 0
  /** Groups in tokens issued from now on. */
  groups: readonly string[] = []
  /** Additional claims of its tokens. */
  claims: Readonly<Record<string, unknown>> = {}
  /** Answers each request with 503. */
  isDown = false
  readonly #server: Server
  #answer: RequestListener = (_req, res) => res.writeHead(503).end()

  private constructor() {
    this.#server = createServer((req, res) => {
      if (req.url === '/jwks') this.keyReads += 1
      if (this.isDown) res.writeHead(503).end()
      else this.#answer(req, res)
    })
  }

  static async start(alg: 'ES256' | 'RS256', kid: string): Promise<OidcServer> {
    const server = new OidcServer()
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    server.rotate(alg, kid)
    return server
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get keysUrl(): string {
    return `${this.issuer}/jwks`
  }

  /** Signs with another key from now on; the old one is gone. */
  rotate(alg: 'ES256' | 'RS256', kid: string): void {
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: alg,
        },
      ],
      jwks: { keys: [{ ...privateJwk(alg), kid, alg, use: 'sig' }] as never },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => AUDIENCE,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({
            scope: '',
            audience: AUDIENCE,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 600,
            jwt: { sign: { alg } },
          }),
        },
      },
      extraTokenClaims: () => ({ groups: this.groups, ...this.claims }),
    })
    this.#answer = provider.callback()
  }

  /** An access token, as issued to a service. */
  async token(): Promise<string> {
    const answer = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    })
    const { access_token: token } = (await answer.json()) as { access_token?: string }
    if (token === undefined) throw new Error(`no token: ${answer.status}`)
    return token
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

function privateJwk(alg: 'ES256' | 'RS256'): JsonWebKey {
  const { privateKey } =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      : generateKeyPairSync('rsa', { modulusLength: 2_048 })
  return privateKey.export({ format: 'jwk' })
}
