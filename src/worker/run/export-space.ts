/**
 * Reserves space for exports. Each reserves what it will still need, so that exports that begin together do not fill a
 * disk on which each of them alone would have fit. If the disk fills up anyway, they are paused.
 */
import { freeBytesOf } from '../../gateway/export/export-metrics.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { targetOf } from '../../gateway/export/order-target.ts'
import { CapfleetError } from '../../shared/base/error.ts'

/** Bytes that an export will still need. */
export interface NeededSpace {
  /** Bytes for its files. */
  readonly files: bigint
  /** Bytes for spans that have been fetched and not been joined yet. */
  readonly spool: bigint
}

/**
 * Reserves this much space for the export, replacing its earlier reservation. Fails with export-store-full if there is
 * not enough.
 */
export async function reserveSpace(
  parts: ExportParts,
  order: ExportOrder,
  needed: NeededSpace,
): Promise<void> {
  const target = targetOf(parts, order)
  await reserveAt(parts, order, {
    place: placeOf(order),
    needed: needed.files,
    free: await target.freeBytes(),
  })
  await reserveAt(parts, order, {
    place: SPOOL,
    needed: needed.spool,
    free: await freeBytesOf(parts.spool.path),
  })
}

/** Releases the export's reservation. */
export async function releaseSpace({ store }: Pick<ExportParts, 'store'>, order: ExportOrder): Promise<void> {
  for (const place of [placeOf(order), SPOOL]) await store.space.reserve(place, order.id, 0n)
}

const SPOOL = 'spool'

function placeOf({ target }: ExportOrder): string {
  return `target:${target}`
}

interface Reservation {
  readonly place: string
  readonly needed: bigint
  /** undefined: unknown. */
  readonly free: bigint | undefined
}

async function reserveAt(
  { store }: ExportParts,
  { id }: ExportOrder,
  { place, needed, free }: Reservation,
): Promise<void> {
  await store.space.reserve(place, id, needed)
  if (free === undefined) return
  const others = await store.space.reserved(place, id)
  if (free - others >= needed) return
  await store.space.reserve(place, id, 0n)
  const where = place === SPOOL ? 'the spool' : place.replace(':', ' ')
  throw new CapfleetError(
    'export-store-full',
    `the export needs ${needed} bytes in ${where}; ${free} bytes are free, and ${others} are reserved for other exports; remove exports, or wait`,
  )
}
