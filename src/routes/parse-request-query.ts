import type { DownloadKind, DownloadQuery } from '../query/download-query.ts'
import { parseDownloadQuery } from '../query/parse-download-query.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** The download that the request's query string asks for; `callerParameters` are read elsewhere. */
export function parseRequestQuery(
  kind: DownloadKind,
  ctx: RouteContext,
  parts: GatewayParts,
  callerParameters: readonly string[] = [],
): DownloadQuery {
  const nowNs = BigInt(Date.now()) * 1_000_000n
  return parseDownloadQuery(kind, ctx.querystring, { zone: parts.limits.timeZone, nowNs, callerParameters })
}
