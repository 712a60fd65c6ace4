/** A caller's own text is returned in a header: long enough to find a typing mistake, too short to do harm. */
const NAME_MAX = 64
const ALL_BYTES_MAX = 1_024
const MORE = '...'

/**
 * The names of ignored parameters as the value of Capfleet-Ignored: percent-encoded, each truncated to 64 characters,
 * at most 1,024 bytes in total; "..." follows if something was left out.
 */
export function ignoredNames(names: readonly string[]): string {
  const shown: string[] = []
  let bytes = 0
  for (const name of names) {
    const text = headerText(name)
    bytes += text.length + ', '.length
    if (bytes > ALL_BYTES_MAX - MORE.length) return [...shown, MORE].join(', ')
    shown.push(text)
  }
  return shown.join(', ')
}

/** A parameter's name is arbitrary text; a header may only contain visible ASCII. */
function headerText(name: string): string {
  const text = encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed())
  return name.length > NAME_MAX ? text + MORE : text
}

/** The form of Capfleet-Ignored of our own programs: names are percent-encoded. */
const HEADER = /^[!-+\--~]+(, [!-+\--~]+)*$/

/** The names in an untrusted Capfleet-Ignored; empty if it is malformed or too long. */
export function parseIgnoredNames(header: string | undefined): readonly string[] {
  if (header === undefined || header.length > ALL_BYTES_MAX || !HEADER.test(header)) return []
  return header.split(', ').map(decoded)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
