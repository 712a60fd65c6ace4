/** Containers of our images as the chart runs them: a read-only root, no capabilities, no privilege escalation. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { imageTag } from './image-names.ts'

export interface ContainerOptions {
  /** "uid:gid"; default: the image's. */
  readonly user?: string
  readonly capabilities?: readonly string[]
  readonly memory?: string
  /** Host path -> container path; with ":ro" appended, read-only. */
  readonly mounts?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
  /** Replaces the image's entrypoint. */
  readonly entrypoint?: string
}

export interface RunningContainer extends AsyncDisposable {
  /** The address in its ready line. */
  readonly address: string
  /** Its output on stderr so far. */
  readonly said: () => string
  /** Whether the image's health check succeeds. */
  isHealthy(): Promise<boolean>
  /** Sends SIGTERM, like Kubernetes; resolves with its exit status. */
  stop(): Promise<number | null>
}

/** The machine may have no systemd, and both versions of control groups: crun does not start there. */
const ENGINE = ['--log-level=fatal', '--runtime=runc', '--cgroup-manager=cgroupfs']

function runOptions(options: ContainerOptions): readonly string[] {
  const { user, capabilities = [], memory = '256m', mounts = {}, environment = {}, entrypoint } = options
  return [
    ...['--rm', '--network=host', '--read-only', '--cap-drop=all', '--security-opt=no-new-privileges'],
    ...['--ulimit=nofile=20000:20000', '--ulimit=nproc=4096:4096', `--memory=${memory}`],
    ...capabilities.map((name) => `--cap-add=${name}`),
    ...(user === undefined ? [] : [`--user=${user}`]),
    ...(entrypoint === undefined ? [] : [`--entrypoint=${entrypoint}`]),
    ...Object.entries(mounts).map(([from, to]) => `--volume=${from}:${to}`),
    ...Object.entries(environment).map(([name, value]) => `--env=${name}=${value}`),
  ]
}

/** Runs a container to its end; fails, with its output, if that is not successful. */
export async function runContainer(
  image: string,
  args: readonly string[],
  options: ContainerOptions = {},
): Promise<string> {
  const run = [...ENGINE, 'run', ...runOptions(options), imageTag(image), ...args]
  const { stdout } = await promisify(execFile)('podman', run, { maxBuffer: 64 << 20 })
  return stdout
}

/** Starts a container and waits for its ready line. */
export async function startContainer(
  image: string,
  args: readonly string[],
  options: ContainerOptions = {},
): Promise<RunningContainer> {
  const name = `capfleet-test-${process.pid}-${args[0]}-${Math.random().toString(36).slice(2)}`
  const run = [...ENGINE, 'run', `--name=${name}`, ...runOptions(options), imageTag(image), ...args]
  const child = spawn('podman', run, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text: Buffer) => {
    said += text.toString()
  })
  const ended = once(child, 'exit')
  const stop = async (): Promise<number | null> => {
    if (child.exitCode === null) child.kill('SIGTERM')
    await ended
    return child.exitCode
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const address = /^capfleet \S+ ready (\S+)$/.exec(line)?.[1]
    if (address === undefined) continue
    return {
      address,
      said: () => said,
      isHealthy: () =>
        promisify(execFile)('podman', [...ENGINE, 'healthcheck', 'run', name]).then(
          () => true,
          () => false,
        ),
      stop,
      [Symbol.asyncDispose]: async () => void (await stop()),
    }
  }
  await ended
  throw new Error(`the container of ${image} ended with status ${child.exitCode}: ${said}`)
}
