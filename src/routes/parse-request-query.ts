import type { DownloadKind, DownloadQuery } from '../query/download-query.ts'
import { GATEWAY_PARAMETERS } from '../query/gateway-options.ts'
import type { ParseContext } from '../query/parse-download-query.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** parseDownloadQuery, or parseLegacyQuery for the paths below /pcap/. */
export type QueryParser = (kind: DownloadKind, raw: string, context: ParseContext) => DownloadQuery

export interface RequestedDownload {
  readonly kind: DownloadKind
  readonly parse: QueryParser
  /** Parameters that are read elsewhere. */
  readonly callerParameters?: readonly string[]
  /** Whose zone local times without TSZone mean, and whose aliases TSMode may be; default: the gateway's. */
  readonly wordsOf?: 'gateway' | 'device'
}

/** The download that the request's query string asks for. */
export function parseRequestQuery(
  ctx: RouteContext,
  parts: GatewayParts,
  { kind, parse, callerParameters = [], wordsOf = 'gateway' }: RequestedDownload,
): DownloadQuery {
  const { timeZone, tsModeAliases } = parts.limits
  const words =
    wordsOf === 'device' ? { zone: undefined } : { zone: timeZone, timeSourceAliases: tsModeAliases }
  const nowNs = BigInt(Date.now()) * 1_000_000n
  return parse(kind, ctx.querystring, {
    ...words,
    nowNs,
    callerParameters: [...callerParameters, ...GATEWAY_PARAMETERS],
  })
}
