/** A button whose action has to be confirmed, and where something may have to be filled in for it. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAction } from '../base/asked.ts'
import { Dialog } from './dialog.tsx'

interface ConfirmButtonProps {
  readonly label: string
  /** What it is about, beside the label in the question's title. */
  readonly subject?: string
  readonly isDangerous?: boolean
  readonly action: () => Promise<void>
  /** The question. */
  readonly children: ComponentChildren
}

export function ConfirmButton({ label, subject, isDangerous = false, action, children }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false)
  const { isBusy, failure, run } = useAction()
  const confirmed = async (): Promise<void> => {
    await action()
    setAsking(false)
  }
  return (
    <>
      <button type="button" onClick={() => setAsking(true)}>
        {label}
      </button>
      {isAsking ? (
        <Dialog
          title={subject === undefined ? label : `${label}: ${subject}`}
          action={label}
          isDangerous={isDangerous}
          isBusy={isBusy}
          failure={failure}
          onAnswer={() => run(confirmed)}
          onClose={() => setAsking(false)}
        >
          {children}
        </Dialog>
      ) : null}
    </>
  )
}
