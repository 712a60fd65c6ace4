/** A worker fault planted by its parent; also affects a job that the worker runs in a separate process. */
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { FileWriter } from '../../../src/gateway/export/files/file-writer.ts'
import type { WorkerFault } from './export-worker-process.ts'

const fault = JSON.parse(process.env.EXPORT_WORKER_FAULT ?? 'null') as WorkerFault | null

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
