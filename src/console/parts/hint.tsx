/** A short help text that opens in place: on a touch screen there is no hovering. */
import { TEXTS } from '../texts.ts'

export function Hint({ about, text }: { readonly about: string; readonly text: string }) {
  return (
    <details class="hint">
      <summary aria-label={`${TEXTS.help}: ${about}`}>?</summary>
      <p>{text}</p>
    </details>
  )
}
