/**
 * A worker's job in a process of its own: one that was running when workers died may end this process without harm to
 * others. The worker sends the request and receives the result; it renews the lock on the job meanwhile.
 */
import { randomUUID } from 'node:crypto'
import type { GatewayConfig } from '../gateway/gateway-config.ts'
import { createLog, type Log } from '../shared/base/log.ts'
import { Metrics } from '../shared/base/metrics.ts'
import { pulseThreadPool } from '../shared/base/thread-pool-pulse.ts'
import type { IsolatedAnswer, IsolatedRequest } from './isolated-job.ts'
import { openWorker } from './open-worker.ts'
import { runExport } from './run/run-export.ts'
import { runSpan } from './run/run-span.ts'
import { pauseAfter } from './working-queue.ts'

/** The worker's message. */
interface Message {
  readonly config: GatewayConfig
  readonly configPath: string
  readonly request: IsolatedRequest
}

pulseThreadPool()
const stopping = new AbortController()
// A terminal and a supervisor may signal this process as well as its worker does.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => stopping.abort(new Error('the worker is stopping')))
}
// Without its worker, the job belongs to another one.
process.once('disconnect', () => process.exit(1))
process.once('message', (message) => void answer(message as Message))

async function answer(message: Message): Promise<void> {
  const log = createLog('worker-job', message.config.logLevel)
  const told = await run(message, log).catch((error: unknown): IsolatedAnswer => {
    const laterMs = pauseAfter(error)
    if (laterMs !== undefined) return { laterMs }
    log.error('export.job-failed', { err: error })
    return { defect: String(error) }
  })
  process.send?.(told, () => process.exit(0))
}

async function run({ config, configPath, request }: Message, log: Log): Promise<IsolatedAnswer> {
  await using owned = new AsyncDisposableStack()
  const { signal } = stopping
  const { parts } = await openWorker(config, { configPath, log, metrics: new Metrics(), signal }, owned)
  const running = { attempt: randomUUID(), stopping: signal, onWork: () => undefined }
  if (request.kind === 'write') return { turn: await runExport(parts, request.job, running) }
  await runSpan(parts, request.job, running)
  return { turn: 'done' }
}
