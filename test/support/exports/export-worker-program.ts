/** A worker as a program, with the given timings. */
import { readFileSync } from 'node:fs'
import { createLog } from '../../../src/shared/base/log.ts'
import { importSmallHttp } from '../../../src/shared/base/small-http.ts'
import type { WorkerSettings } from './export-worker-process.ts'

const { config, configPath, timings } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as WorkerSettings

importSmallHttp()
const { startWorker } = await import('../../../src/worker/worker.ts')
process.once('disconnect', () => process.exit())
const worker = await startWorker(config, {
  configPath,
  timings,
  log: createLog('worker', 'info'),
})
process.once('SIGTERM', () => void worker.close().then(() => process.exit()))
process.send?.(worker.url)
