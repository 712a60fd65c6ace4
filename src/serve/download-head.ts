import type { BodyFacts } from '../fetch/body.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import { downloadFileName } from '../query/download-file-name.ts'
import { ignoredNames } from '../query/ignored-names.ts'
import { ENCODING_FILES, type Encoding } from '../query/query-values.ts'

/**
 * Response headers of a download. Never Content-Encoding: the file is compressed, not the
 * transfer. Without `facts`, for HEAD, the devices have not been asked.
 */
export function downloadHead(
  plan: DownloadPlan,
  encoding: Encoding,
  facts?: BodyFacts,
): Record<string, string> {
  const { mediaType } = ENCODING_FILES[encoding]
  const { query } = plan
  return {
    'Content-Type': mediaType,
    'Content-Disposition': `attachment; filename="${facts?.claims.fileName ?? fileName(plan)}"`,
    ...(facts === undefined ? {} : factHeaders(facts)),
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    'Capfleet-Devices': plan.steps.map((step) => step.device).join(', '),
    ...(query.timeUnit === undefined ? {} : { 'Capfleet-TS-Unit': query.timeUnit }),
    ...(query.ignored.length === 0 ? {} : { 'Capfleet-Ignored': ignoredNames(query.ignored) }),
  }
}

/** `Capfleet-Skew-Ns: rome=120+-40000, oslo=-77+-52000`, and what the devices say. */
function factHeaders({ claims, clocks }: BodyFacts): Record<string, string> {
  const { order, agedOutBeforeNs, corruptBlocks } = claims
  const skews = [...clocks].map(([device, { offsetNs, errorNs }]) => `${device}=${offsetNs}+-${errorNs}`)
  return {
    ...(order === undefined ? {} : { 'Capfleet-Order': order }),
    ...(agedOutBeforeNs === undefined ? {} : { 'Capfleet-Aged-Out-Before': String(agedOutBeforeNs) }),
    ...(corruptBlocks === undefined ? {} : { 'Capfleet-Corrupt-Blocks': String(corruptBlocks) }),
    ...(skews.length === 0 ? {} : { 'Capfleet-Skew-Ns': skews.join(', ') }),
  }
}

function fileName({ query, steps }: DownloadPlan): string {
  const [only, ...more] = steps
  const place = more.length === 0 && only !== undefined ? only.device : 'fleet'
  return downloadFileName(query, { captureName: query.captureName, place })
}
