/** nginx and haproxy as reverse proxies in front of one address, each on a free port and using only its own files. */

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { eventually } from '../eventually.ts'
import { skipWithout } from '../set-up-tools.ts'
import { tempFolder } from '../temp-folder.ts'

/** Skip reason for tests, or false. */
export const WITHOUT_NGINX = skipWithout(
  spawnSync('nginx', ['-v']).status === 0,
  'nginx is not installed (apt-get install nginx-light)',
)

export interface TempProxy extends AsyncDisposable {
  readonly url: string
  /** The proxy's only process. */
  readonly pid: number
}

/** Parameters of a configuration file. */
interface ProxySettings {
  readonly folder: string
  readonly port: number
  readonly upstream: string
}

/**
 * "default": HTTP/1.0 to the upstream, answers buffered. "streaming": a typical configuration for large downloads.
 * "control": persistent connections for small answers, with an access log that is flushed as often as ours.
 */
export type NginxStyle = 'default' | 'streaming' | 'control'

export function startTempNginx(upstream: string, style: NginxStyle = 'default'): Promise<TempProxy> {
  return startProxy(upstream, {
    program: 'nginx',
    argumentsOf: (path) => ['-p', dirname(path), '-e', 'error.log', '-c', path],
    configuration: (settings) => nginxConfiguration(settings, style),
  })
}

/** nginx that sends one file for every path, with sendfile or with large reads. */
export function startFileNginx(file: string, sendfile: 'on' | 'off'): Promise<TempProxy> {
  return startProxy('', {
    program: 'nginx',
    argumentsOf: (path) => ['-p', dirname(path), '-e', 'error.log', '-c', path],
    configuration: ({ folder, port }) => `daemon off; master_process off; pid ${join(folder, 'nginx.pid')};
events { }
http { access_log off; sendfile ${sendfile}; output_buffers 2 512k; sendfile_max_chunk 0;
  server { listen 127.0.0.1:${port}; root /;
    location / { rewrite ^ ${file} break; }
    location = /livez { return 204; } } }
`,
  })
}

export function startTempHaproxy(upstream: string): Promise<TempProxy> {
  return startProxy(upstream, {
    program: 'haproxy',
    argumentsOf: (path) => ['-db', '-f', path],
    configuration: haproxyConfiguration,
  })
}

/** Skip reason for tests, or false. */
export const WITHOUT_HAPROXY = skipWithout(
  spawnSync('haproxy', ['-v']).status === 0,
  'haproxy is not installed (apt-get install haproxy)',
)

/** haproxy in front of several gateways, which checks whether each is ready. */
export function startTempBalancer(upstreams: readonly string[]): Promise<TempProxy> {
  return startProxy('', {
    program: 'haproxy',
    argumentsOf: (path) => ['-db', '-f', path],
    configuration: ({ port }) => balancerConfiguration(port, upstreams),
  })
}

/** nginx with the lines of a guide in its `server` block. */
export function startNginxWith(lines: string): Promise<TempProxy> {
  return startProxy('', {
    program: 'nginx',
    argumentsOf: (path) => ['-p', dirname(path), '-e', 'error.log', '-c', path],
    configuration: ({ folder, port }) => `daemon off; master_process off; pid ${join(folder, 'nginx.pid')};
events { worker_connections 64; }
http { access_log off; ${temporaryFolders(folder)}
  server { listen 127.0.0.1:${port};
${lines} } }
`,
  })
}

/** haproxy with the configuration of a guide, which listens on `bind`. */
export function startHaproxyWith(lines: string, bind: string): Promise<TempProxy> {
  return startProxy('', {
    program: 'haproxy',
    argumentsOf: (path) => ['-db', '-f', path],
    configuration: ({ port }) => lines.replace(bind, `127.0.0.1:${port}`),
  })
}

interface ProxyProgram {
  readonly program: string
  readonly argumentsOf: (configurationPath: string) => readonly string[]
  readonly configuration: (settings: ProxySettings) => string
}

async function startProxy(
  upstream: string,
  { program, argumentsOf, configuration }: ProxyProgram,
): Promise<TempProxy> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const port = await freePort()
  const path = join(folder.path, `${program}.conf`)
  await writeFile(path, configuration({ folder: folder.path, port, upstream }))
  const child = spawn(program, argumentsOf(path), { stdio: 'ignore' })
  parts.defer(async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const url = `http://127.0.0.1:${port}`
  await eventually(
    () =>
      fetch(`${url}/livez`)
        .then((answer) => answer.ok)
        .catch(() => false),
    { message: `${program} answers` },
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

function nginxConfiguration({ folder, port, upstream }: ProxySettings, style: NginxStyle): string {
  return `daemon off; master_process off; pid ${join(folder, 'nginx.pid')};
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000; ${temporaryFolders(folder)}
  upstream device { server ${new URL(upstream).host}; keepalive 64; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port};
    location / { ${STYLES[style]} proxy_pass http://device; } } }
`
}

function temporaryFolders(folder: string): string {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
}

/** One thread, and large buffers that bypass user space if the kernel can do that. */
function haproxyConfiguration({ port, upstream }: ProxySettings): string {
  return `global
  nbthread 1
  tune.bufsize 65536
  hard-stop-after 1s
defaults
  mode http
  option splice-auto
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen relay
  bind 127.0.0.1:${port}
  server device ${new URL(upstream).host}
`
}

/** The configuration in docs/guides/proxies.md. A download waiting in the queue sends nothing for up to a minute. */
function balancerConfiguration(port: number, upstreams: readonly string[]): string {
  const servers = upstreams.map((upstream, index) => `  server g${index} ${new URL(upstream).host}`)
  return `global
  nbthread 1
  hard-stop-after 1s
defaults
  mode http
  timeout connect 1s
  timeout client 1h
  timeout server 1h
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance leastconn
  option redispatch 1
  retries 3
  option httpchk GET /readyz
  default-server check inter 500ms fall 1 rise 1
${servers.join('\n')}
`
}

/** For programs that can only bind to a given port number. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no address')
  return address.port
}
