/** One fast upstream and the compared proxies in front of it, each in its own process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { startChildProgram } from '../../../src/demo/child-program.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { startTempHaproxy, startTempNginx } from '../../support/processes/temp-proxy.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import type { BenchServer } from './bench-fleet.ts'

export const PROXY_NAMES = ['capfleet', 'nginx', 'nginx-control', 'haproxy', 'http-proxy'] as const
export type ProxyName = (typeof PROXY_NAMES)[number]

/** Four streams each, so that 64 need no queue. */
const DEVICES = 16
/** Of a body whose path names no size. */
const DEFAULT_BYTES = 1_073_741_824
const PASSWORD = 'bench'
const CREDENTIALS = `bench:${PASSWORD}`
const STOP_GRACE_MS = 5_000
/** USER_HZ of every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

export class ProxyWorld implements AsyncDisposable {
  readonly proxies: Readonly<Record<ProxyName, BenchServer>>
  readonly #owned: AsyncDisposableStack

  static async start(): Promise<ProxyWorld> {
    await using owned = new AsyncDisposableStack()
    const folder = owned.use(await tempFolder()).path
    const upstreams = await startScript('pcap-upstream.ts', [String(DEFAULT_BYTES), String(DEVICES)], owned)
    const urls = upstreams.url.split(' ')
    const [url = ''] = urls
    const withCredentials = (server: { readonly url: string; readonly pid: number }) => ({
      ...server,
      credentials: CREDENTIALS,
    })
    const proxies = {
      capfleet: await startGateway(folder, urls, owned),
      nginx: withCredentials(owned.use(await startTempNginx(url, 'streaming'))),
      'nginx-control': withCredentials(owned.use(await startTempNginx(url, 'control'))),
      haproxy: withCredentials(owned.use(await startTempHaproxy(url))),
      'http-proxy': withCredentials(await startScript('pipe-proxy.ts', [url], owned)),
    }
    return new ProxyWorld(proxies, owned.move())
  }

  private constructor(proxies: Readonly<Record<ProxyName, BenchServer>>, owned: AsyncDisposableStack) {
    this.proxies = proxies
    this.#owned = owned
  }

  /** The path of a stream; streams with different numbers may run at the same time. */
  static streamPath(number: number, bytes: number): string {
    return `/devices/d${number % DEVICES}/api/v1/pcap/single?StreamName=bytes-${bytes}`
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}

/** Seconds of processor time that a process has used, in user and kernel mode. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** A gateway over devices at these addresses, called d0, d1 and so on. */
export async function startGateway(
  folder: string,
  upstreams: readonly string[],
  owned: AsyncDisposableStack,
): Promise<BenchServer> {
  await mkdir(join(folder, 'gateway'))
  const users = join(folder, 'users.yaml')
  await putUser(users, { name: 'bench', role: 'full' }, PASSWORD)
  const password = join(folder, 'device-password')
  await writeFile(password, PASSWORD)
  const devices = upstreams.map((url, index) => ({
    name: `d${index}`,
    url,
    user: 'gateway',
    password: { file: password },
  }))
  const config = { listen: { port: 0 }, home: join(folder, 'gateway'), auth: { users }, devices }
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, stringify(config))
  const child = await startChildProgram('gateway', ['gateway', '--config', path], {
    logPath: join(folder, 'gateway.log'),
    appends: false,
  })
  owned.defer(() => child.stop(STOP_GRACE_MS))
  return { url: child.address, pid: child.pid, credentials: CREDENTIALS }
}

/** A script of this folder that prints its address. */
export async function startScript(name: string, args: readonly string[], owned: AsyncDisposableStack) {
  const path = fileURLToPath(new URL(name, import.meta.url))
  const child = spawn(process.execPath, ['--no-deprecation', path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  owned.defer(async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url, pid: child.pid ?? 0 }
}
