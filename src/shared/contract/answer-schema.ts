/** The schemas of answers as JSON Schema. */
import { z } from 'zod'

export interface AnswerSchema {
  /** The schemas it refers to under #/$defs/. */
  readonly $defs?: Readonly<Record<string, object>>
}

/**
 * Without "additionalProperties: false", because an answer may get further members. Schemas that have an `id` are
 * placed in $defs.
 */
export function answerSchema(schema: z.ZodType): AnswerSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => forGenerators(jsonSchema),
  })
  return rest as AnswerSchema
}

/** Removes what makes client generators produce code that does not compile, or that rejects valid answers. */
function forGenerators(schema: z.core.JSONSchema.BaseSchema): void {
  // Not allowed with times, and in Python a text with a pattern gets a type that the member Str hides.
  delete schema.pattern
  // Without a format, generators assume 32 bits.
  if (schema.type === 'integer') schema.format = 'int64'
  if (schema.const === undefined || schema.type === 'string') return
  // For a constant that is compared with texts.
  schema.description ??= `Always ${String(schema.const)}`
  delete schema.const
}
