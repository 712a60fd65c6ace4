/** List and watch of EndpointSlices over the Kubernetes API, with the pod's own token. */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { sendRequest } from '../../../shared/base/outgoing-request.ts'
import type { EndpointSliceSettings } from './device-settings.ts'
import { type EndpointSlice, endpointSliceSchema } from './endpoint-slices.ts'

/** The server ends a watch after this time, and it is restarted. */
const WATCH_S = 300
/** If a watch is still open by then, its server is gone. */
const WATCH_TIMEOUT_MS = (WATCH_S + 30) * 1_000
const ANSWER_TIMEOUT_MS = 10_000
const ERROR_TEXT_MAX = 300

const listSchema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  items: z.array(z.unknown()),
})
const eventSchema = z.object({ type: z.string(), object: z.unknown() })

/**
 * Calls `onSlices` with all slices, first as listed and then after each change. Rejects if the server is unreachable,
 * ends the watch with an error, or with the signal's reason; the caller should start over. Resolves when the watch has
 * ended regularly.
 */
export async function watchEndpointSlices(
  settings: EndpointSliceSettings,
  onSlices: (slices: Iterable<EndpointSlice>) => void,
  signal: AbortSignal,
): Promise<void> {
  const ask = (query: Readonly<Record<string, string>>, silenceMs: number) =>
    askForSlices(settings, { query, silenceMs, signal })
  const listed = listSchema.parse(JSON.parse(await text(await ask({}, ANSWER_TIMEOUT_MS))))
  const slices = new Map<string, EndpointSlice>()
  for (const item of listed.items) putSlice(slices, item)
  onSlices(slices.values())
  const { resourceVersion } = listed.metadata
  const watch = { watch: '1', resourceVersion, allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_S) }
  const changes = await ask(watch, WATCH_TIMEOUT_MS)
  try {
    for await (const line of createInterface({ input: changes })) {
      if (applyEvent(slices, line)) onSlices(slices.values())
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    changes.destroy()
  }
}

/** The body of the answer. A server that sends nothing for `silenceMs` has failed. */
async function askForSlices(
  settings: EndpointSliceSettings,
  options: {
    readonly query: Readonly<Record<string, string>>
    readonly silenceMs: number
    readonly signal: AbortSignal
  },
): Promise<IncomingMessage> {
  const { namespace, labelSelector, tokenFile, caFile } = settings
  const query = new URLSearchParams({ ...(labelSelector === '' ? {} : { labelSelector }), ...options.query })
  const path = `apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`
  const url = new URL(`${settings.url.replace(/\/+$/, '')}/${path}?${query}`)
  // The files are read each time, because the kubelet renews them.
  const token = (await readFile(tokenFile, 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
  const { signal, silenceMs } = options
  const answer = await sendRequest(url, { headers, caFile, silenceMs: ANSWER_TIMEOUT_MS, signal })
  answer.setTimeout(silenceMs)
  if (answer.statusCode === 200) return answer
  const said = await text(answer)
  throw new Error(
    `the Kubernetes API answered with status ${answer.statusCode}: ${said.slice(0, ERROR_TEXT_MAX)}`,
  )
}

/** Applies one event of the watch; returns whether it changed anything. */
function applyEvent(slices: Map<string, EndpointSlice>, line: string): boolean {
  if (line.trim() === '') return false
  const { type, object } = eventSchema.parse(JSON.parse(line))
  // One cause is 410 Gone: the version is too old to watch from.
  if (type === 'ERROR')
    throw new Error(`the watch failed: ${JSON.stringify(object).slice(0, ERROR_TEXT_MAX)}`)
  if (type === 'BOOKMARK') return false
  if (type !== 'DELETED') return putSlice(slices, object)
  const slice = endpointSliceSchema.safeParse(object).data
  return slice !== undefined && slices.delete(slice.metadata.name)
}

function putSlice(slices: Map<string, EndpointSlice>, value: unknown): boolean {
  const slice = endpointSliceSchema.safeParse(value).data
  if (slice !== undefined) slices.set(slice.metadata.name, slice)
  return slice !== undefined
}
