/** Where in what was typed a mistake is. */
import type { Problem } from '../base/ask-gateway.ts'

/**
 * As the device tells it; libpcap tells no place, but quotes the word that it does not know, which is told by itself
 * where it stands once. Of an error of syntax it says nothing, and so does the page.
 */
export function placeOfMistake(
  typed: string,
  { position, message }: Pick<Problem, 'position' | 'message'>,
): number | undefined {
  if (position !== undefined) return position
  const word = /'([^']+)'/.exec(message)?.[1]
  if (word === undefined) return undefined
  const first = typed.indexOf(word)
  return first >= 0 && first === typed.lastIndexOf(word) ? first : undefined
}
