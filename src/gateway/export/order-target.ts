/** Where the files of an export are kept, along with the manifest. */
import { CapfleetError } from '../../shared/base/error.ts'
import type { ExportOrder } from './export-order.ts'
import type { ExportParts } from './export-parts.ts'
import type { ExportTarget } from './target/export-target.ts'

export const MANIFEST_NAME = 'manifest.json'

/** Fails with export-target-unavailable if the target is no longer configured. */
export function targetOf({ targets }: Pick<ExportParts, 'targets'>, { target }: ExportOrder): ExportTarget {
  const found = targets.get(target)
  if (found !== undefined) return found
  throw new CapfleetError(
    'export-target-unavailable',
    `exports.targets no longer has "${target}"; put it back, or cancel the export`,
  )
}
