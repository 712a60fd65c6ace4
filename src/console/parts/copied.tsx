/** A value that a click, or Enter, copies. */
import { useState } from 'preact/hooks'
import { TEXTS } from '../texts.ts'

/** How long the button says that it did it. */
const SAID_MS = 1_500

export function Value({ text, shown = text }: { readonly text: string; readonly shown?: string }) {
  const [isCopied, copy] = useCopy()
  if (text === '') return <span class="quiet">{TEXTS.none}</span>
  return (
    <button type="button" class="value" title={`${text}: ${TEXTS.copy}`} onClick={() => copy(text)}>
      {isCopied ? TEXTS.copied : shown}
    </button>
  )
}

export function CopyButton({ text, label }: { readonly text: () => string; readonly label: string }) {
  const [isCopied, copy] = useCopy()
  return (
    <button type="button" onClick={() => copy(text())}>
      {isCopied ? TEXTS.copied : label}
    </button>
  )
}

function useCopy(): readonly [isCopied: boolean, copy: (text: string) => void] {
  const [isCopied, setCopied] = useState(false)
  const copy = (text: string): void => {
    void writeText(text).then(() => {
      setCopied(true)
      setTimeout(() => setCopied(false), SAID_MS)
    })
  }
  return [isCopied, copy]
}

/** Without https there is no clipboard but the old way. */
async function writeText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}
