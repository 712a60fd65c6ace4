/** The field for a display filter. A mistake is shown in Wireshark's words, and the list stays as it was. */
import { TEXTS } from '../texts.ts'

interface DisplayFilterProps {
  readonly filter: string
  readonly mistake: string | undefined
  readonly onShow: (filter: string) => void
}

const PROBLEM = 'display-filter-problem'

export function DisplayFilter({ filter, mistake, onShow }: DisplayFilterProps) {
  const { dissection: texts } = TEXTS
  return (
    <search>
      <form
        class="controls"
        onSubmit={(event) => {
          event.preventDefault()
          onShow(String(new FormData(event.currentTarget).get('filter') ?? '').trim())
        }}
      >
        <input
          type="search"
          name="filter"
          class="mono display-filter"
          key={filter}
          defaultValue={filter}
          aria-label={texts.filter}
          placeholder={texts.filterExample}
          aria-invalid={mistake === undefined ? undefined : 'true'}
          aria-describedby={mistake === undefined ? undefined : PROBLEM}
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">{texts.apply}</button>
        {filter === '' ? null : (
          <button type="button" onClick={() => onShow('')}>
            {texts.clear}
          </button>
        )}
      </form>
      {mistake === undefined ? null : (
        <p id={PROBLEM} class="bad" role="alert">
          {mistake}
        </p>
      )}
    </search>
  )
}
