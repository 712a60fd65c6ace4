/** A recorder and an appliance over a store in a temporary folder, in this process, on a free port. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument, type YAMLMap, type YAMLSeq } from 'yaml'
import { startAppliance } from '../../../appliance/appliance.ts'
import { applianceConfigSchema, type RetentionSettings } from '../../../appliance/appliance-config.ts'
import type { ImportedCapture } from '../../../appliance/link/import-request.ts'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import type { CaptureDriver } from '../../../appliance/recorder/capture/capture-driver.ts'
import { type RunningRecorder, startRecorder } from '../../../appliance/recorder.ts'
import { ROLES, type Role } from '../../../src/shared/base/scopes.ts'
import { type HttpAnswer, type HttpGetOptions, httpGet, httpOpen, type OpenAnswer } from '../http-get.ts'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { APPLIANCE_PASSWORD, refuseSecretsInMetrics, searchedLog } from '../suite-secrets.ts'
import { writeUsers } from '../suite-users.ts'
import { tempFolder } from '../temp-folder.ts'

export interface TempAppliance extends AsyncDisposable {
  readonly url: string
  readonly storePath: string
  readonly folder: string
  readonly recorder: RecorderClient
  /** "name:password" of a user with this role. */
  credentials(role: Role): string
  importFiles(name: string, ...files: readonly string[]): Promise<ImportedCapture>
  /** The whole answer, requested as the user with the role "full" unless options say otherwise. */
  get(path: string, options?: HttpGetOptions): Promise<HttpAnswer>
  /** Like get, but for an answer that continues until the client leaves, only the head. */
  ask(path: string): Promise<HttpAnswer>
  /** An answer whose body is only read by the caller. */
  open(path: string, options?: HttpGetOptions): Promise<OpenAnswer>
  /** According to the appliance's own metric. */
  slotsUsed(): Promise<number>
  /** Removes a user, like an edited users file. */
  removeUser(role: Role): Promise<void>
  /** Stops only the appliance; the store and its recorder stay. */
  closeAppliance(drainMs: number): Promise<void>
  /** Stops only the recorder. */
  stopRecorder(): Promise<void>
  /** Starts it again after stopRecorder. */
  startRecorder(): Promise<void>
}

export interface TempApplianceOptions {
  /** Settings in addition to store and users, as in the YAML file. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Maximum size of a segment in imports. */
  readonly segmentBytes?: number
  /** Driver that captures; default: according to the settings. */
  readonly driver?: CaptureDriver
  readonly retention?: RetentionSettings
  /** Path of the store; absent: a temporary folder. */
  readonly storePath?: string
}

export async function startTempAppliance(options: TempApplianceOptions = {}): Promise<TempAppliance> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const { storePath = join(folder.path, 'store'), segmentBytes, driver, retention } = options
  const users = join(folder.path, 'users.yaml')
  const everyRole = ROLES.map((role) => ({ name: role, role }))
  await writeUsers(users, everyRole, APPLIANCE_PASSWORD)
  const log = searchedLog()
  parts.defer(log.refuseSecrets)
  const config = applianceConfigSchema.parse({
    listen: { host: OWN_LOOPBACK, port: 0 },
    store: storePath,
    timeZone: 'UTC',
    auth: { users, anonymousMetrics: true },
    ...options.config,
  })
  const capture = { timeZone: config.timeZone, config: config.capture, driver }
  const start = (): Promise<RunningRecorder> =>
    startRecorder({ storePath, log, imports: { segmentBytes }, retention, capture })
  let recorder: RunningRecorder | undefined = await start()
  const stopRecorder = async (): Promise<void> => {
    await recorder?.close()
    recorder = undefined
  }
  parts.defer(stopRecorder)
  const appliance = await startAppliance(config, { log })
  let isOpen = true
  const closeAppliance = async (drainMs: number): Promise<void> => {
    if (isOpen) await refuseSecretsInMetrics(appliance.url)
    if (isOpen) await appliance.close(drainMs)
    isOpen = false
  }
  parts.defer(() => closeAppliance(0))
  const client = new RecorderClient(storePath)
  const asFull = { user: `full:${APPLIANCE_PASSWORD}` }
  const owner = parts.move()
  return {
    url: appliance.url,
    storePath,
    folder: folder.path,
    recorder: client,
    credentials: (role) => `${role}:${APPLIANCE_PASSWORD}`,
    importFiles: (name, ...files) => client.importCapture({ name, files }),
    get: (path, get) => httpGet(`${appliance.url}${path}`, { ...asFull, ...get }),
    ask: (path) => ask(`${appliance.url}${path}`, asFull),
    open: (path, get) => httpOpen(`${appliance.url}${path}`, { ...asFull, ...get }),
    slotsUsed: () => slotsUsed(appliance.url),
    removeUser: async (role) => {
      const document = parseDocument(await readFile(users, 'utf8'))
      const entries = document.get('users') as YAMLSeq<YAMLMap>
      entries.items = entries.items.filter((entry) => entry.get('name') !== role)
      await writeFile(users, document.toString())
      await appliance.reloadUsers()
    },
    closeAppliance,
    stopRecorder,
    startRecorder: async () => {
      recorder = await start()
    },
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

const LIVE_PATHS: readonly string[] = ['/api/v1/system/events', '/api/v1/system/telemetry']

async function ask(url: string, options: HttpGetOptions): Promise<HttpAnswer> {
  const isLive = LIVE_PATHS.includes(new URL(url).pathname)
  if (!isLive) return await httpGet(url, options)
  const head = await httpGet(url, { ...options, method: 'HEAD' })
  using _opened = head.status === 200 ? await httpOpen(url, options) : undefined
  return head.status === 200 ? head : await httpGet(url, options)
}

async function slotsUsed(url: string): Promise<number> {
  const { body } = await httpGet(`${url}/metrics`)
  const match = /^capfleet_download_slots_used (\d+)$/m.exec(body.toString())
  if (match === null) throw new Error('the appliance has no metric download_slots_used')
  return Number(match[1])
}
