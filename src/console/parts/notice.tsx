/** Shown instead of a value: loading, a failure, or that there is nothing. */
import type { ComponentChildren } from 'preact'
import { messageOf, Problem } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'
import { Value } from './copied.tsx'

export function Waiting({ text = TEXTS.loading }: { readonly text?: string }) {
  return (
    <p class="waiting" role="status">
      {text}
    </p>
  )
}

export function Failure({ failure, again }: { readonly failure: unknown; readonly again?: () => void }) {
  if (failure === undefined) return null
  return (
    <div class="failure" role="alert">
      <span>{messageOf(failure)}</span>
      {failure instanceof Problem && failure.status > 0 ? <code>{failure.code}</code> : null}
      {failure instanceof Problem && failure.requestId !== undefined ? (
        <Value text={failure.requestId} shown={`${TEXTS.request} ${failure.requestId.slice(0, 8)}`} hasSign />
      ) : null}
      {again === undefined ? null : (
        <button type="button" onClick={again}>
          {TEXTS.again}
        </button>
      )}
    </div>
  )
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>
}
