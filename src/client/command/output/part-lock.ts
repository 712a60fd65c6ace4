import { readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { usageFailure } from '../../client-failure.ts'

/**
 * Prevents a second process from writing to the same part, which would mix the bytes. Dispose it to release the lock;
 * that of a killed process is taken over. Fails with a ClientFailure while another process has it.
 */
export async function lockPart(partPath: string): Promise<AsyncDisposable> {
  const path = `${partPath}.lock`
  const own = `${process.pid} ${hostname()}`
  for (;;) {
    try {
      await writeFile(path, own, { flag: 'wx' })
      return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const [pid = '', host = ''] = (await readFile(path, 'utf8').catch(() => '')).split(' ')
    if (host !== hostname() || isAlive(Number(pid))) {
      throw usageFailure(
        `another capfleet (process ${pid} on ${host}) is writing to ${basename(partPath)}; if it is not, remove ${path}`,
      )
    }
    await rm(path, { force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
