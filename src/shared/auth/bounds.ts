/** Bounds of callers: parsed from the users file and from tokens, combined, and compared. */
import { z } from 'zod'
import { type Bounds, UNBOUNDED } from '../base/caller.ts'
import { isEnclosed } from '../query/filter/joined-filter.ts'

/** Maximum length of a filter or of a selection of devices. */
const TEXT_MAX = 4_096

/** Bounds as written for a user of the users file, a role of an identity provider, or a token. */
export const boundsSchema = z.strictObject({
  devices: z.string().min(1).max(TEXT_MAX).optional(),
  filter: z
    .string()
    .min(1)
    .max(TEXT_MAX)
    .refine(isEnclosed, 'must have a closing parenthesis for each opening one')
    .refine(isFilter, 'is blank, which would let all packets pass; remove it, or specify what may pass')
    .optional(),
  spanMaxS: z.int().min(1).optional(),
  bytesPerDay: z.int().min(1).optional(),
  streamsMax: z.int().min(1).optional(),
})
export type WrittenBounds = z.infer<typeof boundsSchema>

/** Bounds as stored with a token: those of its issuer, and its own. */
export const keptBoundsSchema = z.strictObject({
  devices: z.array(z.string()),
  filters: z.array(z.string().refine(isEnclosed).refine(isFilter)),
  spanMaxS: z.int().min(1).optional(),
  quotas: z.array(
    z.strictObject({
      holder: z.string(),
      bytesPerDay: z.int().min(1).optional(),
      streamsMax: z.int().min(1).optional(),
    }),
  ),
})

/** A blank filter would match everything. */
function isFilter(text: string): boolean {
  return text.trim() !== ''
}

/** `holder`: the user or token that they are written for. */
export function boundsOf(holder: string, written: WrittenBounds): Bounds {
  const { devices, filter, spanMaxS, bytesPerDay, streamsMax } = written
  const isLimited = bytesPerDay !== undefined || streamsMax !== undefined
  return {
    devices: devices === undefined ? [] : [devices],
    filters: filter === undefined ? [] : [filter],
    spanMaxS,
    quotas: isLimited ? [{ holder, bytesPerDay, streamsMax }] : [],
  }
}

/** The bounds that both allow. */
export function joinBounds(one: Bounds, other: Bounds): Bounds {
  return {
    devices: [...new Set([...one.devices, ...other.devices])],
    filters: [...new Set([...one.filters, ...other.filters])],
    spanMaxS: least(one.spanMaxS, other.spanMaxS),
    quotas: [
      ...one.quotas,
      ...other.quotas.filter(({ holder }) => !one.quotas.some((own) => own.holder === holder)),
    ],
  }
}

/** Whether the two are equal. */
export function sameBounds(one: Bounds, other: Bounds): boolean {
  return JSON.stringify(joinBounds(one, UNBOUNDED)) === JSON.stringify(joinBounds(other, UNBOUNDED))
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return Math.min(one, other)
}
