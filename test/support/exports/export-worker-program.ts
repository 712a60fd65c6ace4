/** A worker as a program, with quick timings. */
import { readFileSync } from 'node:fs'
import { createLog } from '../../../src/base/log.ts'
import { startWorker } from '../../../src/worker.ts'
import { FAST_TIMINGS } from '../processes/temp-worker.ts'
import type { WorkerSettings } from './export-worker-process.ts'

const { config, configPath } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as WorkerSettings

process.once('disconnect', () => process.exit())
const worker = await startWorker(config, {
  configPath,
  timings: FAST_TIMINGS,
  log: createLog('worker', 'info'),
})
process.once('SIGTERM', () => void worker.close().then(() => process.exit()))
process.send?.(worker.url)
