/** The full name of a capture created by us: safe in paths, headers and addresses without escaping. */
export const CAPTURE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** CAPTURE_NAME in words, for messages: "<parameter> <rule>". */
export const CAPTURE_NAME_RULE =
  'must be 1 to 128 letters, digits, dots, hyphens or underscores, beginning with a letter or digit'

/** Longer names are cut when they are made from those of files. */
const SUGGESTED_NAME_MAX = 64

export interface SuggestedName {
  /** Valid as the full name of a capture, or empty if nothing of the file's name is left. */
  readonly name: string
  /** Whether letters of other alphabets are lost, so that the names of different files may be equal. */
  readonly isLossy: boolean
}

/**
 * A capture name for a file: "dump.2026.pcapng.gz" -> "dump.2026". Accents are removed, and other characters not allowed
 * in a capture name become "_".
 */
export function nameForFile(file: string): SuggestedName {
  const stem = file
    .replace(/\.(gz|zst|zstd|xz|lz4|bz2)$/i, '')
    .replace(/\.(pcap|pcapng|cap|dmp|ntar)$/i, '')
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
  const name = stem
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, SUGGESTED_NAME_MAX)
  return { name, isLossy: name === '' || !/^\p{ASCII}*$/u.test(stem) }
}

/** A name from nameForFile() with an ending that makes it different, still no longer than that of a file. */
export function endedName(name: string, ending: string): string {
  return `${name.slice(0, SUGGESTED_NAME_MAX - ending.length - 1) || 'import'}-${ending}`
}

/** The name under which a capture is started; the start time is appended to it. */
export const BASE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const BASE_NAME_RULE =
  '1 to 64 letters, digits, dots, hyphens or underscores, beginning with a letter or digit'

/**
 * Maximum length of a capture name in requests: third-party devices have names with blanks, slashes and arbitrary
 * letters.
 */
export const ASKED_NAME_BYTES_MAX = 1_024
export const ASKED_NAME_RULE = `must be 1 to ${ASKED_NAME_BYTES_MAX} bytes of UTF-8 without control characters`

/** Most file systems allow 255. */
export const FILE_NAME_BYTES_MAX = 255
const FILE_NAME_RULE = `must be the name of a file, of 1 to ${FILE_NAME_BYTES_MAX} bytes without "/"`

/** They show the characters after them in another order, so that "gpj.exe" looks like "exe.jpg". */
const REORDERS = /[\u202a-\u202e\u2066-\u2069]/u

/**
 * Why this cannot be the name of one file in a folder, for messages: "<parameter> <mistake>"; undefined if it can.
 * `quoted` is the name as messages show it.
 */
export function mistakeInFileName(name: string, quoted: string): string | undefined {
  const [reordering] = REORDERS.exec(name) ?? []
  if (reordering !== undefined) {
    const point = `U+${reordering.charCodeAt(0).toString(16).toUpperCase()}`
    return `must not contain ${point}, a control character that shows the name in another order; rename the file`
  }
  const isShort = name !== '' && Buffer.byteLength(name) <= FILE_NAME_BYTES_MAX
  const isName = isShort && name !== '.' && name !== '..' && !/[/\p{Cc}]/u.test(name) && name.isWellFormed()
  return isName ? undefined : `${FILE_NAME_RULE}, got ${quoted}`
}

/** Whether a capture of this name can be requested, if a device has one. */
export function isAskedName(name: string): boolean {
  const isShort = name !== '' && Buffer.byteLength(name) <= ASKED_NAME_BYTES_MAX
  return isShort && name.isWellFormed() && !/\p{Cc}/u.test(name)
}
