/** The worker program: runs exports. It uses the gateway's configuration, Redis and devices. */
import { fork } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type GatewayConfig, loadGatewayConfig } from '../gateway/gateway-config.ts'
import { planRoster } from '../gateway/open-fleet.ts'
import { startingApp } from '../gateway/starting-app.ts'
import { ConfigWatch } from '../shared/base/config-watch.ts'
import { createLog, type Log } from '../shared/base/log.ts'
import { Metrics } from '../shared/base/metrics.ts'
import { isInsecure } from '../shared/base/setting-schemas.ts'
import { createHttpApp, type HttpAppOptions } from '../shared/http/http-app.ts'
import { listen } from '../shared/http/http-server.ts'
import { pathsOf } from '../shared/http/server-certificate.ts'
import { ExportWorker } from './export-worker.ts'
import { runIsolated } from './isolated-job.ts'
import { openWorker } from './open-worker.ts'
import { WORKER_TIMINGS, type WorkerTimings } from './worker-timings.ts'

export interface RunningWorker {
  /** Address of /livez, /readyz and /metrics. */
  readonly url: string
  /** Takes no more jobs; running ones continue on other workers. */
  close(): Promise<void>
  /** See RunningServer.reloadCertificate. */
  reloadCertificate(): Promise<void>
  /** Applies the devices of a changed configuration. */
  reload(changed: GatewayConfig): Promise<void>
}

export interface WorkerOptions {
  /** Relative paths of secret files are resolved against its folder. */
  readonly configPath: string
  readonly log?: Log
  readonly timings?: WorkerTimings
  /** Cancels a start that waits for Redis, which then fails with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Runs a job that may have killed its worker. */
const JOB_PROGRAM = fileURLToPath(new URL('worker-job.ts', import.meta.url))

/**
 * Takes jobs when it resolves. Until Redis has answered it only answers liveness probes. Fails with bad-config or
 * scheduler-unavailable.
 */
export async function startWorker(config: GatewayConfig, options: WorkerOptions): Promise<RunningWorker> {
  const { configPath, timings = WORKER_TIMINGS, signal = NEVER } = options
  const log = options.log ?? createLog('worker', config.logLevel)
  await using building = new AsyncDisposableStack()
  const metrics = new Metrics()
  const { listen: listenOptions } = config.exports.worker
  let answer = startingApp({ log, listen: listenOptions })
  const server = await listen((req, res) => answer(req, res), listenOptions, metrics)
  building.defer(() => server.close(0))
  const { parts, redis, roster } = await openWorker(config, { configPath, log, metrics, signal }, building)
  const { keyPrefix } = config.redis
  const { fetches, writes } = config.exports.worker
  const worker = building.use(
    new ExportWorker(parts, {
      redis,
      keyPrefix,
      metrics,
      fetches,
      writes,
      timings,
      isolate: (request, stopping) =>
        runIsolated(fork(JOB_PROGRAM), { config, configPath, request }, stopping),
    }),
  )
  await worker.start()
  const draining = new AbortController()
  answer = tellOfItself({ metrics, log, ...listenOptions }, draining.signal)
  if (isInsecure(listenOptions)) log.warn('listen.insecure', { url: server.url })
  log.info('worker.ready', { url: server.url, devices: parts.fleet.devices.length })
  const owned = building.move()
  let ending: Promise<void> | undefined
  return {
    url: server.url,
    reloadCertificate: server.reloadCertificate,
    reload: async (changed) => roster.configure(await planRoster(changed, configPath)),
    close: () => {
      draining.abort()
      ending ??= owned.disposeAsync().then(() => log.info('worker.stopped'))
      return ending
    },
  }
}

/** For the command line: `address` is printed when ready. */
export async function startWorkerFromFile(path: string, signal?: AbortSignal) {
  // Exports have no interactive user, so downloads that share the processors take precedence.
  setPriority(constants.priority.PRIORITY_LOW)
  const config = await loadGatewayConfig(path)
  const configPath = resolve(path)
  const log = createLog('worker', config.logLevel)
  const worker = await startWorker(config, { configPath, log, ...(signal === undefined ? {} : { signal }) })
  const reload = async () => worker.reload(await loadGatewayConfig(configPath))
  const { tls } = config.exports.worker.listen
  const watches = await Promise.all([
    ConfigWatch.start({ paths: [configPath], reload, log }),
    ...(tls ? [ConfigWatch.start({ paths: pathsOf(tls), reload: worker.reloadCertificate, log })] : []),
  ])
  const close = async () => {
    await Promise.all(watches.map((watch) => watch.close()))
    await worker.close()
  }
  return { address: worker.url, drainMs: 0, close }
}

const NEVER = new AbortController().signal

/** For operators. Nothing here is secret, and by default it listens on this machine only. */
function tellOfItself(options: HttpAppOptions, draining: AbortSignal) {
  const { metrics } = options
  const app = createHttpApp(options)
  app.use(async (ctx) => {
    if (ctx.path === '/livez') ctx.body = 'ok\n'
    if (ctx.path === '/readyz') {
      ctx.status = draining.aborted ? 503 : 200
      ctx.body = draining.aborted ? 'draining\n' : 'ok\n'
    }
    if (ctx.path !== '/metrics') return
    ctx.type = metrics.contentType
    ctx.body = await metrics.text()
  })
  return app.callback()
}
