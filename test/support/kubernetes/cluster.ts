/** The cluster of KUBECONFIG: its tools, and DNS for its Services, which nothing else provides. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { TinyDns } from '../servers/tiny-dns.ts'

/** Runs helm, kubectl or another tool from `.tools`; fails with its output. */
export async function tool(name: string, args: readonly string[]): Promise<string> {
  const path = join(REPOSITORY_ROOT, '.tools', name)
  const { stdout } = await promisify(execFile)(path, args, { maxBuffer: 64 << 20, encoding: 'utf8' })
  return stdout
}

export const helm = (...args: readonly string[]): Promise<string> => tool('helm', args)
export const kubectl = (...args: readonly string[]): Promise<string> => tool('kubectl', args)

/** Creates or changes the objects of a manifest. */
export async function apply(...manifests: readonly object[]): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests })
  const child = spawn(join(REPOSITORY_ROOT, '.tools', 'kubectl'), ['apply', '-f', '-'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.stdin.end(list)
  const [status] = await once(child, 'exit')
  if (status !== 0) throw new Error('kubectl apply failed; its message is above')
}

/** Serves cluster DNS at `address` for Services with an address of their own. */
export async function serveClusterDns(address: string): Promise<AsyncDisposable> {
  const dns = await TinyDns.start([], { port: 53, address })
  const services = new Map<string, string>()
  const columns = 'jsonpath={.metadata.name}.{.metadata.namespace} {.spec.clusterIP}{"\\n"}'
  const watch = spawn(
    join(REPOSITORY_ROOT, '.tools', 'kubectl'),
    ['get', 'services', '--all-namespaces', '--watch', '--output', columns],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = once(watch, 'exit')
  createInterface({ input: watch.stdout }).on('line', (line) => {
    const [name = '', clusterIp = 'None'] = line.split(' ')
    if (clusterIp !== 'None') services.set(`${name}.svc.cluster.local`, clusterIp)
    dns.table = [...services].map(([service, ip]) => [service, 'A', ip] as const)
  })
  return {
    async [Symbol.asyncDispose]() {
      watch.kill()
      await ended
      await dns[Symbol.asyncDispose]()
    },
  }
}
