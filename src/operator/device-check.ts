/**
 * `capfleet device check`: asks a device for everything that the gateway needs from it, and reports what works, what
 * does not, and the consequences for downloads. It takes at most one stream, and changes nothing.
 */
import { resolve } from 'node:path'
import { z } from 'zod'
import { type Finding, FindingList, type Remedy } from '../../appliance/doctor/finding.ts'
import { readPassword } from '../client/command/common/password-prompt.ts'
import { createProgressBar } from '../client/command/common/progress-bar.ts'
import { Device } from '../gateway/device/device.ts'
import { ANSWER_BYTES_MAX, DeviceClient } from '../gateway/device/device-client.ts'
import { type DeviceKind, type ForeignKind, isForeign } from '../gateway/device/device-kind.ts'
import { decode } from '../gateway/fetch/encoding/decode.ts'
import { readClaims } from '../gateway/fetch/proof/device-claims.ts'
import { openAfterAnother } from '../gateway/fetch/proof/possible-refusal.ts'
import { lacksProof, proveFilters } from '../gateway/fetch/proof/proved-filters.ts'
import { awaitShownFilters } from '../gateway/fetch/proof/shown-filters.ts'
import { openSource, type Source } from '../gateway/fetch/stream/source.ts'
import type { SourceBody } from '../gateway/fetch/stream/source-body.ts'
import { type CaptureEntry, newestFirst, readCaptureEntry } from '../gateway/fleet/captures/capture-entry.ts'
import { UNKNOWN_STATE } from '../gateway/fleet/device-identity.ts'
import { probeClock, probeStatus, probeVersion } from '../gateway/fleet/health/device-probe.ts'
import { deviceSchema } from '../gateway/fleet/roster/device-settings.ts'
import { loadGatewayConfig } from '../gateway/gateway-config.ts'
import { planRoster } from '../gateway/open-fleet.ts'
import { PcapInput, SORT_WINDOW } from '../gateway/pcap/pcap-input.ts'
import { readClientTls } from '../shared/base/client-tls.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { Secret } from '../shared/base/secret.ts'
import { isCompressed } from '../shared/query/download/query-values.ts'
import { formatFindings } from './appliance-doctor.ts'

/** Either the name of a configured device, or the address of one that is not configured. */
export interface CheckedDevice {
  readonly name?: string | undefined
  readonly config?: string | undefined
  readonly url?: string | undefined
  readonly user?: string | undefined
  readonly ca?: string | undefined
}

/**
 * Prints its findings, as a table or as JSON. Returns whether there is no problem. Fails with bad-config or
 * bad-parameter.
 */
