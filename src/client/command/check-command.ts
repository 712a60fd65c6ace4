/** `capfleet check`: whether a pcapng file of a download is whole, without a gateway. */
import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { CapfleetError } from '../../shared/base/error.ts'
import { PcapngEnd } from '../../shared/pcap/pcapng-end.ts'
import { visible } from '../../shared/query/query-parameters.ts'
import { ClientFailure } from '../client-failure.ts'
import { STANDARD_INPUT } from './common/capture-name-of.ts'
import { statOf } from './common/existing-file.ts'
import { runClient } from './common/run-client.ts'

export function defineCheck(command: Command): void {
  command
    .argument('<file...>', 'pcapng files of downloads, unpacked; "-": standard input')
    .action((paths: readonly string[]) => runClient((signal) => checkFiles(paths, signal)))
}

/**
 * Prints what the end of each whole file says. Fails with a ClientFailure: before the first if a file does not exist,
 * after the last if one is not whole.
 */
async function checkFiles(paths: readonly string[], signal: AbortSignal): Promise<void> {
  for (const path of paths) if (path !== STANDARD_INPUT) await statOf(path)
  const cut: string[] = []
  const damaged: string[] = []
  for (const path of paths) {
    try {
      const [first, ...others] = await endOf(path, signal)
      if (first === undefined) cut.push(path)
      else print([`${path}: whole; ${first}`, ...others.map((text) => `  ${text}`)])
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
      damaged.push(error.message)
    }
  }
  const problems = [
    ...damaged,
    ...(cut.length === 0
      ? []
      : [`${cut.join(', ')}: cut: the last block of a capfleet pcapng file is missing; download it again`]),
  ]
  if (problems.length === 0) return
  const code = damaged.length > 0 ? 'file-damaged' : 'file-cut'
  throw new ClientFailure('incomplete', problems.join('; '), { code })
}

/** A file may be from anyone, and contain what a terminal would execute. */
function print(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${visible(line)}\n`).join(''))
}

/** The comments of the block that ends the file; none if it is cut. Fails with device-protocol if it is damaged. */
async function endOf(path: string, signal: AbortSignal): Promise<readonly string[]> {
  const end = new PcapngEnd(path)
  const stream = path === STANDARD_INPUT ? process.stdin : createReadStream(path, { signal })
  for await (const chunk of stream) end.feed(chunk as Uint8Array)
  return end.comments ?? []
}
