/** The flags of a download: those of its parameters, and `--last 15m` for the time until now. */

import { createReadStream } from 'node:fs'
import { type Command, Option } from 'commander'
import { ADDRESS_LIST_CHARACTERS_MAX, addressListType } from '../../../shared/query/filter/address-list.ts'
import type { ParameterType } from '../../../shared/query/query-parameters.ts'
import { isRelativeTime } from '../../../shared/query/time/query-time.ts'
import { usageFailure } from '../../client-failure.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import { FILE_FLAGS, type GivenOptions, type QueryFlags } from './query-flags.ts'

export interface LastOption {
  readonly last?: string
}

/** The parameters that select packets, with the texts of the files that flags name. Fails with a ClientFailure. */
export async function packetQuery(
  flags: QueryFlags,
  options: LastOption & GivenOptions,
): Promise<QueryPairs> {
  const pairs = withLast(flags.query(options), options).map(async ([name, value]) => {
    return [name, name in FILE_FLAGS ? await addressesIn(value, '--addresses', ADDRESS_LIST) : value] as const
  })
  return await Promise.all(pairs)
}

const STANDARD_INPUT = '-'
/** Checked before the file is read as a list. */
const FILE_BYTES_MAX = 4 * ADDRESS_LIST_CHARACTERS_MAX

/** The canonical list of the addresses in the file that the flag names. Fails with a ClientFailure. */
export async function addressesIn(file: string, flag: string, type: ParameterType<string>): Promise<string> {
  const place = file === STANDARD_INPUT ? 'standard input' : file
  const text = await readText(file, flag)
  try {
    return type.read(text, `${flag}: ${place}`, {}) ?? ''
  } catch (error) {
    throw usageFailure((error as Error).message)
  }
}

async function readText(file: string, flag: string): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    const source = file === STANDARD_INPUT ? process.stdin : createReadStream(file)
    for await (const piece of source as AsyncIterable<Buffer>) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > FILE_BYTES_MAX) break
    }
  } catch (error) {
    throw usageFailure(unreadable(file, flag, error as NodeJS.ErrnoException))
  }
  if (bytes > FILE_BYTES_MAX) throw usageFailure(`${flag}: ${file} is longer than ${FILE_BYTES_MAX} bytes`)
  return Buffer.concat(pieces).toString('utf8')
}

function unreadable(file: string, flag: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EISDIR') return `${flag}: ${file} is a folder; name a file in it`
  if (code === 'EACCES') return `${flag}: you may not read ${file}`
  if (code !== 'ENOENT') return `${flag}: ${message}`
  return isAddressList(file)
    ? `${flag} takes a file, and ${file} does not exist; for single addresses write ${SINGLE[flag] ?? ''}, or pipe them: echo ${file} | capfleet ... ${flag} -`
    : `${flag}: the file ${file} does not exist`
}

/** What to write instead of a flag with an address. */
const SINGLE: Readonly<Record<string, string>> = {
  '--addresses': "--bpf 'host ...'",
  '--file': 'capfleet seen <address>',
}

function isAddressList(text: string): boolean {
  try {
    return ADDRESS_LIST.read(text, '', {}) !== undefined
  } catch {
    return false
  }
}

const ADDRESS_LIST = addressListType()

/** The headings of the help, in their order. */
export const EVERYDAY = 'Everyday options:'
export const FILES_AND_WAITING = 'Files and waiting:'
const EVERYDAY_NAMES: ReadonlySet<string> = new Set([
  'Device',
  'TSBegin',
  'TSEnd',
  'FilterBPF',
  'FilterAddresses',
])
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'More filters:': ['FilterBPFDecap', 'FilterFrame', 'FilterPort', 'FilterRE'],
  'Limits:': ['MaxPackets', 'MaxBytes', 'TSMax', 'Slice'],
  'Times and clocks:': ['TSUnit', 'TSZone', 'Start', 'Stop', 'TSMode', 'TSResolution'],
  'Several devices:': ['OnError', 'Dedup', 'Align'],
}

function groupOf(name: string): string {
  if (EVERYDAY_NAMES.has(name)) return EVERYDAY
  const found = Object.entries(GROUPS).find(([, names]) => names.includes(name))
  return found?.[0] ?? FILES_AND_WAITING
}

/** Adds the flags that select packets. The first ones added come first in the help. */
export function addDownloadFlags(command: Command, flags: QueryFlags): void {
  command.argument('[capture]', 'the capture; without it: a time range of the selected devices')
  command.addOption(lastOption().helpGroup(EVERYDAY))
  flags.addTo(command, groupOf)
}

export function lastOption(): Option {
  return new Option(
    '--last <time>',
    'the time until now, such as 90s, 15m, 2h, 1d or 1w: --begin -<time> --end now',
  )
}

/** The query with the range of --last. Fails with a ClientFailure. */
export function withLast(query: QueryPairs, { last }: LastOption): QueryPairs {
  if (last === undefined) return query
  const other = query.find(([name]) => name === 'TSBegin' || name === 'TSEnd')
  if (other !== undefined) throw usageFailure('--last replaces --begin and --end; give one or the other')
  if (!isRelativeTime(`-${last}`))
    throw usageFailure(
      `--last must be a number with a unit (s, m, h, d, w), such as 15m; got ${JSON.stringify(last)}${meantLast(last)}`,
    )
  return [['TSBegin', `-${last}`], ['TSEnd', 'now'], ...query]
}

const NUMBER_AND_UNIT = /^(\d{1,6}) ?([a-z]*)$/i

/** The value that was probably meant: "5" minutes, "5 min", "1Hour". */
function meantLast(last: string): string {
  const [, count, unit = ''] = NUMBER_AND_UNIT.exec(last.trim()) ?? []
  const letter = unit === '' ? 'm' : unit.charAt(0).toLowerCase()
  const meant = `${count}${letter}`
  return count !== undefined && isRelativeTime(`-${meant}`) ? `; did you mean ${meant}?` : ''
}
