/** A parameter as a field: its values, its default, what it does, and what the gateway thinks of what was typed. */
import { useRef } from 'preact/hooks'
import type { Parameter } from '../../query/query-parameters.ts'
import type { Problem } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'
import { placeOfMistake } from './mistake-place.ts'

interface ParameterFieldProps {
  readonly parameter: Parameter
  readonly value: string
  readonly problem: Problem | undefined
  readonly onChange: (value: string) => void
}

export function ParameterField({ parameter, value, problem, onChange }: ParameterFieldProps) {
  const { name, says, type } = parameter
  const id = `parameter-${name}`
  const shared = {
    id,
    value,
    'aria-invalid': problem !== undefined,
    'aria-describedby': problem === undefined ? `${id}-says` : `${id}-problem`,
    spellcheck: false,
  }
  return (
    <div class="field">
      <label for={id}>
        {name}
        {type.unit === undefined ? null : <span class="quiet"> {type.unit}</span>}
      </label>
      {type.schema.enum === undefined ? (
        <input
          {...shared}
          class="mono"
          inputMode={type.schema.type === 'integer' ? 'numeric' : 'text'}
          placeholder={parameter.example ?? defaultText(parameter)}
          autocomplete="off"
          autocapitalize="none"
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <select {...shared} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{defaultText(parameter)}</option>
          {type.schema.enum.map((word) => (
            <option key={word} value={word}>
              {word}
            </option>
          ))}
        </select>
      )}
      <FieldProblem id={`${id}-problem`} value={value} problem={problem} />
      <span id={`${id}-says`} class="says">
        {says}
      </span>
    </div>
  )
}

interface FieldProblemProps {
  readonly id: string
  readonly value: string
  readonly problem: Problem | undefined
}

/** The text again, with a mark below the character at fault, for as long as it is the text that the problem is about. */
export function FieldProblem({ id, value, problem }: FieldProblemProps) {
  const about = useRef({ problem, value })
  if (about.current.problem !== problem) about.current = { problem, value }
  if (problem === undefined) return null
  const position = about.current.value === value ? placeOfMistake(value, problem) : undefined
  return (
    <div id={id} class="field-problem" role="alert">
      {position === undefined ? null : (
        <pre data-position={position}>
          {value}
          {'\n'}
          {' '.repeat(position)}^ {TEXTS.download.checkHere}
        </pre>
      )}
      <span>{problem.message}</span>
    </div>
  )
}

function defaultText({ defaultSays, default: value, type }: Parameter): string {
  const text = value === undefined ? '' : type.write(value)
  return defaultSays ?? (text === '' ? TEXTS.none : text)
}
