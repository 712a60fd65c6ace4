/** A question that stands before the page until it is answered. Escape and the browser's "back" mean no. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { TEXTS } from '../texts.ts'

interface DialogProps {
  readonly title: string
  /** undefined: it is done, and there is nothing left to answer. */
  readonly action: string | undefined
  readonly isDangerous?: boolean
  readonly isBusy: boolean
  readonly failure: string | undefined
  readonly onAnswer: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({
  title,
  action,
  isDangerous = false,
  isBusy,
  failure,
  onAnswer,
  onClose,
  children,
}: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} onClose={onClose} aria-labelledby="dialog-title">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onAnswer()
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={onClose}>
            {action === undefined ? TEXTS.close : TEXTS.cancel}
          </button>
          {action === undefined ? null : (
            <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy}>
              {isBusy ? TEXTS.control.busy : action}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}
