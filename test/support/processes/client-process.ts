/** `capfleet` as a user runs it, in a separate process, with its own contexts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { NODE_OPTIONS } from '../../../src/demo/child-program.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { refuseSecretsIn } from '../suite-secrets.ts'
import { tempFolder } from '../temp-folder.ts'
import { ClientHost } from './client-host.ts'

export interface ClientEnd {
  /** null if it ended by a signal. */
  readonly status: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

export interface ClientRun {
  readonly child: ChildProcess
  /** Its output on stderr so far. */
  readonly said: () => string
  readonly ended: Promise<ClientEnd>
}

export interface TempClient extends AsyncDisposable {
  /** Its working folder; the contexts are in `config` below `home`. */
  readonly folder: string
  readonly home: string
  start(args: readonly string[], options?: ClientOptions): ClientRun
  run(args: readonly string[], options?: ClientOptions): Promise<ClientEnd>
}

export interface ClientOptions {
  readonly input?: string | Readable
  readonly environment?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/**
 * A client whose command lines, unless they are started or read a stream, run one after another in one process: for
 * tests of what commands say and do, not of the process. Those that run at the same time have processes of their own.
 */
export async function hostedClient(): Promise<TempClient> {
  const client = await tempClient()
  const [hosts, idle] = [new Set<ClientHost>(), [] as ClientHost[]]
  const run: TempClient['run'] = async (args, options = {}) => {
    const { input = '', environment, cwd = client.folder } = options
    if (typeof input !== 'string') return await client.run(args, options)
    const host = idle.pop() ?? new ClientHost()
    hosts.add(host)
    const { status, stdout, stderr } = await host.run({
      args,
      environment: { PATH: process.env.PATH, XDG_CONFIG_HOME: client.home, ...environment },
      cwd,
      input,
    })
    idle.push(host)
    refuseSecretsIn('what capfleet says', stderr)
    return { status, stdout: Buffer.from(stdout, 'base64'), stderr }
  }
  return {
    ...client,
    run,
    [Symbol.asyncDispose]: async () => {
      for (const host of hosts) host[Symbol.dispose]()
      await client[Symbol.asyncDispose]()
    },
  }
}

/** Not logged in to anything. */
export async function tempClient(): Promise<TempClient> {
  const folder = await tempFolder()
  const home = await tempFolder()
  const children = new Set<ChildProcess>()
  const start = (
    args: readonly string[],
    { input = '', environment, cwd }: ClientOptions = {},
  ): ClientRun => {
    const child = spawn(process.execPath, [...NODE_OPTIONS, `${REPOSITORY_ROOT}src/cli.ts`, ...args], {
      cwd: cwd ?? folder.path,
      env: { PATH: process.env.PATH, XDG_CONFIG_HOME: home.path, ...environment },
    })
    children.add(child)
    child.stdin.on('error', () => undefined)
    if (typeof input === 'string') child.stdin.end(input)
    else input.pipe(child.stdin)
    let said = ''
    child.stderr.on('data', (text: Buffer) => {
      said += text.toString()
    })
    const closed = once(child, 'close')
    const ended = buffer(child.stdout).then(async (stdout) => {
      await closed
      refuseSecretsIn('what capfleet says', said)
      return { status: child.exitCode, stdout, stderr: said }
    })
    return { child, said: () => said, ended }
  }
  return {
    folder: folder.path,
    home: home.path,
    start,
    run: (args, options) => start(args, options).ended,
    [Symbol.asyncDispose]: async () => {
      for (const child of children) child.kill('SIGKILL')
      await folder[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

/** The environment variables that name a gateway and its user. */
export function gatewayEnvironment(url: string, user: string, password: string): Record<string, string> {
  return { CAPFLEET_URL: url, CAPFLEET_USER: user, CAPFLEET_PASSWORD: password }
}
