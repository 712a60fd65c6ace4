/** Creates the parts that serve downloads and store their receipts. */
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import type { AuditLog } from './audit/audit-log.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { LeaseScheduler } from './lease/lease-scheduler.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { DownloadOutcomes } from './serve/download-outcomes.ts'
import { ReceiptStore } from './serve/receipt-store.ts'
import { RunningDownloads } from './serve/running-downloads.ts'
import type { DownloadParts } from './serve/serve-download.ts'

export interface OpenDownloadsParts {
  readonly leases: LeaseScheduler
  readonly fleet: Fleet
  readonly audit: AuditLog
  readonly redis: RedisTarget
  readonly metrics: Metrics
  readonly log: Log
}

/** `owner` ends the receipts. */
export function openDownloads(
  config: GatewayConfig,
  { leases, fleet, audit, redis, metrics, log }: OpenDownloadsParts,
  owner: AsyncDisposableStack,
): DownloadParts {
  const running = new RunningDownloads()
  const { startTimeoutMs, retryPauseMs, clientIdleTimeoutMs, parkAfterMs, slowAfterMs, parkedIdleTimeoutMs } =
    config.downloads
  return {
    leases,
    fleet,
    metrics: new DownloadOutcomes(metrics, () => running.count - leases.own.waiting),
    running,
    receipts: owner.use(openReceipts(config, { redis, metrics, log })),
    audit,
    log,
    startTimeoutMs,
    retryPauseMs,
    clientIdleTimeoutMs,
    parkAfterMs,
    slowAfterMs,
    parkedIdleTimeoutMs,
  }
}

function openReceipts(
  config: GatewayConfig,
  { redis, metrics, log }: Pick<OpenDownloadsParts, 'redis' | 'metrics' | 'log'>,
): ReceiptStore {
  const receipts = new ReceiptStore({
    redis,
    keyPrefix: config.redis.keyPrefix,
    perUserMax: config.downloads.receiptsPerUserMax,
    log,
  })
  metrics.gauge('receipts_pending', 'Receipts that are not stored in Redis yet', [], (gauge) =>
    gauge.set(receipts.pending),
  )
  return receipts
}
