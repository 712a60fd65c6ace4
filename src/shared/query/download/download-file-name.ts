/** File names of downloads, and their form in the header Content-Disposition (RFC 6266). */
import { CAPTURE_NAME } from '../capture-name-rule.ts'
import { rfc3339Of } from '../time/query-time.ts'
import type { DownloadQuery } from './download-query.ts'
import { fileEndingOf } from './query-values.ts'

/**
 * The file name of a download, from a device or the gateway: the capture, or the place whose time range it is; plus
 * the times, except for a whole capture. `captureName` is the full name if known. The result is a valid
 * file name on any system.
 */
export function downloadFileName(
  { kind, beginNs, endNs, format, compression }: DownloadQuery,
  { captureName = '', place }: { readonly captureName: string | undefined; readonly place: string },
): string {
  const ending = fileEndingOf({ format, compression })
  const range = kind === 'single' ? '' : `_${fileTime(beginNs)}-${fileTime(endNs)}`
  return `${kind === 'timerange' ? place : fileNameOf(captureName)}${range}${ending}`
}

/**
 * "20261102T090100Z": UTC without colons, which some systems refuse in names. Exact: a fraction of a second has three,
 * six or nine digits. TSBegin and TSEnd take the result.
 */
export function fileTime(ns: bigint): string {
  const [seconds = '', digits = ''] = rfc3339Of(ns).replaceAll(/[-:Z]/g, '').split('.')
  const fraction = digits.replace(/(?:000){1,3}$/, '')
  return `${seconds}${fraction === '' ? '' : `.${fraction}`}Z`
}

/**
 * Maximum length of the capture's part. With times and extensions the name stays below the 255 bytes that file systems
 * allow.
 */
const NAME_BYTES_MAX = 128

/** Characters that have a special meaning on some system, and invisible ones. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\:*?"<>|]/gu
/** A name with such a beginning is hidden, or taken for an option. */
const UNSAFE_BEGIN = /^[\s.-]/u

function fileNameOf(captureName: string): string {
  if (CAPTURE_NAME.test(captureName)) return captureName
  const name = captureName.replace(UNSAFE, '_').replace(UNSAFE_BEGIN, '_')
  // Drops a character that was cut in the middle.
  const decoder = new TextDecoder()
  return decoder.decode(Buffer.from(name).subarray(0, NAME_BYTES_MAX), { stream: true })
}

/**
 * The same file name in letters, digits, dots, hyphens and underscores, which needs no escaping in headers, addresses
 * and keys.
 */
export function plainFileName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]/gu, '_')
  return /^[A-Za-z0-9]/.test(plain) ? plain : `capture${plain}`
}

/** The value of Content-Disposition for a file of this name. */
export function attachment(name: string): string {
  const plain = plainFileName(name)
  return `attachment; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${extended(name)}`}`
}

/** Percent-encoded for RFC 8187, which allows fewer characters than addresses do. */
function extended(name: string): string {
  const escaped = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(name).replace(/['()*]/g, escaped)
}

/** The file name in Content-Disposition, or undefined if it is not valid in a folder. */
export function attachedName(disposition: string): string | undefined {
  const [, extendedName] = /;\s?filename\*=UTF-8''([^;\s]+)/i.exec(disposition) ?? []
  const [, plain] = /;\s?filename="([^"]+)"/i.exec(disposition) ?? []
  const name = (extendedName === undefined ? undefined : decoded(extendedName)) ?? plain
  return name === undefined || /[/\\\p{Cc}]|^\./u.test(name) ? undefined : name
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
