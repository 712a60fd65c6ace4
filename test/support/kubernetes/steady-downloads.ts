/** Clients that download the same bytes again and again, each time by a new connection. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export interface SteadyDownloads {
  /** Transfers that were whole. */
  done(): number
  /** Lets those that run end. */
  end(): Promise<{
    readonly transfers: number
    readonly handedBack: number
    readonly failures: readonly string[]
  }>
}

interface Load {
  readonly url: string
  readonly authorization: string
  readonly sha256: string
  readonly clients: number
  /** So many of them take a pause of this length between parts of the body. */
  readonly slow: { readonly clients: number; readonly pauseMs: number }
}

export function downloadAllTheTime(load: Load): SteadyDownloads {
  let isEnding = false
  let transfers = 0
  let handedBack = 0
  const failures: string[] = []
  const client = async (pauseMs: number): Promise<void> => {
    while (!isEnding) {
      try {
        const { status, retryAfterS, sha256 } = await download(load, pauseMs)
        if (status === 503 && retryAfterS !== undefined) {
          handedBack += 1
          await delay(retryAfterS * 1_000)
        } else if (status === 200 && sha256 === load.sha256) transfers += 1
        else failures.push(`status ${status}, sha256 ${sha256}`)
      } catch (error) {
        failures.push(String(error))
      }
    }
  }
  const { clients, slow } = load
  const running = Promise.all(
    Array.from({ length: clients }, (_, index) => client(index < slow.clients ? slow.pauseMs : 0)),
  )
  return {
    done: () => transfers,
    async end() {
      isEnding = true
      await running
      return { transfers, handedBack, failures }
    },
  }
}

interface Downloaded {
  readonly status: number | undefined
  readonly retryAfterS: number | undefined
  readonly sha256: string
}

/** Far longer than any transfer takes; a connection that nobody ends would hang for ever. */
const TRANSFER_LIMIT_MS = 60_000

/** Fails when the answer breaks off, or does not come to its end. */
async function download({ url, authorization }: Load, pauseMs: number): Promise<Downloaded> {
  const signal = AbortSignal.timeout(TRANSFER_LIMIT_MS)
  const sent = request(url, { headers: { authorization }, agent: false, signal })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const hash = createHash('sha256')
  for await (const bytes of response) {
    hash.update(bytes as Buffer)
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal })
  }
  const retryAfter = response.headers['retry-after']
  const retryAfterS = retryAfter === undefined ? undefined : Number(retryAfter)
  return { status: response.statusCode, retryAfterS, sha256: hash.digest('hex') }
}