export async function runDeviceCheck(
  asked: CheckedDevice,
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<boolean> {
  const device = await askedDevice(asked)
  const bar = createProgressBar('device check')
  const findings = await checkDevice(device, signal, bar.tell).finally(bar.clear)
  const text = json ? JSON.stringify({ findings }, undefined, 2) : formatFindings(findings)
  process.stdout.write(`${text}\n`)
  return findings.every(({ level }) => level !== 'problem')
}

/** As in the configuration. */
const ADDRESS = z.object({ url: deviceSchema.shape.url, user: deviceSchema.shape.user })

async function askedDevice({ name, config, url, user = 'gateway', ca }: CheckedDevice): Promise<Device> {
  if (url !== undefined) {
    if (name !== undefined)
      throw new CapfleetError('bad-parameter', `give a device by its name (${name}) or by --url, not both`)
    const { error } = ADDRESS.safeParse({ url, user })
    const [mistake] = error?.issues ?? []
    if (mistake !== undefined)
      throw new CapfleetError('bad-parameter', `--${mistake.path.join()} ${mistake.message}`)
    const password = new Secret(await readPassword(user))
    if (password.reveal() === '') throw new CapfleetError('bad-parameter', 'the password is empty')
    const tls = await readClientTls({ ca }, resolve('command line'), '--url').catch((error: unknown) => {
      if (!(error instanceof CapfleetError)) throw error
      const message = `--ca ${ca} is not a file of PEM certificates (${error.message})`
      throw new CapfleetError('bad-parameter', message, { cause: error })
    })
    return new Device({ name: new URL(url).host, url, user, password, ...tls })
  }
  if (name === undefined || config === undefined)
    throw new CapfleetError(
      'bad-parameter',
      'name a device of the configuration (--config), or give its --url',
    )
  const { devices } = await planRoster(await loadGatewayConfig(config), resolve(config))
  const found = devices.find((device) => device.name === name)
  if (found !== undefined) return found
  const names = devices.map((device) => device.name).join(', ')
  throw new CapfleetError(
    'unknown-device',
    `${config} has no device ${JSON.stringify(name)}; it has: ${names}`,
  )
}

const TIMEOUT_MS = 30_000
const LIST_LIMITS = { bytesMax: 64 * 1_048_576, entriesMax: 1_000_000 }
/** Maximum bytes read from a second of packets. */
const STREAM_BYTES_MAX = 64 * 1_048_576
const NS_PER_MS = 1_000_000n
const NS_PER_S = 1_000_000_000n
const SKEWED_NS = 60n * NS_PER_S
const CALLER = 'device-check'

interface Check {
  readonly client: DeviceClient
  readonly name: string
  readonly findings: FindingList
  readonly signal: AbortSignal
}

/**
 * Runs the checks in the order in which a gateway needs them; a device that does not answer at all, or rejects our
 * credentials, is not asked further. `tell` is called with each question before its answer arrives.
 */
export async function checkDevice(
  device: Device,
  signal: AbortSignal,
  tell: (question: string) => void = () => undefined,
): Promise<readonly Finding[]> {
  const findings = new FindingList(device.name)
  const client = new DeviceClient(device, { connectTimeoutMs: TIMEOUT_MS, idleTimeoutMs: TIMEOUT_MS })
  const check = { client, name: device.name, findings, signal }
  const ask = (question: string) => tell(`${question} (at most ${TIMEOUT_MS / 1000} s)`)
  try {
    ask('its version')
    const kind = await checkVersion(check, device.kind)
    if (kind === undefined) return findings.findings
    ask('its clock')
    await checkTime(check)
    ask('its readers')
    await checkReaders(check)
    ask('its list of captures')
    const list = await checkList(check)
    if (list === 'rejects us') return findings.findings
    if (isForeign(kind)) noteForeign(check)
    else {
      ask('whether it filters')
      await checkFilters(check)
      ask('an estimate')
      await checkEstimates(check)
    }
    if (list === undefined) return findings.findings
    ask('a second of packets')
    const isSent = await checkStream(check, list, kind)
    if (!isSent || !isForeign(kind)) return findings.findings
    ask('whether it applies filters')
    await checkHeeded(check, list, kind)
    return findings.findings
  } finally {
    client.close()
  }
}

async function checkVersion(
  { client, findings, signal }: Check,
  configured: DeviceKind | undefined,
): Promise<DeviceKind | undefined> {
  const answer = await attempt(() => probeVersion(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  if (answer instanceof CapfleetError) {
    const fix = 'the gateway considers it down, and sends it no requests'
    findings.problem('version', { detail: answer.message, fix })
    return undefined
  }
  const { version = 'no version', kind, lack } = answer
  const maker = MAKERS[kind]
  if (lack !== undefined && (configured === undefined || configured === kind)) {
    findings.warn('version', { detail: `${lack.detail}; ${maker}`, fix: LACKS[kind] })
    return kind
  }
  if (configured === undefined || configured === kind) findings.ok('version', `${version}, ${maker}`)
  else {
    const fix = `leave kind out, or write kind: ${kind}`
    findings.warn('version', { detail: `${version}, ${maker}; configured as kind: ${configured}`, fix })
  }
  return configured ?? kind
}

const MAKERS: Readonly<Record<DeviceKind, string>> = {
  capfleet: 'capfleet',
  api: 'third-party',
  legacy: 'third-party, without the paths below /api/v1/',
}

const LACKS: Readonly<Record<DeviceKind, string>> = {
  capfleet: '',
  api: 'its version is not known; this has no effect',
  legacy:
    'the gateway uses its paths below /pcap/: time ranges span at most two captures and have no filter, and filters other than FilterBPF are rejected',
}

async function checkTime({ client, findings, signal }: Check): Promise<void> {
  const clock = await attempt(() => probeClock(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  if (clock instanceof CapfleetError) {
    const fix = 'the gateway does not know how far its clock is off, and cannot align its packets'
    return findings.warn('clock', { detail: clock.message, fix })
  }
  const { offsetNs, errorNs } = clock
  const [offBy, side] = offsetNs < 0n ? [-offsetNs, 'behind'] : [offsetNs, 'ahead of']
  const detail = `${milliseconds(offBy)} ms ${side} ours, plus or minus ${milliseconds(errorNs)} ms`
  if (offsetNs < SKEWED_NS && offsetNs > -SKEWED_NS) findings.ok('clock', detail)
  else
    findings.warn('clock', {
      detail,
      fix: 'synchronize its clock with NTP or PTP: times such as -15m and now miss its packets',
    })
}

async function checkReaders({ client, findings, signal }: Check): Promise<void> {
  const status = await attempt(() => probeStatus(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  const fix = 'downloads that other clients run there are noticed only when it rejects a download'
  if (status instanceof CapfleetError) findings.warn('readers', { detail: status.message, fix })
  else if (status.readers === undefined)
    findings.warn('readers', { detail: 'it does not report how many downloads run (cat_EnableCnt)', fix })
  else findings.ok('readers', `it reports its running downloads: ${status.readers}`)
}

/** What is the same for all third-party devices, because the API does not have it. */
function noteForeign({ findings }: Check): void {
  findings.ok(
    'bounds',
    'as with all third-party devices, users whose bounds have a filter get none of its packets',
  )
  findings.ok(
    'estimates',
    'as with all third-party devices, it is not asked for any, and its exports are not split into equal parts',
  )
  findings.ok(
    'resume',
    'as with all third-party devices, a download that breaks off is read again from the beginning and compared',
  )
}

async function checkFilters({ client, name, findings, signal }: Check): Promise<void> {
  const refusal = await attempt(
    () => proveFilters(client, { device: name }, { caller: CALLER, signal }),
    signal,
  )
  if (!(refusal instanceof CapfleetError)) findings.ok('filters', 'it rejects an invalid filter')
  else {
    const fix = 'users whose bounds have a filter get none of its packets'
    const isShown = refusal.code !== 'device-protocol'
    const why = lacksProof(refusal)
      ? NO_PROOF
      : 'it accepted an invalid filter, and may silently ignore others'
    const detail = isShown ? refusal.message : why
    findings.warn('filters', { detail, fix })
  }
}

const NO_PROOF = 'it does not have /api/v1/pcap/estimate, so it cannot show that it rejects invalid filters'

/** Both operators of FilterFrame. */
const CHECKED_FILTERS: Readonly<Record<string, string>> = { FilterFrame: 'capture.port!=254' }

/** Whether downloads with a filter get what passes it. One stream at a time. */
async function checkHeeded(
  { client, name: device, findings, signal }: Check,
  { name, startNs }: CaptureEntry,
  kind: ForeignKind,
): Promise<void> {
  const range = `TSBegin=${startNs}&TSEnd=${startNs + NS_PER_S}&TSUnit=nanos`
  const [path, filters] =
    kind === 'legacy'
      ? [`/pcap/single?StreamName=${encodeURIComponent(name)}`, ['FilterBPF']]
      : [`/api/v1/pcap/timerange?${range}`, ['FilterBPF', 'FilterFrame']]
  for (const filter of filters) {
    const step = { device, target: `${path}&${filter}=${CHECKED_FILTERS[filter] ?? ''}` }
    const limits = { startTimeoutMs: TIMEOUT_MS, patienceMs: TIMEOUT_MS }
    const options = { caller: CALLER, signal, state: UNKNOWN_STATE, ...limits }
    const shown = await attempt(
      () => openAfterAnother(() => awaitShownFilters(client, step, options), signal),
      signal,
    )
    if (shown === 'all') findings.ok(filter, 'it leaves out packets that do not match')
    else findings.warn(filter, unshown(filter, shown))
  }
}

function unshown(filter: string, shown: 'nothing' | CapfleetError): Remedy {
  if (shown === 'nothing')
    return { detail: 'it has no packet in that second to show it with', fix: 'check again when it has one' }
  if (shown.code === 'download-slots-exhausted') return { detail: shown.message, fix: BUSY_FIX }
  const isIgnored = shown.code === 'bad-parameter'
  const detail = isIgnored ? `it ignores ${filter}, and sends packets that do not match` : shown.message
  return { detail, fix: `downloads with ${filter} are rejected` }
}

async function checkEstimates({ client, findings, signal }: Check): Promise<void> {
  const target = '/api/v1/pcap/estimate?TSBegin=1&TSEnd=2&TSUnit=nanos'
  const options = { bytesMax: ANSWER_BYTES_MAX.estimate, signal, timeoutMs: TIMEOUT_MS }
  const answer = await attempt(() => client.getJson(target, options), signal)
  if (!(answer instanceof CapfleetError))
    return findings.ok('estimates', 'it can estimate the size of a download')
  const fix = 'estimates leave it out, and its exports are not split into equal parts'
  findings.warn('estimates', { detail: answer.message, fix })
}

/** The newest capture with a known start time. */
async function checkList({
  client,
  name,
  findings,
  signal,
}: Check): Promise<CaptureEntry | 'rejects us' | undefined> {
  const captures: CaptureEntry[] = []
  const read = async () => {
    for await (const texts of client.getList('/stream/list', LIST_LIMITS, { signal }))
      for (const json of texts) captures.push(readCaptureEntry(name, json))
  }
  const failure = await attempt(read, signal)
  if (failure instanceof CapfleetError && failure.code === 'device-rejected') {
    findings.problem('login', { detail: failure.message, fix: 'nothing else was tried' })
    return 'rejects us'
  }
  if (failure instanceof CapfleetError) {
    const fix = 'its captures are not listed, and cannot be downloaded by name'
    findings.problem('list', { detail: failure.message, fix })
    return undefined
  }
  const [newest] = captures.filter(({ startNs }) => startNs > 0n).toSorted(newestFirst)
  if (newest !== undefined)
    findings.ok(
      'list',
      `${captures.length} capture${captures.length === 1 ? '' : 's'}, the newest ${newest.name}`,
    )
  else if (captures.length > 0)
    findings.warn('list', { detail: `${captures.length} captures, none of them with a time`, fix: NOT_TRIED })
  else findings.warn('list', { detail: 'it has no capture', fix: NOT_TRIED })
  return newest
}

const NOT_TRIED = 'no download was tried: check again when it has one'

const BUSY_FIX = 'check again when a stream is free'

/** Returns whether the device sends packets as it should. */
async function checkStream(check: Check, capture: CaptureEntry, kind: DeviceKind): Promise<boolean> {
  const { client, name: device, findings, signal } = check
  const range = `TSBegin=${capture.startNs}&TSEnd=${capture.startNs + NS_PER_S}&TSUnit=nanos`
  const folder = kind === 'legacy' ? '/pcap' : '/api/v1/pcap'
  const step = { device, target: `${folder}/timerange?${range}`, isForced: false }
  const options = { caller: CALLER, signal, startTimeoutMs: TIMEOUT_MS }
  const readFirstSecond = async () => {
    using source = await openSource(client, step, options)
    return await readStream(check, source, { capture, kind })
  }
  const failure = await attempt(async () => {
    const firstNs = await readFirstSecond()
    if (firstNs === undefined || !isForeign(kind)) return
    const moment = `TSBegin=${firstNs}&TSEnd=${firstNs + NS_PER_MS}&TSUnit=nanos`
    const again = { ...step, target: `${folder}/timerange?${moment}` }
    using source = await openAfterAnother(() => openSource(client, again, options), signal)
    await checkMoment(check, source)
  }, signal)
  if (!(failure instanceof CapfleetError)) return true
  const isBusy = failure.code === 'download-slots-exhausted'
  findings.problem('download', {
    detail: failure.message,
    fix: isBusy ? BUSY_FIX : 'its packets cannot be downloaded, and its filters were not tried',
  })
  return false
}

function chunksOf({ device, encoding, body }: Source): SourceBody | AsyncIterator<Uint8Array> {
  return isCompressed(encoding) ? decode({ device, encoding, chunks: body }) : body
}

/** Whether the device finds the packet with which the moment begins. */
async function checkMoment({ name, findings }: Check, source: Source): Promise<void> {
  const input = await PcapInput.open(name, chunksOf(source))
  await input.fill()
  if (input.hasRecord) return findings.ok('times', 'it finds a packet again by its time')
  const fix =
    'it may round times to whole seconds, and packets of ranges that do not begin and end with a second may be missing'
  findings.warn('times', { detail: 'it does not find a packet again by its time', fix })
}

/** Returns the time of the first packet. */
async function readStream(
  { name, findings }: Check,
  source: Source,
  { capture, kind }: { readonly capture: CaptureEntry; readonly kind: DeviceKind },
): Promise<bigint | undefined> {
  const { body, headers } = source
  const isVouched = readClaims(headers).order === 'time'
  // As in a merge.
  const sortWindow = isForeign(kind) && !isVouched ? SORT_WINDOW : undefined
  const input = await PcapInput.open(name, chunksOf(source), { sortWindow })
  let isWhole = true
  for (await input.fill(); input.hasRecord; await input.fill()) {
    input.records.skip(Number.MAX_SAFE_INTEGER, { isHashed: false })
    isWhole = input.figures.bytes < STREAM_BYTES_MAX
    if (!isWhole) break
  }
  const { packets, bytes, outOfOrder } = input.records.arrived()
  findings.ok(
    'download',
    `${packets} packet${packets === 1 ? '' : 's'}, ${bytes} bytes of the first second of ${capture.name}`,
  )
  if (!isWhole) findings.ok('end', `not checked: the answer has more than ${STREAM_BYTES_MAX} bytes`)
  else if (body.end.isUnverified) {
    const detail = 'it closes the connection after the last packet, and sends neither a length nor chunks'
    findings.warn('end', { detail, fix: 'its downloads are "unverified": a cut-off download looks the same' })
  } else findings.ok('end', 'a cut-off download can be told from a complete one')
  findings.ok('timestamps', input.header.nanoseconds ? 'nanoseconds' : 'microseconds')
  if (input.header.isBigEndian)
    findings.ok(
      'byte order',
      'big-endian: a download of it alone is big-endian too, merges and exports are not',
    )
  const { outOfOrder: unsorted } = input.figures
  checkOrder(findings, { outOfOrder, unsorted, packets, isVouched })
  if (kind === 'capfleet') findings.ok('resume', 'it can resume a download (After=)')
  return input.figures.firstNs
}

function checkOrder(
  findings: FindingList,
  found: {
    readonly outOfOrder: number
    /** Packets that a merge cannot sort either. */
    readonly unsorted: number
    readonly packets: number
    readonly isVouched: boolean
  },
): void {
  const { outOfOrder, unsorted, packets, isVouched } = found
  const detail = `${outOfOrder} of ${packets} packets are earlier than a packet before them`
  if (unsorted > 0) {
    const fix = `a merge cannot sort ${unsorted} of them: its file is not in time order there`
    findings.warn('order', { detail, fix })
  } else if (outOfOrder > 0) {
    findings.ok('order', `${detail}, by at most a second: a merge sorts them`)
  } else if (isVouched) findings.ok('order', 'packets are in time order, and the device declares it')
  else findings.ok('order', 'packets were in time order')
}

/** The result, or why it failed. Throws the signal's reason, and internal errors. */
async function attempt<Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result | CapfleetError> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CapfleetError) return error
    throw error
  }
}

function milliseconds(ns: bigint): string {
  return (Number(ns) / 1e6).toFixed(1)
}
