/**
 * A Debian 12 with nothing in it, in a folder, and commands that run in it as if it were the machine: with its own
 * users and packages, in one network namespace. Nothing of systemd runs there: the test starts what a unit says.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { eventually } from '../eventually.ts'
import { inNamespace } from '../network/capture-wire.ts'
import { skipWithout } from '../set-up-tools.ts'
import { tempFolder } from '../temp-folder.ts'

/** Skip reason for tests, or false. */
export const WITHOUT_BARE_ROOT = skipWithout(
  process.getuid?.() === 0 && spawnSync('mmdebstrap', ['--version']).error === undefined,
  'it needs root and mmdebstrap',
)

/** What a command inside sees of this machine. */
const MOUNT = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys"'
const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  // What users of the command line keep is theirs, not the packages'.
  XDG_CONFIG_HOME: '/tmp/config',
  LANG: 'C.UTF-8',
  DEBIAN_FRONTEND: 'noninteractive',
}
/** Requests of `systemctl` are files here. */
const REQUESTS = 'run/stand-in'
/** As `systemctl` is asked by deb-systemd-invoke and by the packages' scripts. */
const SYSTEMCTL = `#!/bin/sh
# Stands in for systemd: passes each call to the test, and waits for its status.
ID=$$-$(date +%s%N)
echo "$*" > /${REQUESTS}/$ID.new && mv /${REQUESTS}/$ID.new /${REQUESTS}/$ID.request
while [ ! -e /${REQUESTS}/$ID.status ]; do sleep 0.02; done
exit "$(cat /${REQUESTS}/$ID.status)"
`

export interface RootRun {
  readonly status: number | null
  readonly said: string
}

export class BareRoot implements AsyncDisposable {
  readonly path: string
  /** Calls of systemctl by maintainer scripts, in order. */
  readonly calls: string[] = []
  /** The last restart of each unit: when it was asked for, and how long it took until the ready line. */
  readonly restarts = new Map<string, { readonly atNs: bigint; readonly tookMs: number }>()
  readonly #namespace: string
  readonly #parts = new AsyncDisposableStack()
  readonly #units = new Map<string, ChildProcess>()
  #ends = false

  private constructor(path: string, namespace: string) {
    this.path = path
    this.#namespace = namespace
  }

