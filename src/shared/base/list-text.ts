/** How many entries of a list a sentence names. */
const NAMED_MAX = 4

/** "a, b, c, d and 496 more": a sentence stays short, however many devices it is about. */
export function listText(entries: readonly string[], separator = ', '): string {
  const more = entries.length - NAMED_MAX
  if (more <= 0) return entries.join(separator)
  return `${entries.slice(0, NAMED_MAX).join(separator)} and ${more} more`
}

export interface NamedFailure {
  readonly device: string
  readonly message: string
}

/** Each message once, after the devices that it is from. Many messages name their device themselves. */
export function failuresText(failures: readonly NamedFailure[]): string {
  const texts = [...Map.groupBy(failures, ({ message }) => message)].map(([message, some]) => {
    const isNamed = some.every(({ device }) => message.includes(`device ${device}`))
    return isNamed ? message : `${listText(some.map(({ device }) => device))}: ${message}`
  })
  return listText(texts, '; ')
}
