/**
 * Runs a test file in its own network namespace, by starting the file again in there. Interfaces that it creates
 * disappear with the namespace.
 */
import { execFile, spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'

/** Resources left open by a failed test would keep the process in there alive. */
const FILE_LIMIT = new URL('../file-limit.ts', import.meta.url).href
const MARK = 'CAPFLEET_TEST_NAMESPACE'
/** Root of the machine, or else of a user namespace, if that is allowed. */
const USER = process.getuid?.() === 0 ? [] : ['--map-root-user']
const UNSHARE = [...USER, '--net', '--mount', 'sh', '-c']

/** Runs `define` if this process is in the namespace; otherwise runs the file's tests there, as one test. */
export function inNetworkNamespace(file: string, define: () => void): void {
  if (process.env[MARK] !== undefined) {
    define()
    return
  }
  test(`in a network namespace: ${file.split('/').at(-1)}`, (t) => runInside(t, file))
}

function runInside(t: TestContext, file: string): void {
  const reason = whyNot('unshare', ...UNSHARE, 'ip link add probe0 type veth peer name probe1')
  if (reason) {
    t.skip(reason)
    return
  }
  // Mounts the namespace's own /sys, which lists its interfaces.
  const script =
    'mount -t sysfs sysfs /sys && ip link set lo up && exec "$0" --import "$1" --test-reporter=spec "$2"'
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const ended = spawnSync('unshare', [...UNSHARE, script, process.execPath, FILE_LIMIT, file], {
    encoding: 'utf8',
    env: { ...env, [MARK]: '1' },
    maxBuffer: 1 << 26,
  })
  if (ended.status !== 0) throw new Error(`status ${ended.status}\n${ended.stdout}\n${ended.stderr}`)
  for (const line of ended.stdout.split('\n')) if (/^(ℹ|✔|﹣) /.test(line)) t.diagnostic(line)
}

/**
 * Skip reason for a test that needs its own interfaces, if this command, which creates some, fails. False if it
 * succeeds, and in continuous integration (CI=true): there the test fails instead.
 */
export function whyNot(command: string, ...args: readonly string[]): string | false {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0 || process.env.CI === 'true') return false
  return `no network of its own may be made here: ${(stderr ?? error?.message ?? '').trim()}`
}

const run = promisify(execFile)

export async function runCommand(command: string, ...args: readonly string[]): Promise<string> {
  return (await run(command, args, { maxBuffer: 1 << 26 })).stdout
}

export interface VethPair {
  /** Packets sent here ... */
  readonly near: string
  /** ... arrives here. */
  readonly far: string
}

let pairs = 0

/** Two connected interfaces, used only by the test. */
export async function makeVethPair(mtu = 9_000): Promise<VethPair> {
  const pair = { near: `near${pairs}`, far: `far${pairs}` }
  pairs += 1
  await runCommand('ip', 'link', 'add', pair.near, 'type', 'veth', 'peer', 'name', pair.far)
  for (const name of [pair.near, pair.far]) {
    await runCommand('sysctl', '-qw', `net.ipv6.conf.${name}.disable_ipv6=1`)
    await runCommand('ip', 'link', 'set', name, 'mtu', String(mtu), 'up')
  }
  return pair
}
