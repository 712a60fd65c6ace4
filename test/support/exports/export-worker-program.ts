/** A worker as a program: with quick timings, and a planted fault where its parent wants one. */
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { createLog } from '../../../src/base/log.ts'
import { FileWriter } from '../../../src/export/file-writer.ts'
import { startWorker } from '../../../src/worker.ts'
import { FAST_TIMINGS } from '../processes/temp-worker.ts'
import type { WorkerSettings } from './export-worker-process.ts'

const { config, configPath, fault } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as WorkerSettings

if (fault?.kind === 'end-of-file') {
  const { open } = FileWriter
  FileWriter.open = (path, bytes = 0) => open.call(FileWriter, path, bytes === 0 ? 0 : statSync(path).size)
}
if (fault?.kind === 'poison') {
  const { write } = FileWriter.prototype
  FileWriter.prototype.write = function (chunk) {
    if (!this.path.includes(readFileSync(fault.idPath, 'utf8'))) return write.call(this, chunk)
    appendFileSync(fault.deathsPath, 'x')
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => undefined)
  }
}

process.once('disconnect', () => process.exit())
const worker = await startWorker(config, {
  configPath,
  timings: FAST_TIMINGS,
  log: createLog('worker', 'info'),
})
process.once('SIGTERM', () => void worker.close().then(() => process.exit()))
process.send?.(worker.url)
