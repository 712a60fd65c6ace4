/** The tour of the demo: one question at a time, above whatever view is shown. */
import { changed, currentState, formatPageState, showState, usePageState } from '../base/page-url.ts'
import { TEXTS } from '../texts.ts'
import { TOUR_QUESTIONS } from './tour-questions.ts'

export function TourPanel({ onClose }: { readonly onClose: () => void }) {
  const { tour: texts } = TEXTS
  const { values } = usePageState()
  const at = shownIndex(values.tour)
  const question = TOUR_QUESTIONS[at]
  if (question === undefined) return null
  const { view, values: shown } = question.show
  const go = (index: number): void =>
    showState(changed(currentState(), { tour: String(index + 1) }), { isStep: true })
  return (
    <aside class="tour" aria-label={texts.title}>
      <div class="tour-head">
        <span class="quiet">{texts.step(at + 1, TOUR_QUESTIONS.length)}</span>
        <h2>{question.question}</h2>
        <button type="button" class="plain" onClick={onClose}>
          {texts.close}
        </button>
      </div>
      <p>{question.task}</p>
      {question.filter === undefined ? null : (
        <p>
          FilterBPF <code>{question.filter}</code>
        </p>
      )}
      <div class="actions">
        <a
          class="button primary"
          href={formatPageState({ view, values: { ...shown, tour: String(at + 1) } })}
        >
          {texts.show}
        </a>
        <button type="button" disabled={at === 0} onClick={() => go(at - 1)}>
          {texts.back}
        </button>
        <button type="button" disabled={at === TOUR_QUESTIONS.length - 1} onClick={() => go(at + 1)}>
          {texts.next}
        </button>
        <a class="button" href="docs/get-started/demo.html#five-questions" target="_blank" rel="noopener">
          {texts.commands}
        </a>
      </div>
      <details key={at}>
        <summary>{texts.answer}</summary>
        <p>{question.answer}</p>
      </details>
    </aside>
  )
}

/** Index of the question that the address names; the first one if it names none. */
function shownIndex(text: string | undefined): number {
  const index = Number(text ?? '1') - 1
  return TOUR_QUESTIONS[index] === undefined ? 0 : index
}
