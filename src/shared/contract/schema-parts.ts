/** Building blocks for the schemas of answers. */
import { z } from 'zod'

/** An object with its name in descriptions of the API. */
export function named<Shape extends z.ZodRawShape>(id: string, members: Shape): z.ZodObject<Shape> {
  return z.object(members).meta({ id })
}

/** Decimal text of an integer that may exceed the precision of a double. */
export const decimal = z
  .string()
  .regex(/^-?\d+$/)
  .meta({ id: 'Decimal', description: 'An integer as decimal text' })

/** Epoch nanoseconds as decimal text. */
export const nanoseconds = z
  .string()
  .regex(/^\d{1,20}$/)
  .meta({ id: 'Nanoseconds', description: 'Epoch nanoseconds as decimal text' })

/** An integer of any size, for readers that keep all of its digits. */
export const integer = z.number().refine(Number.isInteger).meta({ type: 'integer' })

type Members = Record<string, z.ZodType>

/** Members of one type. */
export function each(names: readonly string[], type: z.ZodType): Members {
  return Object.fromEntries(names.map((name) => [name, type]))
}

/** Integers that may exceed the precision of a double, accompanied by their exact text. */
export function exact(names: readonly string[]): Members {
  return {
    ...each(names, integer),
    ...each(
      names.map((name) => `${name}Exact`),
      decimal.optional(),
    ),
  }
}

/** "cap0", "cap1" ... */
export function numbered(count: number, name: (index: number) => string): readonly string[] {
  return Array.from({ length: count }, (_, index) => name(index))
}

/** Names of members that are not readings, because the machine lacks the sensor. */
export const unavailable = z
  .array(z.string())
  .describe('Members without a reading, because the machine lacks the sensor; they are 0, false or empty')

/** Why something failed, inside an answer that succeeded. */
export const failure = named('Failure', { code: z.string(), detail: z.string() })
