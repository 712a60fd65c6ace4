/**
 * The keys of an identity provider as last read, from a file or from the provider. They remain valid while the
 * provider is unreachable.
 */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import type { Algorithm } from 'jsonwebtoken'
import { CapfleetError } from '../../shared/base/error.ts'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import type { Log } from '../../shared/base/log.ts'
import { orAborted } from '../../shared/base/or-aborted.ts'
import { sendRequest } from '../../shared/base/outgoing-request.ts'
import { readKeySet } from './key-set.ts'
import type { JwksSettings, ProviderSettings } from './provider-settings.ts'
import type { VerificationKey } from './token-keys.ts'

/** Tokens with unknown key names cause at most one request to the provider per this interval. */
const UNKNOWN_PAUSE_MS = 60_000
const FILE_REFRESH_S = 60
const BYTES_MAX = 262_144
const TIME_MAX_MS = 5_000

export interface ProviderKeysOptions {
  readonly settings: Pick<ProviderSettings, 'name' | 'jwks' | 'algorithms'>
  readonly log: Log
  /** Called each time the keys have been read. */
  readonly count: (result: 'read' | 'failed') => void
}

export class ProviderKeys implements AsyncDisposable {
  readonly #options: ProviderKeysOptions
  readonly #timer: NodeJS.Timeout
  readonly #closing = new AbortController()
  #keys: ReadonlyMap<string, VerificationKey> = new Map()
  #reading: Promise<void> | undefined
  /** performance.now() of the last request because of an unknown key name. */
  #askedMs = Number.NEGATIVE_INFINITY

  private constructor(options: ProviderKeysOptions) {
    this.#options = options
    const { jwks } = options.settings
    const refreshS = 'url' in jwks ? jwks.refreshS : FILE_REFRESH_S
    this.#timer = setInterval(() => void this.#read(), refreshS * 1_000)
    this.#timer.unref()
  }

  /** An unreachable provider is retried later. Fails with bad-config for a file that cannot be used. */
  static async open(options: ProviderKeysOptions): Promise<ProviderKeys> {
    const { name, jwks, algorithms } = options.settings
    if ('file' in jwks) await checkFile(`auth.providers: ${name}: jwks.file`, jwks.file, algorithms)
    const keys = new ProviderKeys(options)
    await keys.#read()
    return keys
  }

  find(kid: string): VerificationKey | undefined {
    return this.#keys.get(kid)
  }

  /** Call it for an unknown key, which may be new. Resolves at once if the keys were requested a moment ago. */
  async refresh(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading
    const nowMs = performance.now()
    if (nowMs - this.#askedMs < UNKNOWN_PAUSE_MS) return
    this.#askedMs = nowMs
    await this.#read()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    await this.#reading
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOnce(): Promise<void> {
    const { settings, log, count } = this.#options
    try {
      const text = await readText(settings.jwks, this.#closing.signal)
      this.#keys = readKeySet(text, settings.algorithms)
      count('read')
      if (this.#keys.size === 0) log.warn('provider-keys.none', { provider: settings.name })
    } catch (error) {
      count('failed')
      const { message } = error as Error
      log.warn('provider-keys.failed', { provider: settings.name, keys: this.#keys.size, message })
    }
  }
}

async function checkFile(setting: string, file: string, algorithms: readonly Algorithm[]): Promise<void> {
  try {
    readKeySet(await readFile(file, 'utf8'), algorithms)
  } catch (cause) {
    const { message } = cause as Error
    throw new CapfleetError('bad-config', `${setting}: ${file} is not a JWK set: ${message}`, { cause })
  }
}

async function readText(jwks: JwksSettings, closing: AbortSignal): Promise<string> {
  if ('file' in jwks) return readFile(jwks.file, 'utf8')
  using limit = new JoinedSignal([closing], TIME_MAX_MS)
  const { signal } = limit
  const headers = { accept: 'application/json' }
  const sent = sendRequest(new URL(jwks.url), { headers, caFile: jwks.ca, silenceMs: TIME_MAX_MS, signal })
  return await orAborted(sent.then(readAnswer), signal)
}

/** Redirects are not followed: they lead to addresses that nobody configured. */
async function readAnswer(answer: IncomingMessage): Promise<string> {
  try {
    if (answer.statusCode !== 200) throw new Error(`the answer has the status ${answer.statusCode}, not 200`)
    const pieces: Buffer[] = []
    let bytes = 0
    for await (const piece of answer as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > BYTES_MAX) throw new Error(`the answer has more than ${BYTES_MAX} bytes`)
      pieces.push(piece)
    }
    return Buffer.concat(pieces).toString('utf8')
  } finally {
    answer.destroy()
  }
}
