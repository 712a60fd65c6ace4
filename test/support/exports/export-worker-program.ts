/** A worker as a program, with the given timings. */
import { readFileSync } from 'node:fs'
import { createLog } from '../../../src/shared/base/log.ts'
import { startWorker } from '../../../src/worker/worker.ts'
import type { WorkerSettings } from './export-worker-process.ts'

const { config, configPath, timings } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as WorkerSettings

process.once('disconnect', () => process.exit())
const worker = await startWorker(config, {
  configPath,
  timings,
  log: createLog('worker', 'info'),
})
process.once('SIGTERM', () => void worker.close().then(() => process.exit()))
process.send?.(worker.url)
