/** One download of `capfleet get`, from its first check to its verified end. */

import { resolve } from 'node:path'
import type { z } from 'zod'
import { bytesText } from '../../../shared/base/amounts.ts'
import { listText } from '../../../shared/base/list-text.ts'
import type { FLEET_ESTIMATE } from '../../../shared/contract/gateway-answers.ts'
import { attachedName } from '../../../shared/query/download/download-file-name.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import type { DownloadTarget } from '../../download-target.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import { shownNs } from '../common/list-output.ts'
import { Retries } from '../common/retries.ts'
import { PART_ENDING } from '../output/output-file.ts'
import { openPlace } from './download-place.ts'
import { type DownloadEnd, DownloadSession } from './download-session.ts'
import { DownloadTalk } from './download-talk.ts'

/** The options that say where a download goes, and how long it may wait. */
export interface DownloadOptions {
  readonly output?: string
  readonly split?: string
  readonly force?: boolean
  readonly wait?: string
  readonly retries: string
  readonly quiet?: boolean
}

export const STANDARD_OUTPUT = '-'

export interface DownloadRun {
  readonly options: DownloadOptions
  readonly signal: AbortSignal
}

/** Resumes what an earlier run has left. Fails with a ClientFailure, also if the file is complete but packets are not. */
export async function runDownload(
  client: GatewayClient,
  target: DownloadTarget,
  { options, signal }: DownloadRun,
): Promise<void> {
  const waitS = count('--wait', options.wait, 'seconds')
  const retriesMax = count('--retries', options.retries, 'retries') ?? 0
  const isPipe = options.output === STANDARD_OUTPUT
  if (isPipe && options.split !== undefined)
    throw usageFailure('--split writes several files; give -o <file>')
  const path = isPipe ? undefined : resolve(options.output ?? (await nameOf(client, target, signal)))
  const asked = { url: client.access.url, ...target }
  await using place = await openPlace(path, asked, { split: options.split, isForced: options.force === true })
  using talk = new DownloadTalk(client, { name: place.output.name, isQuiet: options.quiet === true })
  void talk.learnTotal(() => estimatedBytes(client, target, signal))
  talk.begin(place.output.bytes)
  const session = new DownloadSession({
    client,
    asked,
    output: place.output,
    journal: place.journal,
    watch: talk,
    signal,
    waitS,
    retries: new Retries({ max: retriesMax, signal, say: (text) => talk.say(text) }),
  })
  let isFinished = false
  try {
    const end = await session.run()
    isFinished = true
    talk.finish(summaryOf(end, place.output.files))
    refuseIncomplete(end)
  } catch (error) {
    talk.clear()
    if (path !== undefined && place.output.bytes > 0 && !isFinished) {
      const kept = `${place.output.name}${PART_ENDING} has ${bytesText(place.output.bytes)}`
      process.stderr.write(`capfleet: ${kept}; run the same command to resume\n`)
    }
    throw error
  }
}

/** The name that the gateway gives the file. Makes all checks of the download without taking a stream. */
async function nameOf(
  client: GatewayClient,
  { path, query }: DownloadTarget,
  signal: AbortSignal,
): Promise<string> {
  // The name does not depend on the list of addresses, which may be too long for HEAD.
  const short = query.filter(([name]) => name !== 'FilterAddresses')
  using head = await client
    .open(path, { method: 'HEAD', query: short, signal })
    .catch(async (error: unknown) => {
      // An answer to HEAD has no body with the reason. GET fails for the same reason, and reports it.
      using _answered = await client.open(path, { query, signal })
      throw error
    })
  const name = attachedName(head.headers.get('content-disposition') ?? '')
  if (name === undefined) throw usageFailure('the gateway gives the download no name; give -o <file>')
  return name
}

/** Expected length of an uncompressed PCAP without a filter; else undefined. */
async function estimatedBytes(
  client: GatewayClient,
  { query }: DownloadTarget,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (query.some(([name]) => name === 'Compression' || name === 'Format')) return undefined
  const { value } = await client.json<z.infer<typeof FLEET_ESTIMATE>>('/v1/estimate', { query, signal })
  return value.exact ? Number(value.bytes) : undefined
}

/** For several files the hash is that of the body formed by all of them. */
function summaryOf({ bytes, sha256, receipt }: DownloadEnd, files = 1): string {
  const where = files === 1 ? '' : ` in ${files} files`
  const nothing = receipt.packets === '0' ? ' (0 packets: nothing matched)' : ''
  return `${receipt.status}, ${bytes} bytes${nothing}${where}, sha256 ${files === 1 ? '' : 'of all together '}${sha256}`
}

function refuseIncomplete({ receipt: { status, devices, nextNs } }: DownloadEnd): void {
  if (status === 'complete') return
  if (status === 'truncated') {
    throw new ClientFailure(
      'incomplete',
      `a limit ended the download; the next packet is at ${nextNs} ns (${shownNs(nextNs)})`,
      { code: 'truncated' },
    )
  }
  if (status === 'unverified') {
    const doubts = devices.flatMap(({ device, status, error }) =>
      status !== 'unverified'
        ? []
        : (error?.detail ??
          `${device} ended the response by closing the connection, which looks the same as a cut-off response`),
    )
    throw new ClientFailure('incomplete', `packets may be missing: ${listText(doubts, '; ')}`, {
      code: status,
    })
  }
  const missing = devices.flatMap(({ device, missing: hole, corruptBlocks }) => [
    ...(hole === null ? [] : [`${device} from ${shownNs(hole.fromNs)} to ${shownNs(hole.toNs)}`]),
    ...(Number(corruptBlocks) > 0 ? [`${corruptBlocks} damaged blocks of ${device}`] : []),
  ])
  throw new ClientFailure('incomplete', `packets are missing: ${listText(missing, '; ')}`, { code: status })
}

function count(flag: string, text: string | undefined, unit: string): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw usageFailure(`${flag} must be a number of ${unit}, such as 60; got ${JSON.stringify(text)}`)
}
