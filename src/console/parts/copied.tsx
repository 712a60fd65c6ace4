/** A value that is copied by a click, or Enter. */
import { useState } from 'preact/hooks'
import { TEXTS } from '../texts.ts'

/** How long the button confirms the copy. */
const SAID_MS = 1_500

interface ValueProps {
  readonly text: string
  readonly shown?: string
  /** Whether a symbol shows that it can be copied, for values that people use elsewhere. */
  readonly hasSign?: boolean
  /** Whether Tab stops there. Not in long lists whose values are also shown elsewhere. */
  readonly isStop?: boolean
}

export function Value({ text, shown = text, hasSign = false, isStop = true }: ValueProps) {
  const [said, copy] = useCopy()
  if (text === '') return <span class="quiet">{TEXTS.none}</span>
  return (
    <button
      type="button"
      class="value"
      tabIndex={isStop ? undefined : -1}
      title={`${text}: ${TEXTS.copy}`}
      onClick={() => copy(text)}
    >
      {said ?? shown}
      {hasSign ? <CopySign /> : null}
    </button>
  )
}

/** For use next to a name that is a link, or a title. */
export function CopyBeside({ text, isStop = true }: Pick<ValueProps, 'text' | 'isStop'>) {
  const [said, copy] = useCopy()
  const label = `${TEXTS.copy} ${text}`
  return (
    <button
      type="button"
      class="value beside"
      tabIndex={isStop ? undefined : -1}
      aria-label={said ?? label}
      title={label}
      onClick={() => copy(text)}
    >
      {said ?? <CopySign />}
    </button>
  )
}

function CopySign() {
  return (
    <svg class="copy-sign" viewBox="0 0 12 12" aria-hidden="true">
      <rect x="1.5" y="1.5" width="6" height="6" />
      <rect x="4.5" y="4.5" width="6" height="6" />
    </svg>
  )
}

export function CopyButton({ text, label }: { readonly text: () => string; readonly label: string }) {
  const [said, copy] = useCopy()
  return (
    <button type="button" onClick={() => copy(text())}>
      {said ?? label}
    </button>
  )
}

function useCopy(): readonly [said: string | undefined, copy: (text: string) => void] {
  const [said, setSaid] = useState<string | undefined>()
  const copy = (text: string): void => {
    void writeText(text).then((isWritten) => {
      setSaid(isWritten ? TEXTS.copied : TEXTS.notCopied)
      setTimeout(() => setSaid(undefined), SAID_MS)
    })
  }
  return [said, copy]
}

/** Returns whether it succeeded. Without https, or if the browser refuses, only the old method is available. */
async function writeText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return writeBySelection(text)
  }
}

function writeBySelection(text: string): boolean {
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  // While a dialog is open, nothing outside it can be selected.
  const place = focused?.closest('dialog') ?? document.body
  place.append(field)
  field.select()
  const isWritten = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isWritten
}
