/** What downloads are called as files, and how the header Content-Disposition says it (RFC 6266). */
import { CAPTURE_NAME } from './capture-name-rule.ts'
import type { DownloadQuery } from './download-query.ts'
import { ENCODING_FILES, encodingOf } from './query-values.ts'

/**
 * What a download's file is called, at a device and at the gateway: the capture, or the
 * place whose time range it is; the times in nanoseconds, save for a whole capture. `captureName` is the full name
 * where it is known. Any system can have a file of that name.
 */
export function downloadFileName(
  { kind, beginNs, endNs, compression }: DownloadQuery,
  { captureName = '', place }: { readonly captureName: string | undefined; readonly place: string },
): string {
  const { ending } = ENCODING_FILES[encodingOf(compression)]
  const range = kind === 'single' ? '' : `_${beginNs}-${endNs}`
  return `${kind === 'timerange' ? place : fileNameOf(captureName)}${range}${ending}`
}

/** Of the capture's name. With times and endings it stays below the 255 bytes that file systems allow. */
const NAME_BYTES_MAX = 128

/** What some system reads as more than a letter of a name, and characters that are not seen. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\:*?"<>|]/gu
/** A name that begins so is hidden, or taken for an option. */
const UNSAFE_BEGIN = /^[\s.-]/u

function fileNameOf(captureName: string): string {
  if (CAPTURE_NAME.test(captureName)) return captureName
  const name = captureName.replace(UNSAFE, '_').replace(UNSAFE_BEGIN, '_')
  // A letter that is cut in its middle is left out.
  const decoder = new TextDecoder()
  return decoder.decode(Buffer.from(name).subarray(0, NAME_BYTES_MAX), { stream: true })
}

/** The same file name in letters, digits, dots, hyphens and underscores: for headers, addresses and keys as it is. */
export function plainFileName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]/gu, '_')
  return /^[A-Za-z0-9]/.test(plain) ? plain : `capture${plain}`
}

/** The value of Content-Disposition that offers a file of this name. */
export function attachment(name: string): string {
  const plain = plainFileName(name)
  return `attachment; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${extended(name)}`}`
}

/** Percent-encoded for RFC 8187, which allows fewer characters than addresses do. */
function extended(name: string): string {
  const escaped = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(name).replace(/['()*]/g, escaped)
}

/** The file name that Content-Disposition gives; undefined where it is none that a folder may have. */
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
