/** nginx as a reverse proxy in front of one address, on a free port, with files of its own only. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { eventually } from '../eventually.ts'
import { tempFolder } from '../temp-folder.ts'

/** For a test's `skip`: a sentence when nginx is absent, else false. */
export const WITHOUT_NGINX: string | false =
  spawnSync('nginx', ['-v']).status === 0 ? false : 'nginx is not installed'

export interface TempNginx extends AsyncDisposable {
  readonly url: string
  /** Of its only process. */
  readonly pid: number
}

/**
 * "default": HTTP/1.0 to the upstream, answers buffered. "streaming": what one would set for large
 * downloads. "control": kept connections for small answers, with an access log that is written as often as ours.
 */
export type NginxStyle = 'default' | 'streaming' | 'control'

export async function startTempNginx(upstream: string, style: NginxStyle = 'default'): Promise<TempNginx> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const port = await freePort()
  await writeFile(join(folder.path, 'nginx.conf'), configuration(folder.path, { port, upstream, style }))
  const child = spawn('nginx', ['-p', folder.path, '-e', 'error.log', '-c', 'nginx.conf'], {
    stdio: 'ignore',
  })
  parts.defer(() => stop(child))
  const url = `http://127.0.0.1:${port}`
  await eventually(
    () =>
      fetch(`${url}/livez`)
        .then((answer) => answer.ok)
        .catch(() => false),
    { limitMs: 10_000, message: 'nginx answers' },
  )
  const owner = parts.move()
  return { url, pid: child.pid ?? 0, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

const STYLES: Readonly<Record<NginxStyle, string>> = {
  default: '',
  streaming: 'proxy_http_version 1.1; proxy_buffering off; proxy_buffer_size 256k; proxy_buffers 4 256k;',
  control:
    'proxy_http_version 1.1; proxy_set_header Connection ""; access_log access.log combined buffer=4k flush=200ms;',
}

function configuration(
  folder: string,
  { port, upstream, style }: { readonly port: number; readonly upstream: string; readonly style: NginxStyle },
): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
  return `daemon off; master_process off; pid ${join(folder, 'nginx.pid')};
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000; ${temporary}
  upstream device { server ${new URL(upstream).host}; keepalive 64; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port};
    location / { ${STYLES[style]} proxy_pass http://device; } } }
`
}

/** For programs that bind by number only. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no address')
  return address.port
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
