/**
 * A gateway with markup in its every text: names, sites, reasons, events and errors of devices, as received by a
 * browser.
 */
import type { BrowserContext, Request, Route } from 'playwright-core'

/**
 * Runs if it is treated as markup, in text or in an attribute, unless the page's policy stops it, which is then
 * reported.
 */
export const MARKUP = `"><script>document.title='broken'</script><img src=x onerror="document.title='broken'">`

/** Members of answers that contain text written by others. */
const WRITTEN: ReadonlySet<string> = new Set([
  'address',
  'detail',
  'device',
  'Device',
  'devices',
  'event',
  'kind',
  'name',
  'note',
  'reason',
  'replica',
  'site',
  'StreamName',
  'user',
  'version',
])

/** From now on the context's answers from the gateway have markup appended to each of those texts. */
export async function plantMarkup(context: BrowserContext): Promise<void> {
  await context.route(isAsked, async (route) => {
    const answer = await route.fetch({ url: withoutMarkup(route.request()) })
    const isJson = answer.headers()['content-type']?.includes('json') === true
    if (!isJson) return await route.fulfill({ response: answer })
    await route.fulfill({ response: answer, json: planted(await answer.json()) })
  })
  await context.route('**/v1/events**', (route) => route.fulfill(eventStream()))
}

/** From now on every matching request fails, with a reason that contains markup. */
export async function plantFailures(context: BrowserContext, param: string): Promise<void> {
  const problem = { code: `bad${MARKUP}`, detail: `why ${MARKUP}`, param, position: 2 }
  const fail = (route: Route) => route.fulfill({ status: 400, json: problem })
  await context.route((url) => isAsked(url) && !url.pathname.endsWith('/v1/session'), fail)
  await context.route('**/v1/events**', fail)
}

function isAsked({ pathname }: URL): boolean {
  return !pathname.startsWith('/assets/') && pathname !== '/' && !pathname.endsWith('/events')
}

/** The gateway only knows its devices by their own names. */
function withoutMarkup(request: Request): string {
  const url = new URL(request.url())
  const path = decodeURIComponent(url.pathname).replaceAll(MARKUP, '')
  const pairs = [...url.searchParams].map(([name, value]) => [name, value.replaceAll(MARKUP, '')])
  return `${url.origin}${path}?${new URLSearchParams(pairs)}`
}

function planted(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return WRITTEN.has(name) ? value + MARKUP : value
  if (Array.isArray(value)) return value.map((item) => planted(item, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, planted(inner, member)]))
}

function eventStream(): Parameters<Route['fulfill']>[0] {
  const silent = [{ device: `east${MARKUP}`, code: MARKUP }]
  const fleet = { devices: 3, down: [], silent }
  const happened = {
    device: `east${MARKUP}`,
    source: 'device',
    kind: `capture-started${MARKUP}`,
    atNs: String(BigInt(Date.now()) * 1_000_000n),
    number: '1',
    told: { [MARKUP]: MARKUP },
  }
  const body = `event: fleet\ndata: ${JSON.stringify(fleet)}\n\nid: 1\nevent: happened\ndata: ${JSON.stringify(happened)}\n\n`
  return { status: 200, contentType: 'text/event-stream', body }
}
