/**
 * A test file that runs in a network namespace of its own: the file starts itself again in there.
 * What it makes (interfaces) goes with the namespace.
 */
import { execFile, spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'

/** What a test leaves open when it fails would keep the process in there alive. */
const FILE_LIMIT = new URL('../file-limit.ts', import.meta.url).href
const MARK = 'CAPFLEET_TEST_NAMESPACE'
/** Root of the machine, or else of a user namespace, where that is allowed. */
const USER = process.getuid?.() === 0 ? [] : ['--map-root-user']
const UNSHARE = [...USER, '--net', '--mount', 'sh', '-c']

/** Runs `define` when this process is in the namespace; else the file's tests run there, as one. */
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
  // The namespace's own /sys, where the interfaces are.
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
 * For the `skip` of a test that needs interfaces of its own: the reason when this command, which makes such
 * ones, fails. False where it succeeds, and in continuous integration (CI=true): there the test fails instead.
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
  /** What is sent here ... */
  readonly near: string
  /** ... arrives here. */
  readonly far: string
}

let pairs = 0

/** Two interfaces with a cable between them, on which nothing but the test talks. */
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
