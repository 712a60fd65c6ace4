/** Fills the stores of the demo fleet: with generated traffic, or with the user's own files. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { ImportedCapture } from '../../appliance/link/import-request.ts'
import { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { captureNameOf } from '../client/command/common/capture-name-of.ts'
import { type ImportJob, importAsCapture, importUnlessBad } from '../operator/import-command.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { CaptureRange } from './demo-guide.ts'
import type { DemoDevice, DemoHome } from './demo-home.ts'
import { incidentFlows } from './traffic/incident-flows.ts'
import { writeSiteTraffic } from './traffic/site-traffic.ts'

/** Monday 2026-11-02T09:00:00Z: a fixed hour keeps the README's lines true. */
const TRAFFIC_START_NS = 1_793_610_000_000_000_000n
const TRAFFIC_DURATION_S = 300
const TRAFFIC_PACKETS = 110_000
const TRAFFIC_SEED = 1
const TRAFFIC_CAPTURE = 'demo_20261102_0900'
/** Increase it when the generator changes: stores with older traffic are then refilled. */
const TRAFFIC_VERSION = '2'

/** Imports each site's traffic into its device, once; a later start finds it there. REQUIRES: recorders are running. */
export async function loadGeneratedTraffic(home: DemoHome, signal: AbortSignal): Promise<CaptureRange> {
  for (const [site, device] of home.devices.entries()) {
    if (signal.aborted) break
    const marker = join(home.folder, device.name, 'traffic-version')
    if ((await readFile(marker, 'utf8').catch(() => '')) === TRAFFIC_VERSION) continue
    await loadSite(home, { device, site: site as 0 | 1 | 2 }, signal)
    await writeFile(marker, TRAFFIC_VERSION)
  }
  return {
    beginNs: TRAFFIC_START_NS,
    endNs: TRAFFIC_START_NS + BigInt(TRAFFIC_DURATION_S) * 1_000_000_000n,
    captureName: TRAFFIC_CAPTURE,
    device: home.devices[0]?.name ?? '',
  }
}

async function loadSite(
  home: DemoHome,
  { device, site }: { device: DemoDevice; site: 0 | 1 | 2 },
  signal: AbortSignal,
): Promise<void> {
  const recorder = new RecorderClient(device.store)
  await deleteIfThere(recorder, TRAFFIC_CAPTURE)
  const folder = await mkdtemp(join(home.folder, 'traffic-'))
  try {
    process.stderr.write(`capfleet: generating traffic for ${device.name}\n`)
    const file = join(folder, `${device.name}.pcap`)
    await writeSiteTraffic(file, {
      site,
      seed: TRAFFIC_SEED,
      startNs: TRAFFIC_START_NS,
      durationS: TRAFFIC_DURATION_S,
      packets: TRAFFIC_PACKETS,
      planted: incidentFlows(site, TRAFFIC_START_NS),
      signal,
    })
    await importAsCapture(
      recorder,
      { name: TRAFFIC_CAPTURE, files: [file], description: 'generated traffic' },
      signal,
    )
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function deleteIfThere(recorder: RecorderClient, name: string): Promise<void> {
  try {
    await recorder.deleteCapture(name)
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'unknown-capture') throw error
  }
}

export interface LoadedFiles {
  readonly range: CaptureRange
  /** Files, or ends of files, that could not be imported; stderr names them. */
  readonly losses: number
}

/**
 * Imports the user's files, distributed over the devices; each file becomes a capture named after it. A bad file does
 * not affect the others. Fails with bad-capture-file if no packet could be imported.
 */
export async function loadImportedFiles(
  devices: readonly DemoDevice[],
  files: readonly string[],
  signal: AbortSignal,
): Promise<LoadedFiles> {
  let range: CaptureRange | undefined
  let losses = 0
  const names = new Set<string>()
  for (const [index, file] of files.entries()) {
    const device = devices[index % devices.length]
    if (device === undefined || signal.aborted) break
    const job = (): ImportJob => ({
      name: unusedName(captureNameOf(file), names),
      files: [resolve(file)],
      description: file,
    })
    const outcome = await importUnlessBad(new RecorderClient(device.store), job, signal)
    losses += outcome.losses
    if (outcome.record !== undefined) range = widened(range, outcome.record, device.name)
  }
  if (range === undefined)
    throw new CapfleetError('bad-capture-file', 'the files contain no packet that PCAP can store')
  return { range, losses }
}

/** The first capture with packets is the one to show. */
function widened(
  range: CaptureRange | undefined,
  { name, packets, startNs, endNs }: ImportedCapture,
  device: string,
): CaptureRange | undefined {
  if (packets === 0n) return range
  if (range === undefined) return { captureName: name, device, beginNs: startNs, endNs }
  const beginNs = startNs < range.beginNs ? startNs : range.beginNs
  return { ...range, beginNs, endNs: endNs > range.endNs ? endNs : range.endNs }
}

/** Two files of the same name from different folders stay two captures. */
function unusedName(name: string, used: Set<string>): string {
  let candidate = name
  for (let number = 2; used.has(candidate); number += 1) candidate = `${name.slice(0, 60)}-${number}`
  used.add(candidate)
  return candidate
}
