/**
 * The whole product on one machine: three appliances with captures, each with its recorder, a
 * gateway with its private Redis, and a worker for exports. Every part is the real program with a real configuration file.
 */
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { nodeTransport } from '../client/command/access/node-transport.ts'
import { GatewayClient } from '../client/gateway-client.ts'
import { failOnLosses } from '../operator/import-command.ts'
import { aborted } from '../shared/base/program.ts'
import { type ChildProgram, startChildProgram } from './child-program.ts'
import { loadGeneratedTraffic, loadImportedFiles } from './demo-captures.ts'
import { demoGuide } from './demo-guide.ts'
import { clearStores, DEMO_USER, type DemoHome, prepareDemoHome } from './demo-home.ts'
import { startLiveCapture } from './live-capture-demo.ts'
import { LiveTraffic, mayCapture } from './live-traffic.ts'
import { SupervisedProgram } from './supervised-program.ts'

export interface DemoOptions {
  readonly home: string
  /** 0 = any free port. */
  readonly port: number
  /** Capture files to serve instead of generated traffic; may be empty. */
  readonly importFiles: readonly string[]
}

/** How long running streams of the demo may continue when it is stopped. */
const STOP_GRACE_MS = 5_000

/**
 * Runs until `signal` aborts or the gateway ends; no child outlives it. Fails with bad-capture-file at the end if a
 * file could not be imported completely; the others are served until then.
 */
export async function runDemo(options: DemoOptions, signal: AbortSignal): Promise<void> {
  await using children = new AsyncDisposableStack()
  const traffic = (await mayCapture()) ? children.use(await LiveTraffic.open()) : undefined
  if (traffic === undefined)
    process.stderr.write('capfleet: stored captures only: live capture needs CAP_NET_RAW\n')
  const home = await prepareDemoHome(
    resolve(options.home),
    options.importFiles.length > 0 ? 'imported' : 'generated',
    traffic === undefined ? [] : [traffic.portSetting],
  )
  if (options.importFiles.length > 0) await clearStores(home)
  const logPath = (name: string): string => join(home.folder, 'log', `${name}.log`)
  const start = async (name: string, args: readonly string[]): Promise<ChildProgram> => {
    const child = await startChildProgram(name, args, { logPath: logPath(name), appends: false })
    children.defer(() => child.stop(STOP_GRACE_MS))
    return child
  }
  const supervise = async (name: string, args: readonly string[]) =>
    children.use(await startSupervised(name, args, logPath(name)))
  await allStarted(
    home.devices.map(({ name, configPath }) =>
      supervise(`${name}-recorder`, ['recorder', '--config', configPath]),
    ),
  )
  const { range, losses } =
    options.importFiles.length > 0
      ? await loadImportedFiles(home.devices, options.importFiles, signal)
      : { range: await loadGeneratedTraffic(home, signal), losses: 0 }
  const appliances = await allStarted(
    home.devices.map(({ name, configPath }) => start(name, ['appliance', '--config', configPath])),
  )
  if (signal.aborted) return
  const [first] = home.devices
  const live = traffic === undefined || first === undefined ? undefined : await startLiveCapture(first)
  const gatewayConfig = await writeGatewayConfig(options, home, appliances)
  const gateway = await start('gateway', ['gateway', '--config', gatewayConfig])
  await supervise('worker', ['worker', '--config', gatewayConfig])
  const gatewayUrl = gateway.address
  const netrcPath = await writeDemoFiles(resolve(options.home), home, gatewayUrl, appliances)
  process.stdout.write(`capfleet ready ${gatewayUrl}\n`)
  const hasTour = options.importFiles.length === 0
  process.stderr.write(demoGuide({ gatewayUrl, password: home.password, hasTour, netrcPath, range, live }))
  for (const child of appliances) void announceEnd(child, signal)
  await Promise.race([aborted(signal), gateway.ended])
  if (!signal.aborted) process.stderr.write(`capfleet: the gateway ended; its log is in ${home.folder}/log\n`)
  failOnLosses(losses)
}

/** If one fails, waits until all others have started or failed too, so that cleaning up misses none. */
async function allStarted<T>(starts: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(starts)
  return await Promise.all(starts)
}

/** Like systemd or Kubernetes: a recorder or worker that dies is restarted and continues. */
function startSupervised(name: string, args: readonly string[], logPath: string): Promise<SupervisedProgram> {
  return SupervisedProgram.start({
    start: (appends) => startChildProgram(name, args, { logPath, appends }),
    onRestart: ({ pid }) =>
      process.stderr.write(`capfleet: ${name} (process ${pid}) ended; starting it again\n`),
    stopGraceMs: STOP_GRACE_MS,
  })
}

/** A device that dies is not restarted: the demo shows how the gateway handles that. */
async function announceEnd(child: ChildProgram, signal: AbortSignal): Promise<void> {
  await child.ended
  if (!signal.aborted) process.stderr.write(`capfleet: device ${child.name} (process ${child.pid}) ended\n`)
}

async function writeGatewayConfig(
  options: DemoOptions,
  home: DemoHome,
  appliances: readonly ChildProgram[],
): Promise<string> {
  const path = join(home.folder, 'gateway.yaml')
  const config = {
    listen: { host: '127.0.0.1', port: options.port },
    home: join(home.folder, 'gateway'),
    timeZone: 'UTC',
    // Its questions are about the generated traffic.
    demoTour: options.importFiles.length === 0,
    auth: { users: home.gatewayUsersPath },
    exports: { worker: { listen: { port: 0 } } },
    devices: home.devices.map((device, index) => ({
      name: device.name,
      site: device.site,
      url: appliances[index]?.address,
      user: device.user,
      password: { file: join(home.folder, device.name, 'password') },
    })),
  }
  await writeFile(path, stringify(config))
  return path
}

/** demo.json for scripts, bearer for `curl -H @`, netrc for `curl --netrc-file`; returns the path of the last. */
async function writeDemoFiles(
  folder: string,
  home: DemoHome,
  gatewayUrl: string,
  appliances: readonly ChildProgram[],
): Promise<string> {
  const token = await demoToken(gatewayUrl, home.password)
  const demo = {
    gatewayUrl,
    user: DEMO_USER,
    password: home.password,
    token,
    devices: home.devices.map(({ name, user, password }, index) => ({
      name,
      url: appliances[index]?.address,
      user,
      password,
      pid: appliances[index]?.pid,
    })),
  }
  const options = { mode: 0o600 }
  await writeFile(join(folder, 'demo.json'), `${JSON.stringify(demo, null, 2)}\n`, options)
  await writeFile(join(folder, 'bearer'), `Authorization: Bearer ${token}\n`, options)
  const netrc = `machine ${new URL(gatewayUrl).hostname}\nlogin ${DEMO_USER}\npassword ${home.password}\n`
  const netrcPath = join(folder, 'netrc')
  await writeFile(netrcPath, netrc, options)
  return netrcPath
}

/** A token with the rights of the demo's user. */
async function demoToken(gatewayUrl: string, password: string): Promise<string> {
  const access = { url: gatewayUrl, credentials: { user: DEMO_USER, password } }
  const client = new GatewayClient(access, nodeTransport())
  const { value } = await client.json<{ readonly token: string }>('/v1/tokens', {
    method: 'POST',
    query: [
      ['Lifetime', '30d'],
      ['Note', 'demo.json'],
    ],
  })
  return value.token
}
