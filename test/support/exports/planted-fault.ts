/** A worker fault planted by its parent; also affects a job that the worker runs in a separate process. */
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { Job } from 'bullmq'
import { ExportStore } from '../../../src/gateway/export/export-store.ts'
import { FileWriter } from '../../../src/gateway/export/file-writer.ts'
import type { WorkerFault } from './export-worker-process.ts'

const fault = JSON.parse(process.env.EXPORT_WORKER_FAULT ?? 'null') as WorkerFault | null

if (fault?.kind === 'end-of-file') {
  const { open } = FileWriter
  FileWriter.open = (path, bytes = 0) => open.call(FileWriter, path, bytes === 0 ? 0 : statSync(path).size)
}
if (fault?.kind === 'poison') {
  const { updateData } = Job.prototype
  const told: Promise<void>[] = []
  Job.prototype.updateData = function (data) {
    const telling = updateData.call(this, data)
    told.push(telling)
    return telling
  }
  const { write } = FileWriter.prototype
  FileWriter.prototype.write = async function (chunk) {
    if (!this.path.includes(readFileSync(fault.idPath, 'utf8'))) return await write.call(this, chunk)
    // The death of a job that Redis does not know to be at work counts less.
    await Promise.allSettled(told)
    appendFileSync(fault.deathsPath, 'x')
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => undefined)
  }
}
if (fault?.kind === 'open-file') {
  const { change } = ExportStore.prototype
  const before = readFileSync(fault.begunPath, 'utf8').split('\n').slice(0, -1)
  let writerOfNew: string | undefined
  ExportStore.prototype.change = function (order, changed, options) {
    // The next window is ordered; a writer's other changes may come earlier.
    if (changed.stage !== undefined && writerOfNew !== undefined && options?.writer === writerOfNew) {
      process.kill(process.pid, 'SIGKILL')
      return new Promise(() => undefined)
    }
    const path = changed.checkpoint?.openFile?.path
    if (path !== undefined && !before.includes(path) && before.length < fault.deathsMax) {
      appendFileSync(fault.begunPath, `${path}\n`)
      writerOfNew = options?.writer
    }
    return change.call(this, order, changed, options)
  }
}
