/** Position of a mistake in typed text. */
import type { Problem } from '../base/ask-gateway.ts'

/**
 * As reported by the device. libpcap reports no position, but quotes an unknown word, which is located if it occurs
 * only once. For a syntax error it reports nothing, and neither does the page.
 */
export function placeOfMistake(
  typed: string,
  { position, message }: Pick<Problem, 'position' | 'message'>,
): number | undefined {
  if (position !== undefined) return position
  const reason = message.slice(message.lastIndexOf(BEFORE_REASON) + 1)
  const word = /'([^']+)'/.exec(reason)?.[1]
  if (word === undefined) return undefined
  const first = typed.indexOf(word)
  return first >= 0 && first === typed.lastIndexOf(word) ? first : undefined
}

/** What precedes it repeats the filter. */
const BEFORE_REASON = ' does not compile: '
