/** Requests to the gateway that served the page, typed by its openapi.json, with the session's cookie. */
import createClient from 'openapi-fetch'
import type { components, paths } from '../api-types.ts'
import { inPageWords } from '../parameter-labels.ts'
import { TEXTS } from '../texts.ts'

export type Schemas = components['schemas']

/** Base address of the gateway: the folder of the page, which may be below the prefix of a proxy. */
export const BASE = new URL('.', location.href).href.replace(/[?#].*$/, '')

/** An answer other than 2xx, or no answer at all. */
export class Problem extends Error {
  readonly code: string
  readonly status: number
  readonly param: string | undefined
  readonly position: number | undefined
  /** The request's id in the gateway's log and audit. */
  readonly requestId: string | undefined
  /** Devices that prevent a download. */
  readonly devices: readonly string[]

  constructor({ code, status, detail, param, position, requestId, devices = [] }: ProblemFacts) {
    super(detail)
    this.name = 'Problem'
    this.code = code
    this.status = status
    this.param = param
    this.position = position
    this.requestId = requestId
    this.devices = devices
  }
}

interface ProblemFacts {
  readonly code: string
  readonly status: number
  readonly detail: string
  readonly param?: string | undefined
  readonly position?: number | undefined
  readonly requestId?: string | undefined
  readonly devices?: readonly string[]
}

/** Sent with every request: requests with it never trigger the browser's own password dialog. */
let formToken = '-'
let onSessionDoubt: () => void = () => undefined

export function useFormToken(token: string | null): void {
  formToken = token ?? '-'
}

/** Called if an answer says that nobody is signed in any more, or that the form token belongs to another session. */
export function whenSessionIsDoubtful(listener: () => void): void {
  onSessionDoubt = listener
}

export const gateway = createClient<paths>({ baseUrl: BASE.replace(/\/$/, ''), fetch: askedFetch })

/** The body of a 2xx; anything else is thrown as a Problem. */
export async function answered<Data>(
  asked: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await asked
  if (response.ok && data !== undefined) return data
  throw problemOf(response, error)
}

/** A request without generated types, such as one for packets. */
export async function openAnswer(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await askedFetch(new Request(new URL(path, BASE), init))
  if (response.ok) return response
  const body: unknown = await response.json().catch(() => undefined)
  throw problemOf(response, body)
}

async function askedFetch(request: Request): Promise<Response> {
  request.headers.set('X-Capfleet-Form', formToken)
  let response: Response
  try {
    response = await fetch(request, { credentials: 'same-origin' })
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new Problem({ code: 'gateway-unreachable', status: 0, detail: TEXTS.gateway.unreachable })
  }
  return response
}

interface SentFile {
  readonly file: Blob
  /** Called with the bytes that have left the browser. */
  readonly onSent: (bytes: number) => void
  readonly signal: AbortSignal
}

/**
 * Sends a file as the body of a POST, and returns the JSON of the answer. By XMLHttpRequest, because fetch() does not
 * report the progress of what is sent. Rejects with the signal's reason if it aborts.
 */
export function sendFile(path: string, { file, onSent, signal }: SentFile): Promise<unknown> {
  const request = new XMLHttpRequest()
  request.open('POST', new URL(path, BASE))
  request.setRequestHeader('X-Capfleet-Form', formToken)
  request.setRequestHeader('Content-Type', 'application/octet-stream')
  return new Promise((resolve, reject) => {
    const leaving = new AbortController()
    const end = (settle: () => void): void => {
      leaving.abort()
      settle()
    }
    signal.addEventListener('abort', () => request.abort(), { signal: leaving.signal })
    request.upload.addEventListener('progress', ({ loaded }) => onSent(loaded))
    request.addEventListener('abort', () => end(() => reject(signal.reason)))
    request.addEventListener('error', () =>
      end(() =>
        reject(new Problem({ code: 'connection-broken', status: 0, detail: TEXTS.gateway.brokeUpload })),
      ),
    )
    request.addEventListener('load', () => {
      const { status, responseURL: url } = request
      const body = parsedJson(request.responseText)
      end(() =>
        status < 300 && body !== undefined ? resolve(body) : reject(problemOf({ status, url }, body)),
      )
    })
    request.send(file)
  })
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function problemOf({ status, url }: Pick<Response, 'status' | 'url'>, body: unknown): Problem {
  const facts = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const isOver = status === 401 && !new URL(url).pathname.endsWith('/v1/session')
  if (isOver || facts.code === 'cross-site') onSessionDoubt()
  return new Problem({
    status,
    code: typeof facts.code === 'string' ? facts.code : `http-${status}`,
    detail: typeof facts.detail === 'string' ? facts.detail : TEXTS.gateway.notInOrder(status),
    param: typeof facts.param === 'string' ? facts.param : undefined,
    position: typeof facts.position === 'number' ? facts.position : undefined,
    requestId: typeof facts.requestId === 'string' ? facts.requestId : undefined,
    devices: Array.isArray(facts.devices) ? facts.devices.map(String) : [],
  })
}

/** Message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return inPageWords(error instanceof Error ? error.message : String(error))
}
