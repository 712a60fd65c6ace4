/** A real worker in this process, with the configuration of a gateway. */
import { type RunningWorker, startWorker } from '../../../src/worker/worker.ts'
import type { WorkerTimings } from '../../../src/worker/worker-timings.ts'
import { type LoggedLine, refuseSecretsInMetrics, searchedLog } from '../suite-secrets.ts'
import { onceRedisAnswers } from './once-redis-answers.ts'
import type { TempGateway } from './temp-gateway.ts'

/**
 * A dead worker is detected soon. On a busy machine a live one may be taken for dead too, and its jobs run twice: only
 * for tests whose workers die.
 */
export const FAST_TIMINGS: WorkerTimings = {
  lockMs: 5_000,
  stalledMs: 500,
  upkeepMs: 500,
  canaryMs: 500,
  silentMs: 30_000,
}

/** Checks for lost work often, and does not take a slow worker for dead. */
const PATIENT_TIMINGS: WorkerTimings = {
  lockMs: 60_000,
  stalledMs: 10_000,
  upkeepMs: 500,
  canaryMs: 30_000,
  silentMs: 300_000,
}

export interface TempWorker extends RunningWorker, AsyncDisposable {
  readonly logged: readonly LoggedLine[]
}

export async function startTempWorker({
  config,
  configPath,
}: Pick<TempGateway, 'config' | 'configPath'>): Promise<TempWorker> {
  const log = searchedLog()
  const worker = { ...config.exports.worker, listen: { ...config.exports.worker.listen, port: 0 } }
  const running = await onceRedisAnswers(() =>
    startWorker(
      { ...config, exports: { ...config.exports, worker } },
      { configPath, timings: PATIENT_TIMINGS, log },
    ),
  )
  const end = async () => {
    await refuseSecretsInMetrics(running.url)
    await running.close()
    log.refuseSecrets()
  }
  return { ...running, logged: log.lines, [Symbol.asyncDispose]: end }
}
