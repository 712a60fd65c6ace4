import type { DownloadPlan } from '../fleet/plan.ts'
import { ENCODING_FILES, type Encoding } from '../query/query-values.ts'

/** What is known of a device's answer, for the headers that are passed on. */
export interface HeadOptions {
  readonly encoding: Encoding
  /** Headers of the only device's answer; none for a merge and for HEAD. */
  readonly deviceHeaders?: Readonly<Record<string, string | string[] | undefined>>
}

/** Response headers of a download (api-decisions section 1). Never Content-Encoding: the file is compressed, not the transfer. */
export function downloadHead(plan: DownloadPlan, options: HeadOptions): Record<string, string> {
  const { ending, mediaType } = ENCODING_FILES[options.encoding]
  const { query } = plan
  return {
    ...passedOn(options.deviceHeaders ?? {}),
    'Content-Type': mediaType,
    'Content-Disposition': `attachment; filename="${baseName(plan)}${ending}"`,
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    'Capfleet-Devices': plan.steps.map((step) => step.device).join(', '),
    ...(query.timeUnit === undefined ? {} : { 'Capfleet-TS-Unit': query.timeUnit }),
    ...(query.ignored.length === 0 ? {} : { 'Capfleet-Ignored': query.ignored.map(headerText).join(', ') }),
  }
}

/** About the caller's query or this hop: the device's own view of them would be wrong here. */
const OWN_HEADERS = new Set([
  'capfleet-request-id',
  'capfleet-ts-unit',
  'capfleet-ignored',
  'capfleet-devices',
])
const PLAIN_TEXT = /^[\x20-\x7e]{0,256}$/

function passedOn(headers: NonNullable<HeadOptions['deviceHeaders']>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const ours = name.startsWith('capfleet-') && !OWN_HEADERS.has(name)
    if (ours && typeof value === 'string' && PLAIN_TEXT.test(value)) passed[name] = value
  }
  return passed
}

function baseName({ query, steps }: DownloadPlan): string {
  const [only, ...more] = steps
  const where = more.length === 0 && only !== undefined ? only.device : 'fleet'
  if (query.kind === 'single') return `${query.captureName}`
  const range = `${query.beginNs}-${query.endNs}`
  return query.kind === 'timerange' ? `${where}_${range}` : `${query.captureName}_${range}`
}

const NAME_MAX = 64

/** A parameter's name is any text; a header may hold visible ASCII only. */
function headerText(name: string): string {
  return encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed())
}