  /** `packages` are in it besides the smallest Debian. */
  static async make(namespace: string, packages: readonly string[]): Promise<BareRoot> {
    await using parts = new AsyncDisposableStack()
    const folder = parts.use(await tempFolder())
    const path = join(folder.path, 'root')
    const include = packages.length === 0 ? [] : [`--include=${packages.join(',')}`]
    await promisify(execFile)('mmdebstrap', ['--quiet', '--variant=minbase', ...include, 'bookworm', path])
    const root = new BareRoot(path, namespace)
    // The folder is searched for secrets before it is removed: not half a gigabyte of Debian's.
    parts.defer(() => rm(join(path, 'usr'), { recursive: true, force: true }))
    root.#parts.use(parts.move())
    await mkdir(join(path, REQUESTS), { recursive: true })
    await mkdir(join(path, 'run/systemd/system'), { recursive: true })
    await writeFile(join(path, 'usr/bin/systemctl'), SYSTEMCTL)
    await chmod(join(path, 'usr/bin/systemctl'), 0o755)
    const answering = root.#answer()
    root.#parts.defer(async () => {
      root.#ends = true
      await answering
    })
    return root
  }

  /** Runs a script as root; `input` is its standard input. */
  async run(script: string, input = ''): Promise<RootRun> {
    const [program, args] = this.#inside(['sh', '-c', script])
    const child = spawn(program, args, { env: ENVIRONMENT })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text: Buffer) => {
        said += text.toString()
      })
    }
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    await once(child, 'close')
    return { status: child.exitCode, said }
  }

  /** Like run, but fails with the output unless the script succeeds. Resolves with the output. */
  async succeed(script: string, input = ''): Promise<string> {
    const { status, said } = await this.run(script, input)
    if (status !== 0) throw new Error(`status ${status} of ${script}:\n${said}`)
    return said
  }

  /** Paths of everything on the disk, sorted; not what lives in memory on a real machine. */
  async listing(): Promise<readonly string[]> {
    const found = await this.succeed('find / -xdev -path /tmp -prune -o -path /run -prune -o -print')
    return found.trim().split('\n').sort()
  }

  isActive(unit: string): boolean {
    return this.#units.has(unit)
  }

  /** Starts the program of an installed unit as systemd does; resolves with the address in its ready line. */
  async start(unit: string): Promise<string> {
    const text = await readFile(join(this.path, 'usr/lib/systemd/system', `${unit}.service`), 'utf8')
    const value = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? ''
    const capability = value('AmbientCapabilities').replace('CAP_', '').toLowerCase()
    const sets = ['inh-caps', 'ambient-caps', 'bounding-set'].map(
      (set) => `--${set}=-all${capability === '' ? '' : `,+${capability}`}`,
    )
    const user = [`--reuid=${value('User')}`, `--regid=${value('Group')}`, '--init-groups']
    const command = ['setpriv', ...user, ...sets, '--no-new-privs', ...value('ExecStart').split(' ')]
    const [program, args] = this.#inside(command)
    const child = spawn(program, args, { env: ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stderr.on('data', (line: Buffer) => {
      said += line.toString()
    })
    this.#units.set(unit, child)
    child.once('exit', () => this.#units.delete(unit))
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /^capfleet \S+ ready (\S+)$/.exec(line)?.[1]
      if (address !== undefined) return address
    }
    throw new Error(`${unit} did not start: ${said}`)
  }

  async stop(unit: string): Promise<void> {
    const child = this.#units.get(unit)
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }

  /** Program and arguments that run a command inside, in the same process. */
  #inside(command: readonly string[]): [string, string[]] {
    const script = `${MOUNT} && exec chroot "$0" "$@"`
    return inNamespace(this.#namespace, ['sh', '-c', script, this.path, ...command])
  }

  async #answer(): Promise<void> {
    const folder = join(this.path, REQUESTS)
    const isAsked = async (): Promise<boolean> => {
      const names = await readdir(folder)
      return this.#ends || names.some((name) => name.endsWith('.request'))
    }
    while (!this.#ends) {
      await eventually(isAsked, { message: 'a call of systemctl, or the end', limitMs: 2 ** 31 })
      for (const name of (await readdir(folder)).filter((one) => one.endsWith('.request'))) {
        const path = join(folder, name)
        const call = (await readFile(path, 'utf8')).trim()
        const status = await this.#systemctl(call)
        await rm(path)
        await writeFile(`${path}.part`, String(status))
        await rename(`${path}.part`, path.replace(/request$/, 'status'))
      }
    }
  }

  /** Of the verbs that the packages use; the exit status. */
  async #systemctl(call: string): Promise<number> {
    this.calls.push(call)
    const [verb = '', ...units] = call.split(' ').filter((word) => !word.startsWith('--'))
    for (const unit of units.map((name) => name.replace(/\.service$/, ''))) {
      if (verb === 'stop') await this.stop(unit)
      else if (verb === 'try-restart' && this.isActive(unit)) {
        const [atNs, startMs] = [BigInt(Date.now()) * 1_000_000n, performance.now()]
        await this.stop(unit)
        await this.start(unit)
        this.restarts.set(unit, { atNs, tookMs: Math.round(performance.now() - startMs) })
      } else if (verb !== 'try-restart') return 1
    }
    return ['daemon-reload', 'stop', 'try-restart'].includes(verb) ? 0 : 1
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const unit of [...this.#units.keys()].reverse()) await this.stop(unit)
    await this.#parts.disposeAsync()
  }
}

/** Whether a path inside a root exists. */
export function existsIn(root: BareRoot, path: string): boolean {
  return existsSync(join(root.path, path))
}
