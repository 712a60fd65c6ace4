import type { DownloadPlan } from '../fleet/plan.ts'
import { downloadFileName } from '../query/download-file-name.ts'
import { ignoredNames } from '../query/ignored-names.ts'
import { ENCODING_FILES, type Encoding } from '../query/query-values.ts'

/** What is known of a device's answer, for the headers that are passed on. */
export interface HeadOptions {
  readonly encoding: Encoding
  /** Headers of the only device's answer; none for a merge and for HEAD. */
  readonly deviceHeaders?: Readonly<Record<string, string | string[] | undefined>>
}

/** Response headers of a download (api-decisions section 1). Never Content-Encoding: the file is compressed, not the transfer. */
export function downloadHead(plan: DownloadPlan, options: HeadOptions): Record<string, string> {
  const { mediaType } = ENCODING_FILES[options.encoding]
  const { query } = plan
  return {
    'Content-Type': mediaType,
    'Content-Disposition': `attachment; filename="${fileName(plan)}"`,
    ...passedOn(options.deviceHeaders ?? {}),
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    'Capfleet-Devices': plan.steps.map((step) => step.device).join(', '),
    ...(query.timeUnit === undefined ? {} : { 'Capfleet-TS-Unit': query.timeUnit }),
    ...(query.ignored.length === 0 ? {} : { 'Capfleet-Ignored': ignoredNames(query.ignored) }),
  }
}

/** What a device may say of its packets, by name in lower case: a device is not trusted. */
const PASSED_HEADERS: ReadonlyMap<string, { readonly name: string; readonly form: RegExp }> = new Map(
  [
    // A device knows the full name of the capture that a base name means.
    { name: 'Content-Disposition', form: /^attachment; filename="[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"$/ },
    { name: 'Capfleet-Order', form: /^[a-z]{1,16}$/ },
    { name: 'Capfleet-Aged-Out-Before', form: /^\d{1,20}$/ },
    { name: 'Capfleet-Corrupt-Blocks', form: /^\d{1,20}$/ },
  ].map((header) => [header.name.toLowerCase(), header]),
)

function passedOn(headers: NonNullable<HeadOptions['deviceHeaders']>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [key, { name, form }] of PASSED_HEADERS) {
    const value = headers[key]
    if (typeof value === 'string' && form.test(value)) passed[name] = value
  }
  return passed
}

function fileName({ query, steps }: DownloadPlan): string {
  const [only, ...more] = steps
  const place = more.length === 0 && only !== undefined ? only.device : 'fleet'
  return downloadFileName(query, { captureName: query.captureName, place })
}
