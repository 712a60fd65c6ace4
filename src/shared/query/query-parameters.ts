/**
 * The parameters of requests as rows: the name, description, type and default of each, and how it is parsed and
 * written.
 */
import { CapfleetError } from '../base/error.ts'
import type { TimeSourceAliases } from './time-source.ts'

/** A row: everything to know about one parameter. */
export interface Parameter<Value = unknown> {
  readonly name: string
  /** What it does, in one sentence. */
  readonly says: string
  readonly type: ParameterType<Value>
  /** What an absent parameter means, and usually an empty one; absent: undefined. */
  readonly default?: Value
  /** The same in words, if it is not a value of the parameter. */
  readonly defaultSays?: string
  /** Whether a request without it is rejected. */
  readonly required?: true
  /** The kinds of download that have it. Default: all. */
  readonly kinds?: readonly string[]
  /** Whether only devices have it. Default: the gateway too. */
  readonly deviceOnly?: true
  /**
   * Whether it leaves the body of a download unchanged: it may then differ between a download and its continuation,
   * and is not sent to devices.
   */
  readonly leavesBody?: true
  /** Whether it is an alternative name of another one: a description only lists the other. */
  readonly isOtherSpelling?: true
  /** A value to try. */
  readonly example?: string
}

/** The possible texts of a parameter. */
export interface ParameterType<Value> {
  /** Its rules as JSON Schema, for descriptions of the API. */
  readonly schema: TextSchema
  /** Unit of a number. */
  readonly unit?: string | undefined
  /**
   * Whether an empty text is parsed like any other; else it means the default, because scripts pass unset variables.
   */
  readonly readsEmpty?: true
  /** What to do about a text that is longer than its maxLength. Default: shorten it. */
  readonly whenTooLong?: string
  /** Fails with bad-parameter, or an error of its own, that names the parameter; undefined means the default. */
  read(text: string, name: string, context: ReadContext): Value | undefined
  /** The text that is parsed into the same value. */
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

/** Where a request is read, which determines the applicable rows and the meaning of some texts. */
export interface ReadContext {
  /** The kind of download that is requested. */
  readonly kind?: string
  /** Who reads it: a device, the gateway for one device, or for the fleet. Default: a device. */
  readonly at?: 'device' | 'gateway' | 'fleet'
  /** Additional spellings of TSMode, from the configuration. */
  readonly timeSourceAliases?: TimeSourceAliases
}

/** Rows by the name of their value. */
export type ParameterRows = Readonly<Record<string, Parameter>>

/** The values of the rows. */
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

/** An error about one parameter: "<name> <problem>". */
export function badParameter(name: string, problem: string, position?: number): CapfleetError {
  return new CapfleetError('bad-parameter', `${name} ${problem}`, { param: name, position })
}

/** A caller's text inside a message, limited in length. */
export function quote(text: string): string {
  return visible(JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text))
}

/** The text without characters that control a terminal, or the order of what it shows: they are written as escapes. */
export function visible(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}
