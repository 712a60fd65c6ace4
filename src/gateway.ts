/** The gateway program: start, and an orderly end. */
import { resolve } from 'node:path'
import { ConfigWatch } from './base/config-watch.ts'
import { CapfleetError } from './base/error.ts'
import { createLog, type Log } from './base/log.ts'
import { type GatewayConfig, loadGatewayConfig } from './gateway-config.ts'
import { listen } from './http/http-server.ts'
import { pathsOf } from './http/server-certificate.ts'
import { tokenKeysFolder } from './open-tokens.ts'
import { buildParts } from './parts.ts'
import { createGatewayApp } from './routes/gateway-app.ts'
import { routesWith } from './routes/routes.ts'

export interface RunningGateway {
  /** Without a final slash. */
  readonly url: string
  /**
   * Takes no new request, lets running downloads end for `drainMs`, cuts the rest, gives all leases
   * back, ends its Redis last. Calling it again waits for the same end.
   */
  close(drainMs: number): Promise<void>
  /** As OwnedParts.reload. */
  reload(changed: GatewayConfig): Promise<void>
  /** As UsersFile.reload. */
  reloadUsers(): Promise<void>
  /** As RunningServer.reloadCertificate. */
  reloadCertificate(): Promise<void>
  /** As TokenKeys.reload. */
  reloadTokenKeys(): Promise<void>
}

export interface GatewayOptions {
  /** Secrets' files are relative to its folder. */
  readonly configPath: string
  readonly log?: Log
}

/** Answers requests when it resolves. Fails with bad-config or scheduler-unavailable. */
export async function startGateway(config: GatewayConfig, options: GatewayOptions): Promise<RunningGateway> {
  const log = options.log ?? createLog('gateway', config.logLevel)
  const owned = await buildParts(config, options.configPath, log)
  try {
    const app = createGatewayApp(routesWith(config.control.readablePaths), owned.parts)
    const server = await listen(app.callback(), config.listen, owned.parts.metrics)
    if (owned.parts.isInsecure) log.warn('listen.insecure', { url: server.url })
    log.info('gateway.ready', { url: server.url, devices: owned.parts.fleet.devices.length })
    const end = async (drainMs: number) => {
      owned.drain()
      await owned.parts.downloads.running.drain(drainMs, CUT_AT_SHUTDOWN)
      await server.close(LAST_ANSWERS_MS)
      await owned[Symbol.asyncDispose]()
      log.info('gateway.stopped')
    }
    let ending: Promise<void> | undefined
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
  } catch (error) {
    await owned[Symbol.asyncDispose]()
    throw error
  }
}

/** For the command line: `address` is printed when ready. */
export async function startGatewayFromFile(path: string) {
  const config = await loadGatewayConfig(path)
  const configPath = resolve(path)
  const log = createLog('gateway', config.logLevel)
  const gateway = await startGateway(config, { configPath, log })
  const reload = async () => gateway.reload(await loadGatewayConfig(configPath))
  const { tls } = config.listen
  const watches = await Promise.all([
    ConfigWatch.start({ paths: [configPath], reload, log }),
    ConfigWatch.start({ paths: [config.auth.users], reload: gateway.reloadUsers, log }),
    ...(tls ? [ConfigWatch.start({ paths: pathsOf(tls), reload: gateway.reloadCertificate, log })] : []),
    ConfigWatch.start({ paths: [tokenKeysFolder(config)], reload: gateway.reloadTokenKeys, log }),
  ])
  const close = async (drainMs: number) => {
    await Promise.all(watches.map((watch) => watch.close()))
    await gateway.close(drainMs)
  }
  return { address: gateway.url, drainMs: config.drainS * 1_000, close }
}

/** Downloads have ended by then; this is for answers such as lists. */
const LAST_ANSWERS_MS = 2_000

const CUT_AT_SHUTDOWN = new CapfleetError('draining', 'the gateway was shut down before the download ended')
