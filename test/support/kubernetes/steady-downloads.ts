/** Clients that download the same bytes repeatedly, each time over a new connection. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export interface SteadyDownloads {
  /** Complete transfers. */
  done(): number
  /** Lets running transfers end. */
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
  /** This many of them pause for this long between parts of the body. */
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

/** Far longer than any transfer takes; a connection that is never closed would hang for ever. */
const TRANSFER_LIMIT_MS = 60_000

/** Fails if the answer breaks off or is incomplete. */
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
