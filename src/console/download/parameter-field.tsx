/** A parameter as a field: its values, default and description, and the gateway's verdict on what was typed. */
import { useRef } from 'preact/hooks'
import type { Parameter } from '../../shared/query/query-parameters.ts'
import type { Problem } from '../base/ask-gateway.ts'
import { inPageWords, PARAMETER_LABELS } from '../parameter-labels.ts'
import { TEXTS } from '../texts.ts'
import { placeOfMistake } from './mistake-place.ts'

interface ParameterFieldProps {
  readonly parameter: Parameter
  readonly value: string
  readonly problem: Problem | undefined
  /** No placeholder is shown: a restriction must not appear to be set. */
  readonly isRestriction?: boolean
  readonly isRequired?: boolean
  readonly onChange: (value: string) => void
}

export function ParameterField(props: ParameterFieldProps) {
  const { parameter, value, problem } = props
  const { name, says, type } = parameter
  const id = `parameter-${name}`
  return (
    <div class={isSwitch(parameter) ? 'field switch' : 'field'}>
      <label for={id}>
        <Label name={name} />
        {type.unit === undefined ? null : <span class="quiet"> {type.unit}</span>}
      </label>
      <Control {...props} />
      <FieldProblem id={`${id}-problem`} value={value} problem={problem} />
      <span id={`${id}-says`} class="says">
        {inPageWords(says)}
      </span>
    </div>
  )
}

/** What the user calls it, and the name in the API for those who write requests. */
function Label({ name }: { readonly name: string }) {
  const label = PARAMETER_LABELS[name]
  if (label === undefined) return <>{name}</>
  return (
    <>
      {label} <code class="api-name">{name}</code>
    </>
  )
}

/** Longer texts are lists, which have several lines. */
const LINE_CHARACTERS_MAX = 65_536

function Control({ parameter, value, problem, isRestriction, isRequired, onChange }: ParameterFieldProps) {
  const { name, type } = parameter
  const id = `parameter-${name}`
  const shared = {
    id,
    'aria-invalid': problem !== undefined,
    'aria-describedby': problem === undefined ? `${id}-says` : `${id}-problem`,
  }
  if (isSwitch(parameter))
    return (
      <input
        {...shared}
        type="checkbox"
        checked={isOn(parameter, value)}
        onChange={(event) => onChange(event.currentTarget.checked ? type.write(true) : '')}
      />
    )
  if (type.schema.enum !== undefined)
    return (
      <select {...shared} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{defaultText(parameter)}</option>
        {type.schema.enum.map((word) => (
          <option key={word} value={word}>
            {word}
          </option>
        ))}
      </select>
    )
  // An input field would join pasted lines.
  if ((type.schema.maxLength ?? 0) > LINE_CHARACTERS_MAX)
    return (
      <textarea
        {...shared}
        class="mono"
        rows={2}
        value={value}
        placeholder={isRestriction === true ? '' : placeholderOf(parameter)}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    )
  return (
    <input
      {...shared}
      class="mono"
      value={value}
      inputMode={type.schema.type === 'integer' ? 'numeric' : 'text'}
      placeholder={isRestriction === true ? '' : placeholderOf(parameter)}
      required={isRequired === true}
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** Whether its default is off and it can be turned on. */
function isSwitch({ default: value }: Parameter): boolean {
  return value === false
}

/** A link may contain a different word than the box writes, or an unknown one. */
function isOn({ name, type }: Parameter, value: string): boolean {
  try {
    return value !== '' && type.read(value, name, {}) === true
  } catch {
    return false
  }
}

interface FieldProblemProps {
  readonly id: string
  readonly value: string
  readonly problem: Problem | undefined
}

/** Repeats the text with a mark below the character at fault, while it is still the text that the problem refers to. */
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
      <span>{inPageWords(problem.message)}</span>
    </div>
  )
}

/** An example must not look like a value. */
function placeholderOf(parameter: Parameter): string {
  const { example } = parameter
  return example === undefined ? defaultText(parameter) : TEXTS.example(example)
}

function defaultText({ defaultSays, default: value, type }: Parameter): string {
  const text = value === undefined ? '' : type.write(value)
  return defaultSays ?? (text === '' ? TEXTS.none : text)
}
