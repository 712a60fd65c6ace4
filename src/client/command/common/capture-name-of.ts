import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { CapfleetError } from '../../../shared/base/error.ts'

/** In place of the path of a file. */
export const STANDARD_INPUT = '-'

/**
 * "dump.2026.pcapng.gz" -> "dump.2026"; accents are removed, and other characters not allowed in a capture name become
 * "_". If letters of other alphabets are lost, or nothing is left, eight digits of a hash keep the names of different
 * files different.
 */
export function captureNameOf(path: string): string {
  if (path === STANDARD_INPUT) {
    throw new CapfleetError('bad-parameter', 'standard input has no name; give the capture one with --name')
  }
  const file = basename(path)
  const stem = file
    .replace(/\.(gz|zst|zstd|xz|lz4|bz2)$/i, '')
    .replace(/\.(pcap|pcapng|cap|dmp|ntar)$/i, '')
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
  const name = stem
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, CAPTURE_NAME_MAX)
  if (name !== '' && /^\p{ASCII}*$/u.test(stem)) return name
  const hash = createHash('sha256').update(file).digest('hex').slice(0, 8)
  return `${name.slice(0, CAPTURE_NAME_MAX - hash.length - 1) || 'import'}-${hash}`
}

const CAPTURE_NAME_MAX = 64
