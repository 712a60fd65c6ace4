/** The schemas of answers as JSON Schema. */
import { z } from 'zod'

export interface AnswerSchema {
  /** What it points to under #/$defs/. */
  readonly $defs?: Readonly<Record<string, object>>
}

/** Without "additionalProperties: false": an answer may get further members. Schemas that have an `id` stand in $defs. */
export function answerSchema(schema: z.ZodType): AnswerSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => forGenerators(jsonSchema),
  })
  return rest as AnswerSchema
}

/** Leaves out what generators of clients make code of that does not compile, or refuses right answers. */
function forGenerators(schema: z.core.JSONSchema.BaseSchema): void {
  // Times take none, and in Python a text with one has a type that the member Str hides.
  delete schema.pattern
  // Where nothing else is said, 32 bits are taken.
  if (schema.type === 'integer') schema.format = 'int64'
  if (schema.const === undefined || schema.type === 'string') return
  // Is compared with texts.
  schema.description ??= `Always ${String(schema.const)}`
  delete schema.const
}
