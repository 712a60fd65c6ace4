/** haproxy as a reverse proxy in front of one address, on a free port. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../eventually.ts'
import { tempFolder } from '../temp-folder.ts'
import { freePort, type TempNginx } from './temp-nginx.ts'

/** For a test's `skip`: a sentence when haproxy is absent, else false. */
export const WITHOUT_HAPROXY: string | false =
  spawnSync('haproxy', ['-v']).status === 0 ? false : 'haproxy is not installed'

export async function startTempHaproxy(upstream: string): Promise<TempNginx> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const port = await freePort()
  const path = join(folder.path, 'haproxy.cfg')
  await writeFile(path, configuration(port, upstream))
  const child = spawn('haproxy', ['-db', '-f', path], { stdio: 'ignore' })
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
    { limitMs: 10_000, message: 'haproxy answers' },
  )
  const owner = parts.move()
  return { url, pid: child.pid ?? 0, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

/** One thread, and large buffers that go past user space where the kernel can do it. */
function configuration(port: number, upstream: string): string {
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
