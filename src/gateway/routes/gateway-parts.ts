import type { SpanSink } from '../../shared/base/ended-span.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { Route } from '../../shared/contract/endpoint.ts'
import type { PackedFiles } from '../../shared/http/packed-files.ts'
import type { PageFiles } from '../../shared/http/page-files.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { DownloadParts } from '../serve/serve-download.ts'
import type { AccessParts } from './access/access-parts.ts'
import type { DownloadsParts } from './downloads/downloads-parts.ts'
import type { ExportHandling } from './exports/exports-parts.ts'
import type { FleetParts } from './fleet/fleet-parts.ts'
import type { RouteContext } from './request/route-context.ts'

/** The parts used by all handlers, and the route table itself; parts.ts creates them once. */
export interface GatewayParts extends AccessParts, FleetParts, DownloadsParts {
  readonly audit: Pick<AuditLog, 'record' | 'recordRefusal' | 'folder'>
  readonly downloads: DownloadParts
  readonly exports: ExportHandling
  readonly page: PageFiles
  readonly docs: PageFiles
  /** Undefined: the page has no dissector. */
  readonly dissector: PackedFiles | undefined
  readonly metrics: Metrics
  /** Where spans of requests are sent; undefined: tracing is off. */
  readonly spans: SpanSink | undefined
  /** Whether passwords reach the gateway unencrypted. */
  readonly isInsecure: boolean
  /** Networks of proxies whose information about their clients' addresses is trusted. */
  readonly trustedProxies: readonly string[]
  /** As in HttpAppOptions. */
  readonly hstsMaxAgeS: number
}

/** A route of the gateway. */
export type GatewayRoute = Route<GatewayParts, RouteContext>
