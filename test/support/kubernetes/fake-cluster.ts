/**
 * A Kubernetes with a real control plane whose pods are simulated by kwok: objects are admitted, scheduled, become
 * ready and end as usual, only no program runs.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { eventually } from '../eventually.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { tempFolder } from '../temp-folder.ts'
import { kubectl } from './cluster.ts'

const TOOLS = join(REPOSITORY_ROOT, '.tools')
const ADMIN_TOKEN = 'admin-of-the-fake-cluster'

export interface FakeCluster extends AsyncDisposable {
  /** The file for --kubeconfig. */
  readonly kubeconfig: string
  readonly apiUrl: string
  /** The API's self-signed certificate. */
  readonly caFile: string
}

/** With three ready nodes. */
export async function startFakeCluster(): Promise<FakeCluster> {
  await using parts = new AsyncDisposableStack()
  const { path: folder } = parts.use(await tempFolder())
  const run = (name: string, args: readonly string[]) => {
    const child = startLogged(folder, name, args)
    parts.defer(() => stop(child))
  }
  const [client, peer, api, kwok] = await freePorts()
  run('etcd', etcdOptions({ client, peer }))
  await writeFile(join(folder, 'tokens.csv'), `${ADMIN_TOKEN},admin,1,"system:masters"\n`)
  execFileSync('openssl', ['genrsa', '-out', join(folder, 'sa.key'), '2048'], { stdio: 'ignore' })
  run('kube-apiserver', apiServerOptions({ etcd: client, api }))
  const caFile = join(folder, 'certs', 'apiserver.crt')
  const apiUrl = `https://127.0.0.1:${api}`
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, JSON.stringify(kubeconfigOf(apiUrl, caFile)))
  const ask = (...args: string[]) => kubectl('--kubeconfig', kubeconfig, ...args)
  await eventually(() => isReady(ask), { message: 'the API is ready' })
  const common = [
    '--kubeconfig=kubeconfig',
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    '--secure-port=0',
  ]
  const keys = ['--service-account-private-key-file=sa.key', '--root-ca-file=certs/apiserver.crt']
  run('kube-controller-manager', [...common, ...keys])
  run('kube-scheduler', common)
  run('kwok', kwokOptions(kwok))
  for (const index of [0, 1, 2]) await ask('create', '-f', await nodeFile(folder, index))
  await ask('wait', '--for=condition=Ready', 'node', '--all', '--timeout=60s')
  const owned = parts.move()
  return { kubeconfig, apiUrl, caFile, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Its output goes to a file, for finding the cause of a failure. */
function startLogged(folder: string, name: string, args: readonly string[]): ChildProcess {
  const log = openSync(join(folder, `${name}.log`), 'a')
  try {
    return spawn(join(TOOLS, name), args, { cwd: folder, stdio: ['ignore', log, log] })
  } finally {
    closeSync(log)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function isReady(ask: (...args: string[]) => Promise<string>): Promise<boolean> {
  return ask('get', '--raw', '/readyz').then(
    (text) => text === 'ok',
    () => false,
  )
}

/** Ports of this machine that were free when checked. */
async function freePorts(): Promise<readonly [number, number, number, number]> {
  const servers = [0, 1, 2, 3].map(() => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports as unknown as readonly [number, number, number, number]
}

function etcdOptions({ client, peer }: { readonly client: number; readonly peer: number }): string[] {
  const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
  return [
    '--data-dir=etcd',
    '--unsafe-no-fsync',
    `--listen-client-urls=${clients}`,
    `--advertise-client-urls=${clients}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=default=${peers}`,
  ]
}

function apiServerOptions({ etcd, api }: { readonly etcd: number; readonly api: number }): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcd}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${api}`,
    '--cert-dir=certs',
    '--service-account-key-file=sa.key',
    '--service-account-signing-key-file=sa.key',
    '--service-account-issuer=https://kubernetes.default.svc',
    '--token-auth-file=tokens.csv',
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
  ]
}

function kwokOptions(port: number): string[] {
  return [
    '--kubeconfig=kubeconfig',
    '--manage-all-nodes=true',
    '--node-ip=127.0.0.1',
    `--server-address=127.0.0.1:${port}`,
    `--config=${join(TOOLS, 'kwok-stages.yaml')}`,
    '--node-lease-duration-seconds=40',
  ]
}

function kubeconfigOf(server: string, caFile: string): object {
  const cluster = { server, 'certificate-authority': caFile, 'tls-server-name': 'kubernetes' }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'fake', cluster }],
    users: [{ name: 'admin', user: { token: ADMIN_TOKEN } }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'admin' } }],
    'current-context': 'fake',
  }
}

async function nodeFile(folder: string, index: number): Promise<string> {
  const name = `node-${index}`
  const room = { cpu: '16', memory: '32Gi', pods: '110' }
  const labels = {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/hostname': name,
    'topology.kubernetes.io/zone': `zone-${index}`,
    'capfleet.io/capture': 'true',
  }
  // Not a loopback address, because those are not valid endpoints of a Service.
  const address = { type: 'InternalIP', address: `10.1.0.${index + 1}` }
  const addresses = [address, { type: 'Hostname', address: name }]
  const status = { allocatable: room, capacity: room, addresses }
  const path = join(folder, `${name}.json`)
  await writeFile(
    path,
    JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status }),
  )
  return path
}
