/** `capfleet check`: whether a pcapng file of a download is whole, without a gateway. */
import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { CapfleetError } from '../../shared/base/error.ts'
import { PcapngEnd } from '../../shared/pcap/pcapng-end.ts'
import { ClientFailure } from '../client-failure.ts'
import { STANDARD_INPUT } from './common/capture-name-of.ts'
import { runClient } from './common/run-client.ts'

export function defineCheck(command: Command): void {
  command
    .argument('<file...>', 'pcapng files of downloads, unpacked; "-": standard input')
    .action((paths: readonly string[]) => runClient((signal) => checkFiles(paths, signal)))
}

/** Prints what the end of each whole file says. Fails with a ClientFailure, after the last, if one is not whole. */
async function checkFiles(paths: readonly string[], signal: AbortSignal): Promise<void> {
  const cut: string[] = []
  for (const path of paths) {
    const [first, ...others] = await endOf(path, signal)
    if (first === undefined) {
      cut.push(path)
      continue
    }
    process.stdout.write([`${path}: whole; ${first}`, ...others.map((text) => `  ${text}`), ''].join('\n'))
  }
  if (cut.length === 0) return
  throw new ClientFailure(
    'incomplete',
    `${cut.join(', ')}: cut, because the block is missing that ends a pcapng file of capfleet; download it again`,
    { code: 'file-cut' },
  )
}

/** The comments of the block that ends the file; none if it is cut. */
async function endOf(path: string, signal: AbortSignal): Promise<readonly string[]> {
  const end = new PcapngEnd(path)
  const stream = path === STANDARD_INPUT ? process.stdin : createReadStream(path, { signal })
  try {
    for await (const chunk of stream) end.feed(chunk as Uint8Array)
  } catch (error) {
    if (error instanceof CapfleetError)
      throw new ClientFailure('incomplete', error.message, { code: 'file-damaged', cause: error })
    throw error
  }
  return end.comments ?? []
}
