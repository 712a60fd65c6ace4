import { attachment, downloadFileName } from '../../shared/query/download/download-file-name.ts'
import { ENCODING_FILES, type Encoding } from '../../shared/query/download/query-values.ts'
import { ignoredNames } from '../../shared/query/ignored-names.ts'
import type { BodyFacts, MissingPart } from '../fetch/body/body.ts'
import type { DownloadPlan } from '../fleet/plan/plan.ts'

/**
 * Response headers of a download. Never Content-Encoding: the file is compressed, not the
 * transfer.
 */
export function downloadHead(
  plan: DownloadPlan,
  encoding: Encoding,
  facts: BodyFacts,
): Record<string, string> {
  const { mediaType } = ENCODING_FILES[encoding]
  const { query } = plan
  const timeZone = query.timeZone ?? facts.claims.timeZone
  const missing = new Set(facts.missing.map(({ device }) => device))
  const read = plan.steps.filter(({ device }) => !missing.has(device))
  return {
    'Content-Type': mediaType,
    'Content-Disposition': attachment(facts.claims.fileName ?? fileName(plan)),
    ...factHeaders(facts),
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    'Capfleet-Devices': read.map(({ device }) => device).join(', '),
    ...(query.timeUnit === undefined ? {} : { 'Capfleet-TS-Unit': query.timeUnit }),
    ...(timeZone === undefined ? {} : { 'Capfleet-Time-Zone': timeZone }),
    ...(query.ignored.length === 0 ? {} : { 'Capfleet-Ignored': ignoredNames(query.ignored) }),
  }
}

/** `Capfleet-Skew-Ns: rome=120+-40000, oslo=-77+-52000`, and what the devices state. */
function factHeaders({ claims, clocks, missing }: BodyFacts): Record<string, string> {
  const { order, agedOutBeforeNs, damagedSegments } = claims
  const skews = [...clocks].map(([device, { offsetNs, errorNs }]) => `${device}=${offsetNs}+-${errorNs}`)
  return {
    ...(order === undefined ? {} : { 'Capfleet-Order': order }),
    ...(agedOutBeforeNs === undefined ? {} : { 'Capfleet-Aged-Out-Before': String(agedOutBeforeNs) }),
    ...(damagedSegments === undefined ? {} : { 'Capfleet-Damaged-Segments': String(damagedSegments) }),
    ...(skews.length === 0 ? {} : { 'Capfleet-Skew-Ns': skews.join(', ') }),
    ...(missing.length === 0 ? {} : { 'Capfleet-Missing': missingText(missing) }),
  }
}

/** `lon1;from=1793610060000000000;to=1793610070000000000, ...`, in the head and in the trailers. */
export function missingText(missing: readonly MissingPart[]): string {
  return missing.map(({ device, fromNs, toNs }) => `${device};from=${fromNs};to=${toNs}`).join(', ')
}

function fileName({ query, steps }: DownloadPlan): string {
  const [only, ...more] = steps
  const place = more.length === 0 && only !== undefined ? only.device : 'fleet'
  return downloadFileName(query, { captureName: query.captureName, place })
}
