import type { SpanSink } from '../../shared/base/ended-span.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { Route } from '../../shared/contract/endpoint.ts'
import type { PageFiles } from '../../shared/http/page-files.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { DownloadParts } from '../serve/serve-download.ts'
import type { AccessParts } from './access/access-parts.ts'
import type { DownloadsParts } from './downloads/downloads-parts.ts'
import type { ExportHandling } from './exports/exports-parts.ts'
import type { FleetParts } from './fleet/fleet-parts.ts'
import type { RouteContext } from './request/route-context.ts'

/** What the rooms of handlers work with, and the table itself; parts.ts makes it once. */
export interface GatewayParts extends AccessParts, FleetParts, DownloadsParts {
  readonly audit: Pick<AuditLog, 'record' | 'recordRefusal' | 'folder'>
  readonly downloads: DownloadParts
  readonly exports: ExportHandling
  readonly page: PageFiles
  readonly metrics: Metrics
  /** Where spans of requests go; undefined: nowhere. */
  readonly spans: SpanSink | undefined
  /** Whether passwords cross the network readable on their way here. */
  readonly isInsecure: boolean
  /** Networks of proxies whose word about their clients' addresses is believed. */
  readonly trustedProxies: readonly string[]
  /** As in HttpAppOptions. */
  readonly hstsMaxAgeS: number
}

/** A row of the gateway's table. */
export type GatewayRoute = Route<GatewayParts, RouteContext>
