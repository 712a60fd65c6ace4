/** A word of help that opens where it stands: a finger cannot point at something without touching it. */
import { TEXTS } from '../texts.ts'

export function Hint({ about, text }: { readonly about: string; readonly text: string }) {
  return (
    <details class="hint">
      <summary aria-label={`${TEXTS.help}: ${about}`}>?</summary>
      <p>{text}</p>
    </details>
  )
}
