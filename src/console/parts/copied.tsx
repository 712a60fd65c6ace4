/** A value that a click, or Enter, copies. */
import { useState } from 'preact/hooks'
import { TEXTS } from '../texts.ts'

/** How long the button says that it did it. */
const SAID_MS = 1_500

interface ValueProps {
  readonly text: string
  readonly shown?: string
  /** Whether a sign says that it can be copied: for what people carry elsewhere. */
  readonly hasSign?: boolean
}

export function Value({ text, shown = text, hasSign = false }: ValueProps) {
  const [said, copy] = useCopy()
  if (text === '') return <span class="quiet">{TEXTS.none}</span>
  return (
    <button type="button" class="value" title={`${text}: ${TEXTS.copy}`} onClick={() => copy(text)}>
      {said ?? shown}
      {hasSign ? <CopySign /> : null}
    </button>
  )
}

/** Beside a name that is a link, or a title. */
export function CopyBeside({ text }: { readonly text: string }) {
  const [said, copy] = useCopy()
  const label = `${TEXTS.copy} ${text}`
  return (
    <button
      type="button"
      class="value beside"
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

/** Whether it could. Without https, or where the browser refuses it, there is no clipboard but the old way. */
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
  // Beside an open dialog nothing can be selected.
  const place = focused?.closest('dialog') ?? document.body
  place.append(field)
  field.select()
  const isWritten = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isWritten
}
