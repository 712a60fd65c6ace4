/** The gateway program: start, and an orderly shutdown. */
import { resolve } from 'node:path'
import { ConfigWatch } from '../shared/base/config-watch.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { createLog, type Log } from '../shared/base/log.ts'
import { Metrics } from '../shared/base/metrics.ts'
import { listen } from '../shared/http/http-server.ts'
import { pathsOf } from '../shared/http/server-certificate.ts'
import { type GatewayConfig, loadGatewayConfig } from './gateway-config.ts'
import { tokenKeysFolder } from './open-tokens.ts'
import { buildParts } from './parts.ts'
import { createGatewayApp } from './routes/gateway-app.ts'
import { routesWith } from './routes/routes.ts'
import { startingApp } from './starting-app.ts'

export interface RunningGateway {
  /** Without a trailing slash. */
  readonly url: string
  /**
   * Accepts nothing long-running any more, rejects waiters, ends event streams, lets running downloads finish for
   * `drainMs`, cuts the rest, returns all leases, and ends its Redis last. Further calls wait for the same shutdown.
   */
  close(drainMs: number): Promise<void>
  /** See OwnedParts.reload. */
  reload(changed: GatewayConfig): Promise<void>
  /** See UsersFile.reload. */
  reloadUsers(): Promise<void>
  /** See RunningServer.reloadCertificate. */
  reloadCertificate(): Promise<void>
  /** See TokenKeys.reload. */
  reloadTokenKeys(): Promise<void>
}

export interface GatewayOptions {
  /** Relative paths of secret files are resolved against its folder. */
  readonly configPath: string
  readonly log?: Log
  /** Cancels a start that waits for Redis, which then fails with the signal's reason. */
  readonly signal?: AbortSignal
}

/**
 * Accepts requests when it resolves. Until Redis has answered it only answers liveness probes. Fails with bad-config
 * or scheduler-unavailable.
 */
export async function startGateway(config: GatewayConfig, options: GatewayOptions): Promise<RunningGateway> {
  const { configPath, log = createLog('gateway', config.logLevel), signal = NEVER } = options
  await using starting = new AsyncDisposableStack()
  const metrics = new Metrics()
  let answer = startingApp({ log, listen: config.listen })
  const server = await listen((req, res) => answer(req, res), config.listen, metrics)
  starting.defer(() => server.close(0))
  const owned = starting.use(await buildParts(config, { configPath, log, metrics, signal }))
  answer = createGatewayApp(routesWith(config.control.readablePaths), owned.parts).callback()
  if (owned.parts.isInsecure) log.warn('listen.insecure', { url: server.url })
  log.info('gateway.ready', { url: server.url, devices: owned.parts.fleet.devices.length })
  const end = async (drainMs: number) => {
    const deadlineMs = performance.now() + drainMs
    owned.drain()
    server.drain()
    await owned.parts.downloads.running.drain(drainMs, CUT_AT_SHUTDOWN)
    await server.close(Math.max(LAST_ANSWERS_MS, deadlineMs - performance.now()))
    await owned[Symbol.asyncDispose]()
    log.info('gateway.stopped')
  }
  let ending: Promise<void> | undefined
  starting.move()
  return {
    url: server.url,
    reload: owned.reload,
    reloadUsers: () => owned.parts.vouchers.users.reload(),
    reloadCertificate: server.reloadCertificate,
    reloadTokenKeys: owned.reloadTokenKeys,
    close: (drainMs) => {
      ending ??= end(drainMs)
      return ending
    },
  }
}

const NEVER = new AbortController().signal

/** For the command line: `address` is printed when ready. */
export async function startGatewayFromFile(path: string, signal?: AbortSignal) {
  const config = await loadGatewayConfig(path)
  const configPath = resolve(path)
  const log = createLog('gateway', config.logLevel)
  const gateway = await startGateway(config, { configPath, log, ...(signal === undefined ? {} : { signal }) })
  const reload = async () => gateway.reload(await loadGatewayConfig(configPath))
  const { tls } = config.listen
  const document = await ConfigWatch.start({ paths: [configPath], reload, log })
  const files = await Promise.all([
    ConfigWatch.start({ paths: [config.auth.users], reload: gateway.reloadUsers, log }),
    ...(tls ? [ConfigWatch.start({ paths: pathsOf(tls), reload: gateway.reloadCertificate, log })] : []),
    ConfigWatch.start({ paths: [tokenKeysFolder(config)], reload: gateway.reloadTokenKeys, log }),
  ])
  const close = async (drainMs: number) => {
    await document.close()
    await gateway.close(drainMs)
    // Watched until here: the download of a user who is removed during the drain is still cut.
    await Promise.all(files.map((watch) => watch.close()))
  }
  return { address: gateway.url, drainMs: config.drainS * 1_000, close }
}

/** Downloads have ended or been cut by then; other answers, such as lists, get at least this long. */
const LAST_ANSWERS_MS = 2_000

const CUT_AT_SHUTDOWN = new CapfleetError('draining', 'the gateway was shut down before the download ended')
