/** The parameters of requests as rows: what each is called, does and may say, and how it is read and written. */
import { CapfleetError } from '../base/error.ts'
import type { TimeSourceAliases } from './time-source.ts'

/** A row: one parameter, in all that is to be known of it. */
export interface Parameter<Value = unknown> {
  readonly name: string
  /** What it does, in one sentence. */
  readonly says: string
  readonly type: ParameterType<Value>
  /** What an absent parameter means, and an empty one as a rule; left out: undefined. */
  readonly default?: Value
  /** The same in words, where it is no value of the parameter. */
  readonly defaultSays?: string
  /** Whether a request without it is refused. */
  readonly required?: true
  /** The kinds of download that have it; default: all. */
  readonly kinds?: readonly string[]
  /** Whether only devices have it; default: the gateway too. */
  readonly deviceOnly?: true
  /**
   * Whether a download has the same body with and without it: it may differ between a download and its continuation,
   * and is not written towards devices.
   */
  readonly leavesBody?: true
  /** Whether it is another one under a further name: a description has the other alone. */
  readonly isOtherSpelling?: true
  /** A value to try. */
  readonly example?: string
}

/** What the text of a parameter may be. */
export interface ParameterType<Value> {
  /** Its rules as JSON Schema has them, for descriptions of the API. */
  readonly schema: TextSchema
  /** What a number counts. */
  readonly unit?: string | undefined
  /** Whether an empty text is read as any other; else it means the default, because scripts pass unset variables. */
  readonly readsEmpty?: true
  /** Fails with bad-parameter, or an error of its own, that names the parameter; undefined means the default. */
  read(text: string, name: string, context: ReadContext): Value | undefined
  /** The text that is read back as the same value. */
  write(value: Value): string
}

export interface TextSchema {
  readonly type: 'integer' | 'string'
  readonly minimum?: bigint
  readonly maximum?: bigint
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly maxLength?: number
}

/** Where a request is read, on which depend the rows that count and what some texts mean. */
export interface ReadContext {
  /** Which kind of download is asked for. */
  readonly kind?: string
  /** Who reads: a device, the gateway for one device, or for the fleet. Default: a device. */
  readonly at?: 'device' | 'gateway' | 'fleet'
  /** Further spellings of TSMode, from the configuration. */
  readonly timeSourceAliases?: TimeSourceAliases
}

/** Rows by the name of the value that they give. */
export type ParameterRows = Readonly<Record<string, Parameter>>

/** What the rows give. */
export type ParameterValues<Rows> = { readonly [Name in keyof Rows]: ValueOf<Rows[Name]> }

type ValueOf<Row> = Row extends { readonly type: ParameterType<infer Value> }
  ? Value | WithoutParameter<Row>
  : never

type WithoutParameter<Row> = Row extends { readonly default: infer Default }
  ? Default
  : Row extends { readonly kinds: readonly string[] }
    ? undefined
    : Row extends { readonly required: true }
      ? never
      : undefined

/** A complaint about one parameter: "<name> <problem>". */
export function badParameter(name: string, problem: string, position?: number): CapfleetError {
  return new CapfleetError('bad-parameter', `${name} ${problem}`, { param: name, position })
}

/** A caller's text inside a message, bounded in length. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text)
}
