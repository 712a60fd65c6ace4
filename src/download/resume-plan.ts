/** How a download that has a receipt is planned again. */
import { hash } from 'node:crypto'
import { type DownloadPlan, mergeStep, planDownload } from '../fleet/plan.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import { parseDownloadQuery } from '../query/parse-download-query.ts'
import { parseQueryString } from '../query/parse-query-string.ts'
import { badParameter } from '../query/query-parameters.ts'
import type { StoredReceipt } from './receipt.ts'
import type { ResumePoint } from './resume-point.ts'

/** Parameters that may differ between a download and its continuation. */
const FREE_PARAMETERS: ReadonlySet<string> = new Set(['Resume', 'Offset', 'Wait', 'Digest', 'Strict', 'rand'])

/** What is asked, as text whose order does not matter; "" when nothing but free parameters is given. */
function askedText(querystring: string): string {
  return [...parseQueryString(querystring)]
    .filter(([name]) => !FREE_PARAMETERS.has(name))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
}

/** Tells a repeated address from another one, also where its times are relative. */
export function askedHash(path: string, querystring: string): string {
  return hash('sha256', `${path}?${askedText(querystring)}`)
}

/** The address may be the one of the first request, or its path with Resume and Offset alone. */
export function checkSameRequest(receipt: StoredReceipt, path: string, querystring: string): void {
  const same = askedHash(path, querystring) === receipt.resume.askedHash
  const alone = path === receipt.path && askedText(querystring) === ''
  if (same || alone) return
  throw badParameter(
    'Resume',
    `continues exactly what request ${receipt.id} asked of ${receipt.path}; repeat that address, or give Resume and Offset alone`,
  )
}

/** The same query with absolute times, of the same devices. */
export function planAgain({ id, resume }: StoredReceipt, devicesMax: number): DownloadPlan {
  const { kind, query, capturesMax, devices } = resume
  const parsed = parseDownloadQuery(kind, query, { zone: undefined, nowNs: 0n })
  if (parsed.compression !== 'none') {
    throw badParameter(
      'Resume',
      `cannot continue request ${id}: its body was compressed; ask for it again with Compression=none`,
    )
  }
  const asked = { ...parsed, timeUnit: undefined, capturesMax: capturesMax ?? undefined }
  return planDownload(asked, devices, devicesMax)
}

/** What the devices are asked: not for packets before the mark, which the client has. */
export function planFromMark(plan: DownloadPlan, point: ResumePoint | undefined): DownloadPlan {
  const { kind, steps } = plan
  if (point?.mark === undefined || kind !== 'merge') return plan
  const query = { ...plan.query, beginNs: point.mark.fromNs }
  return { kind, query, steps: steps.map((step) => mergeStep(step, query)) }
}

/** The options of the first request that shape the body; the rest is the new one's own. */
export function optionsAgain({ resume }: StoredReceipt, options: GatewayOptions): GatewayOptions {
  const { onError, dedupNs, align } = resume
  return { ...options, onError, align, dedupNs: dedupNs === null ? undefined : BigInt(dedupNs) }
}
